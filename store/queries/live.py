"""The newest sample of GPUs, with the few metrics that a live view shows: one statement, one row a GPU."""

from typing import Final

from sqlalchemy import and_, select
from sqlalchemy.orm import Session

from core.samples import GpuSample
from store.models.gpu import GpuRow
from store.models.gpu_sample import GpuSampleRow
from store.rows import gpu_sample_columns, gpu_sample_of

LIVE_METRICS: Final = (
    "busy_ratio",
    "power_w",
    "memory_used_bytes",
    "sm_active_ratio",
    "tensor_active_ratio",
    "dram_active_ratio",
    "sm_clock_hz",
    "temperature_c",
)


def newest_samples(session: Session, gpu_uuid: str | None = None) -> list[GpuSample]:
    """The newest sample of one GPU (default of every GPU); without one, or with it purged, a GPU is absent."""
    statement = select(GpuRow.gpu_uuid, *gpu_sample_columns(LIVE_METRICS)).join(
        GpuSampleRow,
        and_(GpuSampleRow.gpu_id == GpuRow.id, GpuSampleRow.ts_ms == GpuRow.last_sample_ms),
    )
    if gpu_uuid is not None:
        statement = statement.where(GpuRow.gpu_uuid == gpu_uuid)
    return [gpu_sample_of(uuid, row, LIVE_METRICS) for uuid, *row in session.execute(statement)]


def is_known(session: Session, gpu_uuid: str) -> bool:
    """Whether there is a GPU of that UUID."""
    return session.execute(select(GpuRow.id).where(GpuRow.gpu_uuid == gpu_uuid)).scalar() is not None
