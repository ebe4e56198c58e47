"""What GPU time cost: seconds × the price in force, hour by hour and by activity.

    cost = covered GPU-seconds / 3600 × USD per GPU-hour

Only time that samples vouch for is charged. The rest of a clock hour is unknown: its price is reported apart, neither
as use nor as idleness. An unpriced GPU has no cost (None), which is not a cost of 0. Idle cost is that of time ``empty``
or ``parked``. Money is rounded once per line, to whole micro-dollars, so that lines add up to their total exactly.

Source: cost-model 1, 2 and 5.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from core.activity import IDLE, Activity
from core.evidence import Price, Site
from core.hours import GpuHour
from core.money import usd
from ledger.carbon import carbon_g
from ledger.energy import energy_cost_usd
from ledger.share import rounded, split_usd

HOUR_S = 3600
NOISE_S = 1e-3
"""Seconds of an hour's activities may miss its covered seconds by float noise; more than this is time of no name."""

PriceOf = Callable[[str, int], Price | None]
"""``(gpu_uuid, hour_ms)`` → the price in force."""


def cost_usd(gpu_seconds: float, price: Price) -> Decimal:
    """Dollars for so many GPU-seconds, in whole micro-dollars."""
    return rounded(usd(gpu_seconds) * price.usd_per_gpu_hour / HOUR_S)


@dataclass(frozen=True, slots=True)
class HourCost:
    """One GPU, one clock hour, priced.

    Attributes:
        price: in force; None: unpriced, and so is every cost below but energy and carbon.
        covered_s: seconds charged. uncovered_s: the rest of the hour, unknown.
        cost_usd: of the covered seconds. by_activity: the same by activity; adds up to it.
        idle_usd: of time empty or parked. unknown_usd: of covered time without a name.
        uncovered_usd: what the uncovered seconds cost if the GPU was paid for all the same; in no other figure.
        energy_j: known energy. energy_cost_usd, carbon_g: of it; beside the cost, not inside.
    """

    gpu_uuid: str
    hour_ms: int
    price: Price | None
    covered_s: float
    uncovered_s: float
    cost_usd: Decimal | None
    by_activity: Mapping[Activity, Decimal]
    uncovered_usd: Decimal | None
    seconds: Mapping[Activity, float]
    energy_j: float | None
    energy_cost_usd: Decimal | None
    carbon_g: float | None

    @property
    def idle_usd(self) -> Decimal | None:
        """Cost of time without work."""
        return self._of(*IDLE)

    @property
    def unknown_usd(self) -> Decimal | None:
        """Cost of covered time that nobody can name."""
        return self._of(Activity.UNKNOWN)

    @property
    def priced_s(self) -> float:
        """Seconds with a price."""
        return 0.0 if self.price is None else self.covered_s

    def _of(self, *activities: Activity) -> Decimal | None:
        if self.cost_usd is None:
            return None
        return sum((self.by_activity.get(a, Decimal(0)) for a in activities), Decimal(0))


def price_hours(hours: Iterable[GpuHour], price_of: PriceOf, site: Site) -> list[HourCost]:
    """Every GPU-hour with its cost, in the order given."""
    return [_price_hour(hour, price_of(hour.gpu_uuid, hour.hour_ms), site) for hour in hours]


def _price_hour(hour: GpuHour, price: Price | None, site: Site) -> HourCost:
    uncovered_s = max(HOUR_S - hour.covered_s, 0.0)
    seconds = dict(hour.seconds)
    nameless_s = hour.covered_s - sum(seconds.values())
    if nameless_s > NOISE_S:
        seconds[Activity.UNKNOWN] = seconds.get(Activity.UNKNOWN, 0.0) + nameless_s
    cost = None if price is None else cost_usd(sum(seconds.values()), price)
    return HourCost(
        gpu_uuid=hour.gpu_uuid,
        hour_ms=hour.hour_ms,
        price=price,
        covered_s=hour.covered_s,
        uncovered_s=uncovered_s,
        cost_usd=cost,
        by_activity={} if cost is None else split_usd(cost, seconds),
        uncovered_usd=None if price is None else cost_usd(uncovered_s, price),
        seconds=seconds,
        energy_j=hour.energy_j,
        energy_cost_usd=energy_cost_usd(hour.energy_j, site),
        carbon_g=carbon_g(hour.energy_j, site),
    )


@dataclass(frozen=True, slots=True)
class CostTotal:
    """Costs of any set of lines together; a sum is None when no line knows it.

    Attributes:
        covered_s: seconds charged or unpriced. priced_ratio: share of them with a price; None without any.
        price_basis: the bases in use, by weight; None when nothing is priced.
    """

    covered_s: float
    uncovered_s: float
    cost_usd: Decimal | None
    idle_usd: Decimal | None
    unknown_usd: Decimal | None
    uncovered_usd: Decimal | None
    by_activity: Mapping[Activity, Decimal]
    energy_j: float | None
    energy_cost_usd: Decimal | None
    carbon_g: float | None
    priced_ratio: float | None
    price_basis: str | None


def total(costs: Iterable[HourCost]) -> CostTotal:
    """All hours together."""
    lines = list(costs)
    by_activity: dict[Activity, Decimal] = {}
    bases: dict[str, float] = {}
    for line in lines:
        for activity, amount in line.by_activity.items():
            by_activity[activity] = by_activity.get(activity, Decimal(0)) + amount
        if line.price is not None:
            bases[line.price.basis] = bases.get(line.price.basis, 0.0) + line.covered_s
    covered_s = sum(line.covered_s for line in lines)
    return CostTotal(
        covered_s=covered_s,
        uncovered_s=sum(line.uncovered_s for line in lines),
        cost_usd=add_usd(line.cost_usd for line in lines),
        idle_usd=add_usd(line.idle_usd for line in lines),
        unknown_usd=add_usd(line.unknown_usd for line in lines),
        uncovered_usd=add_usd(line.uncovered_usd for line in lines),
        by_activity=by_activity,
        energy_j=add(line.energy_j for line in lines),
        energy_cost_usd=add_usd(line.energy_cost_usd for line in lines),
        carbon_g=add(line.carbon_g for line in lines),
        priced_ratio=sum(line.priced_s for line in lines) / covered_s if covered_s > 0 else None,
        price_basis="; ".join(sorted(bases, key=lambda basis: (-bases[basis], basis))) or None,
    )


def add_usd(amounts: Iterable[Decimal | None]) -> Decimal | None:
    """Sum of the known amounts; None when none is known."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known, Decimal(0)) if known else None


def add(values: Iterable[float | None]) -> float | None:
    """Sum of the known values; None when none is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
