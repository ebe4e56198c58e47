"""What a cost is made of: hours × price, energy × tariff, corrections, shared idle cost. Parts add up to it, to the micro-dollar."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Annotated, Final

from api.resources.by import By
from api.resources.columns import about
from api.resources.costs import CostRow, row_of
from api.resources.idle_sharing import IdlePolicy, Sharing
from api.resources.report import KINDS, Question, report
from api.resources.report_filters import NO_FILTERS, Filters
from api.resources.report_parts import MONEY, Amounts, Part
from api.resources.report_sum import MJ_PER_KWH, LineSum, merged
from api.resources.scope import Scope
from core.money import from_micro
from core.units import HOUR_MS
from core.user_price import UserPrice
from ledger.calendar import Calendar
from store.queries import prices
from store.queries.ledger_sums import Grid, Rate

KIND_ORDER: Final = tuple(KINDS)
NARROWS: Final = {
    By.GPU: "gpu",
    By.HOST: "host",
    By.MODEL: "model",
    By.OWNER: "owner",
    By.NAMESPACE: "namespace",
    By.USER: "user",
    By.WORKLOAD: "workload",
}
"""Keys that a filter of reports names too: then the database reads no line of another group."""


@dataclass(frozen=True, slots=True)
class PricePart:
    """Hours of one kind under one price."""

    kind: Annotated[str, about("workload, unattributed, idle or gap, as by=kind.")]
    price_basis: Annotated[str, about("Where the price is from, with its date.")]
    billing: Annotated[str, about("on_demand, reserved, spot, committed or owned.")]
    price_id: Annotated[int | None, about("Your price; null: the catalogue's.")]
    price_scope: Annotated[
        str | None, about("What your price is for; null: the catalogue's, or removed since.")
    ]
    valid_from_ms: Annotated[int | None, about("In force from; null: since ever, or not known.")]
    valid_to_ms: Annotated[int | None, about("In force until; null: still, or not known.")]
    usd_per_gpu_hour: Annotated[Decimal, about("Dollars of one GPU-hour.")]
    gpu_h: Annotated[float, about("Clock time, gaps included.")]
    cost_usd: Annotated[Decimal, about("Each GPU-hour rounded once, to the micro-dollar; then added.")]
    idle_cost_usd: Annotated[Decimal, about("Of it for empty and parked time.")]
    first_day: Annotated[str, about("First accounting day with such hours.")]
    last_day: Annotated[str, about("Last one.")]


@dataclass(frozen=True, slots=True)
class EnergyPart:
    """Energy under the terms of one place."""

    site: Annotated[str, about("Profile that the terms are from; settings: none is given.")]
    tariff: Annotated[str | None, about("Which tariff; null: none.")]
    energy_kwh: Annotated[float, about("At the GPUs.")]
    host_share_ratio: Annotated[
        float | None, about("What the machine draws beside its GPUs, over what they draw.")
    ]
    host_share_method: Annotated[str, about("setting or measured.")]
    pue: Annotated[float | None, about("Power usage effectiveness.")]
    site_kwh: Annotated[float | None, about("At the site's meter.")]
    energy_cost_usd: Annotated[Decimal | None, about("Site energy × tariff; null: no tariff.")]
    billed_usd: Annotated[
        Decimal, about("Of it in the cost: the site pays for power, and the time has a price.")
    ]
    pays_for_power: Annotated[bool, about("Power is a bill of its own here.")]
    carbon_g: Annotated[float | None, about("Site energy × grid carbon.")]
    carbon_code: Annotated[str | None, about("Row of the grid-carbon table.")]

    @property
    def mean_usd_per_kwh(self) -> Decimal | None:
        """What a kWh cost on average."""
        if self.energy_cost_usd is None or not self.site_kwh:
            return None
        return self.energy_cost_usd / Decimal(self.site_kwh)


@dataclass(frozen=True, slots=True)
class CostParts:
    """A cost and its parts.

    Attributes:
        row: the cost as ``costs`` gives it. prices: hours × price. corrections: the same, booked after a month closed.
        energy: every place; ``billed_usd`` of them is in the cost.
        shared_usd: idle cost shared out to this group (below 0: taken from it).
        unpriced_gpu_h: time without a price: in no cost.
    """

    row: CostRow
    prices: tuple[PricePart, ...]
    corrections: tuple[PricePart, ...]
    energy: tuple[EnergyPart, ...]
    shared_usd: Decimal
    unpriced_gpu_h: float

    @property
    def sum_usd(self) -> Decimal:
        """All parts together."""
        lines = sum((part.cost_usd for part in (*self.prices, *self.corrections)), Decimal(0))
        return lines + self.billed_usd + self.shared_usd

    @property
    def billed_usd(self) -> Decimal:
        """Energy in the cost."""
        return sum((part.billed_usd for part in self.energy), Decimal(0))


@dataclass(frozen=True, slots=True)
class Group:
    """One group of a report, as a page names it.

    Attributes:
        key: of the group; None: told by its label. label: groups that people cannot tell apart; None: told by its key.
        is_nobody: the group without a key.
    """

    key: str | None = None
    label: str | None = None
    is_nobody: bool = False

    def has(self, key: str | None, label: str) -> bool:
        """It is this group of a report."""
        if self.is_nobody:
            return key is None
        return key is not None and (key == self.key if self.key is not None else label == self.label)


Key = tuple[str | None, ...]
Of = tuple[str, Rate, bool]
"""Kind of a line, its price, and whether it was booked after its month was closed."""


@dataclass(slots=True)
class _Priced:
    """Lines of one kind and price, and the accounting days they are of."""

    lines: LineSum = field(default_factory=LineSum)
    first_ms: int | None = None
    last_ms: int = 0

    def merge(self, other: "_Priced") -> None:
        """Count another group's lines."""
        self.lines.merge(other.lines)
        if other.first_ms is not None:
            self.see(other.first_ms)
            self.see(other.last_ms)

    def see(self, at_ms: int) -> None:
        """A day with such lines."""
        self.first_ms = at_ms if self.first_ms is None else min(self.first_ms, at_ms)
        self.last_ms = max(self.last_ms, at_ms)


@dataclass(slots=True)
class _Group:
    """Lines of one group by price and by place."""

    prices: dict[Of, _Priced] = field(default_factory=dict)
    places: dict[Grid, LineSum] = field(default_factory=dict)
    unpriced_ms: int = 0

    def add(self, part: Part, amounts: Amounts) -> None:
        """A part of the report."""
        if part.grid is not None:
            self.places.setdefault(part.grid, LineSum()).add(part, amounts)
        if part.rate is None:
            self.unpriced_ms += amounts.get("known_ms") or 0
            return
        priced = self.prices.setdefault((part.kind or "", part.rate, part.is_correction), _Priced())
        priced.lines.add(part, amounts)
        priced.see(part.at_ms or 0)

    def merge(self, other: "_Group") -> None:
        """Count another group."""
        for of, priced in other.prices.items():
            self.prices.setdefault(of, _Priced()).merge(priced)
        for grid, lines in other.places.items():
            self.places.setdefault(grid, LineSum()).merge(lines)
        self.unpriced_ms += other.unpriced_ms


def cost_parts(
    scope: Scope,
    by: By,
    group: Group | None,
    filters: Filters = NO_FILTERS,
    *,
    idle: IdlePolicy = IdlePolicy.KEEP,
) -> CostParts | None:
    """A group's cost over the scope's window with its parts (group None: everything); None: there is no such group.

    Raises:
        UsageError: keys by which idle time cannot be shared out.
    """
    groups: dict[Key, _Group] = {}
    sharing = None if idle is IdlePolicy.KEEP else Sharing((by,), idle)

    def note(key: Key, part: Part, amounts: Amounts) -> None:
        groups.setdefault(key, _Group()).add(part, amounts)
        if sharing is not None:
            sharing.note(key, part, amounts)

    asked = filters if group is None or sharing is not None else _narrowed(filters, by, group)
    found = report(scope, Question((by,), MONEY, money=True, filters=asked, extra=frozenset({"day"})), note)
    if sharing is not None:
        sharing.apply(found)
    keys = [key for key, one in found.items() if group is None or group.has(key[0], one.label)]
    if not keys:
        return None
    whole, parts = merged(found[key] for key in keys), _Group()
    whole.label = "Everything" if group is None else found[keys[0]].label
    for key in keys:
        parts.merge(groups.get(key, _Group()))
    own = {price.id: price for price in prices.listing(scope.session)}
    calendar = Calendar(scope.settings.accounting_time_zone)
    made = [(of[2], _price_part(of, priced, own, calendar)) for of, priced in parts.prices.items()]
    made.sort(key=lambda pair: (KIND_ORDER.index(pair[1].kind), -pair[1].cost_usd))
    return CostParts(
        row=row_of(keys[0], (by,), whole),
        prices=tuple(part for is_correction, part in made if not is_correction),
        corrections=tuple(part for is_correction, part in made if is_correction),
        energy=tuple(_energy_part(grid, one) for grid, one in parts.places.items() if one.energy_j),
        shared_usd=from_micro(whole.shared_usd),
        unpriced_gpu_h=parts.unpriced_ms / HOUR_MS,
    )


def _narrowed(filters: Filters, by: By, group: Group) -> Filters:
    """Filters that leave other groups out, where there is such a filter."""
    if by not in NARROWS or group.key is None:
        return filters
    return replace(filters, **{NARROWS[by]: (group.key,)})


def _price_part(of: Of, priced: _Priced, own: Mapping[int, UserPrice], calendar: Calendar) -> PricePart:
    kind, rate, _ = of
    price = None if rate.price_id is None else own.get(rate.price_id)
    scope = None if price is None else f"{price.scope_kind} {price.scope_value}".replace("_", " ").strip()
    return PricePart(
        kind=kind,
        price_basis=rate.basis,
        billing=rate.billing,
        price_id=rate.price_id,
        price_scope=scope,
        valid_from_ms=None if price is None else price.valid_from_ms or None,
        valid_to_ms=None if price is None else price.valid_to_ms,
        usd_per_gpu_hour=from_micro(rate.micro_usd_per_hour),
        gpu_h=priced.lines.hours("known_ms"),
        cost_usd=from_micro(priced.lines.whole("cost_usd")),
        idle_cost_usd=from_micro(priced.lines.whole("idle_cost_usd")),
        first_day=calendar.day_at(priced.first_ms or 0).key,
        last_day=calendar.day_at(priced.last_ms).key,
    )


def _energy_part(grid: Grid, lines: LineSum) -> EnergyPart:
    return EnergyPart(
        site=grid.site,
        tariff=grid.tariff,
        energy_kwh=lines.whole("energy_mj") / MJ_PER_KWH,
        host_share_ratio=grid.host_share_ratio,
        host_share_method=grid.host_share_method,
        pue=grid.pue,
        site_kwh=lines.site_kwh,
        energy_cost_usd=lines.usd("energy_usd"),
        billed_usd=from_micro(lines.paid_usd),
        pays_for_power=grid.pays_for_power,
        carbon_g=lines.carbon_g,
        carbon_code=grid.code,
    )
