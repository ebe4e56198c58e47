"""Hours of GPUs, engines, hosts and workloads over a window.

An hour belongs to a window when they overlap: windows of whole hours next to each other share none.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from core.activity import Activity
from core.evidence import Window
from core.hours import EngineHour, GpuHour, HostHour, UsageHour
from core.readings import WorkloadKey
from core.units import HOUR_MS
from store.hour_rows import engine_hour_of, host_hour_of
from store.keys import attributes_of
from store.models.engine import EngineRow
from store.models.engine_hour import EngineHourRow
from store.models.gpu import GpuRow
from store.models.gpu_hour import GpuHourRow
from store.models.host import HostRow
from store.models.host_hour import HostHourRow
from store.models.usage_hour import UsageHourRow
from store.models.workload import WorkloadRow
from store.queries.plain_rows import plain_rows
from store.rows_as_hours import GPU_FIGURES, gpu_hour_in


@dataclass(frozen=True, slots=True)
class ActivityHour:
    """One hour of a group of GPUs: seconds and joules by activity, and the GPUs that had samples."""

    hour_ms: int
    gpu_count: int
    covered_s: float
    seconds: Mapping[Activity, float]
    joules: Mapping[Activity, float]


def bounds(session: Session) -> Window | None:
    """From the first sample to the end of the newest, of all that is still kept; None without any hour."""
    oldest_hour = [
        session.execute(select(func.min(table.hour_ms))).scalar() for table in (GpuHourRow, EngineHourRow)
    ]
    hours = [hour_ms for hour_ms in oldest_hour if hour_ms is not None]
    if not hours:
        return None
    first: list[int] = []
    last: list[int] = []
    for row in (GpuRow, EngineRow):
        statement = select(func.min(row.first_sample_ms), func.max(row.seen_until_ms))
        for first_ms, last_ms in session.execute(statement):
            if first_ms is not None and last_ms is not None:
                first.append(first_ms)
                last.append(last_ms)
    # Hours past their age are gone while the GPU's first sight stays known.
    return Window(max(min(first), min(hours)), max(last)) if first else None


def within(hour_ms: Any, window: Window) -> tuple[Any, Any]:
    """Conditions for hours that overlap ``window``."""
    return hour_ms > window.from_ms - HOUR_MS, hour_ms < window.to_ms


def gpu_hours(session: Session, window: Window, gpu_uuids: Collection[str] | None = None) -> list[GpuHour]:
    """Hours of GPUs (default all), by GPU and time."""
    table = GpuHourRow.__table__
    statement = (
        select(GpuRow.gpu_uuid, table.c.hour_ms, *(table.c[name] for name in GPU_FIGURES))
        .join(GpuRow, GpuRow.id == table.c.gpu_id)
        .where(*within(table.c.hour_ms, window))
        .order_by(GpuRow.gpu_uuid, table.c.hour_ms)
    )
    if gpu_uuids is not None:
        statement = statement.where(GpuRow.gpu_uuid.in_(gpu_uuids))
    return [gpu_hour_in(row[0], row[1], row[2:]) for row in plain_rows(session, statement)]


def engine_hours(session: Session, window: Window, engine: str | None = None) -> list[EngineHour]:
    """Hours of engines (default all), by engine and time."""
    table = EngineHourRow.__table__
    statement = (
        select(table, EngineRow.engine)
        .join(EngineRow, EngineRow.id == table.c.engine_id)
        .where(*within(table.c.hour_ms, window))
        .order_by(EngineRow.engine, table.c.hour_ms)
    )
    if engine is not None:
        statement = statement.where(EngineRow.engine == engine)
    return [engine_hour_of(row, row["engine"]) for row in session.execute(statement).mappings().all()]


def host_hours(session: Session, window: Window, host: str | None = None) -> list[HostHour]:
    """Hours of hosts (default all), by host and time."""
    table = HostHourRow.__table__
    statement = (
        select(table, HostRow.name)
        .join(HostRow, HostRow.id == table.c.host_id)
        .where(*within(table.c.hour_ms, window))
        .order_by(HostRow.name, table.c.hour_ms)
    )
    if host is not None:
        statement = statement.where(HostRow.name == host)
    return [host_hour_of(row, row["name"]) for row in session.execute(statement).mappings().all()]


def usage_hours(session: Session, window: Window) -> list[UsageHour]:
    """Usage of every workload, and of nobody, by GPU and time."""
    row = UsageHourRow
    statement = (
        select(
            WorkloadRow.id,
            WorkloadRow.kind,
            WorkloadRow.key,
            WorkloadRow.name,
            WorkloadRow.user_name,
            HostRow.name,
            WorkloadRow.attributes,
            GpuRow.gpu_uuid,
            row.hour_ms,
            row.allocated_s,
            row.active_s,
            row.effective_s,
            row.memory_byte_s,
            row.energy_j,
            row.share_method,
            row.cpu_ratio,
            row.cpu_thread_ratio,
        )
        .join(GpuRow, GpuRow.id == row.gpu_id)
        .outerjoin(WorkloadRow, WorkloadRow.id == row.workload_id)
        .outerjoin(HostRow, HostRow.id == WorkloadRow.host_id)
        .where(*within(row.hour_ms, window))
        .order_by(GpuRow.gpu_uuid, row.hour_ms, WorkloadRow.id)
    )
    workloads: dict[int, WorkloadKey] = {}
    usage: list[UsageHour] = []
    for key, kind, natural, name, user, host, attributes, *values in session.execute(statement).all():
        workload = workloads.get(key)
        if workload is None and key is not None:
            workload = workloads[key] = WorkloadKey(
                kind, natural, name, user, host, attributes_of(attributes)
            )
        usage.append(UsageHour(workload, *values))
    return usage


def activity_by_hour(
    session: Session, window: Window, gpu_uuids: Collection[str] | None = None
) -> list[ActivityHour]:
    """Seconds and joules by activity of a group of GPUs (default all), added up by the database."""
    table = GpuHourRow.__table__
    sums = [func.sum(table.c[f"{activity.value}_{unit}"]) for unit in ("s", "j") for activity in Activity]
    statement: Select[Any] = (
        select(table.c.hour_ms, func.count(), func.sum(table.c.covered_s), *sums)
        .where(*within(table.c.hour_ms, window))
        .group_by(table.c.hour_ms)
        .order_by(table.c.hour_ms)
    )
    if gpu_uuids is not None:
        statement = statement.join(GpuRow, GpuRow.id == table.c.gpu_id).where(GpuRow.gpu_uuid.in_(gpu_uuids))
    activities = list(Activity)
    return [
        ActivityHour(
            hour_ms,
            count,
            covered_s,
            {a: value for a, value in zip(activities, values[: len(activities)], strict=True) if value},
            {
                a: value
                for a, value in zip(activities, values[len(activities) :], strict=True)
                if value is not None
            },
        )
        for hour_ms, count, covered_s, *values in session.execute(statement).all()
    ]
