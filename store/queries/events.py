"""Events of GPUs: XID errors, lost and found cards, driver changes."""

from collections.abc import Collection

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.evidence import Window
from core.samples import GpuEvent
from store.models.gpu import GpuRow
from store.models.gpu_event import GpuEventRow


def gpu_events(
    session: Session,
    window: Window,
    gpu_uuid: str | Collection[str] | None = None,
    kinds: Collection[str] | None = None,
) -> list[GpuEvent]:
    """Events of one GPU or several (default all), of some kinds (default every one), within the window, by time."""
    row = GpuEventRow
    statement = (
        select(GpuRow.gpu_uuid, row.ts_ms, row.kind, row.message, row.code)
        .join(GpuRow, GpuRow.id == row.gpu_id)
        .where(row.ts_ms >= window.from_ms, row.ts_ms < window.to_ms)
        .order_by(row.ts_ms, GpuRow.gpu_uuid, row.kind, row.message)
    )
    if kinds is not None:
        statement = statement.where(row.kind.in_(kinds))
    if gpu_uuid is not None:
        uuids = [gpu_uuid] if isinstance(gpu_uuid, str) else gpu_uuid
        statement = statement.where(GpuRow.gpu_uuid.in_(uuids))
    return [GpuEvent(*found) for found in session.execute(statement)]
