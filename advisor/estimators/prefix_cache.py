"""What reusing the KV cache of shared prompt prefixes saves: only prefill, and only the shared part of it.

    hit          = cached prompt tokens / all prompt tokens
    prefill share = B·τ_flop·r/(1 + r) / t(B),  r = computed prompt tokens per generated token
    time saved   = prefill share · share of today's computed prompt tokens that would be found
    rate         = 1/(1 − time saved) of today's, at most

Source: advisor-rules R14 and the arithmetic term of the step law in 2.2.
"""

from advisor.estimators.decode_step import HALF_WIDTH_UNTRIED, DecodeStep
from core.finding import Range


def hit_ratio(cached_tokens: float | None, prompt_tokens: float | None) -> float | None:
    """Share of prompt tokens served from the cache, 0–1; None when either counter is unknown or no prompt came."""
    if cached_tokens is None or not prompt_tokens:
        return None
    return min(1.0, max(0.0, cached_tokens / prompt_tokens))


def prefill_share(step: DecodeStep, batch: float, prompt_per_generated: float) -> Range | None:
    """Share of a step's time that computes prompts, 0–1.

    Args:
        step: the law with its compute part. batch: running sequences.
        prompt_per_generated: computed prompt tokens per generated one (those from the cache cost nothing).

    Returns:
        None where the compute part of the step is not known.
    """
    if step.flop_s <= 0 or batch <= 0 or prompt_per_generated < 0:
        return None
    prefill_s = batch * step.flop_s * prompt_per_generated / (1 + prompt_per_generated)
    width = max(step.half_width, HALF_WIDTH_UNTRIED)  # rows judge whole steps, not their compute part
    around = Range.around(prefill_s / step.step_s(batch), width)
    return Range(min(1.0, around.p10), min(1.0, around.p50), min(1.0, around.p90))


def time_saved(share: Range, hit: Range) -> Range:
    """Share of the time that falls away, 0–1: low with low, high with high."""
    return Range(share.p10 * hit.p10, share.p50 * hit.p50, share.p90 * hit.p90)


def speedup(saved: Range) -> Range:
    """Throughput at the same batch over today's, at least 1. At most 10: no cache makes decoding free."""
    return Range(*(1 / max(0.1, 1 - value) for value in (saved.p10, saved.p50, saved.p90)))
