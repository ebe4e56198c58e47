"""Days and hours of many subjects of one kind, read together and kept on shelves of bounded size."""

from collections.abc import Callable, Collection, Mapping, Sequence, Sized
from functools import cached_property
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any, Generic, TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.days import day_of, folded_by_day
from core.evidence import Window
from core.series import (
    D,
    H,
    Masks,
)
from core.units import DAY_MS, HOUR_MS
from store.models.day_pending import DayPendingRow
from store.queries.carried import leaving
from store.queries.hours import within
from store.queries.kinds import Kind
from store.queries.plain_rows import plain_rows
from store.queries.shelves import Shelves

V = TypeVar("V")


class _Days(dict[int, Sequence[D]]):
    """Days by subject, with what was made of them: asked of every GPU by every rule."""

    def __init__(self, days: Mapping[int, Sequence[D]]) -> None:
        super().__init__(days)
        self.wholes: dict[int, Sequence[Any]] = {}


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
        return {day_ms for (day_ms,) in plain_rows(self._session, statement)}

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

    def wholes(self, key: int) -> Sequence[H]:
        """The same, each as one hour."""
        of_all: Any = self._shelves.days.get(self, self._read_days)
        found: Sequence[H] | None = of_all.wholes.get(key)
        if found is None:
            days: Sequence[Any] = of_all.get(key, ())
            found = of_all.wholes[key] = [day.whole for day in days]
        return found

    def outlines(self, key: int) -> Sequence[D]:
        """The same without their ``whole``: a part of each row."""
        of_all: Mapping[int, Sequence[D]] = self._shelves.days.get(
            (self, "outlines"), lambda: self._read_days(self.kind.outline_columns)
        )
        return of_all.get(key, ())

    def present(self) -> Collection[int]:
        """Keys of the subjects that have hours in the window."""
        return self._shelves.days.get(self, self._read_days).keys()

    def _read_days(self, columns: Sequence[str] | None = None) -> _Days[D]:
        days, kind, names, rest = self.kind.days.c, self.kind, self.names, self._rest_of_day
        statement = (
            select(days[kind.key], *(days[name] for name in columns or kind.day_columns))
            .where(
                days[kind.key].in_(self.names),
                days.day_ms >= day_of(self.window.from_ms),
                days.day_ms < self.window.to_ms,
            )
            .order_by(days[kind.key], days.day_ms)
        )
        day_in, stale = kind.day_in, self.stale
        found: dict[int, list[D]] = {
            key: [day_in(names[key], row[1:], rest) for row in of if row[1] not in stale]
            for key, of in groupby(plain_rows(self._session, statement), key=itemgetter(0))
        }
        for day_ms in sorted(stale):
            for key, hours in groupby(self._rows(names, day_ms, day_ms + DAY_MS), key=itemgetter(0)):
                read = [self._hour(row) for row in hours]
                found.setdefault(key, []).extend(folded_by_day(read, kind.fold))
        if stale:
            found = {key: sorted(of, key=attrgetter("day_ms")) for key, of in found.items() if of}
        return _Days(found)

    def _rest_of_day(self, name: str, day_ms: int) -> Sequence[Any]:
        """All figures of a day of which only the first were read; those of the subject's other days are kept."""
        days, kind, key = self.kind.days.c, self.kind, self._keys[name]

        def read() -> Sequence[Any]:
            statement = select(days.day_ms, *(days[each] for each in kind.hour_figures)).where(
                days[kind.key] == key,
                days.day_ms >= day_of(self.window.from_ms),
                days.day_ms < self.window.to_ms,
            )
            return plain_rows(self._session, statement)

        rows = self._shelves.hours.get((self, key, "days"), read)
        return next(row[1:] for row in rows if row[0] == day_ms)

    def _rest_of_hour(self, name: str, hour_ms: int) -> Sequence[Any]:
        """All figures of an hour of which only the first were read; those of its day are kept."""
        key, day_ms = self._keys[name], day_of(hour_ms)
        read: Sequence[Any] = self.hours(key, day_ms, day_ms + DAY_MS)
        return next(hour.raw for hour in read if hour.hour_ms == hour_ms)

    @cached_property
    def _keys(self) -> Mapping[str, int]:
        """Keys by the subjects' names."""
        return {name: key for key, name in self.names.items()}

    def hours(self, key: int, from_ms: int | None = None, to_ms: int | None = None) -> Sequence[H]:
        """Hours of one subject in the window, or of a part of it."""
        found: Sequence[H] = self._shelves.hours.get(
            (self, key, from_ms, to_ms),
            lambda: tuple(map(self._hour, self._rows([key], from_ms, to_ms))),
        )
        return found

    def hours_of_each(self, keys: Collection[int], from_ms: int) -> Mapping[int, Sequence[H]]:
        """Hours of several subjects that begin at or after a time, in one query; those without any are absent.

        Of their figures the first are read, the others when somebody asks.
        """
        names, hour_in, rest = self.names, self.kind.hour_part_in, self._rest_of_hour
        rows = groupby(self._rows(keys, from_ms, None, self.kind.hour_part), key=itemgetter(0))
        return {key: [hour_in(names[key], row[1], row[2:], rest) for row in of] for key, of in rows}

    def columns(self, key: int, names: Sequence[str], make: Callable[..., V]) -> V:
        """Some columns of the hours of one subject in the window, each a tuple, as ``make`` takes them; it is as long as they."""
        hours, kind = self.kind.hours.c, self.kind

        def read() -> Any:
            statement = (
                select(*(hours[name] for name in names))
                .where(hours[kind.key] == key, *within(hours.hour_ms, self.window))
                .order_by(hours.hour_ms)
            )
            rows = plain_rows(self._session, statement)
            return make(*(zip(*rows, strict=True) if rows else [()] * len(names)))

        found: V = self._shelves.hours.get((self, key, make, *names), read)
        return found

    def read_columns(self, keys: Collection[int], names: Sequence[str], make: Callable[..., Sized]) -> None:
        """Have ``columns`` of several subjects on the shelf, by one query."""
        hours, kind = self.kind.hours.c, self.kind
        statement = (
            select(*(hours[name] for name in names), hours[kind.key])
            .where(hours[kind.key].in_(keys), *within(hours.hour_ms, self.window))
            .order_by(hours[kind.key], hours.hour_ms)
        )
        for key, rows in groupby(plain_rows(self._session, statement), key=itemgetter(-1)):
            *columns, _ = zip(*rows, strict=True)
            found = make(*columns)
            self._shelves.hours.get((self, key, make, *names), lambda found=found: found)  # type: ignore[misc]

    def kept(self, key: int) -> Sequence[H] | None:
        """All hours of one subject, if they were read already."""
        return self._shelves.hours.peek((self, key, None, None))

    def _rows(
        self,
        keys: Collection[int],
        from_ms: int | None,
        to_ms: int | None,
        figures: Sequence[str] | None = None,
    ) -> Sequence[Sequence[Any]]:
        hours, kind = self.kind.hours.c, self.kind
        statement = (
            select(hours[kind.key], hours.hour_ms, *(hours[name] for name in figures or kind.hour_figures))
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
