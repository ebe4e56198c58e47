"""What rent-or-buy is asked with: defaults, bounds, what is missing, and what is assumed.

Field names are those of the command line and of REST (``--capex-usd`` …). Defaults after cost-model 2: life 4 years (3–6 in
use), residual 15 % at 4 years, cost of capital 8 %, maintenance 5 % (5–12 %), PUE 1.3 (1.1–1.6), 8 GPUs of 2.2 kW idle and 6.2 kW
at work, staff 18 000 USD a year (about 0.1 FTE). There is no default for the purchase price, the rent and the tariff.
"""

from dataclasses import dataclass, fields
from math import isclose
from typing import Final

from core import breakeven
from core.owned_machine import OwnedMachine
from core.units import HOURS_PER_YEAR

MONTHS_PER_YEAR: Final = 12
CAPEX_PARTS: Final = (
    "capex_gpus_usd",
    "capex_chassis_usd",
    "capex_network_usd",
    "capex_storage_usd",
    "capex_installation_usd",
)
LEFT_OUT: Final = {
    "tax": "not counted",
    "storage_usd_per_year": "on neither side",
    "egress_usd_per_year": "on neither side",
    "migration_usd": "not counted",
    "procurement_delay_months": "not counted",
    "spot_interruptions": "none: the rent is taken as on demand or as the price given",
}
"""Terms of a credible model that this one leaves out or fixes; leaving one out is fine, hiding it is not."""


@dataclass(frozen=True, slots=True)
class RentOrBuyInputs:
    """A node to buy or to rent; None: not given.

    Attributes:
        capex_usd: purchase of the node with its share of network, storage, installation. gpu_count: GPUs of it.
        capex_gpus_usd … capex_installation_usd: the same in parts, which add up to it; parts alone will do.
        life_years, residual_ratio, cost_of_capital_ratio: T, R/K, r. maintenance_ratio: of the purchase a year.
        colo_usd_per_kw_month: for space, on the active draw; ``colo_includes_power``: all-in, then no energy is added.
        idle_kw, active_kw: the node's draw, measured where it can be.
        own_opex_usd_per_hour: all running cost in one figure, instead of maintenance, staff, licences, colo and energy.
        rent_usd_per_gpu_hour, rent_usd_per_hour: per GPU, or for the whole node; give one.
        utilisation: share of hours in which the machine is wanted, 0–1; ``_p25``, ``_p75``: its measured spread.
        availability_ratio: share of time in which an owned node is up; what is wanted while it is down is rented.
        rent_basis, power_basis, utilisation_basis: where those figures are from, for people; the last one says why
            there is no use where there is none.
    """

    capex_usd: float | None = None
    capex_gpus_usd: float | None = None
    capex_chassis_usd: float | None = None
    capex_network_usd: float | None = None
    capex_storage_usd: float | None = None
    capex_installation_usd: float | None = None
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
    availability_ratio: float = 1.0
    rent_basis: str = ""
    power_basis: str = ""
    utilisation_basis: str = ""

    def __post_init__(self) -> None:
        """Refuse what cannot be. Raises ``ValueError`` that names the input and its bounds."""
        for name, low, high in _BOUNDS:
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise ValueError(f"{name} is {value}: give a value from {low:,.15g} to {high:,.15g}")
        if self.active_kw < self.idle_kw:
            raise ValueError(
                f"active_kw {self.active_kw} is below idle_kw {self.idle_kw}: swap or correct them"
            )
        if self.rent_usd_per_gpu_hour is not None and self.rent_usd_per_hour is not None:
            raise ValueError("rent_usd_per_gpu_hour and rent_usd_per_hour are both given: give one")
        low_use, high_use = self.utilisation_p25, self.utilisation_p75
        if low_use is not None and high_use is not None and low_use > high_use:
            raise ValueError(f"utilisation_p25 {low_use} is above utilisation_p75 {high_use}: swap them")
        parts = self._capex_parts
        if (
            parts
            and self.capex_usd is not None
            and not isclose(sum(parts.values()), self.capex_usd, abs_tol=1)
        ):
            raise ValueError(
                f"capex_usd is {self.capex_usd:.2f} and {' + '.join(parts)} come to {sum(parts.values()):.2f}: "
                "correct one of them, or give the parts alone"
            )
        if parts and not sum(parts.values()) >= 1:
            raise ValueError(f"{' + '.join(parts)} come to {sum(parts.values()):g}: give what the node costs")

    @property
    def _capex_parts(self) -> dict[str, float]:
        return {name: value for name in CAPEX_PARTS if (value := getattr(self, name)) is not None}

    @property
    def purchase_usd(self) -> float | None:
        """The purchase, given as one sum or in parts."""
        if self.capex_usd is not None:
            return self.capex_usd
        return sum(self._capex_parts.values()) if self._capex_parts else None

    def machine(self) -> OwnedMachine | None:
        """The node when owned; None without an input that it needs."""
        capex, opex, variable = self.purchase_usd, self.opex_per_year(), self.var_usd_per_h()
        if capex is None or opex is None or variable is None:
            return None
        return OwnedMachine(
            capex_usd=capex,
            residual_ratio=self.residual_ratio,
            cost_of_capital_ratio=self.cost_of_capital_ratio,
            life_years=self.life_years,
            gpu_count=self.gpu_count,
            opex_usd_per_year=opex,
            variable_usd_per_h=variable,
            availability_ratio=self.availability_ratio,
        )

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
            "capex_usd": self.purchase_usd,
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
        return breakeven.energy_usd_per_h(self.active_kw - self.idle_kw, self.pue, self.tariff_usd_per_kwh)

    def opex_per_year(self) -> float | None:
        """Running cost of an owned node that never works, USD a year; None without an input of it."""
        if self.own_opex_usd_per_hour is not None:
            return self.own_opex_usd_per_hour * HOURS_PER_YEAR
        capex = self.purchase_usd
        if capex is None:
            return None
        upkeep = (
            self.maintenance_ratio * capex
            + self.staff_usd_per_year
            + self.licences_usd_per_year
            + self.colo_usd_per_kw_month * self.active_kw * MONTHS_PER_YEAR
        )
        if self.colo_includes_power:
            return upkeep
        if self.tariff_usd_per_kwh is None:
            return None
        idle = breakeven.energy_usd_per_h(self.idle_kw, self.pue, self.tariff_usd_per_kwh)
        return upkeep + idle * HOURS_PER_YEAR

    def assumptions(self) -> dict[str, object]:
        """Every input by name, and every term left out."""
        given: dict[str, object] = {field.name: getattr(self, field.name) for field in fields(self)}
        given["capex_usd"] = self.purchase_usd
        given["energy"] = (
            "idle and active draw × PUE × tariff" if self.counts_energy else "inside the running cost"
        )
        given["own_at_utilisation"] = 1.0 if self.utilisation is None else self.utilisation
        if not self._capex_parts:
            given["capex_split"] = "one sum: GPUs, chassis, network, storage, installation"
        return {**given, **LEFT_OUT}


_BOUNDS: Final = (
    ("capex_usd", 1.0, 1e12),
    *((part, 0.0, 1e12) for part in CAPEX_PARTS),
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
    ("availability_ratio", 0.01, 1.0),
    ("utilisation", 0.0, 1.0),
    ("utilisation_p25", 0.0, 1.0),
    ("utilisation_p75", 0.0, 1.0),
)
