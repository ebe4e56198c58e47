"""Hours that stay in the database until somebody looks at them, with their days read for a whole group at once.

What was read is kept on shelves of bounded size: memory follows what is looked at together, not the fleet.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Generic, TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.days import day_of, folded_by_day, seen_hours
from core.evidence import Window
from core.series import (
    D,
    H,
    HourSeries,
    Masks,
    busy_by_median_of,
    ends_of,
    last_of_masks,
    masks_of,
    starts_of_masks,
)
from core.units import DAY_MS, HOUR_MS
from store.models.day_pending import DayPendingRow
from store.queries.carried import leaving
from store.queries.hours import within
from store.queries.kinds import Kind
from store.queries.plain_rows import plain_rows
from store.queries.shelves import Shelves
from store.rows_as_hours import StoredEngineHour, StoredGpuHour, parse_together, stored_columns

V = TypeVar("V")


class Group(Generic[H, D]):
    """Subjects of one kind whose days are read together."""

    def __init__(
        self,
        session: Session,
        window: Window,
        kind: Kind[H, D],
        names: Mapping[int, str],
        shelves: Shelves,
        *,
        known: tuple[set[int], set[int]] | None = None,
    ) -> None:
        """Find out which days the day table can answer for.

        Args:
            session: open as long as hours are touched.
            window: hours that overlap it count.
            kind: of subject. names: the subjects by key.
            shelves: where what was read is kept.
            known: days that the day table cannot answer for, of all time and of the window; None: find out.
        """
        self._session = session
        self.window = window
        self.kind = kind
        self.names = names
        self._shelves = shelves
        if known is None:
            pending = self._pending_days()
            known = pending, {day for day in pending if self._touches(day)} | self._cut_days()
        self.pending, self.stale = known

    def same(self, masks: Masks) -> Masks:
        """As of ``Shelves``."""
        return self._shelves.same(masks)

    def __reduce__(self) -> tuple[Any, ...]:
        """For another process, which has a session of its own."""
        return leaving(self)

    def _touches(self, day_ms: int) -> bool:
        return day_ms + DAY_MS > day_of(self.window.from_ms) and day_ms < self.window.to_ms

    def _pending_days(self) -> set[int]:
        """Days on which the day of some subject is not yet what its hours say."""
        row = DayPendingRow
        statement = (
            select(row.day_ms).distinct().where(row.kind == self.kind.name, row.entity_id.in_(self.names))
        )
        return set(self._session.execute(statement).scalars())

    def _cut_days(self) -> set[int]:
        """Days at the window's edges of which some subject has hours on both sides of the edge."""
        window, days = self.window, self.kind.days.c
        cut: set[int] = set()
        for day_ms in {day_of(window.from_ms), day_of(max(window.to_ms - 1, window.from_ms))}:
            inside = sum(
                1 << at for at in range(24) if window.from_ms - HOUR_MS < day_ms + at * HOUR_MS < window.to_ms
            )
            outside = (1 << 24) - 1 - inside
            if not outside:
                continue
            statement = select(days.day_ms).where(
                days[self.kind.key].in_(self.names),
                days.day_ms == day_ms,
                days.seen.op("&")(outside) != 0,
            )
            if self._session.execute(statement.limit(1)).first() is not None:
                cut.add(day_ms)
        return cut

    def days(self, key: int) -> Sequence[D]:
        """Days of one subject in the window."""
        of_all: Mapping[int, Sequence[D]] = self._shelves.days.get(self, self._read_days)
        return of_all.get(key, ())

    def outlines(self, key: int) -> Sequence[D]:
        """The same without their ``whole``: a part of each row."""
        of_all: Mapping[int, Sequence[D]] = self._shelves.days.get(
            (self, "outlines"), lambda: self._read_days(self.kind.outline_columns)
        )
        return of_all.get(key, ())

    def present(self) -> Collection[int]:
        """Keys of the subjects that have hours in the window."""
        return self._shelves.days.get(self, self._read_days).keys()

    def _read_days(self, columns: Sequence[str] | None = None) -> Mapping[int, Sequence[D]]:
        days, kind = self.kind.days.c, self.kind
        statement = (
            select(days[kind.key], *(days[name] for name in columns or kind.day_columns))
            .where(
                days[kind.key].in_(self.names),
                days.day_ms >= day_of(self.window.from_ms),
                days.day_ms < self.window.to_ms,
            )
            .order_by(days[kind.key], days.day_ms)
        )
        found: dict[int, list[tuple[int, D]]] = {}
        for row in plain_rows(self._session, statement):
            if row[1] not in self.stale:
                found.setdefault(row[0], []).append((row[1], kind.day_in(self.names[row[0]], row[1:])))
        for day_ms in sorted(self.stale):
            for key, hours in groupby(
                self._rows(self.names, day_ms, day_ms + DAY_MS), key=lambda row: row[0]
            ):
                read = [self._hour(row) for row in hours]
                found.setdefault(key, []).extend((day_ms, day) for day in folded_by_day(read, kind.fold))
        return {
            key: tuple(day for _, day in sorted(of, key=lambda each: each[0])) for key, of in found.items()
        }

    def hours(self, key: int, from_ms: int | None = None, to_ms: int | None = None) -> Sequence[H]:
        """Hours of one subject in the window, or of a part of it."""
        found: Sequence[H] = self._shelves.hours.get(
            (self, key, from_ms, to_ms),
            lambda: tuple(map(self._hour, self._rows([key], from_ms, to_ms))),
        )
        return found

    def hours_of_each(self, keys: Collection[int], from_ms: int) -> Mapping[int, Sequence[H]]:
        """Hours of several subjects that begin at or after a time, in one query; those without any are absent."""
        rows = groupby(self._rows(keys, from_ms, None), key=itemgetter(0))
        return {key: [self._hour(row) for row in of] for key, of in rows}

    def columns(self, key: int, names: Sequence[str], make: Callable[[Sequence[Any]], V]) -> Sequence[V]:
        """Some columns of the hours of one subject in the window."""
        hours, kind = self.kind.hours.c, self.kind

        def read() -> Sequence[V]:
            statement = (
                select(*(hours[name] for name in names))
                .where(hours[kind.key] == key, *within(hours.hour_ms, self.window))
                .order_by(hours.hour_ms)
            )
            return list(map(make, plain_rows(self._session, statement)))

        found: Sequence[V] = self._shelves.hours.get((self, key, make, *names), read)
        return found

    def read_columns(
        self, keys: Collection[int], names: Sequence[str], make: Callable[[Sequence[Any]], V]
    ) -> None:
        """Have ``columns`` of several subjects on the shelf, by one query."""
        hours, kind = self.kind.hours.c, self.kind
        statement = (
            select(*(hours[name] for name in names), hours[kind.key])
            .where(hours[kind.key].in_(keys), *within(hours.hour_ms, self.window))
            .order_by(hours[kind.key], hours.hour_ms)
        )
        for key, rows in groupby(plain_rows(self._session, statement), key=itemgetter(-1)):
            found = [make(row[:-1]) for row in rows]
            self._shelves.hours.get((self, key, make, *names), lambda found=found: found)  # type: ignore[misc]

    def kept(self, key: int) -> Sequence[H] | None:
        """All hours of one subject, if they were read already."""
        return self._shelves.hours.peek((self, key, None, None))

    def _rows(self, keys: Collection[int], from_ms: int | None, to_ms: int | None) -> Sequence[Sequence[Any]]:
        hours, kind = self.kind.hours.c, self.kind
        statement = (
            select(hours[kind.key], hours.hour_ms, *(hours[name] for name in kind.hour_figures))
            .where(hours[kind.key].in_(keys), *within(hours.hour_ms, self.window))
            .order_by(hours[kind.key], hours.hour_ms)
        )
        if from_ms is not None:
            statement = statement.where(hours.hour_ms >= from_ms)
        if to_ms is not None:
            statement = statement.where(hours.hour_ms < to_ms)
        return plain_rows(self._session, statement)

    def _hour(self, row: Sequence[Any]) -> H:
        return self.kind.hour_in(self.names[row[0]], row[1], row[2:])


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
        days: Sequence[Any] = self.days
        return [day.whole for day in days]

    @property
    def outlines(self) -> Sequence[D]:
        """Its days, of which only what they say of each hour may be asked."""
        return self._group.outlines(self._key)

    def busy_by_median(self) -> Mapping[float, tuple[int, int]]:
        """Of an engine: its busy hours, and their busy seconds, by the median batch of the hour."""
        return super().busy_by_median() if self._medians is None else self._medians

    def figures(self, names: Sequence[str]) -> Sequence[Sequence[Any]]:
        """Columns of its parts, by the names that ``column_of`` knows."""
        if self._parts is not None or not all(isinstance(part, StoredGpuHour) for part in self.parts):
            return super().figures(names)
        return stored_columns(self.parts, names)

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

    def columns(self, names: Sequence[str], make: Callable[[Sequence[Any]], V]) -> Sequence[V]:
        """Some columns of all its hours, by their names in the hour's table, without the rest."""
        return self._group.columns(self._key, names, make)

    def read_columns(
        self, of_each: Sequence[HourSeries[H, D]], names: Sequence[str], make: Callable[[Sequence[Any]], V]
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
