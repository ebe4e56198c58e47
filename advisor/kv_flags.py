"""The exact flags for KV memory, batch tokens, context length and prefix caching, by engine (advisor-rules 3.3)."""

from collections.abc import Mapping
from typing import Final

START: Final[Mapping[str, str]] = {
    "vllm": "vllm serve {model}",
    "sglang": "python -m sglang.launch_server --model-path {model}",
    "tgi": "text-generation-launcher --model-id {model}",
    "trtllm": "trtllm-serve {model}",
    "llamacpp": "llama-server -m {model}",
}
MEMORY_SHARE: Final[Mapping[str, str]] = {
    "vllm": "--gpu-memory-utilization",
    "sglang": "--mem-fraction-static",
    "tgi": "--cuda-memory-fraction",
    "trtllm": "--kv_cache_free_gpu_memory_fraction",
}
"""vLLM and TGI: share of the whole GPU. SGLang: of the GPU, for weights and KV. TensorRT-LLM: of what weights leave free."""
MEMORY_SETTINGS: Final[Mapping[str, tuple[str, float | None]]] = {
    "vllm": ("gpu_memory_utilization", 0.9),
    "sglang": ("mem_fraction_static", None),
    "tgi": ("gpu_memory_utilization", 1.0),
    "trtllm": ("kv_cache_free_gpu_memory_fraction", 0.9),
}
"""Where the share in force is published, and the engine's default where it has a fixed one."""
BATCH_TOKENS: Final[Mapping[str, str]] = {
    "vllm": "--max-num-batched-tokens",
    "sglang": "--chunked-prefill-size",
    "tgi": "--max-batch-prefill-tokens",
    "trtllm": "--max_num_tokens",
    "llamacpp": "-b",
}
CONTEXT: Final[Mapping[str, str]] = {
    "vllm": "--max-model-len",
    "sglang": "--context-length",
    "tgi": "--max-total-tokens",
    "trtllm": "--max_seq_len",
    "llamacpp": "-c",
}
RANKS: Final[Mapping[str, str]] = {
    "vllm": "--tensor-parallel-size",
    "sglang": "--tp",
    "tgi": "--num-shard",
    "trtllm": "--tp_size",
}
PREFIX: Final[Mapping[str, str]] = {
    "vllm": "vllm serve {model} --enable-prefix-caching",
    "sglang": "python -m sglang.launch_server --model-path {model}",
    "llamacpp": "llama-server -m {model} --cache-reuse 256",
}
"""SGLang caches prefixes unless it is started with ``--disable-radix-cache``: leave that flag out."""


def command(kind: str, model: str | None, options: str) -> str | None:
    """Start command with ``options``; None for an engine we do not know."""
    template = START.get(kind)
    return None if template is None else f"{template.format(model=model or 'MODEL')} {options}"


def flagged(kind: str, model: str | None, flags: Mapping[str, str], value: object) -> str | None:
    """Start command with one flag of a table at ``value``; None where the engine has no such flag."""
    flag = flags.get(kind)
    return None if flag is None else command(kind, model, f"{flag} {value}")


def prefix_command(kind: str, model: str | None) -> str | None:
    """Start command with prefix caching on; None where there is no flag for it."""
    template = PREFIX.get(kind)
    return None if template is None else template.format(model=model or "MODEL")


def is_on(value: str | None) -> bool | None:
    """A switch as engines publish it (``True``, ``1``, ``false``); None: not published."""
    word = (value or "").strip().lower()
    if word in {"true", "1", "on", "yes"}:
        return True
    return False if word in {"false", "0", "off", "no"} else None
