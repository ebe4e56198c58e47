"""Raw samples of LLM engines: one row per engine and interval."""

from sqlalchemy import Integer
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base


class EngineSampleRow(Base):
    """One interval of one engine; columns after the busy ones are ``core.metrics.ENGINE_COLUMNS``.

    Without foreign key and partitioned by day on PostgreSQL, as ``gpu_sample`` and for its reasons.
    """

    __tablename__ = "engine_sample"
    __table_args__ = {"sqlite_with_rowid": False, "postgresql_partition_by": "RANGE (ts_ms)"}  # noqa: RUF012

    engine_id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    ts_ms: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    span_ms: Mapped[int] = mapped_column(Integer)
    covered_ms: Mapped[int] = mapped_column(Integer)
    busy_ms: Mapped[int] = mapped_column(Integer)
    busy_running_requests: Mapped[float | None]
    running_requests: Mapped[float | None]
    running_max_requests: Mapped[float | None]
    waiting_requests: Mapped[float | None]
    kv_used_ratio: Mapped[float | None]
    kv_used_max_ratio: Mapped[float | None]
    generated_tokens: Mapped[float | None]
    prompt_tokens: Mapped[float | None]
    cached_prompt_tokens: Mapped[float | None]
    preemption_count: Mapped[float | None]
    finished_requests: Mapped[float | None]
    ttft_sum_s: Mapped[float | None]
    ttft_count: Mapped[float | None]
    itl_sum_s: Mapped[float | None]
    itl_count: Mapped[float | None]
