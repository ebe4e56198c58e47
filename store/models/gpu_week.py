"""What GPUs did in whole weeks: seconds and joules by activity."""

from sqlalchemy import ForeignKey, Integer
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base


class GpuWeekRow(Base):
    """Sums of ``gpu_day`` over the days there are of one week in UTC; ``day_ms``: its Monday.

    Always as its days are: written in their transaction (``store.day_sums``).
    """

    __tablename__ = "gpu_week"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    gpu_id: Mapped[int] = mapped_column(Integer, ForeignKey("gpu.id"), primary_key=True, autoincrement=False)
    day_ms: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    empty_s: Mapped[float]
    parked_s: Mapped[float]
    starved_s: Mapped[float]
    spinning_s: Mapped[float]
    memory_bound_s: Mapped[float]
    compute_bound_s: Mapped[float]
    mixed_s: Mapped[float]
    busy_s: Mapped[float]
    unknown_s: Mapped[float]
    empty_j: Mapped[float | None]
    parked_j: Mapped[float | None]
    starved_j: Mapped[float | None]
    spinning_j: Mapped[float | None]
    memory_bound_j: Mapped[float | None]
    compute_bound_j: Mapped[float | None]
    mixed_j: Mapped[float | None]
    busy_j: Mapped[float | None]
    unknown_j: Mapped[float | None]
