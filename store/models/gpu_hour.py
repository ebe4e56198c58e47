"""Hours of GPUs: what everything slower than the live view reads."""

from sqlalchemy import CheckConstraint, ForeignKey, Integer, LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from core.samples import EnergyMethod
from store.models.base import Base, one_of
from store.models.gpu_figures import GpuFigures


class GpuHourRow(GpuFigures, Base):
    """``core.hours.GpuHour`` as a row: ``<activity>_s`` and ``<activity>_j`` hold seconds and joules by activity.

    ``sampled_from_ms`` and ``sampled_to_ms``: the span of the samples it was folded from (``store.hour_merge``).
    ``quarters``: its four quarters (``store.quarter_rows``); NULL of hours folded before they were kept.
    """

    __tablename__ = "gpu_hour"
    __table_args__ = (
        CheckConstraint(one_of("energy_method", EnergyMethod), name="energy_method"),
        {"sqlite_with_rowid": False},
    )

    gpu_id: Mapped[int] = mapped_column(Integer, ForeignKey("gpu.id"), primary_key=True, autoincrement=False)
    hour_ms: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, index=True)
    sampled_from_ms: Mapped[int | None]
    sampled_to_ms: Mapped[int | None]
    quarters: Mapped[bytes | None] = mapped_column(LargeBinary)
