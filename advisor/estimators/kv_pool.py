"""KV-cache pool of an engine: its size in tokens, the mean context it holds, and how many sequences fit.

Source: advisor-rules 3.1 and 3.2.
"""

from collections.abc import Mapping
from math import floor
from typing import Final

from catalog.llm_models import LlmSpec, kv_bytes_per_sequence, kv_bytes_per_token

PAIRS: Final = (
    ("num_gpu_blocks", "block_size"),  # vLLM cache_config_info
    ("num_pages", "page_size"),  # SGLang cache_config_info
    ("kv_cache_max_blocks", "tokens_per_block"),  # TensorRT-LLM
)
TOTALS: Final = ("max_total_num_tokens", "max_batch_total_tokens")
"""SGLang's gauge, TGI's flag: tokens at once."""
CACHE_TYPES: Final = ("cache_dtype", "kv_cache_dtype")
KEEP_FREE: Final = 0.9
"""KV use up to which a batch may grow: beyond 0.95 engines preempt (R07c, R12)."""


def number(settings: Mapping[str, str], *names: str) -> float | None:
    """First of ``names`` that the engine publishes as a positive number; ``None``, ``auto`` and text are unknown."""
    for name in names:
        try:
            value = float(settings.get(name, ""))
        except ValueError:
            continue
        if value > 0:
            return value
    return None


def pool_tokens(settings: Mapping[str, str]) -> float | None:
    """Tokens the KV cache holds: blocks × block size; None where the engine does not publish it."""
    for blocks, size in PAIRS:
        count, length = number(settings, blocks), number(settings, size)
        if count is not None and length is not None:
            return count * length
    return number(settings, *TOTALS)


def cache_element_bytes(settings: Mapping[str, str]) -> float:
    """Bytes of one KV element: 1 for an FP8 cache, else the 2 that ``auto`` means for 16-bit activations."""
    words = [settings.get(name, "").lower() for name in CACHE_TYPES]
    return 1.0 if any("fp8" in word or "int8" in word for word in words) else 2.0


def token_bytes(llm: LlmSpec, settings: Mapping[str, str]) -> float:
    """KV bytes of one token over all layers, at the cache's own precision."""
    return kv_bytes_per_token(llm, cache_element_bytes(settings))


def read_bytes_per_token(llm: LlmSpec, settings: Mapping[str, str], context_tokens: float) -> float:
    """KV bytes a step reads per token of context: less than ``token_bytes`` past a sliding window."""
    whole = kv_bytes_per_sequence(llm, context_tokens, cache_element_bytes(settings))
    return whole / context_tokens if context_tokens > 0 else token_bytes(llm, settings)


def mean_context_tokens(
    *, kv_used_ratio: float | None, pool: float | None, running: float | None
) -> float | None:
    """Tokens in cache per running sequence: use × pool / running; None when any is unknown or 0."""
    if not kv_used_ratio or not pool or not running:
        return None
    return kv_used_ratio * pool / running


def end_context_tokens(context_tokens: float, prompt_per_generated: float) -> float:
    """Tokens of a sequence when it ends, from the mean over its life.

    ctx ≈ n_in + n_out/2 and end = n_in + n_out (2.2), so end = ctx · (r + 1)/(r + ½) with r = n_in/n_out.
    """
    return context_tokens * (prompt_per_generated + 1) / (prompt_per_generated + 0.5)


def batch_limit(
    *,
    pool: float,
    context_tokens: float,
    prompt_per_generated: float,
    running: float,
    kv_used_p95_ratio: float,
) -> int:
    """Most sequences the pool carries without preemption to speak of, at least 1.

    The larger of two bounds, both below pool/ctx (every sequence at its mean length): pool / end-of-request context
    (3.2, all sequences at their end at once), and the measured batch scaled until its own p95 of KV use reaches
    ``KEEP_FREE`` (sequences at different ages, as they really are).
    """
    at_end = pool / end_context_tokens(context_tokens, prompt_per_generated)
    scaled = running * KEEP_FREE / kv_used_p95_ratio if kv_used_p95_ratio > 0 else at_end
    return max(1, floor(min(pool / context_tokens, max(at_end, scaled))))
