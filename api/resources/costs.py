"""What the GPUs cost, what of it was idle, and the energy and carbon behind it, by any key.

``cost_usd`` is rate × clock time from a GPU's first to its last sample (and the site's energy where the site pays
for power apart from the GPU's price). A gap in samples is unknown: neither idle nor free, so it is in the cost, and
``unseen_cost_usd`` says how much of it. A GPU without a price has no cost, never 0. A GPU's cost is rounded over all
its time and then shared out, so that every grouping adds up to the same micro-dollar. Source: cost-model 1 and 2.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import groupby
from math import fsum
from typing import Annotated

from api.resources.book import Book, book_for
from api.resources.by import By
from api.resources.columns import about
from api.resources.energy import EnergySum
from api.resources.gpu_slice import Slice
from api.resources.places import place_lookup, site_of
from api.resources.scope import Scope
from api.resources.slices import slices
from api.resources.usage import HOUR_S, in_order
from core.activity import IDLE, Activity
from core.evidence import Price, Site
from ledger.carbon import Carbon, carbon_g
from ledger.cost import Meter, cost_usd
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
        Decimal | None,
        about("Rate × clock time, gaps included, plus energy where energy_in_cost; null: no price."),
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
        Decimal | None,
        about(
            "Part of cost_usd: rate × time without samples, which is neither idle nor free; null: no price."
        ),
    ]
    energy_in_cost: Annotated[
        bool, about("The site pays for power apart from the GPU's price, so cost_usd holds energy_cost_usd.")
    ]
    site_energy_kwh: Annotated[float | None, about("Energy at the GPU × (1 + host share) × PUE.")]
    energy_coverage_ratio: Annotated[float | None, about("Share of the group's time with known energy.")]
    carbon_code: Annotated[str | None, about("Row of the grid-carbon table; own: the site's own figure.")]
    carbon_year: Annotated[int | None, about("Year of the grid figure.")]
    carbon_method: Annotated[str | None, about("Method of the grid figure; not comparable across methods.")]
    coverage_ratio: Annotated[float | None, about("Share of the clock time that samples vouch for.")]


@dataclass(slots=True)
class CostSum:
    """Slices added up with the price of their stretch.

    Attributes:
        seen_usd: GPU cost of time with samples. unseen_usd: of gaps. is_priced: some time has a price.
        by_activity: both by activity; a gap is unknown.
    """

    label: str = ""
    known_s: float = 0.0
    covered_s: float = 0.0
    priced_s: float = 0.0
    named_s: float = 0.0
    seen_usd: Decimal = Decimal(0)
    by_activity: dict[Activity, Decimal] = field(default_factory=dict)
    unseen_usd: Decimal = Decimal(0)
    is_priced: bool = False
    bases: dict[str, float] = field(default_factory=dict)
    energy: EnergySum = field(default_factory=EnergySum)

    def add(self, part: Slice, price: Price | None, seen_usd: Decimal, unseen_usd: Decimal) -> None:
        """Count one slice; ``seen_usd`` and ``unseen_usd`` are its shares of the stretch's cost, 0 without a price."""
        self.label = part.label
        self.known_s += part.known_s
        self.covered_s += part.covered_s
        self.energy.add(part)
        if price is None:
            return
        self.is_priced |= part.known_s > 0
        self.priced_s += part.covered_s
        self.seen_usd += seen_usd
        self.unseen_usd += unseen_usd
        if part.covered_s > 0:
            named = part.seconds if sum(part.seconds.values()) > 0 else {Activity.UNKNOWN: part.covered_s}
            self._add_by_activity(split_usd(seen_usd, named))
        if unseen_usd:
            self._add_by_activity({Activity.UNKNOWN: unseen_usd})
        self.named_s += sum(s for activity, s in part.seconds.items() if activity is not Activity.UNKNOWN)
        self.bases[price.basis] = self.bases.get(price.basis, 0.0) + part.known_s

    def merge(self, other: "CostSum") -> None:
        """Count another sum's slices."""
        self.known_s += other.known_s
        self.covered_s += other.covered_s
        self.priced_s += other.priced_s
        self.named_s += other.named_s
        self.seen_usd += other.seen_usd
        self.unseen_usd += other.unseen_usd
        self.is_priced |= other.is_priced
        self.energy.merge(other.energy)
        self._add_by_activity(other.by_activity)
        for basis, s in other.bases.items():
            self.bases[basis] = self.bases.get(basis, 0.0) + s

    def _add_by_activity(self, amounts: Mapping[Activity, Decimal]) -> None:
        for activity, usd in amounts.items():
            self.by_activity[activity] = self.by_activity.get(activity, Decimal(0)) + usd

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
        """GPU cost, gaps included, with energy where the site pays for it apart; None when nothing is priced."""
        if not self.is_priced:
            return None
        energy_usd = self.energy_usd(place) if place.pays_for_power else None
        return self.seen_usd + self.unseen_usd + (energy_usd or Decimal(0))

    @property
    def known_unseen_usd(self) -> Decimal | None:
        """GPU cost of gaps; None when nothing is priced."""
        return self.unseen_usd if self.is_priced else None

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
            unseen_cost_usd=self.known_unseen_usd,
            energy_in_cost=place.pays_for_power and energy_usd is not None,
            site_energy_kwh=None if self.energy.energy_j is None else site_kwh(self.energy.energy_j, place),
            energy_coverage_ratio=min(1.0, self.energy.covered_s / energy_known_s)
            if energy_known_s > 0
            else None,
            carbon_code=None if factor is None else factor.code,
            carbon_year=None if factor is None else factor.year,
            carbon_method=None if factor is None else factor.method,
            coverage_ratio=min(1.0, self.covered_s / self.known_s) if self.known_s > 0 else None,
        )


def priced(book: Book, parts: Iterable[Slice]) -> Iterator[tuple[Slice, Price | None, Decimal, Decimal]]:
    """Each slice with the price of its stretch and its shares of the stretch's cost: of seen time, and of gaps.

    The slices of one GPU's stretch must come one after the other, as ``slices`` gives them.
    """
    meters: defaultdict[str, Meter] = defaultdict(Meter)
    for (gpu_uuid, from_ms), group in groupby(parts, key=lambda part: (part.gpu_uuid, part.from_ms)):
        together = list(group)
        price = book.price(gpu_uuid, from_ms)
        if price is None:
            for part in together:
                yield part, None, Decimal(0), Decimal(0)
            continue
        whole_usd = meters[gpu_uuid].add(fsum(part.known_s for part in together), price)
        for part, (seen_usd, unseen_usd) in zip(together, _shares(together, price, whole_usd), strict=True):
            yield part, price, seen_usd, unseen_usd


def _shares(parts: Sequence[Slice], price: Price, whole_usd: Decimal) -> Iterator[tuple[Decimal, Decimal]]:
    """Shares of a stretch's cost, of seen time and of gaps, for each of its slices; they add up to it."""
    covered = {at: part.covered_s for at, part in enumerate(parts)}
    gaps = {at: max(0.0, part.known_s - part.covered_s) for at, part in enumerate(parts)}
    unseen_usd = whole_usd
    if fsum(covered.values()) > 0:
        unseen_usd = min(whole_usd, cost_usd(fsum(gaps.values()), price))
    seen, unseen = split_usd(whole_usd - unseen_usd, covered), split_usd(unseen_usd, gaps)
    return ((seen[at], unseen[at]) for at in range(len(parts)))


def add_up(book: Book, parts: Iterable[Slice]) -> dict[str | None, CostSum]:
    """Slices by key, each at the price of its stretch."""
    sums: dict[str | None, CostSum] = {}
    for part, price, seen_usd, unseen_usd in priced(book, parts):
        sums.setdefault(part.key, CostSum()).add(part, price, seen_usd, unseen_usd)
    return sums


def rows(scope: Scope, by: By = By.GPU, *, book: Book | None = None) -> list[CostRow]:
    """Costs by ``by``, ordered by key; the group that cannot be said comes last."""
    read = book_for(scope, by, book)
    at_ms = scope.window.to_ms - 1
    terms = place_lookup(scope.session, scope.settings).common_terms(at_ms)
    place, factor = site_of(terms, scope.settings, at_ms), terms.carbon
    sums = add_up(read, slices(scope, read, by))
    return [sums[key].row(key, place, factor) for key in in_order(sums)]
