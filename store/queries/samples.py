"""Raw samples of one GPU: for the live view and one GPU's zoomed chart, and nothing slower."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.evidence import Window
from core.readings import WorkloadKey
from core.samples import GpuSample, ProcessSample
from store.keys import attributes_of
from store.models.gpu import GpuRow
from store.models.gpu_sample import GpuSampleRow
from store.models.host import HostRow
from store.models.process_sample import ProcessSampleRow
from store.models.workload import WorkloadRow
from store.rows import GPU_SAMPLE_COLUMNS, gpu_sample_of


def gpu_samples(session: Session, gpu_uuid: str, window: Window, limit: int | None = None) -> list[GpuSample]:
    """Samples that start in the window, in order of time; ``limit`` keeps the first ones, to page on."""
    row = GpuSampleRow
    gpu_id = select(GpuRow.id).where(GpuRow.gpu_uuid == gpu_uuid).scalar_subquery()
    statement = (
        select(*GPU_SAMPLE_COLUMNS)
        .where(row.gpu_id == gpu_id, row.ts_ms >= window.from_ms, row.ts_ms < window.to_ms)
        .order_by(row.ts_ms)
        .limit(limit)
    )
    return [gpu_sample_of(gpu_uuid, found) for found in session.execute(statement).all()]


def processes(session: Session, gpu_uuid: str, window: Window) -> list[ProcessSample]:
    """What workloads held of one GPU, by time and workload."""
    row = ProcessSampleRow
    gpu_id = select(GpuRow.id).where(GpuRow.gpu_uuid == gpu_uuid).scalar_subquery()
    statement = (
        select(
            row.ts_ms,
            row.span_ms,
            WorkloadRow.kind,
            WorkloadRow.key,
            WorkloadRow.name,
            WorkloadRow.user_name,
            HostRow.name,
            WorkloadRow.attributes,
            row.memory_used_bytes,
            row.busy_ratio,
            row.process_count,
            row.cpu_ratio,
            row.cpu_thread_ratio,
        )
        .join(WorkloadRow, WorkloadRow.id == row.workload_id)
        .outerjoin(HostRow, HostRow.id == WorkloadRow.host_id)
        .where(row.gpu_id == gpu_id, row.ts_ms >= window.from_ms, row.ts_ms < window.to_ms)
        .order_by(row.ts_ms, row.workload_id)
    )
    return [
        ProcessSample(
            gpu_uuid,
            ts_ms,
            span_ms,
            WorkloadKey(kind, key, name, user, host, attributes_of(attributes)),
            *values,
        )
        for ts_ms, span_ms, kind, key, name, user, host, attributes, *values in session.execute(statement)
    ]
