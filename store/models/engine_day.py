"""Days of LLM engines."""

from sqlalchemy import ForeignKey, Index, Integer, LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base
from store.models.engine_figures import EngineFigures


class EngineDayRow(EngineFigures, Base):
    """``core.days.EngineDay`` as a row; ``hourly`` packs seconds and median batch of its 24 hours (``store.day_rows``)."""

    __tablename__ = "engine_day"
    __table_args__ = (
        # Sums of months of every engine are read from the index alone: a row is mostly histograms.
        Index(
            "ix_engine_day_sums",
            *("engine_id", "day_ms", "busy_s", "generated_tokens", "busy_generated_tokens"),
            *("preemption_count", "busy_energy_j"),
        ),
        {"sqlite_with_rowid": False},
    )

    engine_id: Mapped[int] = mapped_column(
        Integer, ForeignKey("engine.id"), primary_key=True, autoincrement=False
    )
    day_ms: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, index=True)
    seen: Mapped[int] = mapped_column(Integer)
    hourly: Mapped[bytes] = mapped_column(LargeBinary)
