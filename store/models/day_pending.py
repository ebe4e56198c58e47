"""Days whose hours changed since they were last folded."""

from sqlalchemy import CheckConstraint, Integer
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base, one_of
from store.models.rollup_pending import KINDS


class DayPendingRow(Base):
    """One day of one GPU (its usage with it), engine or host; set in the transaction that writes the hours."""

    __tablename__ = "day_pending"
    __table_args__ = (
        CheckConstraint(one_of("kind", KINDS), name="kind"),
        {"sqlite_with_rowid": False},
    )

    kind: Mapped[str] = mapped_column(primary_key=True)
    entity_id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    day_ms: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
