"""The month in progress: spent so far, and where it is expected to end, with the chart of both."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from markupsafe import Markup

from api import formats
from api.charts_band_line import Step, band_line
from api.pages.view import View
from api.resources.forecast import month_of, read_month
from core.clock import from_ms
from core.units import DAY_MS
from ledger.budgets import Outlook

ONE_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class DayLine:
    """One day of a month: the sum at its end, known or expected."""

    name: str
    known: Decimal | None
    p10: Decimal | None = None
    p50: Decimal | None = None
    p90: Decimal | None = None


@dataclass(frozen=True, slots=True)
class MonthAhead:
    """A month: where it stands and where it goes.

    Attributes:
        name: for people. title: what the chart shows. chart: None where nothing is known. days: the same as a table.
        outlook: the figures. why: no forecast, in a sentence. href: the page over this month; empty where it is shown.
    """

    name: str
    title: str
    chart: Markup | None
    days: tuple[DayLine, ...]
    outlook: Outlook | None
    why: str | None
    href: str = ""


def days_of(month: date, after: date, of: Outlook) -> tuple[DayLine, ...]:
    """Every day of a month with the sum at its end; days that are over are known, later ones expected."""
    known = dict(of.by_day)
    found = []
    for n in range((after - month).days):
        day = month + n * ONE_DAY
        name = f"{day.day} {day:%b}"
        ahead = None if of.first is None else (day - of.first).days
        if ahead is not None and 0 <= ahead < len(of.path):
            low, middle, high = of.path[ahead]
            found.append(DayLine(name, known.get(day), low, middle, high))
        else:
            found.append(DayLine(name, known.get(day)))
    return tuple(found)


def chart_of(days: Sequence[DayLine], *, label: str, limit: Decimal | None = None) -> Markup | None:
    """The days as a line with its band; None where nothing is known."""
    if not any(day.known is not None or day.p50 is not None for day in days):
        return None
    steps = [
        # The day in progress is drawn as expected: its sum so far is not its end.
        Step(
            day.name,
            None if day.p50 is not None else _float(day.known),
            *map(_float, (day.p10, day.p50, day.p90)),
        )
        for day in days
    ]
    return band_line(
        steps,
        label=label,
        limit=_float(limit),
        limit_text="" if limit is None else f"budget {formats.money(limit)}",
    )


def month_ahead(view: View) -> MonthAhead | None:
    """The month in progress; only a way to it where another period is shown, and None where reports are filtered."""
    scope, address = view.scope, view.address
    span = month_of(scope.settings, scope.now_ms, None)
    name = f"{from_ms(span.start_ms + DAY_MS):%B}"
    if address.get("month") != span.key:
        return MonthAhead(
            name, "", None, (), None, None, address.href(month=span.key, since=None, until=None, through=None)
        )
    if any(address.every(key) for key in ("gpu", "host", "model", "owner", "namespace", "workload")):
        return None
    spent = read_month(scope.session, scope.settings, scope.now_ms, span, by_host=False)
    of = spent.outlook(spent.cells, of_hosts=False)
    days = days_of(date.fromisoformat(f"{span.key}-01"), spent.after, of)
    title = f"{name} has cost {formats.money(of.spent_usd)} so far"
    if of.month_end is not None and not of.is_over:
        title = f"{name} is expected to end at {formats.money(of.month_end.p50)}"
    return MonthAhead(name, title, chart_of(days, label=title), days, of, of.why)


def _float(amount: Decimal | None) -> float | None:
    return None if amount is None else float(amount)
