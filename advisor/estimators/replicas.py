"""Throughput becomes money only through fewer replicas, and replicas are integers (advisor-rules 7.1, R08)."""

from math import ceil
from typing import Final

from core.finding import Range

UTILIZATION: Final = 0.7
"""Share of its rate at the SLO batch that a replica may be planned for (R08)."""


def dropped(count: int, load: float, each: Range) -> tuple[int, int, int]:
    """Replicas of ``count`` that fall away when each carries ``each`` of the ``load``; low, middle, high end.

    At least one replica stays, and never more are asked for than there are.
    """

    def needed(rate: float) -> int:
        return min(count, max(1, ceil(load / rate - 1e-9))) if rate > 0 else count

    return count - needed(each.p10), count - needed(each.p50), count - needed(each.p90)


def for_demand(running_p95: float, batch: float, headroom: float = 0.7) -> int:
    """Replicas that hold the sum of the replicas' p95 running requests at ``headroom`` of the batch each may reach.

    The p95s are added as if they came together: cautious, because peaks seldom coincide.
    """
    return max(1, ceil(running_p95 / (headroom * batch) - 1e-9))


def for_rate(load_p99: float, slo_rate: float, utilization: float = UTILIZATION) -> int | None:
    """N = ceil(λ_p99/(0.7·X(B_SLO))), at least 1 (R08); both in tokens/s. None without a rate to plan with.

    Args:
        load_p99: λ_p99 of all replicas together. slo_rate: X(B_SLO) of one replica.
        utilization: share of that rate it may be planned for, 0–1.
    """
    if slo_rate <= 0 or utilization <= 0:
        return None
    return max(1, ceil(load_p99 / (utilization * slo_rate) - 1e-9))
