"""The serving flags of each engine that may leave a command line, and what each means here.

Only flags in these tables are read at all, and each value must look like what its flag takes: a number, a word or a
path. Keys are those of ``EngineIdentity.settings``; engines that mean the same by another name get the same key, the
others keep their own in snake case. Source: advisor-rules.md 3.3 and the engines' own documentation.
"""

from dataclasses import dataclass
from typing import Final

NUMBER: Final = "number"
WORD: Final = "word"
TEXT: Final = "text"
"""A model's name, path or address."""
ON: Final = "on"
OFF: Final = "off"
JSON: Final = "json"
"""An object, of which ``JSON_KEYS`` pass."""
PRESENT: Final = "present"
"""Takes a value that is not kept: only that it is there is told, as ``true``."""
IGNORED: Final = "ignored"
"""A switch without a value that says nothing here; listed so that a model's name may follow it."""


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag: its key and what its value must look like."""

    key: str
    takes: str = NUMBER


@dataclass(frozen=True, slots=True)
class Engine:
    """What an engine's command line means.

    Attributes:
        kind: as in ``EngineIdentity.kind``.
        port: of its HTTP server when no flag says; of its metrics where they have a port of their own.
        metrics_path: where its Prometheus text is.
        flags: by name, with dashes, without those in front.
        metrics_switch: key of the flag without which it publishes no metrics.
        environ: environment variables that stand for flags.
    """

    kind: str
    port: int
    metrics_path: str
    flags: dict[str, Flag]
    metrics_switch: str | None = None
    environ: tuple[tuple[str, str], ...] = ()


def _flags(*groups: tuple[str, str, str]) -> dict[str, Flag]:
    """From (what it takes, key, names separated by spaces)."""
    return {name: Flag(key, takes) for takes, key, names in groups for name in names.split()}


_ADDRESS: Final = ((WORD, "host", "host"), (NUMBER, "port", "port"))
JSON_KEYS: Final = {
    "speculative_config": {
        "method": "speculative_method",
        "model": "speculative_model",
        "num_speculative_tokens": "num_speculative_tokens",
    },
    "kv_transfer_config": {"kv_connector": "kv_connector", "kv_role": "kv_role"},
}

VLLM: Final = Engine(
    "vllm",
    8000,
    "/metrics",
    _flags(
        *_ADDRESS,
        (TEXT, "model", "model"),
        (TEXT, "served_model_name", "served-model-name"),
        (WORD, "dtype", "dtype"),
        (WORD, "quantization", "quantization q"),
        (WORD, "kv_cache_dtype", "kv-cache-dtype"),
        (NUMBER, "max_num_seqs", "max-num-seqs"),
        (NUMBER, "max_num_batched_tokens", "max-num-batched-tokens"),
        (NUMBER, "max_model_len", "max-model-len"),
        (NUMBER, "gpu_memory_utilization", "gpu-memory-utilization"),
        (NUMBER, "tensor_parallel_size", "tensor-parallel-size tp"),
        (NUMBER, "pipeline_parallel_size", "pipeline-parallel-size pp"),
        (NUMBER, "data_parallel_size", "data-parallel-size dp"),
        (NUMBER, "data_parallel_size_local", "data-parallel-size-local dpl"),
        (NUMBER, "block_size", "block-size"),
        (NUMBER, "num_gpu_blocks_override", "num-gpu-blocks-override"),
        (NUMBER, "cpu_offload_gb", "cpu-offload-gb"),
        (NUMBER, "swap_space", "swap-space"),
        (NUMBER, "kv_cache_memory_bytes", "kv-cache-memory-bytes kv-cache-memory"),
        (WORD, "load_format", "load-format"),
        (WORD, "attention_backend", "attention-backend"),
        (WORD, "distributed_executor_backend", "distributed-executor-backend"),
        (JSON, "speculative_config", "speculative-config"),
        (JSON, "kv_transfer_config", "kv-transfer-config"),
        (WORD, "speculative_method", "speculative-config.method"),
        (TEXT, "speculative_model", "speculative-config.model speculative-model"),
        (
            NUMBER,
            "num_speculative_tokens",
            "speculative-config.num-speculative-tokens num-speculative-tokens",
        ),
        (ON, "enforce_eager", "enforce-eager"),
        (OFF, "enforce_eager", "no-enforce-eager"),
        (ON, "enable_prefix_caching", "enable-prefix-caching"),
        (OFF, "enable_prefix_caching", "no-enable-prefix-caching"),
        (ON, "enable_chunked_prefill", "enable-chunked-prefill"),
        (OFF, "enable_chunked_prefill", "no-enable-chunked-prefill"),
        (ON, "enable_expert_parallel", "enable-expert-parallel ep"),
        (ON, "async_scheduling", "async-scheduling"),
        (OFF, "async_scheduling", "no-async-scheduling"),
        (ON, "enable_sleep_mode", "enable-sleep-mode"),
        (ON, "enable_lora", "enable-lora"),
        (ON, "disable_log_stats", "disable-log-stats"),
        (ON, "headless", "headless"),
        (PRESENT, "ssl", "ssl-certfile ssl-keyfile"),
        (PRESENT, "uds", "uds"),
        (
            IGNORED,
            "",
            "trust-remote-code disable-log-requests enable-log-requests enable-auto-tool-choice",
        ),
        (
            IGNORED,
            "",
            "disable-custom-all-reduce disable-uvicorn-access-log language-model-only no-trust-remote-code",
        ),
    ),
)
SGLANG: Final = Engine(
    "sglang",
    30000,
    "/metrics",
    _flags(
        *_ADDRESS,
        (TEXT, "model", "model-path model"),
        (TEXT, "served_model_name", "served-model-name"),
        (WORD, "dtype", "dtype"),
        (WORD, "quantization", "quantization"),
        (WORD, "kv_cache_dtype", "kv-cache-dtype"),
        (NUMBER, "max_num_seqs", "max-running-requests"),
        (NUMBER, "max_model_len", "context-length"),
        (NUMBER, "max_total_tokens", "max-total-tokens"),
        (NUMBER, "max_prefill_tokens", "max-prefill-tokens"),
        (NUMBER, "chunked_prefill_size", "chunked-prefill-size"),
        (NUMBER, "mem_fraction_static", "mem-fraction-static"),
        (NUMBER, "tensor_parallel_size", "tensor-parallel-size tp-size tp"),
        (NUMBER, "pipeline_parallel_size", "pipeline-parallel-size pp-size pp"),
        (NUMBER, "data_parallel_size", "data-parallel-size dp-size dp"),
        (NUMBER, "expert_parallel_size", "expert-parallel-size ep-size ep"),
        (NUMBER, "page_size", "page-size"),
        (NUMBER, "cpu_offload_gb", "cpu-offload-gb"),
        (NUMBER, "cuda_graph_max_bs", "cuda-graph-max-bs"),
        (WORD, "schedule_policy", "schedule-policy"),
        (WORD, "attention_backend", "attention-backend"),
        (WORD, "disaggregation_mode", "disaggregation-mode"),
        (WORD, "speculative_method", "speculative-algorithm speculative-algo"),
        (TEXT, "speculative_model", "speculative-draft-model-path speculative-draft-model"),
        (NUMBER, "num_speculative_tokens", "speculative-num-draft-tokens"),
        (ON, "enforce_eager", "disable-cuda-graph"),
        (OFF, "enable_prefix_caching", "disable-radix-cache"),
        (ON, "enable_dp_attention", "enable-dp-attention"),
        (ON, "enable_torch_compile", "enable-torch-compile"),
        (ON, "enable_metrics", "enable-metrics"),
        (PRESENT, "ssl", "ssl-certfile ssl-keyfile"),
        (IGNORED, "", "trust-remote-code skip-server-warmup log-requests"),
    ),
    metrics_switch="enable_metrics",
)
_TGI_FLAGS: Final = _flags(
    (WORD, "host", "hostname"),
    (NUMBER, "port", "port"),
    (TEXT, "model", "model-id"),
    (WORD, "dtype", "dtype"),
    (WORD, "quantization", "quantize"),
    (WORD, "kv_cache_dtype", "kv-cache-dtype"),
    (NUMBER, "tensor_parallel_size", "num-shard"),
    (NUMBER, "max_num_seqs", "max-batch-size"),
    (NUMBER, "max_concurrent_requests", "max-concurrent-requests"),
    (NUMBER, "max_batch_total_tokens", "max-batch-total-tokens"),
    (NUMBER, "max_batch_prefill_tokens", "max-batch-prefill-tokens"),
    (NUMBER, "max_model_len", "max-total-tokens"),
    (NUMBER, "max_input_tokens", "max-input-tokens max-input-length"),
    (NUMBER, "max_waiting_tokens", "max-waiting-tokens"),
    (NUMBER, "gpu_memory_utilization", "cuda-memory-fraction"),
    (WORD, "cuda_graphs", "cuda-graphs"),
    (NUMBER, "num_speculative_tokens", "speculate"),
)
TGI: Final = Engine(
    "tgi",
    80,
    "/metrics",
    _TGI_FLAGS,
    environ=tuple((name.upper().replace("-", "_"), name) for name in _TGI_FLAGS if name != "hostname"),
)
TRTLLM: Final = Engine(
    "trtllm",
    8000,
    "/prometheus/metrics",
    _flags(
        *_ADDRESS,
        (WORD, "backend", "backend"),
        (NUMBER, "max_num_seqs", "max-batch-size"),
        (NUMBER, "max_num_batched_tokens", "max-num-tokens"),
        (NUMBER, "max_model_len", "max-seq-len"),
        (NUMBER, "max_beam_width", "max-beam-width"),
        (NUMBER, "tensor_parallel_size", "tp-size tensor-parallel-size"),
        (NUMBER, "pipeline_parallel_size", "pp-size pipeline-parallel-size"),
        (NUMBER, "expert_parallel_size", "ep-size moe-expert-parallel-size"),
        (
            NUMBER,
            "kv_cache_free_gpu_memory_fraction",
            "kv-cache-free-gpu-memory-fraction free-gpu-memory-fraction",
        ),
        (WORD, "kv_cache_dtype", "kv-cache-dtype"),
        (IGNORED, "", "trust-remote-code"),
    ),
)
TRITON: Final = Engine(
    "trtllm",
    8002,
    "/metrics",
    _flags(
        (WORD, "host", "metrics-address"),
        (NUMBER, "port", "metrics-port"),
        (NUMBER, "http_port", "http-port"),
        (TEXT, "model_repository", "model-repository model-store"),
        (TEXT, "model", "load-model"),
        (WORD, "allow_metrics", "allow-metrics"),
    ),
)
_LLAMA_ENVIRON: Final = (
    ("LLAMA_ARG_MODEL", "model"),
    ("LLAMA_ARG_HF_REPO", "hf-repo"),
    ("LLAMA_ARG_HOST", "host"),
    ("LLAMA_ARG_PORT", "port"),
    ("LLAMA_ARG_N_PARALLEL", "parallel"),
    ("LLAMA_ARG_CTX_SIZE", "ctx-size"),
    ("LLAMA_ARG_N_GPU_LAYERS", "n-gpu-layers"),
    ("LLAMA_ARG_ENDPOINT_METRICS", "metrics"),
)
LLAMACPP: Final = Engine(
    "llamacpp",
    8080,
    "/metrics",
    _flags(
        *_ADDRESS,
        (TEXT, "model", "model m"),
        (TEXT, "model", "hf-repo hf hfr"),
        (TEXT, "served_model_name", "alias a"),
        (TEXT, "speculative_model", "model-draft md"),
        (NUMBER, "max_num_seqs", "parallel np"),
        (NUMBER, "ctx_size", "ctx-size c"),
        (WORD, "n_gpu_layers", "n-gpu-layers gpu-layers ngl"),
        (WORD, "cache_type_k", "cache-type-k ctk"),
        (WORD, "cache_type_v", "cache-type-v ctv"),
        (NUMBER, "batch_size", "batch-size b"),
        (NUMBER, "ubatch_size", "ubatch-size ub"),
        (WORD, "flash_attn", "flash-attn fa"),
        (WORD, "split_mode", "split-mode sm"),
        (WORD, "tensor_split", "tensor-split ts"),
        (NUMBER, "main_gpu", "main-gpu mg"),
        (NUMBER, "num_speculative_tokens", "draft-max draft draft-n"),
        (TEXT, "api_prefix", "api-prefix"),
        (ON, "continuous_batching", "cont-batching cb"),
        (OFF, "continuous_batching", "no-cont-batching nocb"),
        (ON, "enable_metrics", "metrics"),
        (PRESENT, "ssl", "ssl-cert-file ssl-key-file"),
    ),
    metrics_switch="enable_metrics",
    environ=_LLAMA_ENVIRON,
)
