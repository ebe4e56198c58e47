"""What rent-or-buy rests on: each assumption alone, three cases, the curve by use, the dearest purchase."""

from dataclasses import replace

import pytest

from ledger.rent_or_buy import evaluate
from ledger.rent_or_buy_inputs import RentOrBuyInputs
from ledger.rent_or_buy_swings import (
    by_use,
    cases,
    dearest_purchase_usd,
    saves_usd_per_year,
    swings,
)

NODE = RentOrBuyInputs(
    capex_usd=330_000.0,
    tariff_usd_per_kwh=0.12,
    rent_usd_per_gpu_hour=3.99,
    utilisation=0.6,
    utilisation_p25=0.4,
    utilisation_p75=0.8,
)
"""The worked example of docs/rent-or-buy.md, at 60 % use."""


def test_the_worked_example_saves_what_its_two_prices_tell() -> None:
    hours = 8 * 8760 * 0.6
    found = saves_usd_per_year(NODE)
    assert found == pytest.approx((3.99 - 3.0779) * hours, rel=1e-3)


def test_assumptions_stand_by_how_far_they_move_the_answer() -> None:
    found = swings(NODE)
    assert [one.span for one in found] == sorted((one.span for one in found), reverse=True)
    assert {found[0].name, found[1].name} == {"utilisation", "rent_usd_per_gpu_hour"}
    rent = next(one for one in found if one.name == "rent_usd_per_gpu_hour")
    assert (rent.low, rent.high) == pytest.approx((0.7 * 3.99, 1.2 * 3.99))
    assert rent.turns
    assert rent.saves_at_low < 0 < rent.saves_at_high


def test_an_assumption_that_changes_nothing_is_not_listed() -> None:
    flat = replace(NODE, own_opex_usd_per_hour=4.9)
    names = {one.name for one in swings(flat)}
    assert not names & {"maintenance_ratio", "staff_usd_per_year", "pue", "tariff_usd_per_kwh"}
    assert "capex_usd" in names


def test_the_dearest_purchase_is_where_owning_and_renting_cost_the_same() -> None:
    most = dearest_purchase_usd(replace(NODE, capex_usd=None))
    assert most is not None
    assert most > 330_000
    at_it = replace(NODE, capex_usd=most, utilisation_p25=None, utilisation_p75=None)
    assert saves_usd_per_year(at_it) == pytest.approx(0, abs=0.5)
    assert evaluate(at_it).breakeven_utilisation == pytest.approx(0.6, abs=1e-6)


def test_no_price_is_low_enough_where_the_rent_is_below_running_cost() -> None:
    assert dearest_purchase_usd(replace(NODE, rent_usd_per_gpu_hour=0.05)) is None


def test_cases_go_from_against_to_for() -> None:
    against, middle, favour = cases(NODE)
    assert (against.inputs.utilisation, against.inputs.life_years) == (0.4, 3.0)
    assert (favour.inputs.utilisation, favour.inputs.life_years) == (0.8, 5.0)
    saved = [one.saves_usd_per_year for one in (against, middle, favour)]
    assert None not in saved
    assert saved == sorted(saved, key=lambda one: one or 0.0)


def test_without_a_use_nothing_is_moved() -> None:
    bare = replace(NODE, utilisation=None, utilisation_p25=None, utilisation_p75=None)
    assert swings(bare) == ()
    assert cases(bare) == ()
    assert dearest_purchase_usd(bare) is None


def test_an_hour_costs_less_the_more_the_machine_is_wanted() -> None:
    points = by_use(NODE)
    costs = [one.own for one in points]
    assert costs == sorted(costs, reverse=True)
    assert points[-1].own == pytest.approx(1.878, abs=1e-3)
    assert all(one.low <= one.own <= one.high for one in points)
    assert by_use(replace(NODE, capex_usd=None)) == ()
