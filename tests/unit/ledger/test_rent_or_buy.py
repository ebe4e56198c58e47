"""Rent or buy: the worked example of the cost model, every verdict, and refusals."""

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.breakeven import capital_recovery_factor
from core.evidence import Price, Site
from ledger.rent_or_buy import Verdict, capex_per_year, evaluate, of_site
from ledger.rent_or_buy_inputs import RentOrBuyInputs

EXAMPLE = RentOrBuyInputs(
    capex_usd=330_000.0,
    gpu_count=8,
    life_years=4.0,
    cost_of_capital_ratio=0.08,
    residual_ratio=0.15,
    maintenance_ratio=0.05,
    staff_usd_per_year=18_000.0,
    idle_kw=2.2,
    active_kw=6.2,
    pue=1.3,
    tariff_usd_per_kwh=0.12,
    rent_usd_per_gpu_hour=3.99,
    utilisation=1.0,
)


def test_the_worked_examples_yearly_terms() -> None:
    assert capital_recovery_factor(0.08, 4) == pytest.approx(0.30192, abs=5e-6)
    capex_year = capex_per_year(EXAMPLE, 330_000)
    opex_year = EXAMPLE.opex_per_year()
    assert opex_year is not None
    assert capex_year == pytest.approx(88_648.79, abs=0.005)
    assert opex_year - 0.05 * 330_000 - 18_000 == pytest.approx(3_006.43, abs=0.005)
    assert capex_year + opex_year == pytest.approx(126_155.22, abs=0.01)
    assert EXAMPLE.var_usd_per_h() == pytest.approx(0.624)


@pytest.mark.parametrize(
    ("use", "own"), [(0.2, 9.079), (0.4, 4.578), (0.6, 3.078), (0.8, 2.328), (1.0, 1.878)]
)
def test_the_worked_examples_cost_of_an_owned_gpu_hour(use: float, own: float) -> None:
    result = evaluate(replace(EXAMPLE, utilisation=use))
    assert result.own_usd_per_gpu_h is not None
    assert float(result.own_usd_per_gpu_h) == pytest.approx(own, abs=0.0005)


@pytest.mark.parametrize(("rent", "breakeven"), [(2.27, 0.8212), (3.99, 0.4602), (6.88, 0.2647)])
def test_the_worked_examples_break_even_use(rent: float, breakeven: float) -> None:
    result = evaluate(replace(EXAMPLE, rent_usd_per_gpu_hour=rent))
    assert result.breakeven_utilisation == pytest.approx(breakeven, abs=5e-5)
    assert result.breakeven_hours_per_day == pytest.approx(24 * breakeven, abs=2e-3)


def test_the_worked_examples_payback() -> None:
    result = evaluate(EXAMPLE)
    assert result.verdict is Verdict.BUY
    assert result.payback_months == pytest.approx(16.7, abs=0.05)
    assert result.payback_months is not None
    assert result.payback_months * 730 == pytest.approx(12_216, abs=1)
    assert result.rent_usd_per_gpu_h == Decimal("3.99")


def test_the_same_running_cost_in_one_figure_pays_back_alike() -> None:
    lump = RentOrBuyInputs(
        capex_usd=330_000.0, own_opex_usd_per_hour=4.9056, rent_usd_per_hour=8 * 3.99, utilisation=1.0
    )
    result = evaluate(lump)
    assert result.missing == ()
    assert result.payback_months == pytest.approx(16.7, abs=0.05)
    assert result.verdict is Verdict.BUY


def test_below_the_break_even_use_renting_is_the_answer() -> None:
    result = evaluate(replace(EXAMPLE, utilisation=0.3))
    assert result.verdict is Verdict.RENT
    assert "46 % of all hours" in result.reason
    assert result.own_usd_per_year is not None
    assert result.rent_usd_per_year is not None
    assert result.own_usd_per_year > result.rent_usd_per_year


def test_above_full_time_renting_wins_at_any_use() -> None:
    result = evaluate(replace(EXAMPLE, rent_usd_per_gpu_hour=1.0, utilisation=None))
    assert result.verdict is Verdict.RENT
    assert result.breakeven_utilisation is not None
    assert result.breakeven_utilisation > 1
    assert "any use" in result.reason


def test_running_cost_above_the_rent_is_never() -> None:
    result = evaluate(replace(EXAMPLE, own_opex_usd_per_hour=40.0))
    assert result.verdict is Verdict.NEVER
    assert result.payback_months is None
    known = evaluate(
        RentOrBuyInputs(capex_usd=1e5, own_opex_usd_per_hour=20.0, rent_usd_per_hour=20.0, gpu_count=8)
    )
    assert known.verdict is Verdict.NEVER


def test_a_break_even_inside_the_measured_spread_is_a_mix() -> None:
    spread = replace(EXAMPLE, utilisation=0.5, utilisation_p25=0.3, utilisation_p75=0.7)
    result = evaluate(spread)
    assert result.verdict is Verdict.MIX
    assert result.firm is False
    assert evaluate(replace(spread, utilisation_p25=0.48)).verdict is Verdict.BUY
    assert evaluate(replace(spread, utilisation=0.4, utilisation_p75=0.45)).verdict is Verdict.RENT


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ({"capex_usd": None}, ("capex_usd",)),
        ({"tariff_usd_per_kwh": None}, ("tariff_usd_per_kwh",)),
        ({"rent_usd_per_gpu_hour": None}, ("rent_usd_per_gpu_hour",)),
        ({"utilisation": None}, ("utilisation",)),
        ({"capex_usd": None, "rent_usd_per_gpu_hour": None}, ("capex_usd", "rent_usd_per_gpu_hour")),
    ],
)
def test_a_missing_input_is_named_and_there_is_no_verdict(
    change: dict[str, None], missing: tuple[str, ...]
) -> None:
    result = evaluate(replace(EXAMPLE, **change))
    assert result.verdict is Verdict.UNKNOWN
    assert result.missing == missing
    assert result.firm is None
    assert result.reason


def test_figures_that_do_not_need_the_missing_input_are_given_all_the_same() -> None:
    without_use = evaluate(replace(EXAMPLE, utilisation=None))
    assert without_use.breakeven_utilisation == pytest.approx(0.4602, abs=5e-5)
    assert without_use.payback_months == pytest.approx(16.7, abs=0.05)
    assert without_use.assumptions["own_at_utilisation"] == 1.0
    assert (without_use.own_usd_per_year, without_use.rent_usd_per_year) == (None, None)
    without_rent = evaluate(replace(EXAMPLE, rent_usd_per_gpu_hour=None))
    assert without_rent.own_usd_per_gpu_h == evaluate(EXAMPLE).own_usd_per_gpu_h
    assert (without_rent.rent_usd_per_gpu_h, without_rent.payback_months) == (None, None)
    assert not without_rent.ranges
    without_capex = evaluate(replace(EXAMPLE, capex_usd=None))
    assert (without_capex.own_usd_per_gpu_h, without_capex.rent_usd_per_gpu_h) == (None, Decimal("3.99"))


def test_ranges_run_over_rent_life_and_measured_use() -> None:
    result = evaluate(replace(EXAMPLE, utilisation=0.5, utilisation_p25=0.3, utilisation_p75=0.7))
    assert (result.ranges["rent_usd_per_gpu_h"].low, result.ranges["rent_usd_per_gpu_h"].high) == (
        Decimal("2.793"),
        Decimal("4.788"),
    )
    assert (result.ranges["life_years"].low, result.ranges["life_years"].high) == (3.0, 5.0)
    assert (result.ranges["utilisation"].low, result.ranges["utilisation"].high) == (0.3, 0.7)
    for name, value in (
        ("breakeven_utilisation", result.breakeven_utilisation),
        ("payback_months", result.payback_months),
        ("own_usd_per_gpu_h", result.own_usd_per_gpu_h),
    ):
        spread = result.ranges[name]
        assert spread.low is not None
        assert spread.high is not None
        assert value is not None
        assert spread.low < value < spread.high


def test_a_corner_that_is_never_paid_back_leaves_the_high_end_open() -> None:
    result = evaluate(replace(EXAMPLE, own_opex_usd_per_hour=24.0))
    assert result.payback_months is not None
    assert result.ranges["payback_months"].low is not None
    assert result.ranges["payback_months"].high is None


def test_a_verdict_is_firm_when_every_corner_agrees() -> None:
    assert evaluate(EXAMPLE).firm is True
    assert evaluate(replace(EXAMPLE, utilisation=0.5)).firm is False
    assert evaluate(replace(EXAMPLE, utilisation=0.1)).firm is True


def test_a_colo_fee_that_holds_the_power_is_not_charged_twice() -> None:
    space = replace(EXAMPLE, colo_usd_per_kw_month=200.0)
    all_in = replace(space, colo_includes_power=True, tariff_usd_per_kwh=None)
    assert space.opex_per_year() == pytest.approx(126_155.22 - 88_648.79 + 200 * 6.2 * 12, abs=0.02)
    assert all_in.opex_per_year() == pytest.approx(16_500 + 18_000 + 200 * 6.2 * 12)
    assert all_in.var_usd_per_h() == 0.0
    assert all_in.missing() == ()


def test_without_interest_the_capex_is_spread_evenly() -> None:
    assert capital_recovery_factor(0.0, 4) == 0.25
    plain = replace(EXAMPLE, cost_of_capital_ratio=0.0)
    assert capex_per_year(plain, 330_000) == pytest.approx(330_000 * 0.85 / 4)


def test_assumptions_name_every_input_and_every_term_left_out() -> None:
    assumptions = evaluate(EXAMPLE).assumptions
    assert assumptions["capex_usd"] == 330_000.0
    for term in ("tax", "storage_usd_per_year", "egress_usd_per_year", "migration_usd", "availability_ratio"):
        assert term in assumptions


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"utilisation": 1.2}, "utilisation is 1.2: give a value from 0 to 1"),
        ({"life_years": 0.0}, "life_years is 0.0"),
        ({"capex_usd": float("nan")}, "capex_usd is nan"),
        ({"gpu_count": 0}, "gpu_count is 0"),
        ({"active_kw": 1.0}, "is below idle_kw"),
        ({"rent_usd_per_hour": 30.0}, "give one"),
        ({"utilisation_p25": 0.8, "utilisation_p75": 0.2}, "swap them"),
    ],
)
def test_inputs_that_cannot_be_are_refused_by_name(change: dict[str, float], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        replace(EXAMPLE, **change)


def test_a_site_without_a_purchase_price_is_not_evaluated() -> None:
    site = Site(
        tariff_usd_per_kwh=0.12,
        pue=1.3,
        host_share_ratio=0.3,
        carbon_g_per_kwh=None,
        pays_for_power=False,
        billing="on_demand",
    )
    price = Price(Decimal("3.99"), "your price of 2026-09-01", "on_demand", 8, "2026-09-01", from_user=True)
    result = evaluate(of_site(site, price, utilisation=0.6))
    assert (result.verdict, result.missing) == (Verdict.UNKNOWN, ("capex_usd",))
    bought = evaluate(of_site(replace(site, own_capex_usd=330_000.0), price, utilisation=0.6))
    assert bought.verdict is Verdict.BUY
    assert bought.breakeven_utilisation == pytest.approx(0.4602, abs=5e-5)
    assert bought.assumptions["rent_basis"] == "your price of 2026-09-01"
    assert evaluate(of_site(site, None, utilisation=None)).missing == (
        "capex_usd",
        "rent_usd_per_gpu_hour",
        "utilisation",
    )


@given(
    capex=st.floats(1e4, 1e7),
    rent=st.floats(0.05, 30),
    use=st.floats(0.01, 1),
    opex=st.one_of(st.none(), st.floats(0, 100)),
)
def test_at_the_break_even_use_both_cost_the_same_and_the_verdict_is_the_cheaper(
    capex: float, rent: float, use: float, opex: float | None
) -> None:
    inputs = replace(
        EXAMPLE,
        capex_usd=capex,
        rent_usd_per_gpu_hour=rent,
        utilisation=use,
        own_opex_usd_per_hour=opex,
    )
    result = evaluate(inputs)
    assert result.own_usd_per_year is not None
    assert result.rent_usd_per_year is not None
    if result.verdict is Verdict.BUY:
        assert result.own_usd_per_year <= result.rent_usd_per_year + Decimal("0.01")
    else:
        assert result.own_usd_per_year >= result.rent_usd_per_year - Decimal("0.01")
    breakeven = result.breakeven_utilisation
    if breakeven is not None and 0.01 < breakeven <= 1:
        there = evaluate(replace(inputs, utilisation=breakeven))
        assert there.own_usd_per_gpu_h is not None
        assert float(there.own_usd_per_gpu_h) == pytest.approx(rent, rel=1e-4)


def test_the_purchase_may_be_given_in_parts_and_each_is_shown() -> None:
    parts = {
        "capex_gpus_usd": 250_000.0,
        "capex_chassis_usd": 40_000.0,
        "capex_network_usd": 20_000.0,
        "capex_storage_usd": 12_000.0,
        "capex_installation_usd": 8_000.0,
    }
    split = replace(EXAMPLE, capex_usd=None, **parts)
    result = evaluate(split)
    assert result.own_usd_per_gpu_h == evaluate(EXAMPLE).own_usd_per_gpu_h
    assert {name: result.assumptions[name] for name in parts} == parts
    assert result.assumptions["capex_usd"] == 330_000.0
    assert evaluate(replace(split, capex_usd=330_000.0)) == result
    with pytest.raises(ValueError, match=r"capex_usd is 300000\.00 and capex_gpus_usd .* come to 330000\.00"):
        replace(split, capex_usd=300_000.0)
    with pytest.raises(ValueError, match="capex_gpus_usd come to 0"):
        RentOrBuyInputs(capex_gpus_usd=0.0)


def test_a_capex_of_nothing_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"capex_usd is 0\.0: give a value from 1"):
        replace(EXAMPLE, capex_usd=0.0)


def test_a_node_that_is_down_at_times_needs_more_use_to_pay() -> None:
    up, often_down = evaluate(EXAMPLE), evaluate(replace(EXAMPLE, availability_ratio=0.9))
    assert up.breakeven_utilisation is not None
    assert often_down.breakeven_utilisation == pytest.approx(up.breakeven_utilisation / 0.9)
    assert up.payback_months is not None
    assert often_down.payback_months is not None
    assert often_down.payback_months > up.payback_months
    at_break_even = evaluate(
        replace(EXAMPLE, availability_ratio=0.9, utilisation=often_down.breakeven_utilisation)
    )
    assert at_break_even.own_usd_per_year is not None
    assert at_break_even.rent_usd_per_year is not None
    assert float(at_break_even.own_usd_per_year) == pytest.approx(float(at_break_even.rent_usd_per_year))


def test_why_there_is_no_use_is_part_of_the_answer() -> None:
    result = evaluate(
        replace(EXAMPLE, utilisation=None, utilisation_basis="3.2 weeks measured, 4 are needed")
    )
    assert result.verdict is Verdict.UNKNOWN
    assert result.reason.endswith("; 3.2 weeks measured, 4 are needed.")
