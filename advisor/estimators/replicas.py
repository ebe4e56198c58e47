"""Throughput becomes money only through fewer replicas, and replicas are integers (advisor-rules 7.1, R08)."""

from math import ceil

from core.finding import Range


def needed(count: int, gain: float) -> int:
    """Replicas that carry today's load when each does ``gain`` times as much; at least 1, never more than today."""
    return min(count, max(1, ceil(count / max(gain, 1.0) - 1e-9)))


def dropped(count: int, gain: Range) -> tuple[int, int, int]:
    """Replicas released at the low, middle and high end of the gain."""
    return (
        count - needed(count, gain.p10),
        count - needed(count, gain.p50),
        count - needed(count, gain.p90),
    )


def for_demand(running_p95: float, batch: float, headroom: float = 0.7) -> int:
    """Replicas that hold the sum of the replicas' p95 running requests at ``headroom`` of the batch each may reach.

    The p95s are added as if they came together: cautious, because peaks seldom coincide.
    """
    return max(1, ceil(running_p95 / (headroom * batch) - 1e-9))
