"""How much memory an engine needs for the work it was seen to do, and what an 8-bit KV cache changes.

    needed = W + max(1.3·kv_max·pool, longest sequence)·kv + 2–5 GB per GPU     (advisor-rules R13)
    τ_8    = τ − ½·ctx·kv/(TP·BW)                                               (KV term of 2.2 at half the bytes)

Process memory is no evidence of need: engines reserve what they are allowed to.
"""

from dataclasses import replace
from typing import Final

from advisor.estimators.decode_step import DecodeStep
from core.finding import Range

RESERVE: Final = 1.3
"""Room above the highest KV use seen (R13)."""
OVERHEAD_BYTES: Final = (2e9, 3.5e9, 5e9)
"""Context, graphs, activations of one GPU: low, middle, high (R13: 2–5 GB)."""


def needed_tokens(*, pool_tokens: float, kv_used_max_ratio: float, longest_tokens: float | None) -> float:
    """Tokens the pool must hold: 1.3 times the most seen, and one sequence of the longest accepted length."""
    return min(pool_tokens, max(RESERVE * kv_used_max_ratio * pool_tokens, longest_tokens or 0.0))


def kv_copies(*, kv_heads: int, is_latent: bool, tensor_parallel: int) -> float:
    """How often the cache is kept over all ranks: once while TP ≤ KV heads, on every rank with a latent cache (3.1)."""
    if is_latent:
        return float(tensor_parallel)
    return max(1.0, tensor_parallel / kv_heads)


def needed_bytes(
    *,
    weight_bytes: float,
    tokens: float,
    kv_bytes_per_token: float,
    tensor_parallel: int,
    copies: float = 1.0,
) -> Range:
    """Memory of all ranks together for ``tokens`` in cache; the range is that of the overhead."""
    held = weight_bytes + tokens * kv_bytes_per_token * copies
    return Range(*(held + each * tensor_parallel for each in OVERHEAD_BYTES))


def with_half_the_kv_bytes(
    step: DecodeStep,
    *,
    context_tokens: float,
    kv_bytes_per_token: float,
    tensor_parallel: int,
    bandwidth_bytes_per_s: float,
) -> DecodeStep:
    """The step law with an 8-bit KV cache: half of the KV term falls away, at most half of what a sequence adds."""
    read_s = context_tokens * kv_bytes_per_token / (tensor_parallel * bandwidth_bytes_per_s)
    saved_s = min(0.5 * read_s, 0.5 * step.sequence_s)
    return replace(step, sequence_s=step.sequence_s - saved_s)
