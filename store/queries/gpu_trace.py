"""One GPU close up: the card with its newest sample, its samples slim, and what each workload held of its memory."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from core.evidence import Window
from core.finding import Status
from core.samples import GpuSample
from core.units import HOUR_MS
from store.known import known_gpus
from store.models.gpu import GpuRow
from store.models.gpu_sample import GpuSampleRow
from store.models.process_sample import ProcessSampleRow
from store.models.recommendation import RecommendationRow
from store.models.usage_hour import UsageHourRow
from store.queries import recommendations
from store.queries.fleet import FleetGpu
from store.queries.hours import within
from store.queries.recommendations import Recommendation
from store.rows import GPU_SAMPLE_COLUMNS, gpu_sample_columns, gpu_sample_of


@dataclass(frozen=True, slots=True)
class Held:
    """What one workload held of the GPU's memory over one step: bytes × seconds; ``start_ms`` as the charts fold it."""

    start_ms: int
    workload_id: int
    byte_s: float


@dataclass(frozen=True, slots=True)
class Use:
    """One workload on the GPU over a window, from usage hours.

    Attributes:
        first_ms, last_ms: start of its first and end of its last hour.
        allocated_s, active_s: GPU-seconds. energy_j, memory_byte_s: None where unknown.
        shared: of some of its hours others held a part.
    """

    workload_id: int
    first_ms: int
    last_ms: int
    allocated_s: float
    active_s: float
    energy_j: float | None
    memory_byte_s: float | None
    shared: bool


@dataclass(frozen=True, slots=True)
class Presence:
    """One workload among the process samples of a window: exactly from when to when, and its most memory."""

    workload_id: int
    first_ms: int
    last_ms: int
    memory_max_bytes: float | None


def one_gpu(session: Session, gpu_uuid: str) -> tuple[int, FleetGpu] | None:
    """Key and card of one GPU; None where nobody knows it. Two small statements, however large the fleet."""
    gpu_id = session.execute(select(GpuRow.id).where(GpuRow.gpu_uuid == gpu_uuid)).scalar()
    if gpu_id is None:
        return None
    (known,) = known_gpus(session.connection(), [gpu_id])
    row = GpuSampleRow
    newest = session.execute(
        select(*GPU_SAMPLE_COLUMNS).where(row.gpu_id == gpu_id, row.ts_ms == known.last_sample_ms)
    ).first()
    latest = None if newest is None else gpu_sample_of(gpu_uuid, newest)
    return gpu_id, FleetGpu(known.identity, known.first_sample_ms, known.seen_until_ms, latest)


def slim_samples(
    session: Session, gpu_id: int, gpu_uuid: str, window: Window, metrics: Sequence[str]
) -> list[GpuSample]:
    """Samples that start in the window, by time, with these metrics only."""
    row = GpuSampleRow
    statement = (
        select(*gpu_sample_columns(metrics))
        .where(row.gpu_id == gpu_id, row.ts_ms >= window.from_ms, row.ts_ms < window.to_ms)
        .order_by(row.ts_ms)
    )
    return [gpu_sample_of(gpu_uuid, found, metrics) for found in session.execute(statement)]


def memory_by_step(session: Session, gpu_id: int, window: Window, step_ms: int) -> list[Held]:
    """Process samples folded to steps; one longer than a step stays where it is, as ``gpu_series`` has it."""
    row = ProcessSampleRow
    start = case((row.span_ms > step_ms, row.ts_ms), else_=row.ts_ms - row.ts_ms % step_ms)
    statement = (
        select(start, row.workload_id, func.sum(row.memory_used_bytes * row.span_ms) / 1000)
        .where(
            row.gpu_id == gpu_id,
            row.ts_ms >= window.from_ms,
            row.ts_ms < window.to_ms,
            row.memory_used_bytes.is_not(None),
        )
        .group_by(start, row.workload_id)
    )
    found: list[Any] = list(session.execute(statement).all())
    return [Held(*one) for one in found]


def memory_by_hour(session: Session, gpu_id: int, window: Window, step_ms: int) -> list[Held]:
    """The same from usage hours, folded to ``step_ms`` (whole hours)."""
    row = UsageHourRow
    start = row.hour_ms - row.hour_ms % step_ms
    statement = (
        select(start, row.workload_id, func.sum(row.memory_byte_s))
        .where(
            row.gpu_id == gpu_id,
            row.workload_id.is_not(None),
            row.memory_byte_s.is_not(None),
            *within(row.hour_ms, window),
        )
        .group_by(start, row.workload_id)
    )
    found: list[Any] = list(session.execute(statement).all())
    return [Held(*one) for one in found]


def presences(session: Session, gpu_id: int, window: Window) -> list[Presence]:
    """Workloads among the process samples of a window that is near enough to read them."""
    row = ProcessSampleRow
    statement = (
        select(
            row.workload_id,
            func.min(row.ts_ms),
            func.max(row.ts_ms + row.span_ms),
            func.max(row.memory_used_bytes),
        )
        .where(row.gpu_id == gpu_id, row.ts_ms >= window.from_ms, row.ts_ms < window.to_ms)
        .group_by(row.workload_id)
    )
    return [Presence(*found) for found in session.execute(statement)]


def uses(session: Session, gpu_id: int, window: Window) -> list[Use]:
    """Workloads of the GPU's usage hours in the window, most GPU-seconds first."""
    row = UsageHourRow
    here = (row.gpu_id == gpu_id, row.workload_id.is_not(None), *within(row.hour_ms, window))
    holders = (
        select(row.hour_ms.label("hour_ms"), func.count().label("count"))
        .where(*here)
        .group_by(row.hour_ms)
        .subquery()
    )
    statement = (
        select(
            row.workload_id,
            func.min(row.hour_ms),
            func.max(row.hour_ms) + HOUR_MS,
            func.sum(row.allocated_s),
            func.sum(row.active_s),
            func.sum(row.energy_j),
            func.sum(row.memory_byte_s),
            func.max(holders.c.count),
        )
        .join(holders, holders.c.hour_ms == row.hour_ms)
        .where(*here)
        .group_by(row.workload_id)
        .order_by(func.sum(row.allocated_s).desc(), row.workload_id)
    )
    found: list[Any] = list(session.execute(statement).all())
    return [
        Use(key, first, last, allocated, active, energy, memory, most > 1)
        for key, first, last, allocated, active, energy, memory, most in found
    ]


def advice(session: Session, gpu_uuid: str, statuses: Collection[Status]) -> list[Recommendation]:
    """Recommendations that name the GPU, newest first: only those are read, of however many there are."""
    row = RecommendationRow
    statement = (
        select(row.id)
        .where(
            row.status.in_([status.value for status in statuses]),
            row.finding.contains(json.dumps(gpu_uuid), autoescape=True),
        )
        .order_by(row.opened_at.desc(), row.id)
    )
    found = [recommendations.get(session, key) for key in session.scalars(statement).all()]
    return [rec for rec in found if rec is not None and gpu_uuid in rec.finding.gpu_uuids]
