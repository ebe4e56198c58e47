"""Hours of one workload: which GPUs it held when, what they did then, and who else was on them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sqlalchemy import and_, func, select
from sqlalchemy.orm import Session, aliased

from core.activity import Activity
from core.evidence import Window
from core.readings import WorkloadKey
from store.keys import attributes_of
from store.models.gpu_hour import GpuHourRow
from store.models.host import HostRow
from store.models.usage_hour import UsageHourRow
from store.models.workload import WorkloadRow
from store.queries.hours import within
from store.queries.workloads import workload_keys

MOST_NEIGHBOURS: Final = 50


@dataclass(frozen=True, slots=True)
class HeldHour:
    """One hour in which the workload held a GPU: its share, and what the GPU did in the whole hour."""

    gpu_id: int
    hour_ms: int
    allocated_s: float
    share_method: str
    seconds: Mapping[Activity, float]


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another workload on the same GPUs in the same hours: how many of them, and GPU-seconds it had there."""

    workload: WorkloadKey
    hours: int
    allocated_s: float


def workload_of(session: Session, kind: str, host: str | None, key: str) -> tuple[int, WorkloadKey] | None:
    """A workload by what names it."""
    row = WorkloadRow
    statement = (
        select(row.id, row.name, row.user_name, HostRow.name, row.attributes)
        .outerjoin(HostRow, HostRow.id == row.host_id)
        .where(row.kind == kind, row.key == key)
    )
    for id_, name, user, at, attributes in session.execute(statement):
        if at == host:
            return id_, WorkloadKey(kind, key, name, user, at, attributes_of(attributes))
    return None


def workload_by_id(session: Session, id_: int) -> WorkloadKey | None:
    """A workload by its number."""
    return workload_keys(session, [id_]).get(id_)


def held_hours(session: Session, window: Window, workload_id: int) -> list[HeldHour]:
    """Hours in the window, by GPU and time."""
    use, hour = UsageHourRow, GpuHourRow
    statement = (
        select(
            use.gpu_id,
            use.hour_ms,
            use.allocated_s,
            use.share_method,
            *(getattr(hour, f"{activity.value}_s") for activity in Activity),
        )
        .outerjoin(hour, and_(hour.gpu_id == use.gpu_id, hour.hour_ms == use.hour_ms))
        .where(use.workload_id == workload_id, *within(use.hour_ms, window))
        .order_by(use.gpu_id, use.hour_ms)
    )
    return [
        HeldHour(
            gpu_id,
            hour_ms,
            allocated_s,
            method,
            {a: spent for a, spent in zip(Activity, seconds, strict=True) if spent},
        )
        for gpu_id, hour_ms, allocated_s, method, *seconds in session.execute(statement)
    ]


def neighbours(session: Session, window: Window, workload_id: int) -> list[Neighbour]:
    """Who else held the same GPUs in the same hours, most time first."""
    mine, other = UsageHourRow, aliased(UsageHourRow)
    total = func.sum(other.allocated_s)
    statement = (
        select(other.workload_id, func.count(), total)
        .select_from(mine)
        .join(other, and_(other.gpu_id == mine.gpu_id, other.hour_ms == mine.hour_ms))
        .where(
            mine.workload_id == workload_id,
            *within(mine.hour_ms, window),
            other.workload_id.is_not(None),
            other.workload_id != workload_id,
        )
        .group_by(other.workload_id)
        .order_by(total.desc())
        .limit(MOST_NEIGHBOURS)
    )
    found = list(session.execute(statement))
    names = workload_keys(session, [row[0] for row in found if row[0] is not None])
    return [Neighbour(names[id_], hours, seconds or 0.0) for id_, hours, seconds in found if id_ is not None]
