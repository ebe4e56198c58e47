"""The newest state of each GPU, as its agent asked for it."""

import json

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.readings import GpuHealth
from store.models.gpu import GpuRow


def gpu_health(session: Session, gpu_uuid: str | None = None) -> dict[str, GpuHealth]:
    """State by GPU, of one or of all; a GPU of which no agent told is absent."""
    statement = select(GpuRow.gpu_uuid, GpuRow.health_ms, GpuRow.health).where(GpuRow.health.is_not(None))
    if gpu_uuid is not None:
        statement = statement.where(GpuRow.gpu_uuid == gpu_uuid)
    return {
        uuid: GpuHealth(uuid, ts_ms, json.loads(text))
        for uuid, ts_ms, text in session.execute(statement)
        if ts_ms is not None and text is not None
    }
