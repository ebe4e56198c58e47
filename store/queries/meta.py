"""Facts about the database itself, by key."""

from typing import Final

from sqlalchemy import delete
from sqlalchemy.orm import Session

from store.models.meta import MetaRow

SIMULATED: Final = "simulated"


def get(session: Session, key: str) -> str | None:
    """The value of ``key``; None when it was never put."""
    row = session.get(MetaRow, key)
    return None if row is None else row.value


def put(session: Session, key: str, value: str) -> None:
    """Keep ``value`` under ``key``, in place of an older one."""
    session.merge(MetaRow(key=key, value=value))
    session.flush()


def drop(session: Session, key: str) -> None:
    """Forget ``key``, where it is kept."""
    session.execute(delete(MetaRow).where(MetaRow.key == key))


def simulated(session: Session) -> bool:
    """Whether this database holds a simulated fleet: every page then says so."""
    return get(session, SIMULATED) == "true"


def set_simulated(session: Session) -> None:
    """Say that this database holds a simulated fleet. There is no way back: real samples belong elsewhere."""
    put(session, SIMULATED, "true")
