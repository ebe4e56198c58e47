"""Raw samples of one GPU or engine: for the live view, one GPU's zoomed chart and programs, and nothing slower."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.evidence import Window
from core.readings import WorkloadKey
from core.samples import EngineSample, GpuSample, ProcessSample
from store.keys import attributes_of
from store.models.engine import EngineRow
from store.models.engine_sample import EngineSampleRow
from store.models.gpu import GpuRow
from store.models.gpu_sample import GpuSampleRow
from store.models.host import HostRow
from store.models.process_sample import ProcessSampleRow
from store.models.workload import WorkloadRow
from store.rows import ENGINE_SAMPLE_COLUMNS, GPU_SAMPLE_COLUMNS, engine_sample_of, gpu_sample_of


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


def engine_samples(
    session: Session, engine: str, window: Window, limit: int | None = None
) -> list[EngineSample] | None:
    """Samples of an engine that start in the window, by time, the first ``limit`` of them; None: no such engine."""
    row = EngineSampleRow
    engine_id = session.execute(select(EngineRow.id).where(EngineRow.engine == engine)).scalar()
    if engine_id is None:
        return None
    statement = (
        select(*ENGINE_SAMPLE_COLUMNS)
        .where(row.engine_id == engine_id, row.ts_ms >= window.from_ms, row.ts_ms < window.to_ms)
        .order_by(row.ts_ms)
        .limit(limit)
    )
    return [engine_sample_of(engine, found) for found in session.execute(statement).all()]


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
