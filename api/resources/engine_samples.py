"""Raw samples of one LLM engine, as long as they are kept."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from api.resources.columns import about, metric
from api.resources.scope import Scope
from core.clock import from_ms
from core.errors import NotFoundError
from core.evidence import Window
from core.metrics import ENGINE_COLUMNS
from core.samples import EngineSample
from store.queries import samples as sample_queries


@dataclass(frozen=True, slots=True)
class EngineSampleView:
    """One sample of an engine: scrapes folded over an interval. Null is unknown."""

    sampled_at: Annotated[datetime, about("Start of the interval, UTC.")]
    span_s: Annotated[float, about("Length of the interval.")]
    coverage_ratio: Annotated[float, about("Share of the interval that scrapes vouch for.")]
    busy_s: Annotated[float, about("Seconds of it with a request running.")]
    busy_running_requests: Annotated[
        float | None, about("Mean requests running over those; null: never busy.")
    ]
    running_requests: Annotated[float | None, metric("running_requests")]
    running_max_requests: Annotated[float | None, metric("running_max_requests")]
    waiting_requests: Annotated[float | None, metric("waiting_requests")]
    kv_used_ratio: Annotated[float | None, metric("kv_used_ratio")]
    kv_used_max_ratio: Annotated[float | None, metric("kv_used_max_ratio")]
    generated_tokens: Annotated[float | None, metric("generated_tokens")]
    prompt_tokens: Annotated[float | None, metric("prompt_tokens")]
    cached_prompt_tokens: Annotated[float | None, metric("cached_prompt_tokens")]
    preemption_count: Annotated[float | None, metric("preemption_count")]
    finished_requests: Annotated[float | None, metric("finished_requests")]
    ttft_sum_s: Annotated[float | None, metric("ttft_sum_s")]
    ttft_count: Annotated[float | None, metric("ttft_count")]
    itl_sum_s: Annotated[float | None, metric("itl_sum_s")]
    itl_count: Annotated[float | None, metric("itl_count")]


def samples(
    scope: Scope, engine: str, *, after_ms: int | None = None, limit: int | None = None
) -> list[EngineSampleView]:
    """Samples of the window by time, the first ``limit`` of them; ``after_ms`` leaves out those up to then.

    Raises:
        NotFoundError: no such engine.
    """
    window = scope.window if after_ms is None else Window(after_ms + 1, scope.window.to_ms)
    found = sample_queries.engine_samples(scope.session, engine, window, limit)
    if found is None:
        raise NotFoundError(f"no engine {engine}: GET /api/v1/engines lists those known here")
    return [_row(one) for one in found]


def _row(one: EngineSample) -> EngineSampleView:
    return EngineSampleView(
        sampled_at=from_ms(one.ts_ms),
        span_s=one.span_ms / 1000,
        coverage_ratio=one.covered_ms / one.span_ms,
        busy_s=one.busy_ms / 1000,
        busy_running_requests=one.busy_running_requests,
        **{name: one.values.get(name) for name in ENGINE_COLUMNS},
    )
