"""What the GPUs cost, what of it was idle, and the energy and carbon behind it, by any key.

``cost_usd`` is rate × covered time (and the site's energy where the site pays for power apart from the GPU's
price). Time without samples is neither spend nor idle: ``unseen_cost_usd`` says what it would have cost. A GPU
without a price has no cost, never 0. A stretch of hours is priced once and its price shared out.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import groupby
from typing import Annotated

from api.resources.book import Book, book_for
from api.resources.by import By
from api.resources.columns import about
from api.resources.energy import EnergySum
from api.resources.gpu_slice import Slice
from api.resources.pricing import Carbon, carbon, site
from api.resources.scope import Scope
from api.resources.slices import slices
from api.resources.usage import HOUR_S, in_order
from core.activity import IDLE, Activity
from core.evidence import Price, Site
from ledger.carbon import carbon_g
from ledger.cost import cost_usd
from ledger.energy import energy_cost_usd, site_kwh
from ledger.share import split_usd


@dataclass(frozen=True, slots=True)
class CostRow:
    """Money, energy money and carbon of one group."""

    key: Annotated[
        str | None, about("Group; null: what cannot be said (no known workload, user, engine, owner).")
    ]
    label: Annotated[str, about("The group for people.")]
    cost_usd: Annotated[
        Decimal | None, about("Rate × time with samples, plus energy where energy_in_cost; null: no price.")
    ]
    idle_cost_usd: Annotated[
        Decimal | None, about("Rate × (empty + parked) time; null: no price, or nothing could tell.")
    ]
    energy_cost_usd: Annotated[
        Decimal | None, about("Site energy × tariff; null: no tariff set, or no energy known.")
    ]
    carbon_g: Annotated[float | None, about("Site energy × grid carbon, gCO2e, location-based.")]
    price_basis: Annotated[str | None, about("Where the prices come from; several joined by a semicolon.")]
    priced_ratio: Annotated[float | None, about("Share of the time with samples that has a price.")]
    gpu_h: Annotated[float, about("GPU-hours with samples.")]
    unseen_cost_usd: Annotated[
        Decimal | None, about("Rate × time without samples: neither in the cost nor idle.")
    ]
    energy_in_cost: Annotated[
        bool, about("The site pays for power apart from the GPU's price, so cost_usd holds energy_cost_usd.")
    ]
    site_energy_kwh: Annotated[float | None, about("Energy at the GPU × (1 + host share) × PUE.")]
    energy_coverage_ratio: Annotated[float | None, about("Share of the group's time with known energy.")]
    carbon_code: Annotated[str | None, about("Row of the grid-carbon table; own: the site's own figure.")]
    carbon_year: Annotated[int | None, about("Year of the grid figure.")]
    carbon_method: Annotated[str | None, about("Method of the grid figure; not comparable across methods.")]


@dataclass(slots=True)
class CostSum:
    """Slices added up with the price of their stretch."""

    label: str = ""
    covered_s: float = 0.0
    priced_s: float = 0.0
    named_s: float = 0.0
    gpu_usd: Decimal = Decimal(0)
    by_activity: dict[Activity, Decimal] = field(default_factory=dict)
    unseen_usd: Decimal = Decimal(0)
    unseen_priced: bool = False
    bases: dict[str, float] = field(default_factory=dict)
    energy: EnergySum = field(default_factory=EnergySum)

    def add(self, part: Slice, price: Price | None, usd: Decimal) -> None:
        """Count one slice; ``usd`` is its share of the stretch's cost, 0 without a price."""
        self.label = part.label
        self.covered_s += part.covered_s
        self.energy.add(part)
        if price is None:
            return
        self.priced_s += part.covered_s
        self.gpu_usd += usd
        if part.covered_s > 0:
            named = part.seconds if sum(part.seconds.values()) > 0 else {Activity.UNKNOWN: part.covered_s}
            for activity, share in split_usd(usd, named).items():
                self.by_activity[activity] = self.by_activity.get(activity, Decimal(0)) + share
        self.named_s += sum(s for activity, s in part.seconds.items() if activity is not Activity.UNKNOWN)
        self.unseen_usd += cost_usd(max(0.0, part.known_s - part.covered_s), price)
        self.unseen_priced = True
        self.bases[price.basis] = self.bases.get(price.basis, 0.0) + part.known_s

    def merge(self, other: "CostSum") -> None:
        """Count another sum's slices."""
        self.covered_s += other.covered_s
        self.priced_s += other.priced_s
        self.named_s += other.named_s
        self.gpu_usd += other.gpu_usd
        self.unseen_usd += other.unseen_usd
        self.unseen_priced |= other.unseen_priced
        self.energy.merge(other.energy)
        for activity, usd in other.by_activity.items():
            self.by_activity[activity] = self.by_activity.get(activity, Decimal(0)) + usd
        for basis, s in other.bases.items():
            self.bases[basis] = self.bases.get(basis, 0.0) + s

    @property
    def is_priced(self) -> bool:
        """Some time with samples has a price."""
        return self.priced_s > 0

    def activity_usd(self, *activities: Activity) -> Decimal | None:
        """Cost of time in these activities; None when nothing is priced or no activity could be named."""
        if not self.is_priced or self.named_s <= 0:
            return None
        return sum((self.by_activity.get(activity, Decimal(0)) for activity in activities), Decimal(0))

    @property
    def basis(self) -> str | None:
        """Bases of the prices, the one with most time first."""
        ordered = sorted(self.bases, key=lambda basis: (-self.bases[basis], basis))
        return "; ".join(ordered) or None

    def energy_usd(self, place: Site) -> Decimal | None:
        """Cost of the known energy at the site's tariff."""
        return energy_cost_usd(self.energy.energy_j, place)

    def spend_usd(self, place: Site) -> Decimal | None:
        """GPU cost, with energy where the site pays for it apart; None when nothing is priced."""
        if not self.is_priced:
            return None
        return self.gpu_usd + ((self.energy_usd(place) or Decimal(0)) if place.pays_for_power else Decimal(0))

    def row(self, key: str | None, place: Site, factor: Carbon | None) -> CostRow:
        """The sum as a row."""
        energy_usd = self.energy_usd(place)
        energy_known_s = self.energy.known_s
        return CostRow(
            key=key,
            label=self.label,
            cost_usd=self.spend_usd(place),
            idle_cost_usd=self.activity_usd(*IDLE),
            energy_cost_usd=energy_usd,
            carbon_g=carbon_g(self.energy.energy_j, place),
            price_basis=self.basis,
            priced_ratio=self.priced_s / self.covered_s if self.covered_s > 0 else None,
            gpu_h=self.covered_s / HOUR_S,
            unseen_cost_usd=self.unseen_usd if self.unseen_priced else None,
            energy_in_cost=place.pays_for_power and energy_usd is not None,
            site_energy_kwh=None if self.energy.energy_j is None else site_kwh(self.energy.energy_j, place),
            energy_coverage_ratio=min(1.0, self.energy.covered_s / energy_known_s)
            if energy_known_s > 0
            else None,
            carbon_code=None if factor is None else factor.code,
            carbon_year=None if factor is None else factor.year,
            carbon_method=None if factor is None else factor.method,
        )


def priced(book: Book, parts: Iterable[Slice]) -> Iterator[tuple[Slice, Price | None, Decimal]]:
    """Each slice with the price of its stretch and its share of the stretch's cost.

    The slices of one GPU's stretch must come one after the other, as ``slices`` gives them.
    """
    for (gpu_uuid, from_ms), group in groupby(parts, key=lambda part: (part.gpu_uuid, part.from_ms)):
        together = list(group)
        price = book.price(gpu_uuid, from_ms)
        covered = {index: part.covered_s for index, part in enumerate(together)}
        whole_s = sum(covered.values())
        shares = {} if price is None or whole_s <= 0 else split_usd(cost_usd(whole_s, price), covered)
        for index, part in enumerate(together):
            yield part, price, shares.get(index, Decimal(0))


def add_up(book: Book, parts: Iterable[Slice]) -> dict[str | None, CostSum]:
    """Slices by key, each at the price of its stretch."""
    sums: dict[str | None, CostSum] = {}
    for part, price, usd in priced(book, parts):
        sums.setdefault(part.key, CostSum()).add(part, price, usd)
    return sums


def rows(scope: Scope, by: By = By.GPU, *, book: Book | None = None) -> list[CostRow]:
    """Costs by ``by``, ordered by key; the group that cannot be said comes last."""
    read = book_for(scope, by, book)
    place, factor = site(scope.settings), carbon(scope.settings)
    sums = add_up(read, slices(scope, read, by))
    return [sums[key].row(key, place, factor) for key in in_order(sums)]
