"""The worked example of cost-model section 2, to the figures it prints."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import breakeven
from core.units import HOURS_PER_MONTH, HOURS_PER_YEAR

CAPEX_USD = 330_000.0
IDLE_USD_YEAR = breakeven.energy_usd_per_h(2.2, 1.3, 0.12) * HOURS_PER_YEAR
VARIABLE_USD_H = breakeven.energy_usd_per_h(6.2 - 2.2, 1.3, 0.12)
OPEX_USD_YEAR = 0.05 * CAPEX_USD + 18_000 + IDLE_USD_YEAR
FIXED_USD_YEAR = breakeven.capex_per_year_usd(CAPEX_USD, 0.15 * CAPEX_USD, 0.08, 4) + OPEX_USD_YEAR


def test_the_parts_of_the_worked_example_come_out() -> None:
    assert breakeven.capital_recovery_factor(0.08, 4) == pytest.approx(0.30192, abs=5e-6)
    assert breakeven.capex_per_year_usd(CAPEX_USD, 49_500, 0.08, 4) == pytest.approx(88_648.79, abs=0.005)
    assert pytest.approx(3_006.43, abs=0.005) == IDLE_USD_YEAR
    assert pytest.approx(126_155.22, abs=0.005) == FIXED_USD_YEAR
    assert pytest.approx(0.624) == VARIABLE_USD_H


@pytest.mark.parametrize(
    ("utilisation", "usd"), [(0.2, 9.079), (0.4, 4.578), (0.6, 3.078), (0.8, 2.328), (1.0, 1.878)]
)
def test_own_cost_per_gpu_hour_falls_with_use(utilisation: float, usd: float) -> None:
    own = breakeven.own_usd_per_gpu_h(FIXED_USD_YEAR, VARIABLE_USD_H, 8, utilisation)
    assert own == pytest.approx(usd, abs=5e-4)


@pytest.mark.parametrize(("rent", "utilisation"), [(2.27, 0.8212), (3.99, 0.4602), (6.88, 0.2647)])
def test_break_even_use_at_three_rents(rent: float, utilisation: float) -> None:
    found = breakeven.breakeven_utilisation(FIXED_USD_YEAR, VARIABLE_USD_H, 8, rent)
    assert found == pytest.approx(utilisation, abs=5e-5)


def test_payback_at_full_use_is_nearly_seventeen_months() -> None:
    opex = breakeven.own_opex_usd_per_h(OPEX_USD_YEAR, VARIABLE_USD_H)
    assert opex == pytest.approx(4.9056, abs=5e-5)
    hours = breakeven.payback_hours(CAPEX_USD, 8 * 3.99, opex)
    assert hours == pytest.approx(12_216, abs=0.5)
    assert hours is not None
    assert hours / HOURS_PER_MONTH == pytest.approx(16.7, abs=0.05)


def test_capital_that_costs_nothing_is_spread_evenly() -> None:
    assert breakeven.capital_recovery_factor(0, 4) == 0.25
    assert breakeven.capex_per_year_usd(100, 20, 0, 4) == 20


@pytest.mark.parametrize("cost_of_capital_ratio", [5e-324, 1e-18, 1e-16, 1e-12])
@pytest.mark.parametrize("life_years", [0.25, 4, 50])
def test_capital_that_costs_next_to_nothing_is_spread_evenly_too(
    cost_of_capital_ratio: float, life_years: float
) -> None:
    found = breakeven.capital_recovery_factor(cost_of_capital_ratio, life_years)
    assert found == pytest.approx(1 / life_years, rel=1e-9)


def test_rent_below_running_cost_never_pays_back() -> None:
    assert breakeven.payback_hours(330_000, 4.0, 4.9) is None
    assert breakeven.breakeven_utilisation(126_155, 0.624, 8, 0.05) is None


def test_an_unused_machine_has_no_price_per_used_hour() -> None:
    assert breakeven.own_usd_per_gpu_h(126_155, 0.624, 8, 0) is None


def test_a_life_of_no_years_is_refused() -> None:
    with pytest.raises(ValueError, match="longer than 0 years"):
        breakeven.capital_recovery_factor(0.08, 0)


@given(rent=st.floats(0.2, 20), fixed=st.floats(1_000, 1_000_000))
def test_at_break_even_use_owning_costs_the_rent(rent: float, fixed: float) -> None:
    utilisation = breakeven.breakeven_utilisation(fixed, 0.624, 8, rent)
    assert utilisation is not None
    assert breakeven.own_usd_per_gpu_h(fixed, 0.624, 8, utilisation) == pytest.approx(rent)
