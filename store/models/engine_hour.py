"""Hours of LLM engines."""

from sqlalchemy import ForeignKey, Integer
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base
from store.models.engine_figures import EngineFigures


class EngineHourRow(EngineFigures, Base):
    """``core.hours.EngineHour`` as a row; histograms and the batch profile are JSON text.

    ``sampled_from_ms`` and ``sampled_to_ms`` as in ``gpu_hour``.
    """

    __tablename__ = "engine_hour"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    engine_id: Mapped[int] = mapped_column(
        Integer, ForeignKey("engine.id"), primary_key=True, autoincrement=False
    )
    hour_ms: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, index=True)
    sampled_from_ms: Mapped[int | None]
    sampled_to_ms: Mapped[int | None]
