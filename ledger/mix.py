"""The cheapest mix: how many GPUs to own, commit or reserve, and what to rent, for a measured demand. Pure.

A GPU that is paid for whether used or not is worth it while the use of the *last* one exceeds its break-even:

    commit the n-th GPU while        use(n) > commit / rent              = 1 − discount
    own the n-th GPU while           fixed + used × use(n) < rent × use(n)
    with restartable work on spot    rent × use'(n) + spot × (use(n) − use'(n)) > commit

``use(n)`` is the share of hours in which the n-th GPU is wanted (``Duration.use_ratio``), ``use'`` the same of the demand
that cannot be restarted. What is paid for is used first (commitments before owned machines, which draw power), then spot
takes what it may, then the rest is rented on demand. Owned GPUs come in whole machines. The search is exact: the cost is
convex in the number committed, and, at the best number of those, in the number of machines (an infimal convolution of
convex functions), so the first step that does not lower it ends it. All sums are whole micro-USD × GPU-milliseconds.

Two promises of the same kind (a commitment and a reservation) differ in price and term alone, so the cheaper one is taken
for every GPU; what a shorter term is worth is not in the data. Source: cost-model 2.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final, Self

from core.money import from_micro, to_micro
from core.units import HOUR_MS, HOURS_PER_MONTH
from ledger.demand import Duration
from ledger.share import rounded

DEAREST: Final = 1_000_000
"""USD: a GPU-hour above it is a typing error."""
MICRO_RATIO: Final = 1_000_000
"""Shares of restartable work are held in millionths, so that sums stay whole."""


@dataclass(frozen=True, slots=True)
class OwnPrice:
    """An owned GPU, USD: ``fixed`` for every clock hour, ``used`` for every hour of work on top; ``unit`` GPUs a machine."""

    fixed_usd_per_gpu_h: Decimal
    used_usd_per_gpu_h: Decimal
    unit: int


@dataclass(frozen=True, slots=True)
class MixPrices:
    """What a GPU-hour costs in each way, USD; None: not to be had.

    Attributes:
        rent: on demand, for each used hour. commit, reserve: for every clock hour, used or not.
        spot: for each used hour, with the work that interruptions cost. restartable_ratio: share of the demand that may go there.
    """

    rent: Decimal
    own: OwnPrice | None = None
    commit: Decimal | None = None
    reserve: Decimal | None = None
    spot: Decimal | None = None
    restartable_ratio: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what cannot be. Raises ``ValueError`` that names the price."""
        for name in ("rent", "commit", "reserve", "spot"):
            value = getattr(self, name)
            if value is not None and not (value.is_finite() and 0 < value <= DEAREST):
                raise ValueError(f"{name}_usd_per_gpu_hour is {value}: give a price above 0, up to {DEAREST}")
        if not 0 <= self.restartable_ratio <= 1:
            raise ValueError(f"restartable_ratio is {self.restartable_ratio}: give a value from 0 to 1")
        if self.own is not None and self.own.used_usd_per_gpu_h >= self.cheapest_use:
            raise ValueError(
                f"an hour of work on an owned GPU costs {self.own.used_usd_per_gpu_h:.4f} USD, and renting one "
                f"{self.cheapest_use:.4f}: correct tariff_usd_per_kwh, the power, or the rent"
            )

    @property
    def takes_spot(self) -> bool:
        """Spot is to be had for something, and cheaper."""
        return self.spot is not None and self.restartable_ratio > 0 and self.spot < self.rent

    @property
    def cheapest_use(self) -> Decimal:
        """The least that an hour of work costs when it is rented."""
        return self.spot if self.takes_spot and self.spot is not None else self.rent

    @property
    def flat(self) -> tuple[str, Decimal] | None:
        """The cheaper promise, and its name; a reservation at the same price: its term is shorter."""
        known = [
            (price, name) for name, price in (("reserve", self.reserve), ("commit", self.commit)) if price
        ]
        if not known:
            return None
        price, name = min(known, key=lambda one: one[0])
        return name, price


@dataclass(frozen=True, slots=True)
class Load:
    """Demand as duration curves: all of it, and what cannot be restarted; several weeks weigh as often as they are there."""

    parts: tuple[tuple[Duration, Duration, int], ...]

    @classmethod
    def of(cls, demands_ms: Sequence[int], restartable_ratio: float) -> Self:
        """One curve of all hours."""
        return cls(((*curves(demands_ms, restartable_ratio), 1),))

    def served_ms(self, gpus: int) -> tuple[int, int]:
        """Of all the demand, and of what cannot be restarted, when each has that many GPUs."""
        whole = firm = 0
        for all_of_it, fixed, weight in self.parts:
            whole += weight * all_of_it.served_ms(gpus)
            firm += weight * fixed.served_ms(gpus)
        return whole, firm

    @property
    def totals_ms(self) -> tuple[int, int]:
        """All the demand, and what cannot be restarted."""
        return (
            sum(weight * all_of_it.total_ms for all_of_it, _, weight in self.parts),
            sum(weight * fixed.total_ms for _, fixed, weight in self.parts),
        )

    @property
    def hours(self) -> int:
        """Hours of it."""
        return sum(weight * all_of_it.hours for all_of_it, _, weight in self.parts)

    @property
    def most_gpus(self) -> int:
        """GPUs that serve every hour."""
        return max(all_of_it.most_gpus for all_of_it, _, _ in self.parts)


def curves(demands_ms: Sequence[int], restartable_ratio: float) -> tuple[Duration, Duration]:
    """Duration curves of all the demand, and of what cannot be restarted (the same object where that is all)."""
    whole = Duration(demands_ms)
    movable = round(restartable_ratio * MICRO_RATIO)
    if movable == 0:
        return whole, whole
    return whole, Duration(demand * (MICRO_RATIO - movable) // MICRO_RATIO for demand in demands_ms)


@dataclass(frozen=True, slots=True)
class Mix:
    """One way to serve the demand, and what it costs.

    Attributes:
        own_gpus, commit_gpus, reserve_gpus: paid for whether used or not.
        on_demand_gpus, spot_gpus: rented, on average at once. idle_gpus: paid for and not wanted, on average.
        usd_per_month: of 730 hours like the measured ones. exact: the same as micro-USD × GPU-ms of the hours.
    """

    own_gpus: int
    commit_gpus: int
    reserve_gpus: int
    on_demand_gpus: float
    spot_gpus: float
    idle_gpus: float
    usd_per_month: Decimal
    exact: int

    @property
    def paid_gpus(self) -> int:
        """Owned, committed and reserved."""
        return self.own_gpus + self.commit_gpus + self.reserve_gpus


def cheapest(load: Load, prices: MixPrices) -> Mix:
    """The mix of least cost; of equal ones that with the fewest machines, then the fewest promises."""
    costs = _Costs(load, prices)
    unit = 0 if prices.own is None else prices.own.unit
    most = load.most_gpus
    machines = 0
    if unit:
        machines = _first_least(lambda count: costs.least(count * unit)[1], -(-most // unit))
    own = machines * unit
    flat, _ = costs.least(own)
    return costs.mix(own, flat)


def with_paid(load: Load, prices: MixPrices, gpus: int) -> Mix | None:
    """The cheapest mix with exactly that many GPUs paid for; None where machines do not add up to it."""
    costs = _Costs(load, prices)
    unit = 0 if prices.own is None else prices.own.unit
    if prices.flat is None:
        if gpus % unit if unit else gpus:
            return None
        return costs.mix(gpus, 0)
    if not unit:
        return costs.mix(0, gpus)
    machines = _first_least(lambda count: costs.exact(count * unit, gpus - count * unit), gpus // unit)
    return costs.mix(machines * unit, gpus - machines * unit)


class _Costs:
    """Exact cost of a number of owned and promised GPUs, micro-USD × GPU-milliseconds."""

    def __init__(self, load: Load, prices: MixPrices) -> None:
        self.load, self.prices = load, prices
        self.hours_ms = load.hours * HOUR_MS
        self.total_ms, self.firm_ms = load.totals_ms
        self.rent = to_micro(prices.rent)
        self.use = to_micro(prices.cheapest_use)
        self.flat = None if prices.flat is None else to_micro(prices.flat[1])
        own = prices.own
        self.own_fixed = 0 if own is None else to_micro(own.fixed_usd_per_gpu_h)
        self.own_used = 0 if own is None else to_micro(own.used_usd_per_gpu_h)

    def exact(self, own: int, flat: int) -> int:
        """What is paid for is used first; the rest goes to spot as far as it may, then on demand."""
        served, firm = self.load.served_ms(own + flat)
        by_own = served - self.load.served_ms(flat)[0] if own else 0
        return (
            self.hours_ms * (own * self.own_fixed + flat * (self.flat or 0))
            + self.own_used * by_own
            + self.use * (self.total_ms - served)
            + (self.rent - self.use) * (self.firm_ms - firm)
        )

    def least(self, own: int) -> tuple[int, int]:
        """The best number of promises beside ``own`` GPUs, and its cost."""
        most = 0 if self.flat is None else max(0, self.load.most_gpus - own)
        # Beside owned machines a promise may also replace their power: then more of them than the peak leaves.
        if self.flat is not None and self.own_used:
            most = self.load.most_gpus
        flat = _first_least(lambda count: self.exact(own, count), most)
        return flat, self.exact(own, flat)

    def mix(self, own: int, flat: int) -> Mix:
        """The mix in figures."""
        served, firm = self.load.served_ms(own + flat)
        on_demand = self.firm_ms - firm if self.prices.takes_spot else self.total_ms - served
        spot = self.total_ms - served - on_demand
        exact = self.exact(own, flat)
        name = "" if self.prices.flat is None else self.prices.flat[0]
        return Mix(
            own_gpus=own,
            commit_gpus=flat if name == "commit" else 0,
            reserve_gpus=flat if name == "reserve" else 0,
            on_demand_gpus=on_demand / self.hours_ms,
            spot_gpus=spot / self.hours_ms,
            idle_gpus=own + flat - served / self.hours_ms,
            usd_per_month=monthly(exact, self.load.hours),
            exact=exact,
        )


def monthly(exact: int, hours: int) -> Decimal:
    """Micro-USD × GPU-milliseconds of some hours as USD of a month of 730 hours."""
    per_hour = Decimal(exact) / (hours * HOUR_MS)
    return rounded(from_micro(1) * per_hour * Decimal(str(HOURS_PER_MONTH)))


def without(prices: MixPrices, *ways: str) -> MixPrices:
    """The same prices when some ways are not to be had."""
    return replace(prices, **dict.fromkeys(ways))  # type: ignore[arg-type]  # the ways are optional prices


def _first_least(cost: Callable[[int], int], most: int) -> int:
    """The first of 0 … ``most`` at which a convex cost is least."""
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        if cost(middle + 1) >= cost(middle):
            high = middle
        else:
            low = middle + 1
    return low
