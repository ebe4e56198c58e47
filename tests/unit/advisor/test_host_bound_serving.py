"""R15: a step that nothing on the GPU explains, told from every other reason for a slow step."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from advice_builders import (
    FORTNIGHT_H,
    SETTINGS,
    engine_hour,
    engine_hours,
    evidence,
    gpu,
    gpu_hour,
    use,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from serving_builders import fleet, judge, replica

from advisor.rules.host_bound_serving import RULE, HostBoundServingLimits
from core.activity import Activity
from core.evidence import EngineEvidence, Evidence
from core.finding import Finding, Grade, NotEvaluated
from core.hours import GpuHour

FIXED_S = 1.08 * 2 * 8_030_261_248 / 3.35e12 + 2.0e-3
EACH_S = 500 * 131_072 / 3.35e12 + 42e-6 + 1.35 * 2 * 8_030_261_248 * 2 / 989e12
MODEL_S = FIXED_S + 8 * EACH_S
EAGER = {**SETTINGS, "enforce_eager": "true"}
SMALL = "facebook/opt-1.3b"


def run(
    engine: EngineEvidence, limits: HostBoundServingLimits | None = None
) -> tuple[list[Finding], list[NotEvaluated]]:
    return judge(RULE, fleet(engine), limits)


def with_gpu(engine: EngineEvidence, hours: Sequence[GpuHour], **more: Any) -> Evidence:
    return evidence([gpu(hours, uuid="GPU-1", **more)], [engine])


def same_hours(count: int = FORTNIGHT_H, **more: Any) -> list[GpuHour]:
    return [gpu_hour(i, Activity.BUSY, **more) for i in range(count)]


def slow(**more: Any) -> EngineEvidence:
    return replica(1, **{"step_s": 0.020, **more})


def test_a_step_far_above_the_formula_is_found_with_its_bound() -> None:
    (finding,), none = run(slow())
    assert not none
    assert finding.cause == "slow-steps"
    assert finding.evidence["step_model_s"] == pytest.approx(MODEL_S, abs=1e-6)
    assert finding.evidence["step_saved_at_most_ratio_p50"] == pytest.approx(1 - MODEL_S / 0.020, abs=1e-5)
    assert finding.evidence["step_saved_at_most_ratio_p10"] == pytest.approx(
        1 - 1.085 * MODEL_S / 0.020, abs=1e-5
    )
    assert finding.saving.is_empty
    assert finding.no_figure is not None
    assert finding.no_figure.startswith("No figure, because")
    assert finding.evidence["coverage_ratio"] == 1.0
    assert finding.chart["threshold"] == pytest.approx(1e3 * 1.8 * MODEL_S)


def test_without_any_sign_of_the_host_it_is_only_likely() -> None:
    (finding,), _ = run(slow())
    assert finding.grade is Grade.D
    assert "likely" in finding.state


def test_eager_mode_is_named_with_the_flag_to_drop() -> None:
    (finding,), _ = run(slow(settings=EAGER))
    assert finding.cause == "cuda-graphs-off"
    assert finding.grade is Grade.C
    assert "--enforce-eager" in finding.actions[0].text
    assert finding.actions[0].command is not None
    assert "--no-enforce-eager" in finding.actions[0].command


def test_sglang_gets_its_own_flag() -> None:
    (finding,), _ = run(slow(settings=EAGER, kind="sglang"))
    assert "--disable-cuda-graph" in finding.actions[0].text
    assert "vllm" not in " ".join(action.command or "" for action in finding.actions)


def test_a_thread_at_its_limit_and_low_power_support_it() -> None:
    hours = same_hours(power_w=200.0, power_limit_w=700.0)
    held = use(cpu_thread_ratio=0.99)
    (finding,), _ = judge(RULE, with_gpu(slow(), hours, uses=(held,)))
    assert finding.grade is Grade.C
    assert finding.state == "host-bound"
    assert "99 % of a core" in finding.because
    assert "29 % of their power limit" in finding.because


def test_precision_is_never_the_advice() -> None:
    for engine in (slow(), slow(settings=EAGER)):
        (finding,), _ = run(engine)
        words = " ".join(f"{action.text} {action.command}" for action in finding.actions).lower()
        assert "quanti" not in words
        assert "fp8" not in words


def test_a_healthy_step_is_silent() -> None:
    assert run(replica(1)) == ([], [])


def test_a_saturated_engine_is_silent() -> None:
    assert run(replica(1, running=256.0, kv_used=0.32, step_s=0.036)) == ([], [])


def small_model(busy_ratio: float) -> Evidence:
    engine = replica(1, model=SMALL, step_s=0.0033)
    return with_gpu(engine, same_hours(busy_ratio=busy_ratio))


def test_short_steps_of_a_small_model_with_gaps_between_kernels() -> None:
    (finding,), _ = judge(RULE, small_model(0.75))
    assert finding.cause == "small-steps"
    assert finding.saving.is_empty
    assert "second replica" in finding.actions[-1].text
    assert finding.evidence["overhead_ratio"] == pytest.approx((2.0e-3 + 8 * 42e-6) / 0.0033, abs=1e-5)
    assert finding.evidence["busy_ratio"] == 0.75


def test_short_steps_without_gaps_are_silent() -> None:
    assert judge(RULE, small_model(0.95)) == ([], [])


def test_gaps_between_requests_are_not_gaps_between_kernels() -> None:
    """An engine idle for half of each hour: its GPU's mean says nothing of a step, and no latency is published."""
    hours = [engine_hour(i, step_s=0.0033, kv_used=0.01, busy_s=1800.0) for i in range(FORTNIGHT_H)]
    found, (refusal,) = judge(RULE, with_gpu(replica(1, hours, model=SMALL), same_hours(busy_ratio=0.4)))
    assert not found
    assert "steady load" in refusal.missing


def test_a_published_latency_beats_a_gauge_read_between_requests() -> None:
    hours = [
        engine_hour(i, step_s=0.020, kv_used=0.01, itl_sum_s=8.0, itl_count=1000.0)
        for i in range(FORTNIGHT_H)
    ]
    assert run(replica(1, hours)) == ([], [])


@pytest.mark.parametrize(
    ("settings_", "missing"),
    [
        ({**SETTINGS, "speculative_method": "ngram"}, "steps per second"),
        ({**SETTINGS, "cpu_offload_gb": "10"}, "weights on the GPU"),
    ],
)
def test_settings_that_explain_a_slow_step_refuse(settings_: dict[str, str], missing: str) -> None:
    found, (refusal,) = run(slow(settings=settings_))
    assert not found
    assert refusal.missing == (missing,)


@pytest.mark.parametrize(
    ("more", "missing"),
    [
        ({"slowed_thermal_s": 1000.0}, "steady clocks"),
        ({"sm_active_ratio": 0.9}, "consistent counters"),
        ({"dram_active_ratio": 0.6}, "consistent counters"),
    ],
)
def test_what_the_gpu_says_against_it_refuses(more: dict[str, Any], missing: str) -> None:
    found, (refusal,) = judge(RULE, with_gpu(slow(), same_hours(**more)))
    assert not found
    assert refusal.missing == (missing,)


def test_a_shared_gpu_is_refused() -> None:
    found, none = judge(RULE, fleet(slow(), replica(2, uuid="GPU-1")))
    assert not found
    assert {item.missing for item in none} == {("a GPU of its own",)}


def test_an_unknown_model_is_refused() -> None:
    found, (refusal,) = run(slow(model="acme/secret-7"))
    assert not found
    assert "model architecture" in refusal.missing


def test_thin_data_and_gaps_are_refused() -> None:
    hour = engine_hours(1, step_s=0.020, kv_used=0.01, seconds=300.0)
    assert run(replica(1, hour))[1][0].missing == ("busy time",)
    holed = slow()
    assert run(replace(holed, hours=holed.hours[::2]))[1][0].missing == ("samples",)


def test_a_gap_of_twenty_minutes_changes_nothing() -> None:
    hours = list(slow().hours)
    hours[100] = engine_hour(100, step_s=0.020, kv_used=0.01, seconds=2400.0)
    (finding,), _ = run(replica(1, hours))
    assert finding.cause == "slow-steps"


def test_what_was_so_and_is_no_more_is_silent() -> None:
    hours = [engine_hour(i, step_s=0.020 if i < 200 else 0.0081, kv_used=0.01) for i in range(FORTNIGHT_H)]
    assert run(replica(1, hours))[0] == []


def test_no_engine_is_said() -> None:
    found, (refusal,) = judge(RULE, evidence([gpu()]))
    assert not found
    assert refusal.missing == ("engine metrics",)


@settings(max_examples=25, deadline=None)
@given(factor=st.floats(0.8, 6.0))
def test_it_fires_exactly_above_the_factor_and_the_bound_stays_a_share(factor: float) -> None:
    found, _ = run(replica(1, count=48, step_s=factor * MODEL_S))
    assert bool(found) == (factor > 1.8)
    for finding in found:
        low, middle, high = (finding.evidence[f"step_saved_at_most_ratio_{p}"] for p in ("p10", "p50", "p90"))
        assert 0 <= low <= middle <= high < 1
