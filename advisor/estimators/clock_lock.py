"""What a lower SM clock does to memory-bound decoding: literature, so the whole range and never a point.

Decoding waits for memory; the memory clock stays when the SM clock is locked lower, so power falls with the clock and
voltage while the step hardly grows. Reported: up to 32 % of decode energy at minimal loss of throughput [S6]; what is
claimed here by default is 10 to 25 % of energy for 0 to 6 % of time between tokens (R23), for a clock 15 to 25 % lower.
A *power cap* above what the card draws does nothing for such work.
"""

from dataclasses import dataclass
from typing import Final

from core.finding import Range

LEAST_REDUCTION: Final = 0.15
MOST_REDUCTION: Final = 0.25
"""Reductions of the SM clock that the reports cover."""
MEMORY_BOUND_MBU: Final = 0.6
MEMORY_BOUND_MFU: Final = 0.25
"""Memory-bound: MBU at least, MFU below (R06)."""
ENERGY: Final = Range(-0.25, -0.175, -0.10)
ITL: Final = Range(0.0, 0.03, 0.06)


@dataclass(frozen=True, slots=True)
class LockEffect:
    """Shares of energy and of time between tokens that a clock lock adds; negative is less."""

    energy_ratio: Range
    itl_ratio: Range


def clock_lock(*, reduction_ratio: float, mbu: float | None, mfu: float | None) -> LockEffect | None:
    """The reported range; None outside the reported reductions, and where decoding is not known to be memory-bound.

    Args:
        reduction_ratio: by how much the SM clock is lowered, as a share of the highest.
        mbu, mfu: share of memory bandwidth and of arithmetic in use while decoding; None is unknown and refuses.
    """
    if mbu is None or mfu is None or mbu < MEMORY_BOUND_MBU or mfu >= MEMORY_BOUND_MFU:
        return None
    if not LEAST_REDUCTION - 1e-9 <= reduction_ratio <= MOST_REDUCTION + 1e-9:
        return None
    return LockEffect(ENERGY, ITL)
