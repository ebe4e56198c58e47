"""R24: heat, brakes and lowered limits fire; the power cap at full load does not; the loss follows the clock."""

from dataclasses import replace

import pytest
from advice_builders import FORTNIGHT_H, evidence, found, refused
from hardware_builders import card, claims_nothing, no_saving_cases, work_hour, work_hours
from hypothesis import given
from hypothesis import strategies as st

from advisor.engine import advise
from advisor.rules.throttled import RULE
from core.activity import Activity
from core.evidence import GpuEvidence
from core.finding import Grade

ID = RULE.id
HOT = {"slowed_thermal_s": 1800.0, "throttled_s": 1700.0, "sm_clock_hz": 1.4e9, "temperature_max_c": 89.0}


def hot(activity: Activity = Activity.COMPUTE_BOUND, free_h: int = FORTNIGHT_H // 2) -> GpuEvidence:
    """Free for the first hours, hot since."""
    rest = work_hours(FORTNIGHT_H - free_h, activity, start=free_h, **HOT)
    return card([*work_hours(free_h, activity), *rest])


def run(*gpus: GpuEvidence):
    return advise(evidence(gpus), rules=(RULE,))


def test_a_hot_card_loses_what_its_clock_loses() -> None:
    """1 − 1.40/1.75 = 20 % of half a month of 730 h is 73 h."""
    (finding,) = found(run(hot()), ID)
    assert finding.cause == "heat"
    assert finding.saving.capacity_gpu_h_month is not None
    assert finding.saving.capacity_gpu_h_month.p50 == pytest.approx(73.0)
    assert finding.saving.cash_usd_month is None
    assert finding.grade is Grade.C
    assert finding.evidence["slowed_ratio"] == 0.5
    assert finding.evidence["temperature_max_c"] == 89.0


def test_memory_bound_work_loses_little_and_says_so() -> None:
    (finding,) = found(run(hot(Activity.MEMORY_BOUND)), ID)
    assert finding.saving.is_empty
    assert "No capacity figure, because it may save nothing: 0.0 GPU-h to" in (finding.no_figure or "")
    assert "the loss is small" in finding.because


def test_without_a_free_hour_there_is_no_figure() -> None:
    (finding,) = found(run(hot(free_h=0)), ID)
    assert finding.saving.is_empty
    assert "nothing held back" in (finding.no_figure or "")


def test_the_power_cap_at_full_load_is_normal() -> None:
    assert not found(run(card(work_hours(slowed_power_s=3400.0))), ID)


def test_a_lowered_limit_that_bites_is_told() -> None:
    hours = work_hours(slowed_power_s=3400.0, power_limit_w=450.0, power_w=448.0, sm_clock_hz=1.3e9)
    (finding,) = found(run(card(hours)), ID)
    assert finding.cause == "limit"
    assert any(action.command and "-pl 700" in action.command for action in finding.actions)


def test_a_lowered_limit_that_never_bites_is_no_finding() -> None:
    assert not found(run(card(work_hours(power_limit_w=450.0, power_w=300.0))), ID)


def test_event_bits_count_where_the_driver_has_no_counters() -> None:
    hours = work_hours(slowed_thermal_s=None, throttled_s=600.0)
    assert found(run(card(hours)), ID)


def test_a_card_that_has_cooled_down_is_left_alone() -> None:
    hours = [*work_hours(300, **HOT), *work_hours(FORTNIGHT_H - 300, start=300)]
    assert not found(run(card(hours)), ID)


def test_cards_without_event_reasons_are_refused_together() -> None:
    blind = work_hours(slowed_thermal_s=None, throttled_s=None, slowed_power_s=None)
    advice = run(card(blind), card(blind, uuid="GPU-b"))
    (refusal,) = refused(advice, ID)
    assert "2 GPUs" in refusal.why


def test_half_an_hour_of_heat_is_refused() -> None:
    short = replace(
        work_hour(**HOT), covered_s=1500.0, active_s=1500.0, seconds={Activity.COMPUTE_BOUND: 1500.0}
    )
    (refusal,) = refused(run(card([short])), ID)
    assert refusal.missing == ("time",)


def test_gaps_silence_the_rule() -> None:
    holed = [hour for index, hour in enumerate(work_hours(**HOT)) if index % 2]
    advice = run(card(holed))
    assert not found(advice, ID)
    assert refused(advice, ID)[0].missing == ("samples",)


@given(st.floats(0.5e9, 1.75e9), st.floats(181.0, 3600.0))
def test_the_saving_never_exceeds_the_held_hours(clock_hz: float, held_s: float) -> None:
    hours = [*work_hours(24), *work_hours(24, start=24, sm_clock_hz=clock_hz, slowed_thermal_s=held_s)]
    for finding in found(run(card(hours)), ID):
        if finding.saving.capacity_gpu_h_month is not None:
            assert finding.saving.capacity_gpu_h_month.p10 >= 0
            assert finding.saving.capacity_gpu_h_month.p90 <= 365.0 * 1.2


@pytest.mark.parametrize("name", no_saving_cases())
def test_nothing_is_claimed_where_nothing_can_be_saved(name: str) -> None:
    advice = advise(no_saving_cases()[name], rules=(RULE,))
    assert claims_nothing(found(advice, ID))
    assert name != "MIG without utilization" or refused(advice, ID)
