"""Rent or buy: what owning a node costs an hour, when it pays back, and at which use it beats renting.

Money is US dollars, power kW at the node's own meter (IT load, before PUE), time hours, months of 730 h, years of 8760 h.
``U`` (``utilisation``) is the share of hours in which the machine is *wanted*, not NVML's utilization.

    CRF          = r / (1 − (1+r)^−T)                       r = 0: 1/T
    capex_year   = (K − R/(1+r)^T) × CRF
    opex_year    = m×K + staff + licences + colo + energy at idle draw        or one figure that holds all running cost
    fixed_year   = capex_year + opex_year
    var_h        = (active_kw − idle_kw) × PUE × tariff
    own          = (fixed_year + var_h×8760×U) / (N×8760×U)                   USD per wanted GPU-hour
    U_breakeven  = fixed_year / ((N×rent − var_h) × 8760)                     above 1: renting wins at any use
    payback_h    = K / (N×rent×U − opex_year/8760 − var_h×U)                  only if positive, else never

A node that is up for a share ``a`` of the time only serves U×a; what is wanted while it is down is rented on both sides.
Source: cost-model 2, whose worked example is a unit test. Like is compared with like: same GPU, same count; storage,
egress and tax are on neither side, and ``assumptions`` says so.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from itertools import product
from typing import Final

from core.breakeven import capex_per_year_usd
from core.evidence import Price, Site
from core.money import usd
from core.owned_machine import OwnedMachine
from core.percent import percent, percent_range
from core.units import HOURS_PER_MONTH
from ledger.rent_or_buy_inputs import RentOrBuyInputs
from ledger.share import rounded

RENT_FACTORS: Final = (0.7, 1.0, 1.2)
"""Rent −30 % / +20 %."""
LIFE_YEARS: Final = (3.0, 5.0)


class Verdict(StrEnum):
    """The answer."""

    RENT = "rent"
    BUY = "buy"
    MIX = "mix"
    """The break-even use lies inside the measured p25–p75: own what is always busy, rent the rest."""
    NEVER = "never"
    """Running an owned node costs more than renting one, at any use."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Spread:
    """Lowest and highest value over the ranges of the inputs.

    ``high`` None with a ``low``: in some corner there is no such value (never paid back). Both None: in no corner.
    """

    low: float | Decimal | None
    high: float | Decimal | None


@dataclass(frozen=True, slots=True)
class RentOrBuyResult:
    """Rent or buy, with both tests and their ranges.

    Attributes:
        verdict: the answer. reason: one sentence for it. missing: inputs without which there is none.
        payback_months: until the purchase is earned back at this use (at full use when none is known); None: never.
        breakeven_utilisation: use above which owning is cheaper; above 1 there is none; None: no such use.
        breakeven_hours_per_day: the same as hours of a day.
        own_usd_per_gpu_h, rent_usd_per_gpu_h: one wanted GPU-hour, owned (at this use) and rented.
        own_usd_per_year, rent_usd_per_year: the node at this use; None without a use.
        ranges: over rent −30 %/+20 %, life 3–5 years, use p25–p75.
        firm: the verdict is the same in every corner of the ranges; None without a verdict.
        assumptions: every input and every term left out.
    """

    verdict: Verdict
    reason: str
    missing: tuple[str, ...]
    payback_months: float | None
    breakeven_utilisation: float | None
    breakeven_hours_per_day: float | None
    own_usd_per_gpu_h: Decimal | None
    rent_usd_per_gpu_h: Decimal | None
    own_usd_per_year: Decimal | None
    rent_usd_per_year: Decimal | None
    ranges: Mapping[str, Spread]
    firm: bool | None
    assumptions: Mapping[str, object]


def capex_per_year(inputs: RentOrBuyInputs, capex_usd: float) -> float:
    """Purchase less residual, as equal yearly payments, USD."""
    residual = inputs.residual_ratio * capex_usd
    return capex_per_year_usd(capex_usd, residual, inputs.cost_of_capital_ratio, inputs.life_years)


@dataclass(frozen=True, slots=True)
class _Case:
    """The node at one rent."""

    machine: OwnedMachine
    rent_usd_per_gpu_h: float

    def payback_months(self, use: float) -> float | None:
        hours = self.machine.payback_h(self.rent_usd_per_gpu_h, use)
        return None if hours is None else hours / HOURS_PER_MONTH

    @property
    def breakeven_utilisation(self) -> float | None:
        return self.machine.breakeven_utilisation(self.rent_usd_per_gpu_h)

    @property
    def opex_exceeds_rent(self) -> bool:
        return self.payback_months(1.0) is None

    def verdict(self, use: float) -> Verdict:
        """Without a range of use: never, rent or buy."""
        if self.opex_exceeds_rent:
            return Verdict.NEVER
        breakeven = self.breakeven_utilisation
        return Verdict.BUY if breakeven is not None and use >= breakeven else Verdict.RENT


def evaluate(inputs: RentOrBuyInputs) -> RentOrBuyResult:
    """Weigh renting against buying.

    An input that is missing makes the verdict ``unknown`` and is named; figures that do not need it are given all the
    same. Without a use the payback and the cost of owning are those of full-time use.
    """
    rent = inputs.rent_per_gpu_hour
    missing = inputs.missing()
    case = _case(inputs, 1.0 if rent is None else rent)
    use = 1.0 if inputs.utilisation is None else inputs.utilisation
    verdict, reason = _verdict(inputs, case, missing)
    own = None if case is None else case.machine.own_usd_per_gpu_h(use)
    known = case is not None and rent is not None
    breakeven = case.breakeven_utilisation if case is not None and known else None
    measured = inputs.utilisation is not None
    return RentOrBuyResult(
        verdict=verdict,
        reason=reason,
        missing=missing,
        payback_months=case.payback_months(use) if case is not None and known else None,
        breakeven_utilisation=breakeven,
        breakeven_hours_per_day=None if breakeven is None else 24 * breakeven,
        own_usd_per_gpu_h=_usd(own),
        rent_usd_per_gpu_h=_usd(rent),
        own_usd_per_year=_usd(case.machine.own_usd_per_year(case.rent_usd_per_gpu_h, use))
        if case is not None and measured and (known or inputs.availability_ratio == 1)
        else None,
        rent_usd_per_year=_usd(case.machine.rent_usd_per_year(case.rent_usd_per_gpu_h, use))
        if case is not None and known and measured
        else None,
        ranges=_ranges(inputs, rent) if known and rent is not None else {},
        firm=_firm(inputs, rent, verdict),
        assumptions=inputs.assumptions(),
    )


def of_site(
    site: Site,
    rent: Price | None,
    *,
    utilisation: float | None,
    utilisation_p25: float | None = None,
    utilisation_p75: float | None = None,
    utilisation_basis: str = "measured",
    power_basis: str = "settings of the site",
) -> RentOrBuyInputs:
    """Inputs from the site's settings, the price in force and the measured use."""
    return RentOrBuyInputs(
        capex_usd=site.own_capex_usd,
        gpu_count=site.own_gpu_count,
        life_years=site.own_life_years,
        residual_ratio=site.own_residual_ratio,
        cost_of_capital_ratio=site.own_cost_of_capital_ratio,
        maintenance_ratio=site.own_maintenance_ratio,
        staff_usd_per_year=site.own_staff_usd_per_year,
        pue=site.pue,
        tariff_usd_per_kwh=site.tariff_usd_per_kwh,
        idle_kw=site.own_idle_kw,
        active_kw=site.own_active_kw,
        rent_usd_per_gpu_hour=None if rent is None else float(rent.usd_per_gpu_hour),
        rent_basis="" if rent is None else rent.basis,
        utilisation=utilisation,
        utilisation_p25=utilisation_p25,
        utilisation_p75=utilisation_p75,
        utilisation_basis=utilisation_basis,
        power_basis=power_basis,
    )


def _case(inputs: RentOrBuyInputs, rent: float) -> _Case | None:
    machine = inputs.machine()
    return None if machine is None else _Case(machine, rent)


def _verdict(inputs: RentOrBuyInputs, case: _Case | None, missing: tuple[str, ...]) -> tuple[Verdict, str]:
    decisive = tuple(name for name in missing if name != "utilisation")
    if case is None or decisive:
        return Verdict.UNKNOWN, f"Not evaluated: {', '.join(decisive)} not given."
    if case.opex_exceeds_rent:
        return Verdict.NEVER, "Running an owned node costs at least as much an hour as renting one."
    breakeven = case.breakeven_utilisation
    if breakeven is None or breakeven > 1:
        return Verdict.RENT, "Renting is cheaper at any use: owning would not break even at 24 hours a day."
    need = f"Owning breaks even at {percent(breakeven)} of all hours ({24 * breakeven:.1f} h a day)"
    use, low, high = inputs.utilisation, inputs.utilisation_p25, inputs.utilisation_p75
    if use is None:
        why = inputs.utilisation_basis or "how many hours the machine is wanted is not known"
        return Verdict.UNKNOWN, f"{need}; {why}."
    if low is not None and high is not None and low < breakeven < high:
        return (
            Verdict.MIX,
            f"{need}, inside the measured {percent_range(low, high)}: own what is always busy, rent the rest.",
        )
    if use >= breakeven:
        return Verdict.BUY, f"{need}; it is wanted {percent(use)} of them."
    return Verdict.RENT, f"{need}; it is wanted only {percent(use)} of them."


def _corners(inputs: RentOrBuyInputs, rent: float) -> Iterable[tuple[_Case, float]]:
    use = 1.0 if inputs.utilisation is None else inputs.utilisation
    ends = (use, inputs.utilisation_p25, inputs.utilisation_p75)
    uses = sorted({end for end in ends if end is not None})
    for factor, life, each in product(RENT_FACTORS, sorted({*LIFE_YEARS, inputs.life_years}), uses):
        case = _case(replace(inputs, life_years=life), rent * factor)
        if case is not None:
            yield case, each


def _ranges(inputs: RentOrBuyInputs, rent: float) -> dict[str, Spread]:
    corners = list(_corners(inputs, rent))
    own = _spread([case.machine.own_usd_per_gpu_h(use) for case, use in corners])
    rents = _spread([case.rent_usd_per_gpu_h for case, _ in corners])
    return {
        "payback_months": _spread([case.payback_months(use) for case, use in corners]),
        "breakeven_utilisation": _spread([case.breakeven_utilisation for case, _ in corners]),
        "own_usd_per_gpu_h": Spread(_usd(own.low), _usd(own.high)),
        "rent_usd_per_gpu_h": Spread(_usd(rents.low), _usd(rents.high)),
        "life_years": _spread([case.machine.life_years for case, _ in corners]),
        "utilisation": _spread([use for _, use in corners])
        if inputs.utilisation is not None
        else Spread(None, None),
    }


def _spread(values: list[float | None]) -> Spread:
    known = [value for value in values if value is not None]
    if not known:
        return Spread(None, None)
    return Spread(min(known), max(known) if len(known) == len(values) else None)


def _firm(inputs: RentOrBuyInputs, rent: float | None, verdict: Verdict) -> bool | None:
    if rent is None or verdict is Verdict.UNKNOWN:
        return None
    if verdict is Verdict.MIX:
        return False
    bought = {case.verdict(use) is Verdict.BUY for case, use in _corners(inputs, rent)}
    return len(bought) == 1


def _usd(value: float | Decimal | None) -> Decimal | None:
    return None if value is None else rounded(usd(value))
