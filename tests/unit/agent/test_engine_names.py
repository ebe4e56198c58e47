"""Every engine's own names come out under ours (advisor-rules 3.4)."""

import pytest

from agent.engines import engine_series, is_engine_name

NAMES = [
    ("vllm:num_requests_running", {}, "running_requests"),
    ("vllm:num_requests_waiting", {}, "waiting_requests"),
    ("vllm:num_requests_waiting_by_reason", {"reason": "capacity"}, "waiting_requests"),
    ("vllm:kv_cache_usage_perc", {}, "kv_used_ratio"),
    ("vllm:gpu_cache_usage_perc", {}, "kv_used_ratio"),
    ("vllm:generation_tokens_total", {}, "generated_tokens"),
    ("vllm:generation_tokens", {}, "generated_tokens"),
    ("vllm:prompt_tokens_total", {}, "prompt_tokens"),
    ("vllm:prompt_tokens_cached_total", {}, "cached_prompt_tokens"),
    ("vllm:prefix_cache_hits_total", {}, "cached_prompt_tokens"),
    ("vllm:num_preemptions_total", {}, "preemption_count"),
    ("vllm:request_success_total", {"finished_reason": "stop"}, "finished_requests"),
    ("vllm:time_to_first_token_seconds_sum", {}, "ttft_sum_s"),
    ("vllm:inter_token_latency_seconds_count", {}, "itl_count"),
    ("vllm:time_per_output_token_seconds_sum", {}, "itl_sum_s"),
    ("sglang:num_running_reqs", {}, "running_requests"),
    ("sglang:num_queue_reqs", {}, "waiting_requests"),
    ("sglang:token_usage", {}, "kv_used_ratio"),
    ("sglang:generation_tokens_total", {}, "generated_tokens"),
    ("sglang:cached_tokens_total", {}, "cached_prompt_tokens"),
    ("sglang:num_retracted_requests_total", {}, "preemption_count"),
    ("tgi_batch_current_size", {}, "running_requests"),
    ("tgi_queue_size", {}, "waiting_requests"),
    ("tgi_request_generated_tokens_sum", {}, "generated_tokens"),
    ("tgi_request_input_length_sum", {}, "prompt_tokens"),
    ("trtllm_num_requests_running", {}, "running_requests"),
    ("trtllm:num_requests_waiting", {}, "waiting_requests"),
    ("trtllm_kv_cache_utilization", {}, "kv_used_ratio"),
    ("nv_trt_llm_request_metrics", {"request_type": "scheduled"}, "running_requests"),
    ("nv_trt_llm_request_metrics", {"request_type": "waiting"}, "waiting_requests"),
    ("nv_trt_llm_kv_cache_block_metrics", {"kv_cache_block_type": "fraction"}, "kv_used_ratio"),
    ("llamacpp:requests_processing", {}, "running_requests"),
    ("llamacpp:requests_deferred", {}, "waiting_requests"),
    ("llamacpp:tokens_predicted_total", {}, "generated_tokens"),
]


@pytest.mark.parametrize(("name", "labels", "reading"), NAMES)
def test_a_name_becomes_its_reading(name: str, labels: dict[str, str], reading: str) -> None:
    series = engine_series(name, labels)
    assert series is not None
    assert [metric.reading for metric in series.metrics] == [reading]
    assert is_engine_name(name)


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("vllm:iteration_tokens_total_bucket", {}),
        ("vllm:time_to_first_token_seconds_bucket", {"le": "1"}),
        ("vllm:generation_tokens_created", {}),
        ("nv_trt_llm_request_metrics", {"request_type": "context"}),
        ("sglang:num_running_reqs", {"tp_rank": "1"}),
        ("http_requests_total", {}),
    ],
)
def test_other_series_are_none_of_ours(name: str, labels: dict[str, str]) -> None:
    assert engine_series(name, labels) is None


def test_labels_name_core_and_model() -> None:
    series = engine_series("vllm:num_requests_running", {"engine": "3", "model_name": "opt-1.3b"})
    assert series is not None
    assert (series.kind, series.core, series.model) == ("vllm", "3", "opt-1.3b")
    ranked = engine_series("sglang:num_running_reqs", {"dp_rank": "1", "tp_rank": "0"})
    assert ranked is not None
    assert ranked.core == "1"
