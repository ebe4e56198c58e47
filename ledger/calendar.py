"""Accounting days, weeks and months of a time zone, as spans of UTC hours. Pure.

The ledger's atom is the clock hour in UTC, and an hour belongs to the day in which it begins. So a day has 23, 24 or
25 hours, and where a zone is off by half an hour its day begins with the first UTC hour after local midnight.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from core.clock import from_ms, to_ms
from core.units import HOUR_MS

ONE_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Span:
    """A day, week or month.

    Attributes:
        key: ``2026-10-05``, ``2026-W41`` (ISO 8601) or ``2026-10``.
        start_ms: where it begins locally: midnight.
        from_ms, to_ms: start of its first hour, end of its last.
    """

    key: str
    start_ms: int
    from_ms: int
    to_ms: int


class Calendar:
    """Days, weeks and months of one zone; asked again and again for the same days, it remembers them."""

    def __init__(self, zone: str) -> None:
        self.zone = zone
        self._zone = ZoneInfo(zone)
        self._midnights: dict[date, int] = {}
        self._days: dict[int, Span] = {}

    def day_at(self, at_ms: int) -> Span:
        """The day that the hour around ``at_ms`` belongs to."""
        hour_ms = at_ms - at_ms % HOUR_MS
        span = self._days.get(hour_ms)
        if span is None:
            span = self._days[hour_ms] = self._day(self._date(hour_ms))
        return span

    def day(self, key: str) -> Span:
        """The day ``2026-10-05``. Raises ``ValueError`` where it is not written so."""
        return self._day(date.fromisoformat(key))

    def date_ms(self, at_ms: int) -> int:
        """The date of ``day_at`` as its midnight in UTC, for words that print dates of UTC."""
        return to_ms(datetime.fromisoformat(self.day_at(at_ms).key).replace(tzinfo=UTC))

    def begins_within_an_hour(self, at_ms: int) -> bool:
        """Whether midnight falls into a UTC hour there, as in zones that are off by half an hour."""
        return self.day_at(at_ms).start_ms % HOUR_MS != 0

    def days(self, from_ms: int, to_ms: int) -> list[Span]:
        """Days with an hour that begins from ``from_ms`` (exclusive of the hour before it) and before ``to_ms``."""
        return self._spans(from_ms, to_ms, self.day_at)

    def week_at(self, at_ms: int) -> Span:
        """The ISO week (Monday to Sunday) of the day of ``at_ms``."""
        day = date.fromisoformat(self.day_at(at_ms).key)
        year, week, weekday = day.isocalendar()
        monday = day - (weekday - 1) * ONE_DAY
        return self._span(f"{year}-W{week:02d}", monday, monday + 7 * ONE_DAY)

    def weeks(self, from_ms: int, to_ms: int) -> list[Span]:
        """Weeks that overlap a time, as ``days``."""
        return self._spans(from_ms, to_ms, self.week_at)

    def month_at(self, at_ms: int) -> Span:
        """The month of the day of ``at_ms``."""
        return self._month(date.fromisoformat(self.day_at(at_ms).key).replace(day=1))

    def months(self, from_ms: int, to_ms: int) -> list[Span]:
        """Months that overlap a time, as ``days``."""
        return self._spans(from_ms, to_ms, self.month_at)

    def month(self, key: str) -> Span:
        """The month ``2026-10``.

        Raises:
            ValueError: it is not written so.
        """
        if len(key) != len("2026-10"):
            raise ValueError(f"{key!r} is not a month such as 2026-10")
        try:
            return self._month(date.fromisoformat(f"{key}-01"))
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{key!r} is not a month such as 2026-10") from error

    def _month(self, first: date) -> Span:
        return self._span(f"{first:%Y-%m}", first, (first + 31 * ONE_DAY).replace(day=1))

    def _day(self, day: date) -> Span:
        return self._span(day.isoformat(), day, day + ONE_DAY)

    def _span(self, key: str, first: date, after: date) -> Span:
        return Span(key, self._midnight_ms(first), self._first_hour_ms(first), self._first_hour_ms(after))

    def _spans(self, from_ms: int, to_ms: int, at: Callable[[int], Span]) -> list[Span]:
        found: list[Span] = []
        at_ms = from_ms
        while at_ms < to_ms:
            span = at(at_ms)
            found.append(span)
            at_ms = span.to_ms
        return found

    def _date(self, hour_ms: int) -> date:
        day = from_ms(hour_ms).astimezone(self._zone).date()
        while self._first_hour_ms(day) > hour_ms:
            day -= ONE_DAY
        # A date that a zone skipped has no hours: the next one begins with the same.
        while self._first_hour_ms(day + ONE_DAY) <= hour_ms:
            day += ONE_DAY
        return day

    def _first_hour_ms(self, day: date) -> int:
        midnight_ms = self._midnight_ms(day)
        return midnight_ms + -midnight_ms % HOUR_MS

    def _midnight_ms(self, day: date) -> int:
        if day not in self._midnights:
            self._midnights[day] = to_ms(datetime(day.year, day.month, day.day, tzinfo=self._zone))
        return self._midnights[day]


def utc_month_parts(from_ms_: int, to_ms_: int) -> list[tuple[int, int]]:
    """A span cut where months begin in UTC: a billing period is one of those, and no charge may cross it (FOCUS)."""
    parts = []
    start_ms = from_ms_
    while start_ms < to_ms_:
        at = from_ms(start_ms)
        month = at.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        border_ms = to_ms((month + 31 * ONE_DAY).replace(day=1))
        parts.append((start_ms, min(border_ms, to_ms_)))
        start_ms = border_ms
    return parts
