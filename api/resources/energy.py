"""Energy measured at the GPU, by any key. Site energy, money and carbon belong to costs."""

from dataclasses import dataclass, field
from typing import Annotated

from api.resources.book import Book, book_for
from api.resources.by import By
from api.resources.columns import about
from api.resources.gpu_slice import Slice
from api.resources.scope import Scope
from api.resources.slices import slices
from api.resources.usage import in_order
from core.samples import EnergyMethod
from core.units import J_PER_KWH


@dataclass(frozen=True, slots=True)
class EnergyRow:
    """Energy of one group."""

    key: Annotated[
        str | None, about("Group; null: what cannot be said (no known workload, user, engine, owner).")
    ]
    label: Annotated[str, about("The group for people.")]
    energy_j: Annotated[float | None, about("Joules drawn by the GPUs themselves; null when none is known.")]
    energy_kwh: Annotated[float | None, about("The same in kWh; without host share and PUE.")]
    mean_power_w: Annotated[float | None, about("Energy over the time it was measured in.")]
    coverage_ratio: Annotated[
        float | None,
        about(
            "Time with known energy over the time between first and last sample; the rest is not estimated."
        ),
    ]
    method: Annotated[
        EnergyMethod | None, about("counter: the card's own; integrated: power over time; mixed: both.")
    ]
    energy_covered_s: Annotated[float, about("GPU-seconds behind the figure.")]


@dataclass(slots=True)
class EnergySum:
    """Slices added up."""

    label: str = ""
    known_s: float = 0.0
    covered_s: float = 0.0
    energy_j: float | None = None
    methods: set[EnergyMethod] = field(default_factory=set)

    def add(self, part: Slice) -> None:
        """Count one slice."""
        self.label = part.label
        self.known_s += part.known_s
        if part.energy_j is None:
            return
        self.energy_j = (self.energy_j or 0.0) + part.energy_j
        self.covered_s += part.energy_covered_s
        if part.energy_method is not None:
            self.methods.add(part.energy_method)

    def merge(self, other: "EnergySum") -> None:
        """Count another sum's slices."""
        self.known_s += other.known_s
        if other.energy_j is None:
            return
        self.energy_j = (self.energy_j or 0.0) + other.energy_j
        self.covered_s += other.covered_s
        self.methods |= other.methods

    @property
    def method(self) -> EnergyMethod | None:
        """The one method of all parts, or mixed."""
        if not self.methods:
            return None
        return next(iter(self.methods)) if len(self.methods) == 1 else EnergyMethod.MIXED

    def row(self, key: str | None) -> EnergyRow:
        """The sum as a row."""
        measured = self.energy_j is not None and self.covered_s > 0
        return EnergyRow(
            key=key,
            label=self.label,
            energy_j=self.energy_j,
            energy_kwh=None if self.energy_j is None else self.energy_j / J_PER_KWH,
            mean_power_w=(self.energy_j or 0.0) / self.covered_s if measured else None,
            coverage_ratio=min(1.0, self.covered_s / self.known_s) if self.known_s > 0 else None,
            method=self.method,
            energy_covered_s=self.covered_s,
        )


def rows(scope: Scope, by: By = By.GPU, *, book: Book | None = None) -> list[EnergyRow]:
    """Energy by ``by``, ordered by key; the group that cannot be said comes last."""
    sums: dict[str | None, EnergySum] = {}
    for part in slices(scope, book_for(scope, by, book), by):
        sums.setdefault(part.key, EnergySum()).add(part)
    return [sums[key].row(key) for key in in_order(sums)]
