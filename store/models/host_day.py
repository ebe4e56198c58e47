"""Days of hosts."""

from sqlalchemy import ForeignKey, Integer
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base


class HostDayRow(Base):
    """``core.days.HostDay`` as a row."""

    __tablename__ = "host_day"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    host_id: Mapped[int] = mapped_column(
        Integer, ForeignKey("host.id"), primary_key=True, autoincrement=False
    )
    day_ms: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, index=True)
    seen: Mapped[int] = mapped_column(Integer)
    covered_s: Mapped[float]
    cpu_busy_ratio: Mapped[float | None]
    cpu_busiest_ratio: Mapped[float | None]
    iowait_ratio: Mapped[float | None]
    host_memory_used_bytes: Mapped[float | None]
    host_power_w: Mapped[float | None]
