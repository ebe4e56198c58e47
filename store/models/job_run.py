"""Runs of scheduled work."""

from datetime import datetime

from sqlalchemy import Index
from sqlalchemy.orm import Mapped

from store.models.base import Base, BigKey


class JobRunRow(Base):
    """One run; ``finished_at`` and ``ok`` NULL: still running, or killed."""

    __tablename__ = "job_run"
    __table_args__ = (Index(None, "name", "started_at"),)

    id: Mapped[BigKey]
    name: Mapped[str]
    started_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]
    ok: Mapped[bool | None]
    message: Mapped[str | None]
