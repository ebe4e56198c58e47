"""Days of usage: one workload on one GPU."""

from sqlalchemy import CheckConstraint, ForeignKey, Integer, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from core.sharing import ShareMethod
from store.models.base import Base, BigKey, one_of


class UsageDayRow(Base):
    """``core.days.UsageDay`` as a row; ``workload_id`` NULL is time for which no workload is known."""

    __tablename__ = "usage_day"
    __table_args__ = (
        UniqueConstraint("gpu_id", "day_ms", "workload_id"),
        CheckConstraint(one_of("share_method", ShareMethod), name="share_method"),
    )

    id: Mapped[BigKey]
    gpu_id: Mapped[int] = mapped_column(Integer, ForeignKey("gpu.id"))
    day_ms: Mapped[int] = mapped_column(index=True)
    workload_id: Mapped[int | None] = mapped_column(Integer, ForeignKey("workload.id"), index=True)
    first_ms: Mapped[int]
    last_ms: Mapped[int]
    allocated_s: Mapped[float]
    active_s: Mapped[float]
    effective_s: Mapped[float]
    memory_byte_s: Mapped[float | None]
    energy_j: Mapped[float | None]
    share_method: Mapped[str]
    cpu_ratio: Mapped[float | None]
    cpu_thread_ratio: Mapped[float | None]
    shared: Mapped[bool]
