"""What workloads can be chosen by: users, kinds, hosts and models of GPUs."""

from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from store.models.gpu import GpuRow
from store.models.host import HostRow
from store.models.workload import WorkloadRow

MOST: Final = 300
"""Of each: more is not chosen from a list, and weighs."""


def workload_choices(session: Session) -> dict[str, list[str]]:
    """Values by filter, in order, the first of them where there are very many."""
    columns = {
        "user": WorkloadRow.user_name,
        "host": HostRow.name,
        "model": GpuRow.model,
        "kind": WorkloadRow.kind,
    }
    found = {}
    for name, column in columns.items():
        statement = select(column).distinct().where(column.is_not(None)).order_by(column).limit(MOST)
        found[name] = [text for text in session.execute(statement).scalars() if text]
    return found


def has_user(session: Session, user: str) -> bool:
    """Whether any workload was ever seen of that user."""
    statement = select(WorkloadRow.id).where(WorkloadRow.user_name == user).limit(1)
    return session.execute(statement).first() is not None
