"""What a question for idleness rests on: newest samples, the hours before, and who holds which GPU. A few GPUs at a time."""

from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Float, Select, and_, cast, func, or_, select
from sqlalchemy.orm import Session

from core.activity import IDLE
from core.evidence import Window
from core.readings import SLICE_PREFIX, WorkloadKey
from core.units import HOUR_MS
from store.keys import attributes_of
from store.models.gpu import GpuRow
from store.models.gpu_hour import GpuHourRow
from store.models.gpu_sample import GpuSampleRow
from store.models.host import HostRow
from store.models.process_sample import ProcessSampleRow
from store.models.usage_hour import UsageHourRow
from store.models.workload import WorkloadRow
from store.queries.plain_rows import plain_rows


class GpuSeen(NamedTuple):
    """A GPU (or MIG slice); from ``span_ms`` on of its newest sample: None without one, or where that was purged."""

    id: int
    gpu_uuid: str
    host_id: int | None
    host: str | None
    gpu_index: int | None
    seen_until_ms: int | None
    span_ms: int | None
    covered_ms: int | None
    activity: str | None

    @property
    def is_slice(self) -> bool:
        """A MIG instance."""
        return self.gpu_uuid.startswith(SLICE_PREFIX)


class Stretch(NamedTuple):
    """A sample or an hour of a GPU: from when to when, how much of it is vouched for, and whether it says what was asked."""

    from_ms: int
    to_ms: int
    covered_ms: float
    holds: bool


Stretches = dict[int, list[Stretch]]
"""By GPU, oldest first."""
_IDLE: Final = frozenset(activity.value for activity in IDLE)
_SLACK_S: Final = 0.5
"""Seconds of activities are sums of floats: an hour without work may differ from its covered time by dust."""


def gpus_of_uuid(session: Session, gpu_uuid: str) -> list[GpuSeen]:
    """The GPU or slice of that UUID."""
    return _seen(session, GpuRow.gpu_uuid == gpu_uuid)


def gpus_of_hosts(session: Session, host_ids: Collection[int]) -> list[GpuSeen]:
    """GPUs and slices of hosts."""
    return _seen(session, GpuRow.host_id.in_(host_ids))


def gpus_of_ids(session: Session, gpu_ids: Collection[int]) -> list[GpuSeen]:
    """GPUs and slices by key."""
    return _seen(session, GpuRow.id.in_(gpu_ids))


def slices_of_nowhere(session: Session, card_uuid: str) -> list[GpuSeen]:
    """Slices that carry their card's UUID in their own, of a card of no known host."""
    inner = f"{SLICE_PREFIX}{card_uuid}/"
    return _seen(session, and_(GpuRow.gpu_uuid > inner, GpuRow.gpu_uuid < f"{inner[:-1]}0"))


def _seen(session: Session, which: ColumnElement[bool]) -> list[GpuSeen]:
    gpu: Any = GpuRow
    sample: Any = GpuSampleRow
    statement: Select[Any] = (
        select(
            gpu.id,
            gpu.gpu_uuid,
            gpu.host_id,
            HostRow.name,
            gpu.gpu_index,
            gpu.seen_until_ms,
            sample.span_ms,
            sample.covered_ms,
            sample.activity,
        )
        .select_from(gpu)
        .outerjoin(HostRow, HostRow.id == gpu.host_id)
        .outerjoin(sample, and_(sample.gpu_id == gpu.id, sample.ts_ms == gpu.last_sample_ms))
        .where(which)
    )
    found = [GpuSeen._make(row) for row in plain_rows(session, statement)]
    # Sorted here: databases do not agree on the order of letters, nor on where NULL goes.
    found.sort(key=lambda one: (one.host or "", one.gpu_index is None, one.gpu_index or 0, one.gpu_uuid))
    return found


def host_id(session: Session, name: str) -> int | None:
    """Key of a host."""
    return session.execute(select(HostRow.id).where(HostRow.name == name)).scalar()


def idle_samples(session: Session, gpu_ids: Collection[int], window: Window) -> Stretches:
    """Samples that start in the window; ``holds``: idle."""
    row: Any = GpuSampleRow
    statement: Select[Any] = (
        select(row.gpu_id, row.ts_ms, row.span_ms, row.covered_ms, row.activity)
        .where(row.gpu_id.in_(gpu_ids), row.ts_ms >= window.from_ms, row.ts_ms < window.to_ms)
        .order_by(row.gpu_id, row.ts_ms)
    )
    found: Stretches = {}
    for gpu_id, ts_ms, span_ms, covered_ms, activity in plain_rows(session, statement):
        one = Stretch(ts_ms, ts_ms + span_ms, covered_ms, activity in _IDLE)
        found.setdefault(gpu_id, []).append(one)
    return found


def idle_hours(session: Session, gpu_ids: Collection[int], window: Window) -> Stretches:
    """Clock hours that start in the window; ``holds``: nothing but idle time was seen in them."""
    row = GpuHourRow.__table__.c
    idle_s = sum((cast(row[f"{name}_s"], Float) for name in sorted(_IDLE)), start=cast(0, Float))
    statement: Select[Any] = (
        select(row.gpu_id, row.hour_ms, row.covered_s, idle_s)
        .where(row.gpu_id.in_(gpu_ids), row.hour_ms >= window.from_ms, row.hour_ms < window.to_ms)
        .order_by(row.gpu_id, row.hour_ms)
    )
    found: Stretches = {}
    for gpu_id, hour_ms, covered_s, idle in plain_rows(session, statement):
        holds = (idle or 0.0) >= covered_s - _SLACK_S
        found.setdefault(gpu_id, []).append(Stretch(hour_ms, hour_ms + HOUR_MS, covered_s * 1000, holds))
    return found


def workloads_named(
    session: Session, *, kind: str | None, key: str, name: str | None = None
) -> list[tuple[int, int | None, WorkloadKey]]:
    """Workloads of a kind by key, or also by name: their keys here, their hosts, and what they are."""
    row = WorkloadRow
    is_it: ColumnElement[bool] = row.key == key
    if name is not None:
        is_it = or_(is_it, row.name == name)
    statement = (
        select(row.id, row.host_id, row.kind, row.key, row.name, row.user_name, HostRow.name, row.attributes)
        .outerjoin(HostRow, HostRow.id == row.host_id)
        .where(is_it)
        .order_by(row.id)
    )
    if kind is not None:
        statement = statement.where(row.kind == kind)
    return [
        (id_, host, WorkloadKey(kind_, key_, name_, user, host_name, attributes_of(attributes)))
        for id_, host, kind_, key_, name_, user, host_name, attributes in session.execute(statement)
    ]


def gpus_used(session: Session, workload_ids: Collection[int], from_ms: int) -> dict[int, int]:
    """GPUs on which usage of workloads is known since then, and the end of the last such hour."""
    row: Any = UsageHourRow
    statement: Select[Any] = (
        select(row.gpu_id, func.max(row.hour_ms))
        .where(row.workload_id.in_(workload_ids), row.hour_ms >= from_ms)
        .group_by(row.gpu_id)
    )
    return {gpu_id: hour_ms + HOUR_MS for gpu_id, hour_ms in plain_rows(session, statement)}


def held_until(
    session: Session, gpu_ids: Collection[int], workload_ids: Collection[int], window: Window
) -> dict[int, int]:
    """GPUs that workloads were seen to hold in the window, and the end of the newest such sample."""
    row: Any = ProcessSampleRow
    statement: Select[Any] = (
        select(row.gpu_id, func.max(row.ts_ms + row.span_ms))
        .where(
            row.gpu_id.in_(gpu_ids),
            row.ts_ms >= window.from_ms,
            row.ts_ms < window.to_ms,
            row.workload_id.in_(workload_ids),
        )
        .group_by(row.gpu_id)
    )
    return {gpu_id: until_ms for gpu_id, until_ms in plain_rows(session, statement)}  # noqa: C416 - for the checker: two columns


def held_samples(
    session: Session, gpu_ids: Collection[int], workload_ids: Collection[int], window: Window
) -> Stretches:
    """Samples in which workloads held GPUs: intervals by GPU, each once however many workloads there are."""
    row: Any = ProcessSampleRow
    statement: Select[Any] = (
        select(row.gpu_id, row.ts_ms, func.max(row.span_ms))
        .where(
            row.gpu_id.in_(gpu_ids),
            row.ts_ms >= window.from_ms,
            row.ts_ms < window.to_ms,
            row.workload_id.in_(workload_ids),
        )
        .group_by(row.gpu_id, row.ts_ms)
        .order_by(row.gpu_id, row.ts_ms)
    )
    return _held(plain_rows(session, statement))


def held_hours(
    session: Session, gpu_ids: Collection[int], workload_ids: Collection[int], window: Window
) -> Stretches:
    """Clock hours in which workloads held GPUs; covered is the time that the longest of them held it."""
    row: Any = UsageHourRow
    statement: Select[Any] = (
        select(row.gpu_id, row.hour_ms, func.max(row.allocated_s))
        .where(
            row.workload_id.in_(workload_ids),
            row.gpu_id.in_(gpu_ids),
            row.hour_ms >= window.from_ms,
            row.hour_ms < window.to_ms,
        )
        .group_by(row.gpu_id, row.hour_ms)
        .order_by(row.gpu_id, row.hour_ms)
    )
    found: Stretches = {}
    for gpu_id, hour_ms, held_s in plain_rows(session, statement):
        found.setdefault(gpu_id, []).append(Stretch(hour_ms, hour_ms + HOUR_MS, held_s * 1000, True))
    return found


def _held(rows: Sequence[tuple[Any, ...]]) -> Stretches:
    found: Stretches = {}
    for gpu_id, ts_ms, span_ms in rows:
        found.setdefault(gpu_id, []).append(Stretch(ts_ms, ts_ms + span_ms, span_ms, True))
    return found
