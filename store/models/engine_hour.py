"""Hours of LLM engines."""

from sqlalchemy import ForeignKey, Integer
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base


class EngineHourRow(Base):
    """``core.hours.EngineHour`` as a row; histograms and the batch profile are JSON text.

    ``sampled_from_ms`` and ``sampled_to_ms`` as in ``gpu_hour``.
    """

    __tablename__ = "engine_hour"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012

    engine_id: Mapped[int] = mapped_column(
        Integer, ForeignKey("engine.id"), primary_key=True, autoincrement=False
    )
    hour_ms: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, index=True)
    covered_s: Mapped[float]
    busy_s: Mapped[float]
    running: Mapped[str]
    waiting: Mapped[str]
    kv_used: Mapped[str]
    profile: Mapped[str]
    generated_tokens: Mapped[float | None]
    busy_generated_tokens: Mapped[float | None]
    prompt_tokens: Mapped[float | None]
    cached_prompt_tokens: Mapped[float | None]
    preemption_count: Mapped[float | None]
    finished_requests: Mapped[float | None]
    ttft_sum_s: Mapped[float | None]
    ttft_count: Mapped[float | None]
    itl_sum_s: Mapped[float | None]
    itl_count: Mapped[float | None]
    busy_energy_j: Mapped[float | None]
    sampled_from_ms: Mapped[int | None]
    sampled_to_ms: Mapped[int | None]
