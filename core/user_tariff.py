"""A tariff as the user gives it: one price of a kWh, or a price by weekday and hour of the local clock.

US dollars per kWh. A tariff by time of use is a week of 168 local hours, each with exactly one price: a hole or an overlap
is refused by name. Seasons and price rises are tariffs of the same name that follow each other. Standard library only.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAY_H: Final = 24
WEEK_H: Final = 7 * DAY_H
HIGHEST_USD_PER_KWH: Final = Decimal(10)
"""Far above the dearest business tariff that ships (0.28): beyond it the unit is wrong (cents, or MWh)."""
DECIMALS: Final = 6
"""Prices are kept in whole micro-dollars."""


@dataclass(frozen=True, slots=True)
class Period:
    """A price for some hours of some weekdays, on the local clock.

    Attributes:
        weekdays: 0 = Monday … 6 = Sunday. from_hour: 0–23, inclusive.
        to_hour: 1–24, exclusive; not after ``from_hour``: it ends on the next day, and the weekday is that of its start.
        usd_per_kwh: dollars.
    """

    weekdays: tuple[int, ...]
    from_hour: int
    to_hour: int
    usd_per_kwh: Decimal

    def __post_init__(self) -> None:
        """Refuse what is no period. Raises ``ValueError`` with field, value and what to do."""
        if not self.weekdays or any(not 0 <= day < len(WEEKDAYS) for day in self.weekdays):
            raise ValueError(f"weekdays is {list(self.weekdays)}: give one or more of {', '.join(WEEKDAYS)}")
        if not 0 <= self.from_hour < DAY_H:
            raise ValueError(f"from_hour is {self.from_hour}: give 0 to 23")
        if not 0 < self.to_hour <= DAY_H:
            raise ValueError(f"to_hour is {self.to_hour}: give 1 to 24, the hour at which it ends")
        check_usd_per_kwh(self.usd_per_kwh)

    @property
    def hours(self) -> list[int]:
        """The hours of the week it is for: 0 is Monday 00:00."""
        length = (self.to_hour - self.from_hour) % DAY_H or DAY_H
        return [
            (day * DAY_H + self.from_hour + at) % WEEK_H
            for day in sorted(set(self.weekdays))
            for at in range(length)
        ]


@dataclass(frozen=True, slots=True)
class Tariff:
    """What electricity costs under one contract, over one span of time.

    Attributes:
        id: of the row in the store. name: what profiles call it; later prices carry the same name.
        time_zone: of the local clock (``Europe/Berlin``); needed by time of use, and says where a day begins.
        usd_per_kwh: of a flat tariff. periods: of one by time of use. Exactly one of the two is given.
        valid_from_ms, valid_to_ms: in force from (inclusive) to (exclusive; None: still).
        note: the user's own words.
    """

    id: int
    name: str
    time_zone: str | None
    usd_per_kwh: Decimal | None
    periods: tuple[Period, ...]
    valid_from_ms: int = 0
    valid_to_ms: int | None = None
    note: str = ""
    week: tuple[Decimal, ...] = field(init=False, repr=False, compare=False)
    """Price of each local hour of the week; empty where one price is for all."""

    def __post_init__(self) -> None:
        """Refuse a tariff that could not be applied. Raises ``ValueError`` with field, value and what to do."""
        if not self.name.strip() or self.name != self.name.strip():
            raise ValueError(f"tariff name is {self.name!r}: give a name, without spaces around it")
        if (self.usd_per_kwh is None) is not bool(self.periods):
            raise ValueError(
                f"tariff {self.name!r}: give either usd_per_kwh (one price) or periods (prices by weekday and hour)"
            )
        if self.time_zone is not None:
            zone_of(self.time_zone)
        elif self.periods:
            raise ValueError(
                f"tariff {self.name!r}: time_zone is not given, and its periods are local hours: give one such as Europe/Berlin"
            )
        if self.usd_per_kwh is not None:
            check_usd_per_kwh(self.usd_per_kwh)
        if self.valid_to_ms is not None and self.valid_to_ms <= self.valid_from_ms:
            raise ValueError(
                f"tariff {self.name!r}: valid_to is not after valid_from: give a later end, or none"
            )
        object.__setattr__(self, "week", _week(self.name, self.periods) if self.periods else ())

    def in_force(self, at_ms: int) -> bool:
        """Whether it holds at an instant."""
        return self.valid_from_ms <= at_ms and (self.valid_to_ms is None or at_ms < self.valid_to_ms)


def zone_of(name: str) -> ZoneInfo:
    """The time zone of that name. Raises ``ValueError`` where there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"time_zone is {name!r}: use a name such as Europe/Berlin, or UTC") from error


def check_usd_per_kwh(price: Decimal) -> None:
    """Refuse what is no price of a kWh. Raises ``ValueError``."""
    if not price.is_finite() or not 0 <= price <= HIGHEST_USD_PER_KWH:
        raise ValueError(f"usd_per_kwh is {price}: give dollars per kWh from 0 to {HIGHEST_USD_PER_KWH}")
    if price != round(price, DECIMALS):
        raise ValueError(f"usd_per_kwh is {price}: give at most {DECIMALS} decimals")


def _week(name: str, periods: Sequence[Period]) -> tuple[Decimal, ...]:
    """Price of each hour of the week. Raises ``ValueError`` naming the first hours without one, or with several."""
    prices: list[list[Decimal]] = [[] for _ in range(WEEK_H)]
    for period in periods:
        for hour in period.hours:
            prices[hour].append(period.usd_per_kwh)
    wrong = next((hour for hour, found in enumerate(prices) if len(found) != 1), None)
    if wrong is None:
        return tuple(found[0] for found in prices)
    day, first = divmod(wrong, DAY_H)
    same = [len(found) for found in prices[wrong : (day + 1) * DAY_H]]
    count = next((at for at, number in enumerate(same) if number != same[0]), len(same))
    span = f"{WEEKDAYS[day]} {first:02d}:00–{first + count:02d}:00"
    if prices[wrong]:
        raise ValueError(f"tariff {name!r}: periods overlap on {span}: give each hour of the week one price")
    raise ValueError(f"tariff {name!r}: periods leave out {span}: give each hour of the week a price")
