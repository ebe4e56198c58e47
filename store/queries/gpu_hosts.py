"""Which host each GPU is on, without all else that is known of it."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from store.models.gpu import GpuRow
from store.models.host import HostRow
from store.queries.plain_rows import plain_rows


def hosts_of_gpus(session: Session) -> Mapping[str, str | None]:
    """The host of every GPU by its UUID; None: no source names it."""
    columns: tuple[Any, ...] = (GpuRow.gpu_uuid, HostRow.name)
    statement: Select[Any] = select(*columns).outerjoin(HostRow, HostRow.id == GpuRow.host_id)
    return dict(plain_rows(session, statement))
