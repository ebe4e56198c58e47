"""UUIDs of GPUs by their keys, for those who ask nothing else of a thousand of them."""

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from store.models.gpu import GpuRow
from store.queries.plain_rows import plain_rows


def gpu_uuids(session: Session) -> dict[int, str]:
    """Every GPU's."""
    statement: Any = select(GpuRow.id, GpuRow.gpu_uuid)
    return dict(plain_rows(session, statement))
