"""Shares the cost of a GPU-hour out to the workloads that held it, and to nobody.

A workload pays for the seconds it held the GPU (``core.hours.UsageHour``, whose share method names how a shared GPU was
split); time that no workload held, empty or unknown, stays on a line of its own. Idle cost of a workload is that of
seconds it held and did not use. Source: cost-model 5 (asset cost = workload + idle).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from core.activity import Activity
from core.evidence import Site
from core.hours import UsageHour
from core.readings import WorkloadKey
from ledger.carbon import carbon_g
from ledger.cost import NOISE_S, HourCost
from ledger.energy import energy_cost_usd
from ledger.share import split_usd


@dataclass(frozen=True, slots=True)
class UsageCost:
    """One workload's part of one priced GPU-hour; ``workload`` None is what nobody held.

    Attributes:
        allocated_s, active_s: GPU-seconds held, and of them with work; for nobody's line the seconds left over.
        cost_usd, idle_usd: the hour's cost and idle cost, shared; None when the GPU is unpriced.
        energy_cost_usd, carbon_g: of the workload's own energy; None when unknown.
    """

    workload: WorkloadKey | None
    gpu_uuid: str
    hour_ms: int
    allocated_s: float
    active_s: float
    cost_usd: Decimal | None
    idle_usd: Decimal | None
    energy_j: float | None
    energy_cost_usd: Decimal | None
    carbon_g: float | None


def share_hour(hour: HourCost, usages: Iterable[UsageHour], site: Site) -> list[UsageCost]:
    """Share one GPU-hour's cost out to the workloads that held it, and to nobody.

    A workload pays for the time it held the GPU; what no workload held (empty and unknown time) stays on nobody's
    line. The lines add up to the hour's cost, and their idle cost to its idle cost, to the micro-dollar.
    """
    of_this_hour = [use for use in usages if use.gpu_uuid == hour.gpu_uuid and use.hour_ms == hour.hour_ms]
    held = [use for use in of_this_hour if use.workload is not None]
    left_s = max(hour.covered_s - sum(use.allocated_s for use in held), 0.0)
    left_s = left_s if left_s > NOISE_S or not held else 0.0
    empty_s = min(hour.seconds.get(Activity.EMPTY, 0.0), left_s)
    nobody = len(held)
    costs = _shares(
        hour.cost_usd, {**{i: use.allocated_s for i, use in enumerate(held)}, nobody: left_s}, nobody
    )
    idle = _shares(
        hour.idle_usd,
        {**{i: max(use.allocated_s - use.active_s, 0.0) for i, use in enumerate(held)}, nobody: empty_s},
        nobody,
    )
    lines = [
        UsageCost(
            workload=use.workload,
            gpu_uuid=use.gpu_uuid,
            hour_ms=use.hour_ms,
            allocated_s=use.allocated_s,
            active_s=use.active_s,
            cost_usd=costs[i],
            idle_usd=idle[i],
            energy_j=use.energy_j,
            energy_cost_usd=energy_cost_usd(use.energy_j, site),
            carbon_g=carbon_g(use.energy_j, site),
        )
        for i, use in enumerate(held)
    ]
    own_j = next((use.energy_j for use in of_this_hour if use.workload is None), None)
    if left_s > 0 or own_j is not None or costs[nobody] or idle[nobody]:
        lines.append(
            UsageCost(
                workload=None,
                gpu_uuid=hour.gpu_uuid,
                hour_ms=hour.hour_ms,
                allocated_s=left_s,
                active_s=0.0,
                cost_usd=costs[nobody],
                idle_usd=idle[nobody],
                energy_j=own_j,
                energy_cost_usd=energy_cost_usd(own_j, site),
                carbon_g=carbon_g(own_j, site),
            )
        )
    return lines


def _shares(total: Decimal | None, weights: Mapping[int, float], nobody: int) -> Mapping[int, Decimal | None]:
    """Parts of ``total`` by weight; all to nobody when no weight says whose it is."""
    if total is None:
        return dict.fromkeys(weights)
    if sum(weights.values()) <= 0:
        return {key: total if key == nobody else Decimal(0) for key in weights}
    return split_usd(total, weights)
