"""Whether another GPU carries an engine's load: memory, time between tokens, rate and prompts, at their slow end.

The same requests keep coming, so the other GPU must make the same tokens per second, not run the same batch: a slower
step keeps each request longer, and more of them run at once.

    c        = measured step ÷ formula, on the GPU of today                 (what software adds goes along)
    B'       with  B'/t(B') = λ_p99,  t = c·(1 + width)·formula of 2.2 with the other's BW and F
    fits     t(B') ≤ ITL promise,  λ_p99 ≤ 0.7·X(B_promise),  W + KV·B'/B + overhead ≤ 0.9·VRAM,
             1.35·2·P_act·n_in,p95/F ≤ prefill allowed                      (advisor-rules R20, R13, R08)

The prompt's p95 is not in an hour's sums. It is taken as 3.6 times the mean, as in a public production trace
(8,819 requests: mean 2,048, p95 7,315 tokens).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from advisor.estimators.decode_step import FLOP_EFFICIENCY, DecodeStep
from advisor.estimators.replicas import UTILIZATION
from advisor.estimators.shard import scaled
from core.hours import BatchPoint

USABLE: Final = 0.9
"""Share of the smaller GPU's memory that the need may fill (R20)."""
LONG_PROMPT: Final = 3.6
"""p95 of prompt lengths over their mean (Azure LLM inference trace, code, 2023)."""
CORRECTION: Final = (0.6, 1.8)
"""Measured over formula within which the formula speaks of this engine; above it the host is in the way (R15)."""


@dataclass(frozen=True, slots=True)
class Carried:
    """How a GPU carries a load.

    Attributes:
        batch, step_s: requests at once and time between tokens, at the slow end. step_p50_s: at the middle.
        batch_within: largest batch within the promise, at the slow end.
        load_ratio: load over the rate at that batch, 0–1; planned for at most 0.7.
    """

    batch: float
    step_s: float
    step_p50_s: float
    batch_within: float
    load_ratio: float


def correction(step: DecodeStep, profile: Mapping[float, BatchPoint]) -> float | None:
    """C over all batch sizes; None where nothing is known or the formula does not describe the engine (``CORRECTION``).

    c = tokens the formula makes of the time at each batch ÷ tokens generated. The mean batch over the mean rate would
    not do: an engine with quiet nights and full days runs at neither.
    """
    points = [(batch, point) for batch, point in profile.items() if batch >= 1 and point.generated_tokens > 0]
    made = sum(point.generated_tokens for _, point in points)
    if made <= 0:
        return None
    ratio = sum(point.seconds * step.tokens_per_s(batch) for batch, point in points) / made
    return ratio if CORRECTION[0] <= ratio <= CORRECTION[1] else None


def batch_at_rate(step: DecodeStep, tokens_per_s: float, most: float) -> float | None:
    """B with B/t(B) = ``tokens_per_s``, at least 1; None when even ``most`` sequences make less."""
    if most < 1 or step.tokens_per_s(most) < tokens_per_s:
        return None
    low, high = 1.0, most
    if step.tokens_per_s(low) >= tokens_per_s:
        return low
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if step.tokens_per_s(middle) < tokens_per_s else (low, middle)
    return high


def carried(
    step: DecodeStep,
    *,
    load_tokens_per_s: float,
    promise_s: float,
    ceiling: float | None = None,
    utilization: float = UTILIZATION,
) -> Carried | None:
    """How a GPU with this step law (middle) carries the load when it is as slow as ``step.half_width`` allows; None: not.

    Args:
        step: the law on that GPU, already corrected. load_tokens_per_s: λ_p99. promise_s: longest step allowed.
        ceiling: the engine's own batch limit. utilization: share of its rate that may be planned for.
    """
    slow = scaled(step, 1 + step.half_width)
    within = slow.largest_batch_within(promise_s)
    if ceiling is not None:
        within = min(within, ceiling)
    if within < 1:
        return None
    ratio = load_tokens_per_s / slow.tokens_per_s(within)
    batch = batch_at_rate(slow, load_tokens_per_s, within)
    if batch is None or ratio > utilization:
        return None
    return Carried(batch, slow.step_s(batch), step.step_s(batch), within, ratio)


def prompt_tokens_p95(*, context_tokens: float, prompt_per_generated: float) -> float:
    """Long prompts from the mean context: ctx ≈ n_in + n_out/2 (2.2), so n_in = ctx·r/(r + ½)."""
    return LONG_PROMPT * context_tokens * prompt_per_generated / (prompt_per_generated + 0.5)


def prefill_s(*, active_parameters: float, prompt_tokens: float, flops: float) -> float:
    """Time to read a prompt: 1.35·2·P_act·n_in/F, the compute term of 2.2 for a whole prompt at once."""
    return FLOP_EFFICIENCY * 2 * active_parameters * prompt_tokens / flops
