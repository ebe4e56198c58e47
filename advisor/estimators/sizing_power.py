"""What a GPU draws while it decodes, and joules a token.

    P  = TDP·(0.28 + 0.89·√MFU) + 70 pJ/B·MBU·BW     at most the TDP
    J/token = P·TP/(tok/s)

MBU and MFU are those the step law predicts (advisor-rules 2.3). Fitted with the same weight for each of 15 models on 161
rows: H100 of 80 GB (ML.ENERGY leaderboard v3: 1 to 8 GPUs, dense, mixtures, FP8) and of 64 GB (advisor-rules 2.4).
With a model's own rows left out the mean error is 12 %, and 80 % of the rows are within 21 %. No other GPU was seen:
there a busy card draws 37–99 % of its limit, whatever the load (2.4), which is the range given.
"""

from dataclasses import dataclass
from math import hypot, sqrt
from typing import Final

from core.finding import Range

FLOOR: Final = 0.28
ARITHMETIC: Final = 0.89
"""Shares of the TDP: of a card that does next to nothing but decode, and with every tensor core at work."""
JOULES_PER_BYTE: Final = 70e-12
HALF_WIDTH_HOPPER: Final = 0.21
HALF_WIDTH_ELSEWHERE: Final = 0.45
"""(99 − 37)/(99 + 37) of 2.4's span."""


@dataclass(frozen=True, slots=True)
class Draw:
    """Power of one GPU at work, watts, and its relative half-width."""

    watts: Range
    half_width: float

    def joules_per_token(self, *, gpus: int, tokens_per_s: float, step_half_width: float) -> Range:
        """Energy of ``gpus`` cards over what they make; the errors of power and of time are independent."""
        width = min(0.9, hypot(self.half_width, step_half_width))
        return Range.around(self.watts.p50 * gpus / tokens_per_s, width)


def draw(*, tdp_w: float, bandwidth_bytes_per_s: float, mbu: float, mfu: float, is_hopper: bool) -> Draw:
    """Mean power of a card that decodes, between nothing and its TDP.

    Args:
        tdp_w: of the data sheet; a lower limit in force caps it. bandwidth_bytes_per_s: peak.
        mbu, mfu: shares of bandwidth and dense 16-bit rate in use, 0–1.
        is_hopper: the generation that the figures are from.
    """
    middle = tdp_w * (FLOOR + ARITHMETIC * sqrt(mfu)) + JOULES_PER_BYTE * mbu * bandwidth_bytes_per_s
    middle = min(middle, tdp_w)
    width = HALF_WIDTH_HOPPER if is_hopper else HALF_WIDTH_ELSEWHERE
    around = Range.around(middle, width)
    return Draw(Range(around.p10, middle, max(middle, min(around.p90, tdp_w))), width)
