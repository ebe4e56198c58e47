"""What speculative decoding gives: several tokens a step for the price of verifying them.

    E       = (1 − α^(γ+1))/(1 − α)                        tokens a sequence gains per verified step
    t_spec  = t(B) + B·γ·f + extra experts + γ·c·t(B)      verify γ more tokens of each sequence, draft γ times
    gain(B) = E·t(B)/t_spec(B)

α is the chance that a drafted token is accepted, γ the tokens drafted, c the cost of one draft over that of a step, f
the arithmetic of one token. Verified tokens read the KV cache once, as one token does; their arithmetic is what grows
with the batch, and with it the gain falls, below 1 where arithmetic fills the step. Sources: Leviathan et al., ICML
2023 (E and the cost of drafting); advisor-rules 2.2 (t and f) and R30.
"""

from bisect import bisect_left
from dataclasses import dataclass
from typing import Final

from advisor.estimators.decode_step import DecodeStep
from core.finding import Range

DRAFT_TOKENS: Final = 3
"""γ: few enough that most are accepted, as engines' own examples have it."""
LARGEST_BATCH: Final = 1024
"""Batch up to which a break-even is looked for."""


@dataclass(frozen=True, slots=True)
class Drafting:
    """How well and at what cost tokens are drafted.

    Attributes:
        acceptance: α, 0–1. cost_ratio: c, time of one draft over that of a step.
    """

    acceptance: float
    cost_ratio: float


POOR: Final = Drafting(0.4, 0.10)
USUAL: Final = Drafting(0.6, 0.05)
GOOD: Final = Drafting(0.8, 0.02)
"""Low, middle and high end of published acceptance and of draft costs from n-grams to a small model."""


def expected_tokens(acceptance: float, draft_tokens: int) -> float:
    """E: tokens per verified step and sequence, 1 … γ + 1."""
    if acceptance >= 1:
        return draft_tokens + 1.0
    return float((1 - acceptance ** (draft_tokens + 1)) / (1 - acceptance))


def step_s(
    step: DecodeStep, batch: float, prompt_per_generated: float, draft_tokens: int, draft: Drafting
) -> float:
    """t_spec(B), seconds: the step law with γ more tokens of each sequence to verify, and γ drafts before it."""
    plain = step.step_s(batch)
    one_token_s = step.flop_s / (1 + prompt_per_generated)
    experts = 0.0
    if step.experts_s:
        missed = 1 - step.expert_share
        experts = step.experts_s * (missed**batch - missed ** (batch * (draft_tokens + 1)))
    return plain * (1 + draft_tokens * draft.cost_ratio) + batch * draft_tokens * one_token_s + experts


def gain_of(
    step: DecodeStep, batch: float, prompt_per_generated: float, draft_tokens: int, draft: Drafting
) -> float:
    """Rate with speculation over that without, at the same batch."""
    spec = step_s(step, batch, prompt_per_generated, draft_tokens, draft)
    return expected_tokens(draft.acceptance, draft_tokens) * step.step_s(batch) / spec


def gain(
    step: DecodeStep, batch: float, *, prompt_per_generated: float, draft_tokens: int = DRAFT_TOKENS
) -> Range | None:
    """Gain from poor to good drafting; None where the arithmetic of a token is not known, or without a sequence.

    Args:
        step: the law, with its compute term. batch: sequences at once, at least 1.
        prompt_per_generated: computed prompt tokens per generated token, which ``step.flop_s`` holds too.
        draft_tokens: γ.
    """
    if step.flop_s <= 0 or batch < 1 or draft_tokens < 1:
        return None
    return Range(
        *(gain_of(step, batch, prompt_per_generated, draft_tokens, each) for each in (POOR, USUAL, GOOD))
    )


def break_even_batch(
    step: DecodeStep,
    *,
    prompt_per_generated: float,
    draft: Drafting = USUAL,
    draft_tokens: int = DRAFT_TOKENS,
) -> int | None:
    """Largest batch at which drafting like this still gains; None when it does not even for one sequence.

    ``LARGEST_BATCH`` when it gains all the way there.
    """
    if step.flop_s <= 0 or gain_of(step, 1, prompt_per_generated, draft_tokens, draft) <= 1:
        return None
    batches = range(1, LARGEST_BATCH + 1)
    if step.experts_s == 0:  # the gain only falls with the batch
        return bisect_left(
            batches, True, key=lambda b: gain_of(step, b, prompt_per_generated, draft_tokens, draft) <= 1
        )
    falling = (b for b in batches if gain_of(step, b, prompt_per_generated, draft_tokens, draft) <= 1)
    return next(falling, LARGEST_BATCH + 1) - 1
