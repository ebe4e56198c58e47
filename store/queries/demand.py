"""In which hours GPUs were held, and what they drew: added up by the database, read as plain rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from core.activity import Activity
from core.evidence import Window
from store.models.gpu_hour import GpuHourRow
from store.queries.hours import within
from store.queries.plain_rows import plain_rows

METERED_RATIO: Final = 0.99
"""An hour tells the power of what was done in it when energy is known for all of it, but for rounding of samples."""
AT_ONCE: Final = 5_000
"""GPUs of one query: databases take some ten thousand parameters."""
WORKING: Final = tuple(a for a in Activity if a not in {Activity.EMPTY, Activity.PARKED, Activity.UNKNOWN})


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


def hours_of(session: Session, window: Window, gpu_ids: Sequence[int]) -> list[HourOfMany]:
    """Hours of these GPUs that overlap the window; an hour is there once per ``AT_ONCE`` of them."""
    hours = GpuHourRow.__table__.c
    # GPU by GPU, along the primary key: by the index on the hour each row would be looked up, five times slower.
    by_hour = hours.hour_ms + 0
    sums = (hours.covered_s - hours[f"{Activity.UNKNOWN.value}_s"], hours.allocated_s, hours.active_s)
    found: list[HourOfMany] = []
    for some in _in_parts(gpu_ids):
        statement = (
            select(func.min(hours.hour_ms), *(func.sum(one) for one in sums))
            .where(hours.gpu_id.in_(some), *within(hours.hour_ms, window))
            .group_by(by_hour)
        )
        found += [
            HourOfMany(hour_ms, *(round(seconds * 1000) for seconds in sums_s))
            for hour_ms, *sums_s in plain_rows(session, statement)
        ]
    return found


def drawn_by_state(session: Session, window: Window, gpu_ids: Sequence[int]) -> DrawnByState:
    """Energy of these GPUs in metered hours that overlap the window, by what they did."""
    hours = GpuHourRow.__table__.c
    sums = [
        func.coalesce(
            func.sum(_added([func.coalesce(hours[f"{one.value}_{unit}"], 0.0) for one in some])), 0.0
        )
        for some in ((Activity.EMPTY,), (Activity.PARKED,), WORKING)
        for unit in "sj"
    ]
    nothing = Drawn(0.0, 0.0)
    found = DrawnByState(nothing, nothing, nothing)
    for some in _in_parts(gpu_ids):
        statement = select(*sums).where(
            hours.gpu_id.in_(some),
            *within(hours.hour_ms + 0, window),
            hours.energy_covered_s >= METERED_RATIO * hours.covered_s,
        )
        ((empty_s, empty_j, parked_s, parked_j, working_s, working_j),) = plain_rows(session, statement)
        found = DrawnByState(
            found.empty + Drawn(empty_s, empty_j),
            found.parked + Drawn(parked_s, parked_j),
            found.working + Drawn(working_s, working_j),
        )
    return found


def _added(columns: Sequence[Any]) -> Any:
    return reduce(add, columns)


def _in_parts(gpu_ids: Sequence[int]) -> Iterator[Sequence[int]]:
    ordered = sorted(gpu_ids)
    for start in range(0, len(ordered), AT_ONCE):
        yield ordered[start : start + AT_ONCE]
