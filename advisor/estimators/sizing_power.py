"""What a GPU draws while it decodes, and joules a token.

    P  = TDP·(0.28 + 0.89·√MFU) + 70 pJ/B·MBU·BW     at most the TDP
    J/token = P·TP/(tok/s)

MBU and MFU are those the step law predicts (advisor-rules 2.3). Fitted with the same weight for each of 15 models on 172
rows: H100 of 80 GB (ML.ENERGY leaderboard v3: 1 to 8 GPUs, dense, mixtures, FP8) and of 64 GB (advisor-rules 2.4).
The widths hold 80 % of the rows of a model whose own rows were left out. No other GPU was seen: there a busy card draws
37–99 % of its limit, whatever the load (2.4). `python -m bench.sizing` scores both figures.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Final

from advisor.estimators import decode_step
from core.finding import Range

FLOOR: Final = 0.28
ARITHMETIC: Final = 0.89
"""Shares of the TDP: of a card that does next to nothing but decode, and what full tensor cores add."""
JOULES_PER_BYTE: Final = 70e-12
HALF_WIDTH_DENSE_HOPPER: Final = 0.14
HALF_WIDTH_HOPPER: Final = 0.41
"""Of mixtures, 8-bit weights and sliding windows."""
HALF_WIDTH_ELSEWHERE: Final = 0.45
"""(99 − 37)/(99 + 37) of 2.4's span."""


@dataclass(frozen=True, slots=True)
class Draw:
    """Power of one GPU at work, watts, and its relative half-width."""

    watts: Range
    half_width: float

    def joules_per_token(self, *, gpus: int, tokens_per_s: float, step_half_width: float) -> Range:
        """Energy of ``gpus`` cards over what they make.

        The wider of the two widths: a step that is taken for too long is taken for too idle, and the errors offset.
        """
        return Range.around(self.watts.p50 * gpus / tokens_per_s, max(self.half_width, step_half_width))


def draw(
    *, tdp_w: float, bandwidth_bytes_per_s: float, mbu: float, mfu: float, step_half_width: float
) -> Draw:
    """Mean power of a card that decodes, between nothing and its TDP.

    Args:
        tdp_w: of the data sheet; a lower limit in force caps it. bandwidth_bytes_per_s: peak.
        mbu, mfu: shares of bandwidth and dense 16-bit rate in use, 0–1.
        step_half_width: of the step law without what stretches it: tells which rows speak of this model and card.
    """
    middle = tdp_w * (FLOOR + ARITHMETIC * sqrt(mfu)) + JOULES_PER_BYTE * mbu * bandwidth_bytes_per_s
    middle = min(middle, tdp_w)
    width = _width(step_half_width)
    around = Range.around(middle, width)
    return Draw(Range(around.p10, middle, max(middle, min(around.p90, tdp_w))), width)


def _width(step_half_width: float) -> float:
    if step_half_width <= decode_step.HALF_WIDTH_DENSE_HOPPER:
        return HALF_WIDTH_DENSE_HOPPER
    return HALF_WIDTH_HOPPER if step_half_width <= decode_step.HALF_WIDTH_HOPPER else HALF_WIDTH_ELSEWHERE
