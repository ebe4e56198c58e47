"""Every GPU with the few figures of its newest sample that a table of a thousand of them prints."""

from typing import Any, Final, NamedTuple

from sqlalchemy import Select, and_, select
from sqlalchemy.orm import Session

from store.models.gpu import GpuRow
from store.models.gpu_sample import GpuSampleRow
from store.models.host import HostRow
from store.queries.plain_rows import plain_rows


class GpuNow(NamedTuple):
    """A GPU (or MIG slice); from ``activity`` on of its newest sample: None without one, or where that was purged.

    ``first_sample_ms`` and ``seen_until_ms``: start of its first and end of its newest sample; None: never seen.
    """

    id: int
    gpu_uuid: str
    host: str | None
    gpu_index: int | None
    model: str | None
    memory_total_bytes: int | None
    first_sample_ms: int | None
    seen_until_ms: int | None
    activity: str | None
    busy_ratio: float | None
    power_w: float | None
    power_limit_w: float | None
    memory_used_bytes: float | None
    sm_active_ratio: float | None
    dram_active_ratio: float | None


OF_SAMPLE: Final = GpuNow._fields[8:]


def gpus_now(session: Session, host: str | None = None) -> list[GpuNow]:
    """Every GPU, or those of a host (empty: of no known one), by host, index and UUID, those without a host last."""
    gpu, sample = GpuRow, GpuSampleRow
    columns: tuple[Any, ...] = (
        gpu.id,
        gpu.gpu_uuid,
        HostRow.name,
        gpu.gpu_index,
        gpu.model,
        gpu.memory_total_bytes,
        gpu.first_sample_ms,
        gpu.seen_until_ms,
        *(getattr(sample, name) for name in OF_SAMPLE),
    )
    statement: Select[Any] = (
        select(*columns)
        .select_from(gpu)
        .outerjoin(HostRow, HostRow.id == gpu.host_id)
        .outerjoin(sample, and_(sample.gpu_id == gpu.id, sample.ts_ms == gpu.last_sample_ms))
    )
    if host is not None:
        statement = statement.where(HostRow.name == host if host else gpu.host_id.is_(None))
    found = [GpuNow._make(row) for row in plain_rows(session, statement)]
    # Sorted here: databases do not agree on the order of letters, nor on where NULL goes.
    found.sort(key=lambda one: (one.host is None, one.host or "", *_place(one)))
    return found


def _place(one: GpuNow) -> tuple[bool, int, str]:
    return one.gpu_index is None, one.gpu_index or 0, one.gpu_uuid
