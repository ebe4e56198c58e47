"""What an owned GPU-hour costs and when owning beats renting: the formulas, shared by ledger and advisor.

Source of all of them: cost-model section 2, whose worked example is the unit test. Plain floats in dollars,
hours and ratios: callers turn results into money where they print them.
"""

from math import expm1, log1p
from math import pow as power

from core.units import HOURS_PER_YEAR


def capital_recovery_factor(cost_of_capital_ratio: float, life_years: float) -> float:
    """Yearly payment per dollar of capital: r / (1 − (1+r)^−T); 1/T when capital costs nothing.

    Raises ``ValueError`` for a life that is not positive.
    """
    if life_years <= 0:
        raise ValueError(f"life must be longer than 0 years, not {life_years}")
    paid_back = -expm1(-life_years * log1p(cost_of_capital_ratio))  # 1 − (1+r)^−T, exact for the smallest r
    return cost_of_capital_ratio / paid_back if paid_back else 1 / life_years


def capex_per_year_usd(
    capex_usd: float, residual_usd: float, cost_of_capital_ratio: float, life_years: float
) -> float:
    """Dollars a year that pay back the machine less its resale: (K − R/(1+r)^T) · CRF."""
    discounted = residual_usd / power(1 + cost_of_capital_ratio, life_years)
    return (capex_usd - discounted) * capital_recovery_factor(cost_of_capital_ratio, life_years)


def energy_usd_per_h(power_kw: float, pue: float, tariff_usd_per_kwh: float) -> float:
    """Dollars an hour for a draw at the rack: P · PUE · tariff."""
    return power_kw * pue * tariff_usd_per_kwh


def own_opex_usd_per_h(yearly_opex_usd: float, variable_usd_per_h: float) -> float:
    """Running cost of the whole machine in an hour of use, capital apart.

    Args:
        yearly_opex_usd: maintenance, staff, licences, colo and idle energy of a year.
        variable_usd_per_h: extra energy of an hour of work.
    """
    return yearly_opex_usd / HOURS_PER_YEAR + variable_usd_per_h


def own_usd_per_gpu_h(
    fixed_usd_per_year: float, variable_usd_per_h: float, gpu_count: int, utilisation_ratio: float
) -> float | None:
    """Cost of one *used* GPU-hour of an owned machine; None when it is never used.

    Args:
        fixed_usd_per_year: capital of a year plus all cost that use does not change.
        variable_usd_per_h: extra cost of an hour of work, whole machine.
        gpu_count: GPUs in the machine.
        utilisation_ratio: share of the year's hours in which it is wanted.
    """
    if utilisation_ratio <= 0:
        return None
    used_h = HOURS_PER_YEAR * utilisation_ratio
    return (fixed_usd_per_year + variable_usd_per_h * used_h) / (gpu_count * used_h)


def breakeven_utilisation(
    fixed_usd_per_year: float, variable_usd_per_h: float, gpu_count: int, rent_usd_per_gpu_h: float
) -> float | None:
    """Share of the year's hours above which owning is cheaper; above 1 renting wins at any use.

    None when an hour of work costs more than the rent: then no use makes owning cheaper.
    """
    margin = gpu_count * rent_usd_per_gpu_h - variable_usd_per_h
    return None if margin <= 0 else fixed_usd_per_year / (margin * HOURS_PER_YEAR)


def payback_hours(capex_usd: float, rent_usd_per_h: float, opex_usd_per_h: float) -> float | None:
    """Hours of use until the rent saved has paid the machine; None: never.

    Args:
        capex_usd: price of the machine.
        rent_usd_per_h: rent of the same machine.
        opex_usd_per_h: running cost of the owned one in an hour of use (``own_opex_usd_per_h``).
    """
    difference = rent_usd_per_h - opex_usd_per_h
    return None if difference <= 0 else capex_usd / difference
