"""Workloads by their keys."""

from collections.abc import Collection

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.readings import WorkloadKey
from store.keys import attributes_of
from store.models.host import HostRow
from store.models.workload import WorkloadRow
from store.queries.plain_rows import plain_rows


def workload_keys(session: Session, ids: Collection[int]) -> dict[int, WorkloadKey]:
    """What held a GPU, by the key that usage has for it."""
    if not ids:
        return {}
    row = WorkloadRow
    statement = (
        select(row.id, row.kind, row.key, row.name, row.user_name, HostRow.name, row.attributes)
        .outerjoin(HostRow, HostRow.id == row.host_id)
        .where(row.id.in_(ids))
    )
    return {
        key: WorkloadKey(kind, natural, name, user, host, attributes_of(attributes))
        for key, kind, natural, name, user, host, attributes in plain_rows(session, statement)
    }
