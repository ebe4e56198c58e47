"""Hours of one engine as its page draws them: figures and the three histograms, without the batch profile."""

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.evidence import Window
from core.histogram import Histogram
from store.models.engine import EngineRow
from store.models.engine_hour import EngineHourRow
from store.queries.hours import within


@dataclass(frozen=True, slots=True)
class HourOutline:
    """One hour; fields as in ``core.hours.EngineHour``, levels over busy time."""

    hour_ms: int
    covered_s: float
    busy_s: float
    running: float | None
    waiting: float | None
    kv_max: float | None
    busy_generated_tokens: float | None
    preemption_count: float | None
    ttft_s: float | None
    itl_s: float | None

    @property
    def tokens_per_s(self) -> float | None:
        """Generated tokens over the busy time."""
        if self.busy_generated_tokens is None or self.busy_s <= 0:
            return None
        return self.busy_generated_tokens / self.busy_s


def hour_outlines(session: Session, window: Window, engine: str) -> list[HourOutline]:
    """Hours of one engine, by time."""
    row = EngineHourRow
    statement = (
        select(
            row.hour_ms,
            row.covered_s,
            row.busy_s,
            row.running,
            row.waiting,
            row.kv_used,
            row.busy_generated_tokens,
            row.preemption_count,
            row.ttft_sum_s,
            row.ttft_count,
            row.itl_sum_s,
            row.itl_count,
        )
        .join(EngineRow, EngineRow.id == row.engine_id)
        .where(EngineRow.engine == engine, *within(row.hour_ms, window))
        .order_by(row.hour_ms)
    )
    return [
        HourOutline(
            hour_ms,
            covered_s,
            busy_s,
            Histogram.from_json(running).mean(),
            Histogram.from_json(waiting).mean(),
            Histogram.from_json(kv_used).max(),
            tokens,
            preempted,
            ttft_sum_s / ttft_count if ttft_sum_s is not None and ttft_count else None,
            itl_sum_s / itl_count if itl_sum_s is not None and itl_count else None,
        )
        for (
            hour_ms,
            covered_s,
            busy_s,
            running,
            waiting,
            kv_used,
            tokens,
            preempted,
            ttft_sum_s,
            ttft_count,
            itl_sum_s,
            itl_count,
        ) in session.execute(statement)
    ]
