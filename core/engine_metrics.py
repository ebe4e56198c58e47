"""The metrics of an LLM engine, under whatever names it publishes them (``agent.engines``)."""

from typing import Final

from core.metric import Fold, Kind, Metric, gauge
from core.units import Unit

RUNNING_REQUESTS: Final = gauge(
    "running_requests",
    Unit.REQUEST,
    "Sequences in the running batch, mean over time.",
    "engine /metrics (advisor-rules 3.4)",
)
RUNNING_MAX_REQUESTS: Final = gauge(
    "running_max_requests",
    Unit.REQUEST,
    "Most sequences in the running batch.",
    RUNNING_REQUESTS.source,
    of="running_requests",
    fold=Fold.MAX,
)
WAITING_REQUESTS: Final = gauge(
    "waiting_requests",
    Unit.REQUEST,
    "Requests waiting for a place in the batch, mean over time.",
    RUNNING_REQUESTS.source,
)
KV_USED_RATIO: Final = gauge(
    "kv_used_ratio", Unit.RATIO, "Share of the KV cache in use, mean over time.", RUNNING_REQUESTS.source
)
KV_USED_MAX_RATIO: Final = gauge(
    "kv_used_max_ratio",
    Unit.RATIO,
    "Highest share of the KV cache in use.",
    RUNNING_REQUESTS.source,
    of="kv_used_ratio",
    fold=Fold.MAX,
)


def _engine_counter(name: str, unit: Unit, help_: str) -> Metric:
    return Metric(name, unit, Kind.COUNTER, Fold.DELTA, help_, RUNNING_REQUESTS.source)


GENERATED_TOKENS: Final = _engine_counter("generated_tokens", Unit.TOKEN, "Tokens generated in the interval.")
PROMPT_TOKENS: Final = _engine_counter(
    "prompt_tokens", Unit.TOKEN, "Prompt tokens processed in the interval."
)
CACHED_PROMPT_TOKENS: Final = _engine_counter(
    "cached_prompt_tokens", Unit.TOKEN, "Prompt tokens served from the prefix cache in the interval."
)
PREEMPTION_COUNT: Final = _engine_counter(
    "preemption_count", Unit.COUNT, "Preempted requests in the interval."
)
FINISHED_REQUESTS: Final = _engine_counter(
    "finished_requests", Unit.REQUEST, "Requests finished in the interval."
)
TTFT_SUM_S: Final = _engine_counter(
    "ttft_sum_s", Unit.SECOND, "Sum of times to first token of the interval's requests."
)
TTFT_COUNT: Final = _engine_counter("ttft_count", Unit.COUNT, "Requests behind ttft_sum_s.")
ITL_SUM_S: Final = _engine_counter("itl_sum_s", Unit.SECOND, "Sum of inter-token latencies of the interval.")
ITL_COUNT: Final = _engine_counter("itl_count", Unit.COUNT, "Tokens (or requests) behind itl_sum_s.")

ENGINE_METRICS: Final = (
    RUNNING_REQUESTS,
    RUNNING_MAX_REQUESTS,
    WAITING_REQUESTS,
    KV_USED_RATIO,
    KV_USED_MAX_RATIO,
    GENERATED_TOKENS,
    PROMPT_TOKENS,
    CACHED_PROMPT_TOKENS,
    PREEMPTION_COUNT,
    FINISHED_REQUESTS,
    TTFT_SUM_S,
    TTFT_COUNT,
    ITL_SUM_S,
    ITL_COUNT,
)
"""Columns of ``engine_sample`` after its keys and its busy-time columns, in order."""
