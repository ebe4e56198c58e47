"""What a kilowatt-hour costs in an hour, by the tariff in force.

The ledger's hours are UTC, so the local time at which an hour begins decides: at a change of the clocks the hour that
comes twice is priced twice, the one that is left out never, and where a zone is half an hour off, prices change up to
half an hour late. Source: cost-model 2 and 3.
"""

from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Final

from core.clock import from_ms, to_ms
from core.units import DAY_MS, HOUR_MS
from core.user_tariff import DAY_H, WEEK_H, WEEKDAYS, Tariff, zone_of

_RESTS: Final = ("day", "sday", "nesday", "rsday", "day", "urday", "day")
_DAYS: Final = {word: day for day, rest in zip(WEEKDAYS, _RESTS, strict=True) for word in (day, day + rest)}


def usd_per_kwh(tariff: Tariff, at_ms: int) -> Decimal:
    """Dollars per kWh at an instant, in force or not."""
    if tariff.usd_per_kwh is not None:
        return tariff.usd_per_kwh
    assert tariff.time_zone is not None
    local = from_ms(at_ms).astimezone(zone_of(tariff.time_zone))
    return tariff.week[local.weekday() * DAY_H + local.hour]


def hours_utc(tariff: Tariff, at_ms: int) -> tuple[Decimal, ...] | None:
    """Mean price of each hour of a UTC day, 0 first, over the seven days from that of ``at_ms`` on; None: one price."""
    if not tariff.periods:
        return None
    day_ms = at_ms - at_ms % DAY_MS
    prices = [usd_per_kwh(tariff, day_ms + at * HOUR_MS) for at in range(WEEK_H)]
    return tuple(sum(prices[hour::DAY_H], Decimal(0)) / 7 for hour in range(DAY_H))


def local_day_ms(day: date, time_zone: str) -> int:
    """Start of a local day, epoch milliseconds. Raises ``ValueError`` where there is no such zone."""
    return to_ms(datetime(day.year, day.month, day.day, tzinfo=zone_of(time_zone)))


def parse_weekdays(text: str) -> tuple[int, ...]:
    """``mon-fri``, ``sat,sun``, ``all`` as weekdays (0 = Monday); a range may run over Sunday. Raises ``ValueError``."""
    if text.strip().casefold() == "all":
        return tuple(range(len(WEEKDAYS)))
    days: set[int] = set()
    for part in text.split(","):
        first, dash, last = (_DAYS.get(word.strip().casefold(), word) for word in part.partition("-"))
        if first not in WEEKDAYS or (dash and last not in WEEKDAYS):
            raise ValueError(
                f"weekdays is {text!r}: give all, names of {', '.join(WEEKDAYS)}, or a range such as mon-fri"
            )
        start = WEEKDAYS.index(first)
        length = (WEEKDAYS.index(last) - start) % 7 + 1 if dash else 1
        days.update((start + at) % 7 for at in range(length))
    return tuple(sorted(days))


def weekdays_text(weekdays: Iterable[int]) -> str:
    """Weekdays as ``parse_weekdays`` reads them."""
    days = sorted(set(weekdays))
    if len(days) == len(WEEKDAYS):
        return "all"
    if len(days) > 2 and days[-1] - days[0] == len(days) - 1:
        return f"{WEEKDAYS[days[0]]}-{WEEKDAYS[days[-1]]}"
    return ",".join(WEEKDAYS[day] for day in days)


def overlap(tariffs: Iterable[Tariff], new: Tariff) -> Tariff | None:
    """A tariff of the same name that is in force at the same time as ``new``; None: it fits in."""
    return next(
        (
            old
            for old in tariffs
            if old.name == new.name
            and (new.valid_to_ms is None or old.valid_from_ms < new.valid_to_ms)
            and (old.valid_to_ms is None or new.valid_from_ms < old.valid_to_ms)
        ),
        None,
    )
