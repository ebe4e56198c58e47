"""In which hours GPUs were held, and what they drew: added up by the database, read as plain rows."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, func, or_, select
from sqlalchemy.orm import Session

from core.activity import Activity
from core.evidence import Window
from core.units import DAY_MS
from store.day_sums import METERED_RATIO, WORKING
from store.models.day_pending import DayPendingRow
from store.models.demand_day import DemandDayRow
from store.models.demand_hour import DemandHourRow
from store.models.gpu_hour import GpuHourRow
from store.queries.hours import within
from store.queries.plain_rows import plain_rows

AT_ONCE: Final = 5_000
"""GPUs of one query: databases take some ten thousand parameters."""


@dataclass(frozen=True, slots=True)
class HourOfMany:
    """One clock hour of some GPUs; ``known_ms``: covered, and the activity could be named.

    Whole GPU-milliseconds: databases add floats up in orders of their own.
    """

    hour_ms: int
    known_ms: int
    allocated_ms: int
    active_ms: int


@dataclass(frozen=True, slots=True)
class Drawn:
    """GPU-seconds and joules of hours whose energy is known."""

    seconds: float
    joules: float

    def __add__(self, other: "Drawn") -> "Drawn":
        """Both."""
        return Drawn(self.seconds + other.seconds, self.joules + other.joules)


@dataclass(frozen=True, slots=True)
class DrawnByState:
    """What GPUs drew while empty, parked, and with work of any kind."""

    empty: Drawn
    parked: Drawn
    working: Drawn

    def __add__(self, other: "DrawnByState") -> "DrawnByState":
        """Both."""
        return DrawnByState(
            self.empty + other.empty, self.parked + other.parked, self.working + other.working
        )


def hours_of(
    session: Session, window: Window, gpu_ids: Sequence[int], models: Collection[str | None] | None = None
) -> list[HourOfMany]:
    """Hours of these GPUs that overlap the window; an hour may be there more than once.

    Args:
        session, window: as ever.
        gpu_ids: which GPUs.
        models: theirs, where they are all GPUs of them: then days that are added up by model are read instead.
    """
    row = DemandHourRow
    kept, windows = _kept(session, window, models)
    found: list[HourOfMany] = []
    if kept is not None:
        statement: Any = (
            select(row.hour_ms, func.sum(row.known_s), func.sum(row.allocated_s), func.sum(row.active_s))
            .where(*kept)
            .group_by(row.hour_ms)
        )
        found += _as_hours(plain_rows(session, statement))
    hours = GpuHourRow.__table__.c
    # GPU by GPU, along the primary key: by the index on the hour each row would be looked up, five times slower.
    by_hour = hours.hour_ms + 0
    sums = (hours.covered_s - hours[f"{Activity.UNKNOWN.value}_s"], hours.allocated_s, hours.active_s)
    for some in _in_parts(gpu_ids):
        for part in windows:
            statement = (
                select(func.min(hours.hour_ms), *(func.sum(one) for one in sums))
                .where(hours.gpu_id.in_(some), *within(hours.hour_ms, part))
                .group_by(by_hour)
            )
            found += _as_hours(plain_rows(session, statement))
    return found


def _as_hours(rows: Iterable[tuple[Any, ...]]) -> Iterator[HourOfMany]:
    for hour_ms, *sums_s in rows:
        yield HourOfMany(hour_ms, *(round(seconds * 1000) for seconds in sums_s))


def drawn_by_state(
    session: Session, window: Window, gpu_ids: Sequence[int], models: Collection[str | None] | None = None
) -> DrawnByState:
    """Energy of these GPUs in metered hours that overlap the window, by what they did; arguments as of ``hours_of``."""
    kept, windows = _kept(session, window, models)
    nothing = Drawn(0.0, 0.0)
    found = DrawnByState(nothing, nothing, nothing)
    if kept is not None:
        row = DemandHourRow
        columns = (row.empty_s, row.empty_j, row.parked_s, row.parked_j, row.working_s, row.working_j)
        sums_kept: Any = select(*(func.coalesce(func.sum(one), 0.0) for one in columns))
        found += _drawn(session, sums_kept.where(*kept))
    hours = GpuHourRow.__table__.c
    sums = [
        func.coalesce(
            func.sum(_added([func.coalesce(hours[f"{one.value}_{unit}"], 0.0) for one in some])), 0.0
        )
        for some in ((Activity.EMPTY,), (Activity.PARKED,), WORKING)
        for unit in "sj"
    ]
    for some in _in_parts(gpu_ids):
        for part in windows:
            statement: Any = select(*sums).where(
                hours.gpu_id.in_(some),
                *within(hours.hour_ms, part),
                hours.energy_covered_s >= METERED_RATIO * hours.covered_s,
            )
            found += _drawn(session, statement)
    return found


def _drawn(session: Session, statement: Select[Any]) -> DrawnByState:
    ((empty_s, empty_j, parked_s, parked_j, working_s, working_j),) = plain_rows(session, statement)
    return DrawnByState(Drawn(empty_s, empty_j), Drawn(parked_s, parked_j), Drawn(working_s, working_j))


def _kept(
    session: Session, window: Window, models: Collection[str | None] | None
) -> tuple[list[ColumnElement[bool]] | None, list[Window]]:
    """Rows of days that are added up by model (None: none are), and what is left of the window."""
    if models is None:
        return None, [window]
    first, last = -(-window.from_ms // DAY_MS) * DAY_MS, window.to_ms // DAY_MS * DAY_MS
    day, pending = DemandDayRow, DayPendingRow
    waiting = select(pending.day_ms).where(pending.kind == "gpu")
    statement = select(day.day_ms).where(
        day.day_ms >= first, day.day_ms < last, day.day_ms.not_in(waiting.distinct())
    )
    days = sorted(session.execute(statement).scalars())
    if not days:
        return None, [window]
    borders = [
        window.from_ms,
        *(border for day_ms in days for border in (day_ms, day_ms + DAY_MS)),
        window.to_ms,
    ]
    left = [Window(start, end) for start, end in zip(borders[::2], borders[1::2], strict=True) if start < end]
    row = DemandHourRow
    conditions: list[ColumnElement[bool]] = [row.hour_ms >= days[0], row.hour_ms < days[-1] + DAY_MS]
    conditions += [
        or_(row.hour_ms < part.from_ms, row.hour_ms >= part.to_ms)
        for part in left
        if days[0] < part.to_ms and part.from_ms < days[-1]
    ]
    return [*conditions, row.model.in_({model or "" for model in models})], left


def _added(columns: Sequence[Any]) -> Any:
    return reduce(add, columns)


def _in_parts(gpu_ids: Sequence[int]) -> Iterator[Sequence[int]]:
    ordered = sorted(gpu_ids)
    for start in range(0, len(ordered), AT_ONCE):
        yield ordered[start : start + AT_ONCE]
