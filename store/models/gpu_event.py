"""Events of GPUs: XID errors, lost and found cards, driver changes."""

from sqlalchemy import ForeignKey, Integer
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base


class GpuEventRow(Base):
    """One event; its whole text is part of the key, so that a repeated report stores nothing new."""

    __tablename__ = "gpu_event"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    gpu_id: Mapped[int] = mapped_column(Integer, ForeignKey("gpu.id"), primary_key=True, autoincrement=False)
    ts_ms: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    kind: Mapped[str] = mapped_column(primary_key=True)
    message: Mapped[str] = mapped_column(primary_key=True)
    code: Mapped[int | None] = mapped_column(Integer)
