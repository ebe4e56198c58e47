"""What an hour of an owned GPU costs: the fixed cost of a year over all its clock hours.

    rate = fixed_year / (N × 8760)        fixed_year = capex_year + m×K + staff + licences + colo (+ energy at idle draw)

Every hour of the year carries the same share, used or not, so that idle hours show what they cost. Energy is in the rate
only where the site does not pay its power apart: there the ledger adds what was measured. Amounts are in the
currency of the price. Source: cost-model 2; the formulas are those of ``ledger.rent_or_buy``.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from decimal import Decimal
from typing import Final, Self

from core.money import usd
from core.units import HOURS_PER_YEAR
from ledger.rent_or_buy import capex_per_year
from ledger.rent_or_buy_inputs import RentOrBuyInputs
from ledger.share import rounded

_THEIRS: Final = {
    "capex": "capex_usd",
    "staff_per_year": "staff_usd_per_year",
    "licences_per_year": "licences_usd_per_year",
    "colo_per_kw_month": "colo_usd_per_kw_month",
    "tariff_per_kwh": "tariff_usd_per_kwh",
}
"""Our names of amounts → those of rent-or-buy, which are in dollars."""


@dataclass(frozen=True, slots=True)
class OwnedInputs:
    """A machine that was bought; defaults as in ``RentOrBuyInputs``. Amounts are in the currency of its price.

    Attributes:
        capex: purchase with its share of network, storage, installation. gpu_count: GPUs of it.
        life_years, residual_ratio, cost_of_capital_ratio: T, R/K, r. maintenance_ratio: of the purchase a year.
        staff_per_year, licences_per_year: amounts. colo_per_kw_month: for space, on the active draw.
        colo_includes_power: the colo fee is all-in. idle_kw, active_kw: draw of the machine.
        includes_energy: energy at idle draw is in the rate; needs ``tariff_per_kwh``.
    """

    capex: float
    gpu_count: int = 8
    life_years: float = 4.0
    residual_ratio: float = 0.15
    cost_of_capital_ratio: float = 0.08
    maintenance_ratio: float = 0.05
    staff_per_year: float = 18_000.0
    licences_per_year: float = 0.0
    colo_per_kw_month: float = 0.0
    colo_includes_power: bool = False
    idle_kw: float = 2.2
    active_kw: float = 6.2
    pue: float = 1.3
    tariff_per_kwh: float | None = None
    includes_energy: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be. Raises ``ValueError`` that names the input and its bounds."""
        self.as_rent_or_buy()
        if self.includes_energy and self.tariff_per_kwh is None:
            raise ValueError(
                "includes_energy without tariff_per_kwh: give what a kWh costs, or leave energy out"
            )
        if self.includes_energy and self.colo_includes_power:
            raise ValueError("includes_energy and colo_includes_power: energy would count twice, give one")

    @classmethod
    def of(cls, given: Mapping[str, float | bool]) -> Self:
        """From inputs by name. Raises ``ValueError`` for a name that is none, or a bad value."""
        names = {field.name for field in fields(cls)}
        for name in given:
            if name not in names:
                raise ValueError(f"{name} is no input of an owned machine: use {', '.join(sorted(names))}")
        if "capex" not in given:
            raise ValueError("capex is not given: an owned machine needs its purchase price")
        return cls(**given)  # type: ignore[arg-type]  # names are checked above, values by the class

    def by_name(self) -> dict[str, float | bool]:
        """Every input that is known: what is kept with a price."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def as_rent_or_buy(self) -> RentOrBuyInputs:
        """The same machine for rent-or-buy; power costs nothing where energy is left out."""
        given = {_THEIRS.get(name, name): value for name, value in self.by_name().items()}
        energy = given.pop("includes_energy")
        if not energy:
            given["tariff_usd_per_kwh"] = 0.0
        try:
            return RentOrBuyInputs(**given)  # type: ignore[arg-type]
        except ValueError as error:
            raise ValueError(_in_our_words(str(error))) from error


@dataclass(frozen=True, slots=True)
class OwnedRate:
    """How the rate comes about, amounts in the currency of the price.

    Attributes:
        capital_per_year: purchase less residual as equal yearly payments. running_per_year: all else that is fixed.
        gpu_hours_per_year: N × 8760. amount_per_gpu_hour: the rate, to the micro-unit.
        energy: what of it is in the rate, in words.
    """

    capital_per_year: Decimal
    running_per_year: Decimal
    gpu_hours_per_year: Decimal
    amount_per_gpu_hour: Decimal
    energy: str


def owned_rate(inputs: OwnedInputs) -> OwnedRate:
    """The rate of an owned machine."""
    terms = inputs.as_rent_or_buy()
    running = terms.opex_per_year()
    assert running is not None, "capex and tariff are set"
    capital = capex_per_year(terms, inputs.capex)
    gpu_hours = inputs.gpu_count * HOURS_PER_YEAR
    return OwnedRate(
        capital_per_year=rounded(usd(capital)),
        running_per_year=rounded(usd(running)),
        gpu_hours_per_year=usd(gpu_hours),
        amount_per_gpu_hour=rounded(usd((capital + running) / gpu_hours)),
        energy=_energy(inputs),
    )


def _energy(inputs: OwnedInputs) -> str:
    if inputs.includes_energy:
        return (
            f"energy at idle draw is in the rate ({inputs.idle_kw:g} kW × PUE {inputs.pue:g} × "
            f"{inputs.tariff_per_kwh:g} per kWh); what work draws on top is not"
        )
    if inputs.colo_includes_power:
        return "energy is in the rate through the all-in colo fee"
    return "energy is not in the rate: the ledger adds what was measured where the site pays for power"


def _in_our_words(sentence: str) -> str:
    for ours, theirs in _THEIRS.items():
        sentence = sentence.replace(theirs, ours)
    return sentence
