"""Runs of scheduled work."""

from dataclasses import dataclass

from sqlalchemy import and_, func, select
from sqlalchemy.orm import Session

from core.clock import from_ms, to_ms
from core.errors import StoreError
from store.models.job_run import JobRunRow


@dataclass(frozen=True, slots=True)
class JobRun:
    """One run; ``finished_at_ms`` and ``ok`` None: still running, or killed."""

    name: str
    started_at_ms: int
    finished_at_ms: int | None
    ok: bool | None
    message: str | None


def start(session: Session, name: str, now_ms: int) -> int:
    """Record that a job starts; the key to finish it with."""
    row = JobRunRow(name=name, started_at=from_ms(now_ms))
    session.add(row)
    session.flush()
    return row.id


def finish(session: Session, run_id: int, now_ms: int, ok: bool, message: str | None) -> None:
    """Record how a run ended. Raises ``StoreError`` when it never started."""
    row = session.get(JobRunRow, run_id)
    if row is None:
        raise StoreError(f"there is no job run {run_id}: start it first")
    row.finished_at, row.ok, row.message = from_ms(now_ms), ok, message
    session.flush()


def last_runs(session: Session) -> list[JobRun]:
    """The newest run of every job, by name."""
    newest = (
        select(JobRunRow.name, func.max(JobRunRow.started_at).label("started_at"))
        .group_by(JobRunRow.name)
        .subquery()
    )
    statement = (
        select(JobRunRow)
        .join(newest, and_(JobRunRow.name == newest.c.name, JobRunRow.started_at == newest.c.started_at))
        .order_by(JobRunRow.name, JobRunRow.id)
    )
    by_name = {row.name: row for row in session.scalars(statement)}
    return [
        JobRun(
            row.name,
            to_ms(row.started_at),
            None if row.finished_at is None else to_ms(row.finished_at),
            row.ok,
            row.message,
        )
        for row in by_name.values()
    ]
