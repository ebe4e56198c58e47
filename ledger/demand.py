"""How many GPUs were wanted at once: the demand of each clock hour, and its duration curve. Pure.

An hour is counted when at least ``MIN_SEEN_RATIO`` of the time of the GPUs that were there is known; others are gaps:
neither idle nor wanted, left out and counted. In a counted hour the unseen rest is taken as the seen part of that same
hour, and its share is said. Demand is what was held: work that waited for a free GPU is not in it, so the share of hours
in which every GPU was held is told beside it.

Whole GPU-milliseconds throughout, so that sums are exact and the same on every database.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import ceil
from typing import Final

from core.units import HOUR_MS

WEEK_H: Final = 168
MIN_SEEN_RATIO: Final = 0.9
"""Below it the hour says too little: the rules ask for 0.8 of a whole window, one hour has less to average over."""
FULL_RATIO: Final = 0.999
"""All GPUs were held, but for what rounding of samples leaves."""


@dataclass(frozen=True, slots=True)
class HourOfGpus:
    """One clock hour of a group of GPUs, GPU-milliseconds.

    Attributes:
        wanted_ms: in which they were wanted. known_ms: of which that is known.
        present_ms: from the first to the last sample of each, seen or not.
    """

    hour_ms: int
    wanted_ms: int
    known_ms: int
    present_ms: int


class Duration:
    """The duration curve of some hours: how much of the demand so many GPUs serve."""

    __slots__ = ("_known", "_running", "_sorted", "hours", "total_ms")

    def __init__(self, demands_ms: Iterable[int]) -> None:
        self._sorted = sorted(demands_ms)
        self._running = list(accumulate(self._sorted, initial=0))
        self._known: dict[int, int] = {}
        self.hours = len(self._sorted)
        self.total_ms = self._running[-1]

    def served_ms(self, gpus: int) -> int:
        """GPU-milliseconds of the demand that ``gpus`` GPUs serve: the sum of min(demand, GPUs) over the hours."""
        found = self._known.get(gpus)
        if found is None:
            below = bisect_left(self._sorted, gpus * HOUR_MS)
            found = self._running[below] + (self.hours - below) * gpus * HOUR_MS
            self._known[gpus] = found
        return found

    def use_ratio(self, nth: int) -> float:
        """Share of the time in which the ``nth`` GPU is wanted, when those before it are taken first."""
        return (self.served_ms(nth) - self.served_ms(nth - 1)) / (self.hours * HOUR_MS)

    def wanted_gpus(self, share: float) -> float:
        """GPUs wanted at once in at most that share of the hours (0.1: the tenth percentile)."""
        at = min(self.hours - 1, max(0, ceil(share * self.hours) - 1))
        return self._sorted[at] / HOUR_MS

    @property
    def mean_gpus(self) -> float:
        """GPUs wanted at once on average."""
        return self.total_ms / (self.hours * HOUR_MS)

    @property
    def most_gpus(self) -> int:
        """GPUs that serve every hour."""
        return -(-self._sorted[-1] // HOUR_MS)


@dataclass(frozen=True, slots=True)
class Demand:
    """The demand curve of a group of GPUs.

    Attributes:
        hours: start and GPU-milliseconds wanted of every counted hour, by time.
        left_out_hours: hours in which GPUs were there and too little of them was seen.
        unseen_ratio: unseen GPU time of the counted hours, taken as the seen part of its hour.
        full_ratio: share of the counted hours in which every GPU was wanted: more may have been.
        present_gpus: GPUs that were there at once on average, in the counted hours.
        use_ratio: wanted over known GPU time, of all hours; None when none is known.
    """

    hours: tuple[tuple[int, int], ...]
    left_out_hours: int
    unseen_ratio: float
    full_ratio: float
    present_gpus: float
    use_ratio: float | None
    duration: Duration = field(compare=False)

    @property
    def weeks(self) -> float:
        """Counted hours, in weeks."""
        return len(self.hours) / WEEK_H

    def by_week(self) -> list[tuple[tuple[int, int], ...]]:
        """Counted hours by week of 168 clock hours, from the first one on."""
        if not self.hours:
            return []
        first = self.hours[0][0]
        weeks: dict[int, list[tuple[int, int]]] = {}
        for hour in self.hours:
            weeks.setdefault((hour[0] - first) // (WEEK_H * HOUR_MS), []).append(hour)
        return [tuple(weeks[number]) for number in sorted(weeks)]


def demand_of(hours: Iterable[HourOfGpus], min_seen_ratio: float = MIN_SEEN_RATIO) -> Demand:
    """The demand of hours of one group of GPUs; hours in which no GPU was there do not count at all."""
    counted: list[tuple[int, int]] = []
    left_out = full = 0
    known_ms = present_ms = all_wanted_ms = all_known_ms = 0
    for hour in sorted(hours, key=lambda one: one.hour_ms):
        all_wanted_ms += hour.wanted_ms
        all_known_ms += hour.known_ms
        there_ms = max(hour.present_ms, hour.known_ms)
        if there_ms <= 0:
            continue
        if hour.known_ms < min_seen_ratio * there_ms:
            left_out += 1
            continue
        wanted_ms = min(hour.wanted_ms, hour.known_ms)
        counted.append((hour.hour_ms, (2 * wanted_ms * there_ms + hour.known_ms) // (2 * hour.known_ms)))
        known_ms += hour.known_ms
        present_ms += there_ms
        full += wanted_ms >= FULL_RATIO * hour.known_ms
    return Demand(
        hours=tuple(counted),
        left_out_hours=left_out,
        unseen_ratio=1 - known_ms / present_ms if present_ms else 0.0,
        full_ratio=full / len(counted) if counted else 0.0,
        present_gpus=present_ms / (len(counted) * HOUR_MS) if counted else 0.0,
        use_ratio=min(1.0, all_wanted_ms / all_known_ms) if all_known_ms else None,
        duration=Duration(wanted for _, wanted in counted),
    )


def present_ms_by_hour(spans: Sequence[tuple[int, int]], from_ms: int, to_ms: int) -> dict[int, int]:
    """GPU-milliseconds by clock hour in which GPUs were there.

    Args:
        spans: from the first to the last sample of each GPU.
        from_ms, to_ms: whole clock hours; what is outside does not count.
    """
    edges: dict[int, int] = {}
    partial: dict[int, int] = {}
    for first, last in spans:
        start, end = max(first, from_ms), min(last, to_ms)
        if start >= end:
            continue
        head, tail = start - start % HOUR_MS, end - end % HOUR_MS
        if head == tail:
            partial[head] = partial.get(head, 0) + end - start
            continue
        partial[head] = partial.get(head, 0) + head + HOUR_MS - start
        partial[tail] = partial.get(tail, 0) + end - tail
        edges[head + HOUR_MS] = edges.get(head + HOUR_MS, 0) + 1
        edges[tail] = edges.get(tail, 0) - 1
    found: dict[int, int] = {}
    whole = 0
    for hour_ms in range(from_ms - from_ms % HOUR_MS, to_ms, HOUR_MS):
        whole += edges.get(hour_ms, 0)
        there = whole * HOUR_MS + partial.get(hour_ms, 0)
        if there:
            found[hour_ms] = there
    return found
