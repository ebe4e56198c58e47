"""Where the mean of a series changed: optimal partition with pruning.

``PELT`` (Killick, Fearnhead, Eckley 2012, arXiv 1101.1438): the segmentation that minimises the sum of squared
deviations from each segment's mean plus a penalty per change; pruning keeps it exact. Penalty ``2 ln n`` variances
(BIC for a mean of known variance). The place of a change is a set, not a point: all places whose cost is within 3.84
variances (the 95 % point of χ² with one degree of freedom) of the best one between the neighbouring changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log
from typing import Final

WITHIN_VARIANCES: Final = 3.84
MIN_POINTS: Final = 8


@dataclass(frozen=True, slots=True)
class Change:
    """The mean changes before point ``at``; it may have been anywhere from ``first`` to ``last``.

    ``step`` is mean after less mean before, in the series' unit.
    """

    at: int
    first: int
    last: int
    step: float


class _Costs:
    """Squared deviation from the mean of any stretch, in constant time."""

    def __init__(self, values: Sequence[float]) -> None:
        middle = sum(values) / len(values)
        self.sums, self.squares = [0.0], [0.0]
        for value in values:
            self.sums.append(self.sums[-1] + value - middle)
            self.squares.append(self.squares[-1] + (value - middle) ** 2)

    def of(self, start: int, end: int) -> float:
        total = self.sums[end] - self.sums[start]
        return max(0.0, self.squares[end] - self.squares[start] - total * total / (end - start))

    def mean(self, start: int, end: int) -> float:
        return (self.sums[end] - self.sums[start]) / (end - start)


def changes(values: Sequence[float], variance: float) -> list[Change]:
    """Changes of the mean, by place.

    Args:
        values: evenly spaced means. variance: of one value around its segment's mean, > 0.

    Returns:
        Empty for a series of fewer than ``MIN_POINTS`` or without any change.

    Raises:
        ValueError: a variance that is not positive.
    """
    if variance <= 0:
        raise ValueError(f"variance is {variance}: it must be positive")
    count = len(values)
    if count < MIN_POINTS:
        return []
    costs = _Costs(values)
    places = _partition(costs, count, 2.0 * log(count) * variance)
    bounds = [0, *places, count]
    return [
        _change(costs, start, at, end, variance)
        for start, at, end in zip(bounds, bounds[1:], bounds[2:], strict=False)
    ]


def _partition(costs: _Costs, count: int, penalty: float) -> list[int]:
    best = [-penalty] + [inf] * count
    came_from = [0] * (count + 1)
    candidates = [0]
    for end in range(1, count + 1):
        scored = [(best[start] + costs.of(start, end), start) for start in candidates]
        least, start = min(scored)
        best[end], came_from[end] = least + penalty, start
        candidates = [start for score, start in scored if score <= best[end]]
        candidates.append(end)
    places: list[int] = []
    at = came_from[count]
    while at > 0:
        places.append(at)
        at = came_from[at]
    return places[::-1]


def _change(costs: _Costs, start: int, at: int, end: int, variance: float) -> Change:
    def split(place: int) -> float:
        return costs.of(start, place) + costs.of(place, end)

    limit = split(at) + WITHIN_VARIANCES * variance
    near = [place for place in range(start + 1, end) if split(place) <= limit]
    return Change(
        at, min(near, default=at), max(near, default=at), costs.mean(at, end) - costs.mean(start, at)
    )
