"""Days of GPUs: what rules read of a fortnight before they ask for hours."""

from sqlalchemy import CheckConstraint, ForeignKey, Index, Integer, LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from core.samples import EnergyMethod
from store.models.base import Base, one_of
from store.models.gpu_figures import GpuFigures


class GpuDayRow(GpuFigures, Base):
    """``core.days.GpuDay`` as a row; ``hourly`` packs the seconds of its 24 hours (``store.day_rows``)."""

    __tablename__ = "gpu_day"
    __table_args__ = (
        CheckConstraint(one_of("energy_method", EnergyMethod), name="energy_method"),
        Index(None, "gpu_id", "bare_idle_w"),
        # Sums of idle energy over months of a fleet are read from the index alone.
        Index(None, "day_ms", "empty_j", "parked_j", "empty_s", "parked_s"),
        {"sqlite_with_rowid": False},
    )

    gpu_id: Mapped[int] = mapped_column(Integer, ForeignKey("gpu.id"), primary_key=True, autoincrement=False)
    day_ms: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    seen: Mapped[int] = mapped_column(Integer)
    hourly: Mapped[bytes] = mapped_column(LargeBinary)
    bare_idle_w: Mapped[float | None]
