"""How long something has held without a break, up to its newest sample. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from core.units import MINUTE_MS
from store.queries.idle_now import Stretch

GAP_MS: Final = 3 * MINUTE_MS
"""Without samples for longer, nobody knows what happened between: the run begins after the gap."""
THIN_RATIO: Final = 0.5
"""A sample that vouches for less of its interval says nothing of it."""


@dataclass(frozen=True, slots=True)
class Run:
    """From when at the latest, to when, and how much of that is vouched for."""

    from_ms: int
    to_ms: int
    covered_ms: float

    @property
    def coverage_ratio(self) -> float:
        """Share of the run for which samples vouch."""
        length = self.to_ms - self.from_ms
        return min(1.0, self.covered_ms / length) if length > 0 else 1.0


def is_thin(stretch: Stretch) -> bool:
    """It vouches for too little of its interval."""
    return stretch.covered_ms < THIN_RATIO * (stretch.to_ms - stretch.from_ms)


def run_of(samples: Sequence[Stretch], hours: Sequence[Stretch], hours_to_ms: int) -> Run | None:
    """The run that ends with the newest sample; None: the newest one says no, or there is none.

    Args:
        samples: from ``hours_to_ms`` on, oldest first. hours: clock hours before, oldest first; whole ones lengthen
            a run that reaches back to them. A run may have begun inside the hour before its first whole one: it is
            said to begin later than it did, never earlier.
    """
    start = end = None
    covered = 0.0
    for one in reversed(samples):
        if not one.holds or is_thin(one) or (start is not None and start - one.to_ms > GAP_MS):
            break
        start, end = one.from_ms, one.to_ms if end is None else end
        covered += one.covered_ms
    if start is None or end is None:
        return None
    if start - hours_to_ms <= GAP_MS:
        at_ms = hours_to_ms
        for one in reversed(hours):
            missing = one.to_ms - one.from_ms - one.covered_ms
            if one.to_ms != at_ms or not one.holds or missing > GAP_MS:
                break
            start = at_ms = one.from_ms
            covered += one.covered_ms
    return Run(start, end, covered)


def both(one: Run, other: Run | None) -> Run | None:
    """The part that both hold; how surely, as the less sure of them. None: the other does not hold."""
    if other is None:
        return None
    to_ms = max(one.to_ms, other.to_ms)
    start = min(max(one.from_ms, other.from_ms), to_ms)
    sure = min(one.coverage_ratio, other.coverage_ratio)
    return Run(start, to_ms, sure * (to_ms - start))
