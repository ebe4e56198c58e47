"""What hosts drew beside their GPUs, day by day, where that was measured."""

from sqlalchemy import ForeignKey, Integer
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base


class HostShareRow(Base):
    """``core.host_share.measured_share`` of one host on one UTC day; days without an answer have no row."""

    __tablename__ = "host_share"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    host_id: Mapped[int] = mapped_column(
        Integer, ForeignKey("host.id"), primary_key=True, autoincrement=False
    )
    day_ms: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, index=True)
    ratio: Mapped[float]
