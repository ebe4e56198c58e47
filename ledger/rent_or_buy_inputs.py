"""What rent-or-buy is asked with: defaults, bounds, what is missing, and what is assumed.

Field names are those of the command line and of REST (``--capex-usd`` …). Defaults after cost-model 2: life 4 years (3–6 in
use), residual 15 % at 4 years, cost of capital 8 %, maintenance 5 % (5–12 %), PUE 1.3 (1.1–1.6), 8 GPUs of 2.2 kW idle and 6.2 kW
at work, staff 18 000 USD a year (about 0.1 FTE). There is no default for the purchase price, the rent and the tariff.
"""

from dataclasses import dataclass, fields
from typing import Final

from core.units import HOURS_PER_YEAR

MONTHS_PER_YEAR: Final = 12
LEFT_OUT: Final = {
    "tax": "not counted",
    "storage_usd_per_year": "on neither side",
    "egress_usd_per_year": "on neither side",
    "migration_usd": "not counted",
    "procurement_delay_months": "not counted",
    "availability_ratio": 1.0,
    "spot_interruptions": "none: the rent is taken as on demand or as the price given",
    "capex_split": "one sum: GPUs, chassis, network, storage, installation",
}
"""Terms of a credible model that this one leaves out or fixes; leaving one out is fine, hiding it is not."""


@dataclass(frozen=True, slots=True)
class RentOrBuyInputs:
    """A node to buy or to rent; None: not given.

    Attributes:
        capex_usd: purchase of the node with its share of network, storage, installation. gpu_count: GPUs of it.
        life_years, residual_ratio, cost_of_capital_ratio: T, R/K, r. maintenance_ratio: of the purchase a year.
        colo_usd_per_kw_month: for space, on the active draw; ``colo_includes_power``: all-in, then no energy is added.
        idle_kw, active_kw: the node's draw, measured where it can be.
        own_opex_usd_per_hour: all running cost in one figure, instead of maintenance, staff, licences, colo and energy.
        rent_usd_per_gpu_hour, rent_usd_per_hour: per GPU, or for the whole node; give one.
        utilisation: share of hours in which the machine is wanted, 0–1; ``_p25``, ``_p75``: its measured spread.
        rent_basis, utilisation_basis: where those figures are from, for people.
    """

    capex_usd: float | None = None
    gpu_count: int = 8
    life_years: float = 4.0
    residual_ratio: float = 0.15
    cost_of_capital_ratio: float = 0.08
    maintenance_ratio: float = 0.05
    staff_usd_per_year: float = 18_000.0
    licences_usd_per_year: float = 0.0
    colo_usd_per_kw_month: float = 0.0
    colo_includes_power: bool = False
    pue: float = 1.3
    tariff_usd_per_kwh: float | None = None
    idle_kw: float = 2.2
    active_kw: float = 6.2
    own_opex_usd_per_hour: float | None = None
    rent_usd_per_gpu_hour: float | None = None
    rent_usd_per_hour: float | None = None
    utilisation: float | None = None
    utilisation_p25: float | None = None
    utilisation_p75: float | None = None
    rent_basis: str = ""
    utilisation_basis: str = ""

    def __post_init__(self) -> None:
        """Refuse what cannot be. Raises ``ValueError`` that names the input and its bounds."""
        for name, low, high in _BOUNDS:
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise ValueError(f"{name} is {value}: give a value from {low:g} to {high:g}")
        if self.active_kw < self.idle_kw:
            raise ValueError(
                f"active_kw {self.active_kw} is below idle_kw {self.idle_kw}: swap or correct them"
            )
        if self.rent_usd_per_gpu_hour is not None and self.rent_usd_per_hour is not None:
            raise ValueError("rent_usd_per_gpu_hour and rent_usd_per_hour are both given: give one")
        low_use, high_use = self.utilisation_p25, self.utilisation_p75
        if low_use is not None and high_use is not None and low_use > high_use:
            raise ValueError(f"utilisation_p25 {low_use} is above utilisation_p75 {high_use}: swap them")

    @property
    def rent_per_gpu_hour(self) -> float | None:
        """Rent of one GPU, whichever way it was given, USD per hour."""
        if self.rent_usd_per_hour is not None:
            return self.rent_usd_per_hour / self.gpu_count
        return self.rent_usd_per_gpu_hour

    @property
    def counts_energy(self) -> bool:
        """Energy is a term of its own: not inside the running cost or the colo fee."""
        return self.own_opex_usd_per_hour is None and not self.colo_includes_power

    def missing(self) -> tuple[str, ...]:
        """Inputs without which there is no verdict."""
        needed = {
            "capex_usd": self.capex_usd,
            "tariff_usd_per_kwh": self.tariff_usd_per_kwh if self.counts_energy else 0.0,
            "rent_usd_per_gpu_hour": self.rent_per_gpu_hour,
            "utilisation": self.utilisation,
        }
        return tuple(name for name, value in needed.items() if value is None)

    def var_usd_per_h(self) -> float | None:
        """What an hour of work adds to the cost of owning; None without a tariff."""
        if not self.counts_energy:
            return 0.0
        if self.tariff_usd_per_kwh is None:
            return None
        return (self.active_kw - self.idle_kw) * self.pue * self.tariff_usd_per_kwh

    def opex_per_year(self) -> float | None:
        """Running cost of an owned node that never works, USD a year; None without an input of it."""
        if self.own_opex_usd_per_hour is not None:
            return self.own_opex_usd_per_hour * HOURS_PER_YEAR
        if self.capex_usd is None:
            return None
        upkeep = (
            self.maintenance_ratio * self.capex_usd
            + self.staff_usd_per_year
            + self.licences_usd_per_year
            + self.colo_usd_per_kw_month * self.active_kw * MONTHS_PER_YEAR
        )
        if self.colo_includes_power:
            return upkeep
        if self.tariff_usd_per_kwh is None:
            return None
        return upkeep + self.idle_kw * self.pue * self.tariff_usd_per_kwh * HOURS_PER_YEAR

    def assumptions(self) -> dict[str, object]:
        """Every input by name, and every term left out."""
        given: dict[str, object] = {field.name: getattr(self, field.name) for field in fields(self)}
        given["energy"] = (
            "idle and active draw × PUE × tariff" if self.counts_energy else "inside the running cost"
        )
        given["own_at_utilisation"] = 1.0 if self.utilisation is None else self.utilisation
        return {**given, **LEFT_OUT}


_BOUNDS: Final = (
    ("capex_usd", 1.0, 1e12),
    ("gpu_count", 1, 1_000_000),
    ("life_years", 0.25, 30.0),
    ("residual_ratio", 0.0, 1.0),
    ("cost_of_capital_ratio", 0.0, 1.0),
    ("maintenance_ratio", 0.0, 1.0),
    ("staff_usd_per_year", 0.0, 1e12),
    ("licences_usd_per_year", 0.0, 1e12),
    ("colo_usd_per_kw_month", 0.0, 1e6),
    ("pue", 1.0, 3.0),
    ("tariff_usd_per_kwh", 0.0, 10.0),
    ("idle_kw", 0.0, 1e6),
    ("active_kw", 0.0, 1e6),
    ("own_opex_usd_per_hour", 0.0, 1e9),
    ("rent_usd_per_gpu_hour", 0.0, 1e6),
    ("rent_usd_per_hour", 0.0, 1e9),
    ("utilisation", 0.0, 1.0),
    ("utilisation_p25", 0.0, 1.0),
    ("utilisation_p75", 0.0, 1.0),
)
