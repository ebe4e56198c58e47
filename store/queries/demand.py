"""What GPUs were held and what they drew, by model and clock hour: added up by the database, read as plain rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from core.activity import Activity
from core.evidence import Window
from core.readings import SLICE_PREFIX
from store.models.gpu import GpuRow
from store.models.gpu_hour import GpuHourRow
from store.models.host import HostRow
from store.queries.hours import within
from store.queries.plain_rows import plain_rows

METERED_RATIO: Final = 0.99
"""An hour tells the power of what was done in it when energy is known for all of it, but for rounding of samples."""
_WORKING: Final = [a for a in Activity if a not in {Activity.EMPTY, Activity.PARKED, Activity.UNKNOWN}]


@dataclass(frozen=True, slots=True)
class Drawn:
    """Seconds and joules of hours whose energy is known."""

    seconds: float
    joules: float


@dataclass(frozen=True, slots=True)
class ModelHour:
    """One clock hour of all GPUs of one model; GPU-seconds. MIG slices are left out: their card is here.

    Attributes:
        model, memory_total_bytes: what the catalogue resolves.
        known_s: covered, and the activity could be named. allocated_s, active_s: as in ``core.hours.GpuHour``.
        empty, parked, working: of the hours that are metered.
    """

    model: str | None
    memory_total_bytes: int | None
    hour_ms: int
    known_s: float
    allocated_s: float
    active_s: float
    empty: Drawn
    parked: Drawn
    working: Drawn


def model_hours(session: Session, window: Window, host: str | None = None) -> list[ModelHour]:
    """Hours that overlap the window, by model and time; of one host where it is named."""
    hours, gpu = GpuHourRow.__table__.c, GpuRow
    metered = hours.energy_covered_s >= METERED_RATIO * hours.covered_s
    keys = (gpu.model, gpu.memory_total_bytes, hours.hour_ms)

    def drawn(activities: Sequence[Activity]) -> list[Any]:
        seconds: Any = sum(
            (hours[f"{one.value}_s"] for one in activities[1:]), hours[f"{activities[0].value}_s"]
        )
        first, *rest = [func.coalesce(hours[f"{one.value}_j"], 0.0) for one in activities]
        return [func.sum(case((metered, part), else_=0.0)) for part in (seconds, sum(rest, first))]

    statement = (
        select(
            *keys,
            func.sum(hours.covered_s - hours[f"{Activity.UNKNOWN.value}_s"]),
            func.sum(hours.allocated_s),
            func.sum(hours.active_s),
            *drawn([Activity.EMPTY]),
            *drawn([Activity.PARKED]),
            *drawn(_WORKING),
        )
        .join(gpu, gpu.id == hours.gpu_id)
        .where(*within(hours.hour_ms, window), gpu.gpu_uuid.not_like(f"{SLICE_PREFIX}%"))
        .group_by(*keys)
        .order_by(hours.hour_ms)
    )
    if host is not None:
        statement = statement.join(HostRow, HostRow.id == gpu.host_id).where(HostRow.name == host)
    return [
        ModelHour(
            row[0],
            row[1],
            row[2],
            known_s=row[3],
            allocated_s=row[4],
            active_s=row[5],
            empty=Drawn(row[6], row[7]),
            parked=Drawn(row[8], row[9]),
            working=Drawn(row[10], row[11]),
        )
        for row in plain_rows(session, statement)
    ]
