"""Hours that are read when they are asked for: a sequence like any other, with its days known before."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from itertools import compress
from typing import Any, Final, Generic, TypeVar, overload

from core.days import ALL_DAY, HOURS, seen_hours
from core.hour_columns import column_of, rows_of
from core.hours import EngineHour, GpuHour, HostHour
from core.units import HOUR_MS

H = TypeVar("H", bound=GpuHour | EngineHour | HostHour)
D = TypeVar("D")
T = TypeVar("T")


class HourSeries(Sequence[H], Generic[H, D]):
    """Hours of one subject in a window, by time, that some store reads on demand.

    ``len`` and truth are known from the days. One hour by its number reads its day (``reversed`` therefore reads as
    far back as it is followed), ``since`` what it returns, anything else the whole.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def days(self) -> Sequence[D]:
        """Its days, by time; a day at the edge of the window holds only the hours within."""

    @property
    def outlines(self) -> Sequence[D]:
        """Its days, of which only what they say of each hour may be asked, not their ``whole``."""
        return self.days

    def busy_by_median(self) -> Mapping[float, tuple[int, int]]:
        """Of an engine: its busy hours, and their busy seconds, by the median batch of the hour."""
        return busy_by_median_of(self.days)

    @property
    @abstractmethod
    def parts(self) -> Sequence[H]:
        """The same hours merged into fewer, such as one a day: enough for whatever adds up."""

    @abstractmethod
    def starts(self) -> Sequence[int]:
        """When each hour begins."""

    def starts_with(self, name: str) -> Sequence[int]:
        """When each of the hours begins whose ``covered_s`` (``busy_s`` of an engine) is above 0."""
        return starts_of_masks(masks_of(self.days, name))

    def last_with(self, name: str) -> int | None:
        """When the newest of these hours begins; None without any."""
        return last_of_masks(masks_of(self.days, name))

    def edges_ms(self) -> tuple[int, int]:
        """When its first and its last hour begin; it has hours."""
        starts = self.starts()
        return starts[0], starts[-1]

    def every_day(self, flag: str) -> bool:
        """Whether a flag of its days, such as ``paired``, holds for all of them."""
        return all(getattr(day, flag) for day in self.days)

    def ends_s(self) -> tuple[float, float]:
        """Covered seconds of its first and of its last hour, rounded; it has hours."""
        return ends_of(self.days)

    def columns(self, names: Sequence[str], make: Callable[..., T]) -> T:
        """Some columns of all its hours, by their names in the hour's table, without the rest; ``make`` takes each as a tuple."""
        hours = self.all()
        return make(*[tuple([column_of(hour, name) for hour in hours]) for name in names])

    def read_columns(
        self, of_each: Sequence["HourSeries[H, D]"], names: Sequence[str], make: Callable[..., Sized]
    ) -> None:
        """Let ``columns`` of some series be ready, read together where they lie together; else they are read when asked."""

    def since_each(self, wanted: Sequence[tuple["HourSeries[H, D]", int]]) -> list[Sequence[H]]:
        """What ``since`` gives for each of some series of this kind, read together where that is cheaper."""
        return [series.since(from_ms) for series, from_ms in wanted]

    @abstractmethod
    def of_day(self, day_ms: int) -> Sequence[H]:
        """Its hours of one day."""

    @abstractmethod
    def since(self, from_ms: int) -> Sequence[H]:
        """Its hours that begin at or after a time."""

    @abstractmethod
    def all(self) -> Sequence[H]:
        """All of its hours."""

    def __len__(self) -> int:
        return len(self.starts())

    def __iter__(self) -> Iterator[H]:
        return iter(self.all())

    @overload
    def __getitem__(self, index: int) -> H: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[H]: ...
    def __getitem__(self, index: int | slice) -> H | Sequence[H]:
        if isinstance(index, slice):
            return self.all()[index]
        start = self.starts()[index]
        return next(hour for hour in self.of_day(start) if hour.hour_ms == start)


def parts_of(hours: Sequence[H]) -> Sequence[H]:
    """What to add up in place of ``hours``: their days where those are known, else themselves."""
    # Asked so often that looking for the class, which is abstract, shows.
    parts: Sequence[H] = getattr(hours, "parts", hours)
    return parts


def starts_of(hours: Sequence[H]) -> Sequence[int]:
    """When each of ``hours`` begins, without reading them where their days are known."""
    return hours.starts() if isinstance(hours, HourSeries) else [hour.hour_ms for hour in hours]


def figures_of(hours: Sequence[GpuHour], names: Sequence[str]) -> Sequence[Sequence[Any]]:
    """Columns of what is added up in place of ``hours``; of stored ones straight from their rows."""
    return rows_of(parts_of(hours), *names)


def hours_since(hours: Sequence[H], from_ms: int) -> Sequence[H]:
    """Those of ``hours`` that begin at or after a time; of stored ones only they are read."""
    if isinstance(hours, HourSeries):
        return hours.since(from_ms)
    return [hour for hour in hours if hour.hour_ms >= from_ms]


def each_since(wanted: Sequence[tuple[Sequence[H], int]]) -> list[Sequence[H]]:
    """``hours_since`` for each of many; stored ones are read together."""
    stored = [(hours, from_ms) for hours, from_ms in wanted if isinstance(hours, HourSeries)]
    if not stored or len(stored) < len(wanted):
        return [hours_since(hours, from_ms) for hours, from_ms in wanted]
    return stored[0][0].since_each(stored)


Masks = Sequence[tuple[int, int]]
"""Start of each day with a bit for each of its hours, as in ``GpuDay.seen``."""
_BITS: Final = tuple(1 << at for at in range(HOURS))


def masks_of(days: Sequence[Any], name: str) -> Masks:
    """Hours whose seconds of that name are above 0."""
    of_each = [(day.day_ms, getattr(day, name)) for day in days]
    return tuple(
        [(day_ms, ALL_DAY if all(hourly) else sum(compress(_BITS, hourly))) for day_ms, hourly in of_each]
    )


def busy_by_median_of(days: Sequence[Any]) -> Mapping[float, tuple[int, int]]:
    """``HourSeries.busy_by_median`` of some days of an engine."""
    medians = [median for day in days for median in day.running_p50]
    seconds = [busy_s for day in days for busy_s in day.busy_s]
    hours = Counter(medians)
    busy: dict[float | None, int] = dict.fromkeys(hours, 0)
    for median, busy_s in zip(medians, seconds, strict=True):
        busy[median] += busy_s
    return {median: (count, busy[median]) for median, count in hours.items() if median is not None}


def starts_of_masks(masks: Masks) -> list[int]:
    """When each hour begins whose bit is set."""
    return [start for day_ms, mask in masks for start in seen_hours(day_ms, mask)]


def last_of_masks(masks: Masks) -> int | None:
    """When the newest hour begins whose bit is set; None without any."""
    return next(
        (day_ms + (mask.bit_length() - 1) * HOUR_MS for day_ms, mask in reversed(masks) if mask), None
    )


def ends_of(days: Sequence[Any]) -> tuple[float, float]:
    """Covered seconds of the first and of the last hour of some days, at least one."""
    first, last = days[0], days[-1]
    at_first, at_last = (first.seen & -first.seen).bit_length() - 1, last.seen.bit_length() - 1
    return first.covered_s[at_first], last.covered_s[at_last]
