"""Hours that stay in the database until somebody looks at them, with their days read for a whole group at once.

What was read is kept on shelves of bounded size: memory follows what is looked at together, not the fleet.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from typing import Any, TypeVar

from core.days import day_of, seen_hours
from core.series import (
    D,
    H,
    HourSeries,
    busy_by_median_of,
    ends_of,
    last_of_masks,
    masks_of,
    starts_of_masks,
)
from core.units import DAY_MS, HOUR_MS
from store.queries.hour_groups import Group
from store.rows_as_hours import StoredEngineHour, parse_together

V = TypeVar("V")


class StoredHours(HourSeries[H, D]):
    """Hours of one subject of a group."""

    __slots__ = ("_count", "_ends_s", "_group", "_key", "_medians", "_paired", "_parts", "_seen", "_with")

    def __init__(
        self, group: Group[H, D], key: int, merge: Callable[[Sequence[H], int], H] | None = None
    ) -> None:
        """Hours of ``key``.

        Args:
            group: what reads them. key: the subject.
            merge: makes one part of its days, which is then kept; None: every day is a part, read again when wanted.
        """
        self._group = group
        self._key = key
        days: Sequence[Any] = group.days(key)
        # Only what is small is kept: the days themselves may be put away and read again.
        same = group.same
        self._seen = same(tuple([(day.day_ms, day.seen) for day in days]))
        # Asked of every engine by every rule on serving; a fleet's engines are few beside its GPUs.
        self._with = (
            {} if merge is None else {name: same(masks_of(days, name)) for name in ("covered_s", "busy_s")}
        )
        self._paired = None if merge is None else all(day.paired for day in days)
        self._medians = None if merge is None else busy_by_median_of(days)
        self._ends_s = None if merge is None or not days else ends_of(days)
        self._count: int = sum(seen.bit_count() for _, seen in self._seen)
        self._parts: tuple[H, ...] | None = None
        if merge is not None and days:
            wholes = [day.whole for day in days]
            parse_together([whole for whole in wholes if isinstance(whole, StoredEngineHour)])
            self._parts = (merge(wholes, days[0].day_ms),)

    @property
    def days(self) -> Sequence[D]:
        """Its days, by time."""
        return self._group.days(self._key)

    @property
    def parts(self) -> Sequence[H]:
        """Its days, or all of them merged."""
        if self._parts is not None:
            return self._parts
        return self._group.wholes(self._key)

    @property
    def outlines(self) -> Sequence[D]:
        """Its days, of which only what they say of each hour may be asked."""
        return self._group.outlines(self._key)

    def busy_by_median(self) -> Mapping[float, tuple[int, int]]:
        """Of an engine: its busy hours, and their busy seconds, by the median batch of the hour."""
        return super().busy_by_median() if self._medians is None else self._medians

    def starts(self) -> Sequence[int]:
        """When each hour begins."""
        return [start for day_ms, seen in self._seen for start in seen_hours(day_ms, seen)]

    def starts_with(self, name: str) -> Sequence[int]:
        """When each of the hours begins whose ``covered_s`` (``busy_s`` of an engine) is above 0."""
        masks = self._with.get(name)
        return super().starts_with(name) if masks is None else starts_of_masks(masks)

    def last_with(self, name: str) -> int | None:
        """When the newest of these hours begins; None without any."""
        masks = self._with.get(name)
        return super().last_with(name) if masks is None else last_of_masks(masks)

    def edges_ms(self) -> tuple[int, int]:
        """When its first and its last hour begin; it has hours."""
        (first_ms, first), (last_ms, last) = self._seen[0], self._seen[-1]
        at_first, at_last = (first & -first).bit_length() - 1, last.bit_length() - 1
        return first_ms + at_first * HOUR_MS, last_ms + at_last * HOUR_MS

    def every_day(self, flag: str) -> bool:
        """Whether a flag of its days, such as ``paired``, holds for all of them."""
        return self._paired if flag == "paired" and self._paired is not None else super().every_day(flag)

    def ends_s(self) -> tuple[float, float]:
        """Covered seconds of its first and of its last hour, rounded; it has hours."""
        return super().ends_s() if self._ends_s is None else self._ends_s

    def of_day(self, day_ms: int) -> Sequence[H]:
        """Its hours of one day."""
        start = day_of(day_ms)
        return self._read(start, start + DAY_MS)

    def since(self, from_ms: int) -> Sequence[H]:
        """Its hours that begin at or after a time."""
        return self._read(from_ms, None)

    def all(self) -> Sequence[H]:
        """All of its hours."""
        return self._group.hours(self._key)

    def columns(self, names: Sequence[str], make: Callable[..., V]) -> V:
        """Some columns of all its hours, by their names in the hour's table, without the rest."""
        return self._group.columns(self._key, names, make)

    def read_columns(
        self, of_each: Sequence[HourSeries[H, D]], names: Sequence[str], make: Callable[..., Sized]
    ) -> None:
        """Those of one group in one query."""
        together: dict[Group[H, D], list[int]] = {}
        for series in of_each:
            if isinstance(series, StoredHours):
                group, key = series.place
                together.setdefault(group, []).append(key)
        for group, keys in together.items():
            group.read_columns(keys, names, make)

    def since_each(self, wanted: Sequence[tuple[HourSeries[H, D], int]]) -> list[Sequence[H]]:
        """What ``since`` gives for each of some series: those of one group from the same time on in one query."""
        places = [
            series.place if isinstance(series, StoredHours) else (self._group, -1) for series, _ in wanted
        ]
        together: dict[tuple[Group[H, D], int], list[int]] = {}
        for (group, key), (_, from_ms) in zip(places, wanted, strict=True):
            together.setdefault((group, from_ms), []).append(key)
        found = {
            (group, from_ms): group.hours_of_each(keys, from_ms)
            for (group, from_ms), keys in together.items()
        }
        return [
            found[group, from_ms].get(key, ())
            for (group, key), (_, from_ms) in zip(places, wanted, strict=True)
        ]

    @property
    def place(self) -> tuple[Group[H, D], int]:
        """Its group and its key there."""
        return self._group, self._key

    def __len__(self) -> int:
        return self._count

    def __reversed__(self) -> Iterator[H]:
        if not self._seen:
            return
        last_ms, _ = self._seen[-1]
        yield from reversed(self.of_day(last_ms))
        # Who looks past the last day mostly goes far back: one query then.
        yield from reversed([hour for hour in self.all() if hour.hour_ms < last_ms])

    def _read(self, from_ms: int, to_ms: int | None) -> Sequence[H]:
        kept = self._group.kept(self._key)
        if kept is None:
            return self._group.hours(self._key, from_ms, to_ms)
        return [h for h in kept if h.hour_ms >= from_ms and (to_ms is None or h.hour_ms < to_ms)]
