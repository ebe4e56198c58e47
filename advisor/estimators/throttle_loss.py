"""How much speed a card loses when its SM clock is held below what the same work runs at elsewhere.

Compute-bound: speed follows the clock, loss = 1 − f/f_ref (R24). Memory-bound: a few percent at most, because the
memory clock is not touched. Where the nature of the work is not known, anything from nothing to 1 − f/f_ref.
"""

from typing import Final

from core.finding import Range

COMPUTE_HALF_WIDTH: Final = 0.2
"""A formula (grade C): clocks are means of an hour and no kernel is pure arithmetic."""
MEMORY_BOUND_MOST: Final = 0.05
"""*A few percent* (R24) written out."""
LEAST_CLOCK_RATIO: Final = 0.05
"""A clock below a twentieth of the reference is a misreading or a card in another mode."""


def throttle_loss(*, clock_hz: float, reference_hz: float, memory_bound: bool | None) -> Range | None:
    """Share of the work's speed that is lost, 0–1.

    Args:
        clock_hz: mean SM clock while held back.
        reference_hz: mean SM clock of the same work when nothing holds it back.
        memory_bound: nature of the work; None when nothing tells.

    Returns:
        0 ≤ p10 ≤ p50 ≤ p90 ≤ 1 − f/f_ref where the work is not known to be compute-bound. None for figures that are
        not positive or implausible; zeros where the clock is not below the reference.
    """
    if clock_hz <= 0 or reference_hz <= 0 or clock_hz < LEAST_CLOCK_RATIO * reference_hz:
        return None
    missing = max(0.0, 1 - clock_hz / reference_hz)
    if memory_bound is None:
        return Range(0.0, missing / 2, missing)
    if memory_bound:
        most = min(MEMORY_BOUND_MOST, missing)
        return Range(0.0, most / 2, most)
    return Range(missing * (1 - COMPUTE_HALF_WIDTH), missing, min(1.0, missing * (1 + COMPUTE_HALF_WIDTH)))
