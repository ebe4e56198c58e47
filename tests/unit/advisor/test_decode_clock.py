"""R23: memory-bound engines at full clock on paid power get the reported range; everything else is refused or silent."""

from dataclasses import replace
from typing import Any

import pytest
from advice_builders import FORTNIGHT_H, SITE, engine, engine_hours, evidence, found, gpu, refused
from hardware_builders import claims_nothing, no_saving_cases, work_hours
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from advisor.engine import advise
from advisor.rules.decode_clock import RULE, DecodeClockLimits
from core.activity import Activity
from core.evidence import EngineEvidence, GpuEvidence
from core.finding import Grade

ID = RULE.id
PAYS = replace(SITE, pays_for_power=True)
DECODE: dict[str, Any] = {"power_w": 450.0, "sm_clock_hz": 1.95e9, "energy_j": 450.0 * 3600}


def card(count: int = FORTNIGHT_H, highest_hz: float | None = 1.98e9, **more: Any) -> GpuEvidence:
    found_gpu = gpu(work_hours(count, Activity.MEMORY_BOUND, **(DECODE | more)))
    return replace(found_gpu, identity=replace(found_gpu.identity, max_sm_clock_hz=highest_hz))


def run(serving: EngineEvidence | None = None, on: GpuEvidence | None = None, *, site=PAYS, limits=None):
    chosen = None if limits is None else {ID: limits}
    return advise(evidence([on or card()], [serving or engine()], site=site), rules=(RULE,), limits=chosen)


def test_a_memory_bound_engine_gets_the_reported_range() -> None:
    """450 W × 730 h = 328.5 kWh; 10 to 25 % of it."""
    (finding,) = found(run(), ID)
    kwh = finding.saving.energy_kwh_month
    assert kwh is not None
    assert kwh.p10 == pytest.approx(0.10 * 328.5)
    assert kwh.p50 == pytest.approx(0.175 * 328.5)
    assert kwh.p90 == pytest.approx(0.25 * 328.5)
    assert finding.saving.cash_usd_month is None
    assert finding.grade is Grade.D
    commands = [action.command for action in finding.actions]
    assert commands[0] == "nvidia-smi -i GPU-a -lgc 0,1575"
    assert commands[-1] == "nvidia-smi -i GPU-a -rgc"


def test_the_engines_own_busy_energy_goes_before() -> None:
    half = engine(engine_hours(FORTNIGHT_H, kv_used=0.01, busy_energy_j=225.0 * 3600))
    (finding,) = found(run(half), ID)
    assert finding.saving.energy_kwh_month is not None
    assert finding.saving.energy_kwh_month.p50 == pytest.approx(0.175 * 328.5 / 2)


def test_power_that_is_in_the_price_is_refused_for_all_at_once() -> None:
    (refusal,) = refused(run(site=SITE), ID)
    assert refusal.missing == ("pays_for_power",)


def test_a_saturated_engine_is_not_memory_bound() -> None:
    full = engine(
        engine_hours(FORTNIGHT_H, running=256.0, step_s=0.03, kv_used=0.3, prompt_per_generated=3.0)
    )
    advice = run(full)
    assert not found(advice, ID)
    assert not refused(advice, ID)


def test_an_engine_that_is_no_longer_memory_bound_is_left_alone() -> None:
    hours = list(engine_hours(FORTNIGHT_H, kv_used=0.01))
    hours[-30:] = engine_hours(FORTNIGHT_H, kv_used=0.01, step_s=0.02)[-30:]
    assert not found(run(engine(hours)), ID)


def test_long_prompts_are_refused() -> None:
    reading = engine(engine_hours(FORTNIGHT_H, kv_used=0.01, prompt_per_generated=6.0))
    assert "first token" in refused(run(reading), ID)[0].why


def test_power_at_the_limit_is_refused() -> None:
    assert refused(run(on=card(power_w=680.0)), ID)[0].missing == ("power below the limit",)


def test_a_clock_that_is_low_already_is_silent() -> None:
    advice = run(on=card(sm_clock_hz=1.5e9))
    assert not found(advice, ID)
    assert not refused(advice, ID)


def test_an_unknown_highest_clock_is_refused() -> None:
    assert refused(run(on=card(highest_hz=None)), ID)[0].missing == ("max_sm_clock_hz",)


def test_an_unknown_model_is_refused() -> None:
    (refusal,) = refused(run(engine(model="in-house-9b")), ID)
    assert "model architecture" in refusal.missing


def test_no_engine_is_refused() -> None:
    (refusal,) = refused(advise(evidence([card()], site=PAYS), rules=(RULE,)), ID)
    assert refusal.missing == ("engine metrics",)


def test_half_an_hour_of_requests_is_refused() -> None:
    short = engine(engine_hours(1, kv_used=0.01, seconds=1500.0))
    assert refused(run(short, card(1)), ID)[0].missing == ("busy time",)


def test_gaps_silence_the_rule() -> None:
    holed = engine([hour for i, hour in enumerate(engine_hours(FORTNIGHT_H, kv_used=0.01)) if i % 2])
    assert refused(run(holed), ID)[0].missing == ("samples",)


def test_a_shared_gpu_is_refused() -> None:
    other = engine(name="node-1:8001/0")
    advice = advise(evidence([card()], [engine(), other], site=PAYS), rules=(RULE,))
    assert not found(advice, ID)
    assert refused(advice, ID)


def test_reductions_that_nobody_reported_cannot_be_set() -> None:
    with pytest.raises(ValidationError):
        DecodeClockLimits(reduction_ratio=0.4)


@settings(max_examples=20, deadline=None)
@given(st.floats(0.15, 0.25), st.floats(100, 600))
def test_the_saving_is_a_quarter_of_the_energy_at_most(reduction: float, watts: float) -> None:
    on = card(24, power_w=watts, energy_j=watts * 3600)
    serving = engine(engine_hours(24, kv_used=0.01))
    (finding,) = found(run(serving, on, limits=DecodeClockLimits(reduction_ratio=reduction)), ID)
    kwh = finding.saving.energy_kwh_month
    assert kwh is not None
    assert 0 < kwh.p10 <= kwh.p90 <= 0.25 * watts * 730 / 1000 + 1e-6


@pytest.mark.parametrize("name", no_saving_cases())
def test_nothing_is_claimed_where_nothing_can_be_saved(name: str) -> None:
    advice = advise(no_saving_cases()[name], rules=(RULE,))
    assert claims_nothing(found(advice, ID))
    assert name != "MIG without utilization" or refused(advice, ID)
