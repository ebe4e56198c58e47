"""Faults that people are told of."""

from datetime import datetime

from sqlalchemy import Integer
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base, BigKey


class AlertRow(Base):
    """One fault by its ``key``, as last found; ``resolved_at`` NULL: it is still there.

    ``figure`` is dollars a month, or a count, as its kind has it; NULL where nothing is counted.
    """

    __tablename__ = "alert"

    id: Mapped[BigKey]
    key: Mapped[str] = mapped_column(unique=True)
    kind: Mapped[str]
    severity: Mapped[int] = mapped_column(Integer)
    title: Mapped[str]
    detail: Mapped[str]
    figure: Mapped[float | None]
    first_at: Mapped[datetime]
    last_at: Mapped[datetime]
    resolved_at: Mapped[datetime | None]
