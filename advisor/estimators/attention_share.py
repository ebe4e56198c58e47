"""Share of a serving engine's time that attention takes, and what a faster attention kernel gives end to end.

    decode   A_d = B·ctx·kv/(TP·BW)                                 a step reads the KV cache of every sequence
    prefill  A_p = 1.35·B·r·2·n_in·Σ_layers heads·d_head/(TP·F)     causal: a prompt token looks back on n_in/2 on average
    share    s   = (A_d + A_p)/t_step                               gain = 1/(1 − s·(1 − 1/k)), Amdahl

Both are the time of kernels that run at the hardware's rate: a slow kernel takes longer, so s is a lower bound.
r = n_in/n_out; ctx ≈ n_in + n_out/2. Sources: advisor-rules 2.2, 3.1 and R29; FlashAttention, arXiv 2205.14135.
"""

from typing import Final

from advisor.estimators.decode_step import FLOP_EFFICIENCY
from catalog.llm_models import LlmSpec
from core.finding import Range

KERNEL_SPEEDUP: Final = (2.0, 3.0, 4.0)
"""FlashAttention over plain attention, on attention alone: low, middle, high (R29: 2–4×)."""
MOST_SHARE: Final = 0.95
"""Something other than attention always runs."""


def prompt_length(context_tokens: float, prompt_per_generated: float) -> float:
    """n_in from the mean context: ctx = n_in + n_out/2 and n_out = n_in/r give n_in = ctx·r/(r + ½)."""
    return context_tokens * prompt_per_generated / (prompt_per_generated + 0.5)


def decode_s(
    *,
    batch: float,
    context_tokens: float,
    kv_bytes_per_token: float,
    tensor_parallel: int,
    bandwidth_bytes_per_s: float,
) -> float:
    """A_d: seconds of a decode step in which attention reads the KV cache."""
    return batch * context_tokens * kv_bytes_per_token / (tensor_parallel * bandwidth_bytes_per_s)


def prefill_s(
    llm: LlmSpec,
    *,
    batch: float,
    prompt_tokens: float,
    prompt_per_generated: float,
    tensor_parallel: int,
    flops: float,
) -> float:
    """A_p: seconds a decode step's share of prefill spends in attention; local layers look back on their window only."""
    global_layers = llm.layers - llm.sliding_layers
    window = min(prompt_tokens / 2, llm.sliding_window or prompt_tokens)
    looked_back = global_layers * prompt_tokens / 2 + llm.sliding_layers * window
    flop_per_token = 4 * looked_back * llm.heads * llm.head_dim
    return FLOP_EFFICIENCY * batch * prompt_per_generated * flop_per_token / (tensor_parallel * flops)


def share(attention_s: float, step_s: float) -> float | None:
    """s, 0–0.95; None without a step."""
    return min(MOST_SHARE, attention_s / step_s) if step_s > 0 and attention_s >= 0 else None


def end_to_end(attention_share: float, kernel_speedup: float) -> float:
    """Rate with a kernel ``kernel_speedup`` ≥ 1 times as fast, over that of today: only the share gets faster."""
    return 1 / (1 - attention_share * (1 - 1 / kernel_speedup))


def gain(attention_share: float) -> Range:
    """End-to-end gain over the published range of kernel speed-ups."""
    return Range(*(end_to_end(attention_share, each) for each in KERNEL_SPEEDUP))
