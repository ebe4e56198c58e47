"""What is kept of an LLM engine over a stretch of time, whether an hour or a day."""

from sqlalchemy.orm import Mapped


class EngineFigures:
    """Columns of ``core.hours.EngineHour``; histograms and the batch profile are JSON text."""

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
