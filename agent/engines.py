"""What LLM engines call their metrics (advisor-rules 3.4), old names and new ones, and what we call them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class EngineMetric:
    """One series of an engine.

    Attributes:
        reading: reading name of ``core.metrics``; for a limit the key in ``EngineIdentity.settings``.
        rank: where an engine publishes the same thing under several names, the lowest rank wins.
        summed: several series of one engine (finish reasons) add up.
        labels: only series with these label values.
        setting: the value is a limit of the engine, not a reading.
    """

    reading: str
    rank: int = 0
    summed: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    setting: bool = False


def _setting(key: str) -> tuple[EngineMetric, ...]:
    return (EngineMetric(key, setting=True),)


def _triton(reading: str, kind: str, *, label: str = "request_type", setting: bool = False) -> EngineMetric:
    return EngineMetric(reading, labels={label: kind}, setting=setting)


_VLLM: Final[dict[str, tuple[EngineMetric, ...]]] = {
    "num_requests_running": (EngineMetric("running_requests"),),
    "num_requests_waiting": (EngineMetric("waiting_requests"),),
    "num_requests_waiting_by_reason": (EngineMetric("waiting_requests", rank=1, summed=True),),
    "kv_cache_usage_perc": (EngineMetric("kv_used_ratio"),),
    "gpu_cache_usage_perc": (EngineMetric("kv_used_ratio", rank=1),),
    "generation_tokens": (EngineMetric("generated_tokens"),),
    "prompt_tokens": (EngineMetric("prompt_tokens"),),
    "prompt_tokens_cached": (EngineMetric("cached_prompt_tokens"),),
    "prefix_cache_hits": (EngineMetric("cached_prompt_tokens", rank=1),),
    "num_preemptions": (EngineMetric("preemption_count"),),
    "request_success": (EngineMetric("finished_requests", summed=True),),
    "time_to_first_token_seconds_sum": (EngineMetric("ttft_sum_s"),),
    "time_to_first_token_seconds_count": (EngineMetric("ttft_count"),),
    "inter_token_latency_seconds_sum": (EngineMetric("itl_sum_s"),),
    "inter_token_latency_seconds_count": (EngineMetric("itl_count"),),
    "time_per_output_token_seconds_sum": (EngineMetric("itl_sum_s", rank=1),),
    "time_per_output_token_seconds_count": (EngineMetric("itl_count", rank=1),),
    "request_time_per_output_token_seconds_sum": (EngineMetric("itl_sum_s", rank=2),),
    "request_time_per_output_token_seconds_count": (EngineMetric("itl_count", rank=2),),
}
_SGLANG: Final[dict[str, tuple[EngineMetric, ...]]] = {
    "num_running_reqs": (EngineMetric("running_requests"),),
    "num_queue_reqs": (EngineMetric("waiting_requests"),),
    "token_usage": (EngineMetric("kv_used_ratio"),),
    "generation_tokens": (EngineMetric("generated_tokens"),),
    "prompt_tokens": (EngineMetric("prompt_tokens"),),
    "cached_tokens": (EngineMetric("cached_prompt_tokens"),),
    "num_retracted_requests": (EngineMetric("preemption_count"),),
    "num_requests": (EngineMetric("finished_requests"),),
    "time_to_first_token_seconds_sum": (EngineMetric("ttft_sum_s"),),
    "time_to_first_token_seconds_count": (EngineMetric("ttft_count"),),
    "inter_token_latency_seconds_sum": (EngineMetric("itl_sum_s"),),
    "inter_token_latency_seconds_count": (EngineMetric("itl_count"),),
    "max_total_num_tokens": _setting("max_total_num_tokens"),
}
_TGI: Final[dict[str, tuple[EngineMetric, ...]]] = {
    "batch_current_size": (EngineMetric("running_requests"),),
    "queue_size": (EngineMetric("waiting_requests"),),
    "request_generated_tokens_sum": (EngineMetric("generated_tokens"),),
    "request_input_length_sum": (EngineMetric("prompt_tokens"),),
    "request_success": (EngineMetric("finished_requests", summed=True),),
    "request_mean_time_per_token_duration_sum": (EngineMetric("itl_sum_s"),),
    "request_mean_time_per_token_duration_count": (EngineMetric("itl_count"),),
}
_TRTLLM: Final[dict[str, tuple[EngineMetric, ...]]] = {
    "num_requests_running": (EngineMetric("running_requests"),),
    "num_requests_waiting": (EngineMetric("waiting_requests"),),
    "kv_cache_utilization": (EngineMetric("kv_used_ratio"),),
    "request_success": (EngineMetric("finished_requests", summed=True),),
    "time_to_first_token_seconds_sum": (EngineMetric("ttft_sum_s"),),
    "time_to_first_token_seconds_count": (EngineMetric("ttft_count"),),
    "time_per_output_token_seconds_sum": (EngineMetric("itl_sum_s"),),
    "time_per_output_token_seconds_count": (EngineMetric("itl_count"),),
    "max_batch_size_runtime": _setting("max_num_seqs"),
    "kv_cache_max_blocks": _setting("num_gpu_blocks"),
    "kv_cache_tokens_per_block": _setting("block_size"),
}
_TRITON: Final[dict[str, tuple[EngineMetric, ...]]] = {
    "request_metrics": (
        _triton("running_requests", "scheduled"),
        _triton("waiting_requests", "waiting"),
        _triton("max_num_seqs", "max", setting=True),
    ),
    "kv_cache_block_metrics": (
        _triton("kv_used_ratio", "fraction", label="kv_cache_block_type"),
        _triton("num_gpu_blocks", "max", label="kv_cache_block_type", setting=True),
        _triton("block_size", "tokens_per", label="kv_cache_block_type", setting=True),
    ),
}
_LLAMACPP: Final[dict[str, tuple[EngineMetric, ...]]] = {
    "requests_processing": (EngineMetric("running_requests"),),
    "requests_deferred": (EngineMetric("waiting_requests"),),
    "kv_cache_usage_ratio": (EngineMetric("kv_used_ratio"),),
    "tokens_predicted": (EngineMetric("generated_tokens"),),
    "prompt_tokens": (EngineMetric("prompt_tokens"),),
    "prompt_tokens_cached": (EngineMetric("cached_prompt_tokens"),),
}
_PREFIXES: Final = (
    ("vllm:", "vllm", _VLLM),
    ("sglang:", "sglang", _SGLANG),
    ("tgi_", "tgi", _TGI),
    ("trtllm_", "trtllm", _TRTLLM),
    ("trtllm:", "trtllm", _TRTLLM),
    ("nv_trt_llm_", "trtllm", _TRITON),
    ("llamacpp:", "llamacpp", _LLAMACPP),
)
_INFO: Final = frozenset(
    {
        "vllm:cache_config_info",
        "sglang:cache_config_info",
        "trtllm_model_config_info",
        "trtllm:model_config_info",
    }
)
_MODEL_LABELS: Final = ("model_name", "model", "model_id", "served_model_name")
_CORE_LABELS: Final = ("engine", "dp_rank")
_RANKS: Final = ("tp_rank", "pp_rank")
_NO_SETTING: Final = frozenset(
    {
        "instance",
        "job",
        "engine",
        "engine_index",
        "host",
        "hostname",
        "dp_rank",
        "tp_rank",
        "pp_rank",
        *_MODEL_LABELS,
    }
)


@dataclass(frozen=True, slots=True)
class EngineSeries:
    """What one series of exposition text is: whose, and which metrics or settings it gives.

    ``core`` is the label that tells the cores of one server apart; they are never summed. ``names_core`` is False where
    there is no such label: a server of one core, or what a server of several counts for all of them.
    """

    kind: str
    core: str
    model: str | None
    metrics: tuple[EngineMetric, ...]
    settings: Mapping[str, str]
    names_core: bool = True


def names_by_prefix() -> dict[str, tuple[str, ...]]:
    """Names that ``engine_series`` knows, by their prefix and with it; each may end in ``_total`` as well."""
    return {
        prefix: tuple(
            sorted({prefix + stem for stem in table} | {one for one in _INFO if one.startswith(prefix)})
        )
        for prefix, _kind, table in _PREFIXES
    }


def is_engine_name(name: str) -> bool:
    """Whether a series of that name may be read; cheap, for the many that are not."""
    for prefix, _kind, table in _PREFIXES:
        if name.startswith(prefix):
            return name in _INFO or name.removeprefix(prefix).removesuffix("_total") in table
    return False


def engine_series(name: str, labels: Mapping[str, str]) -> EngineSeries | None:
    """The engine series of that name and labels; None when it is none that gpuwise reads.

    Tensor- and pipeline-parallel ranks above 0 repeat what rank 0 says and are none.
    """
    found = next(
        ((kind, prefix, table) for prefix, kind, table in _PREFIXES if name.startswith(prefix)), None
    )
    if found is None or any(labels.get(rank, "0") not in {"0", ""} for rank in _RANKS):
        return None
    kind, prefix, table = found
    label = next((labels[label] for label in _CORE_LABELS if labels.get(label)), None)
    core = label or "0"
    model = next((labels[label] for label in _MODEL_LABELS if labels.get(label)), None)
    if name in _INFO:
        settings = {k: v for k, v in labels.items() if k not in _NO_SETTING and v not in {"", "None"}}
        return EngineSeries(kind, core, model, (), settings, label is not None)
    stem = name.removeprefix(prefix).removesuffix("_total")
    metrics = tuple(
        metric
        for metric in table.get(stem, ())
        if all(labels.get(label) == value for label, value in metric.labels.items())
    )
    return EngineSeries(kind, core, model, metrics, {}, label is not None) if metrics else None
