"""Hours of hosts."""

from sqlalchemy import ForeignKey, Integer, LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base


class HostHourRow(Base):
    """``core.hours.HostHour`` as a row; ``sampled_from_ms``, ``sampled_to_ms`` and ``quarters`` as in ``gpu_hour``."""

    __tablename__ = "host_hour"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    host_id: Mapped[int] = mapped_column(
        Integer, ForeignKey("host.id"), primary_key=True, autoincrement=False
    )
    hour_ms: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, index=True)
    covered_s: Mapped[float]
    cpu_busy_ratio: Mapped[float | None]
    cpu_busiest_ratio: Mapped[float | None]
    iowait_ratio: Mapped[float | None]
    host_memory_used_bytes: Mapped[float | None]
    host_power_w: Mapped[float | None]
    sampled_from_ms: Mapped[int | None]
    sampled_to_ms: Mapped[int | None]
    quarters: Mapped[bytes | None] = mapped_column(LargeBinary)
