"""R22: owned, compute-bound, uncapped cards get the curve; rented time fails the money test; nothing below 0.7."""

from dataclasses import replace
from typing import Any

import pytest
from advice_builders import PRICE, SITE, engine, evidence, found, refused
from hardware_builders import card, claims_nothing, no_saving_cases, work_hour, work_hours
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from advisor.engine import advise
from advisor.rules.power_cap import RULE, PowerCapLimits
from core.activity import Activity
from core.evidence import GpuEvidence
from core.finding import Grade

ID = RULE.id
PAYS = replace(SITE, pays_for_power=True, billing="owned")
OWNED = replace(PRICE, billing="owned")
JOULES: dict[str, Any] = {"energy_j": 650.0 * 3600}


def own(**more: Any) -> GpuEvidence:
    facts: dict[str, Any] = {"price": OWNED}
    return card(work_hours(**JOULES), **(facts | more))


def run(*gpus: GpuEvidence, site=PAYS, limits: PowerCapLimits | None = None):
    chosen = None if limits is None else {ID: limits}
    return advise(evidence(gpus, site=site), rules=(RULE,), limits=chosen)


def test_an_owned_card_saves_seventeen_percent_of_its_energy() -> None:
    """650 W × 730 h = 474.5 kWh; 17 % [11, 25] of it."""
    (finding,) = found(run(own()), ID)
    kwh = finding.saving.energy_kwh_month
    assert kwh is not None
    assert kwh.p50 == pytest.approx(0.17 * 474.5)
    assert kwh.p10 == pytest.approx(0.11 * 474.5)
    assert kwh.p90 == pytest.approx(0.25 * 474.5)
    assert finding.saving.cash_usd_month is None
    assert finding.saving.capacity_gpu_h_month is None
    assert finding.grade is Grade.D
    assert finding.evidence["cap_w"] == pytest.approx(552.5)
    assert finding.actions[0].command == "nvidia-smi -i GPU-a -pl 552"


def test_the_money_test_is_shown_to_the_cent() -> None:
    (finding,) = found(run(own()), ID)
    assert round(finding.evidence["energy_saved_usd_month"], 2) == round(0.17 * 474.5 * 0.12 * 1.3, 2)
    assert round(finding.evidence["time_lost_usd_month"], 2) == round(0.067 * 730 * 2.5, 2)
    assert finding.evidence["net_usd_month"] < 0
    assert finding.state == "worth it where time is slack"


def test_rented_time_fails_the_money_test_and_says_by_how_much() -> None:
    advice = run(own(price=PRICE))
    assert not found(advice, ID)
    (refusal,) = refused(advice, ID)
    assert refusal.missing == ("time to spare",)
    assert "122.28 USD of GPU time" in refusal.why


def test_rented_time_that_nobody_waits_for_passes_it() -> None:
    (finding,) = found(run(own(price=PRICE), limits=PowerCapLimits(time_value_ratio=0.0)), ID)
    assert finding.state == "pays by itself"


def test_power_that_is_in_the_price_is_refused_for_all_at_once() -> None:
    (refusal,) = refused(run(own(), own(uuid="GPU-b"), site=SITE), ID)
    assert refusal.missing == ("pays_for_power",)
    assert "2 GPUs without" in refusal.why


def test_an_unknown_tariff_is_refused() -> None:
    (refusal,) = refused(run(own(), site=replace(PAYS, tariff_usd_per_kwh=None)), ID)
    assert refusal.missing == ("tariff_usd_per_kwh",)


def test_a_card_under_a_cap_already_is_refused() -> None:
    capped = card(work_hours(**JOULES, power_limit_w=500.0), price=OWNED)
    assert refused(run(capped), ID)[0].missing == ("power without the cap",)


def test_a_card_that_takes_no_lower_limit_is_refused() -> None:
    stiff = own(health={"power_limit_min_w": 645.0})
    assert refused(run(stiff), ID)[0].missing == ("a limit below its draw",)


def test_the_boards_least_limit_is_kept() -> None:
    (finding,) = found(run(own(health={"power_limit_min_w": 600.0})), ID)
    assert finding.evidence["cap_w"] == 600.0


@pytest.mark.parametrize("activity", [Activity.MEMORY_BOUND, Activity.MIXED, Activity.STARVED])
def test_the_curve_is_of_compute_bound_work_only(activity: Activity) -> None:
    assert not found(run(card(work_hours(activity=activity, **JOULES), price=OWNED)), ID)


def test_an_engine_has_a_latency_promise() -> None:
    served = evidence([own()], [engine()], site=PAYS)
    assert not found(advise(served, rules=(RULE,)), ID)


def test_work_without_counters_is_refused_for_all_at_once() -> None:
    (refusal,) = refused(run(card(work_hours(activity=Activity.BUSY), price=OWNED)), ID)
    assert "sm_active_ratio" in refusal.missing


def test_unknown_power_is_refused_by_name() -> None:
    blind = card(work_hours(power_w=None, energy_j=None), price=OWNED)
    assert set(refused(run(blind), ID)[0].missing) == {"power_w", "energy_j"}


def test_half_an_hour_is_refused() -> None:
    part = replace(work_hour(), covered_s=1500.0, active_s=1500.0, seconds={Activity.COMPUTE_BOUND: 1500.0})
    assert refused(run(card([part], price=OWNED)), ID)[0].missing == ("time",)


def test_gaps_silence_the_rule() -> None:
    holed = card([hour for i, hour in enumerate(work_hours(**JOULES)) if i % 2], price=OWNED)
    advice = run(holed)
    assert not found(advice, ID)
    assert refused(advice, ID)[0].missing == ("samples",)


def test_a_cap_below_seven_tenths_cannot_be_set() -> None:
    with pytest.raises(ValidationError):
        PowerCapLimits(cap_ratio=0.65)


@settings(max_examples=20, deadline=None)
@given(st.floats(0.7, 0.97), st.floats(100, 690))
def test_the_saving_is_never_more_than_the_energy(ratio: float, watts: float) -> None:
    hours = work_hours(24, power_w=watts, energy_j=watts * 3600)
    (finding,) = found(run(card(hours, price=OWNED), limits=PowerCapLimits(cap_ratio=ratio)), ID)
    kwh = finding.saving.energy_kwh_month
    assert kwh is not None
    assert 0 <= kwh.p10 <= kwh.p90 <= watts * 730 / 1000


@pytest.mark.parametrize("name", no_saving_cases())
def test_nothing_is_claimed_where_nothing_can_be_saved(name: str) -> None:
    advice = advise(no_saving_cases()[name], rules=(RULE,))
    assert claims_nothing(found(advice, ID))
    assert name != "MIG without utilization" or refused(advice, ID)
