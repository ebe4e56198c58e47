"""How a month goes against its budget: spent so far, expected at its end, when it breaks, what is left a day. Pure.

    over      more was spent than the budget
    at_risk   the p90 of the month's end is above it: more than one chance in ten
    ok        neither
    (none)    nothing is known of the month yet

Where no forecast can be made (``ledger.forecast`` says why), only what was spent decides between over and ok.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_FLOOR, Decimal
from enum import StrEnum
from operator import attrgetter
from typing import Final

from core.money import CENT
from ledger.forecast import DaySpend, Forecast, Range, Refused, forecast

ONE_DAY: Final = timedelta(days=1)
ZERO: Final = Decimal(0)


class Status(StrEnum):
    """How a month stands against its budget."""

    OK = "ok"
    AT_RISK = "at_risk"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Outlook:
    """A month of some part of the fleet.

    Attributes:
        spent_usd: so far; None: nothing of the month is known, or nothing of it has a price.
        month_end: p10, p50 and p90 of what it will come to, or what it came to; None: not known.
        first: the first day that is not over yet; None: the month is.
        path: what will be spent by the end of each day from ``first`` on, with what was spent before.
        by_day: what was spent by the end of each day so far.
        days_left: with the one in progress. is_over: its days are all known.
        history_days, left_out: as in ``ledger.forecast``. why: no forecast, in a sentence.
    """

    spent_usd: Decimal | None
    month_end: Range | None
    first: date | None
    path: tuple[Range, ...]
    by_day: tuple[tuple[date, Decimal], ...]
    days_left: int
    is_over: bool
    history_days: int
    left_out: dict[str, int]
    why: str | None


@dataclass(frozen=True, slots=True)
class Standing:
    """An outlook against an amount.

    Attributes:
        breaks_on: the day on which it was or (at p50) will be exceeded. earliest, latest: the same at p90 and at p10;
            None: not in this month.
        left_usd: amount less spent; below 0 where it is over. left_usd_per_day: for each day left, in whole cents.
    """

    status: Status | None
    breaks_on: date | None
    earliest: date | None
    latest: date | None
    left_usd: Decimal | None
    left_usd_per_day: Decimal | None


def outlook(days: Sequence[DaySpend], month: date, after: date, first: date) -> Outlook:
    """A month from its days and those before it.

    Args:
        days: of the past, the month's so far among them, in order of time.
        month, after: the first day of the month and of the next.
        first: the first day that is not over, as far as data tell; days of it and later are in part.
    """
    own = [day for day in days if month <= day.day < after]
    is_priced = any(day.priced_ratio for day in own)
    is_unpriced = not is_priced and any(day.priced_ratio is not None for day in own)
    spent = None if not own or is_unpriced else sum((day.usd for day in own), ZERO)
    by_day = tuple(_running(own))
    if first >= after:
        known = None if spent is None else Range(spent, spent, spent)
        why = "nothing of it is priced" if is_unpriced else None if own else "no data reach into it"
        return Outlook(spent, known, None, (), by_day, 0, True, len(own), {}, why)
    days_left = (after - max(first, month)).days
    if first < month:
        why = f"data end on {first - ONE_DAY}, before the month begins"
        return Outlook(None, None, month, (), (), days_left, False, 0, {}, why)
    found = forecast(days, first, after)
    if is_unpriced or isinstance(found, Refused):
        why = "nothing of it is priced" if is_unpriced else found.why if isinstance(found, Refused) else None
        return Outlook(
            spent, None, first, (), by_day, days_left, False, found.history_days, dict(found.left_out), why
        )
    before = sum((day.usd for day in own if day.day < first), ZERO)
    path = tuple(_from(before, spent or ZERO, found))
    return Outlook(
        spent or ZERO,
        path[-1],
        first,
        path,
        by_day,
        days_left,
        False,
        found.history_days,
        dict(found.left_out),
        None,
    )


def standing(of: Outlook, amount_usd: Decimal) -> Standing:
    """The outlook against a budget of ``amount_usd`` for the month."""
    spent = of.spent_usd
    if spent is None:
        return Standing(None, None, None, None, None, None)
    left = amount_usd - spent
    a_day = (max(left, ZERO) / of.days_left).quantize(CENT, ROUND_FLOOR) if of.days_left else None
    if spent > amount_usd:
        broke = next(day for day, total in of.by_day if total > amount_usd)
        return Standing(Status.OVER, broke, broke, broke, left, a_day)
    expected, earliest, latest = (_breaks(of, amount_usd, name) for name in ("p50", "p90", "p10"))
    status = Status.OK if earliest is None else Status.AT_RISK
    return Standing(status, expected, earliest, latest, left, a_day)


def _breaks(of: Outlook, amount_usd: Decimal, name: str) -> date | None:
    value = attrgetter(name)
    for n, total in enumerate(of.path):
        if of.first is not None and value(total) > amount_usd:
            return of.first + n * ONE_DAY
    return None


def _running(own: Sequence[DaySpend]) -> Iterator[tuple[date, Decimal]]:
    total = ZERO
    for day in own:
        total += day.usd
        yield day.day, total


def _from(before: Decimal, spent: Decimal, found: Forecast) -> Iterator[Range]:
    """The path on top of what the days before cost; never below what the day in progress has cost already."""
    for total in found.path:
        yield Range(*(max(spent, (before + value).quantize(CENT)) for value in total))
