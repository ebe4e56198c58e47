"""R06: a classification by engine counters, by GPU counters, or as likely by utilization; never a saving."""

from dataclasses import replace
from typing import Any

import pytest
from advice_builders import (
    FORTNIGHT_H,
    SETTINGS,
    engine,
    engine_hour,
    engine_hours,
    evidence,
    found,
    gpu,
    gpu_hour,
    gpu_hours,
    refused,
)

from advisor.engine import advise
from core.activity import Activity
from core.evidence import EngineEvidence, GpuEvidence
from core.finding import Advice, Finding, Grade

RULE = "memory-bound-decode"


def run(each: EngineEvidence | None, card: GpuEvidence | None = None) -> Advice:
    return advise(evidence([card or gpu()], [] if each is None else [each]))


def only(advice: Advice) -> Finding:
    (finding,) = found(advice, RULE)
    return finding


def counted(**more: Any) -> GpuEvidence:
    """A GPU with profiling counters that streams memory."""
    values = {"dram_active_ratio": 0.62, "tensor_active_ratio": 0.06, "sm_active_ratio": 0.7, **more}
    return gpu([replace(hour, **values) for hour in gpu_hours(FORTNIGHT_H, Activity.MEMORY_BOUND)])


def blind(**more: Any) -> EngineEvidence:
    """An engine whose model the catalogue does not know: no MBU."""
    return engine(engine_hours(FORTNIGHT_H, kv_used=0.01), model="in-house-9b", **more)


def utilised(**more: Any) -> GpuEvidence:
    values = {"busy_ratio": 0.96, "memory_busy_ratio": 0.9, "power_w": 420.0, "power_limit_w": 700.0, **more}
    return gpu([replace(hour, **values) for hour in gpu_hours(FORTNIGHT_H)])


def test_mbu_and_mfu_of_an_engine_follow_from_its_counters() -> None:
    """By hand, advisor-rules 2.3, at batch 8, context 500, 7.5 ms a step."""
    finding = only(run(engine()))
    weights, cache = 2 * 8_030_261_248, 8 * 500 * 131_072
    assert finding.evidence["mbu_ratio"] == pytest.approx((weights + cache) / (3.35e12 * 0.0075), abs=1e-4)
    assert finding.evidence["mfu_ratio"] == pytest.approx(
        2 * 8_030_261_248 * 2 * 8 / 0.0075 / 989e12, abs=1e-4
    )
    assert finding.state == "memory-bound"
    assert finding.cause == "engine-counters"


def test_it_is_a_classification_and_saves_nothing() -> None:
    finding = only(run(engine()))
    assert finding.saving.is_empty
    assert "classification" in (finding.no_figure or "")


def test_a_slow_step_is_not_memory_bound() -> None:
    advice = run(engine(engine_hours(FORTNIGHT_H, kv_used=0.01, step_s=0.020)))
    assert not found(advice, RULE)
    assert not refused(advice, RULE)


def test_heavy_arithmetic_is_not_memory_bound() -> None:
    """Long prompts: MBU stays high while MFU passes a quarter."""
    prefill = engine(
        engine_hours(FORTNIGHT_H, running=60.0, kv_used=0.075, step_s=0.0075, prompt_per_generated=4.0)
    )
    assert not found(run(prefill), RULE)


def test_ten_minutes_in_a_fortnight_are_no_character() -> None:
    hours = [engine_hour(i, running=8.0, kv_used=0.01, step_s=0.020) for i in range(FORTNIGHT_H)]
    hours[5] = engine_hour(5, running=8.0, kv_used=0.01)
    assert not found(run(engine(hours)), RULE)


def test_under_ten_minutes_are_refused() -> None:
    advice = run(engine(engine_hours(1, kv_used=0.01, seconds=540.0)))
    assert not found(advice, RULE)
    (refusal,) = refused(advice, RULE)
    assert refusal.missing == ("busy time",)
    assert "9 minutes" in refusal.why


def test_half_an_hour_is_graded_down() -> None:
    finding = only(run(engine(engine_hours(1, kv_used=0.01, seconds=1800.0)), gpu(gpu_hours(1))))
    assert finding.grade is Grade.C
    assert "14 days are the floor" in finding.confidence


def test_more_bytes_than_the_memory_can_move_are_refused_as_a_contradiction() -> None:
    advice = run(engine(engine_hours(FORTNIGHT_H, kv_used=0.01, step_s=0.003)))
    assert not found(advice, RULE)
    (refusal,) = refused(advice, RULE)
    assert refusal.missing == ("consistent counters",)


def test_profiling_counters_speak_where_the_model_is_unknown() -> None:
    finding = only(run(blind(), counted()))
    assert finding.cause == "gpu-counters"
    assert finding.subject.kind == "engine"
    assert finding.evidence["dram_active_ratio"] == 0.62


def test_profiling_counters_without_an_engine_do_not_confirm_decoding() -> None:
    finding = only(run(None, counted()))
    assert finding.subject.kind == "gpu"
    assert "not confirmed" in finding.state
    assert "stream" in finding.wrong_when


def test_a_training_job_with_counters_is_left_alone() -> None:
    values = {"dram_active_ratio": 0.4, "tensor_active_ratio": 0.6, "sm_active_ratio": 0.9}
    training = gpu([replace(hour, **values) for hour in gpu_hours(FORTNIGHT_H, Activity.COMPUTE_BOUND)])
    advice = run(None, training)
    assert not found(advice, RULE)
    assert not refused(advice, RULE)


def test_utilization_alone_makes_it_likely_for_a_known_engine() -> None:
    finding = only(run(blind(), utilised()))
    assert finding.state == "likely memory-bound"
    assert finding.grade is Grade.C
    assert "Likely only" in finding.confidence


@pytest.mark.parametrize("reading", [{"memory_busy_ratio": 0.5}, {"power_w": 650.0}, {"busy_ratio": 0.7}])
def test_utilization_that_does_not_fit_is_left_alone(reading: dict[str, float]) -> None:
    advice = run(blind(), utilised(**reading))
    assert not found(advice, RULE)
    assert not refused(advice, RULE)


def test_utilization_without_a_known_engine_says_nothing_and_is_refused() -> None:
    advice = run(None, utilised())
    assert not found(advice, RULE)
    assert "engine metrics" in refused(advice, RULE)[0].missing


def test_partly_idle_hours_are_not_read_as_means() -> None:
    mixed = {Activity.BUSY: 2400.0, Activity.PARKED: 1200.0}
    values = {"busy_ratio": 0.96, "memory_busy_ratio": 0.9, "power_w": 420.0, "power_limit_w": 700.0}
    card = gpu([gpu_hour(i, seconds=3600.0, active_s=2400.0, **values) for i in range(FORTNIGHT_H)])
    card = replace(card, hours=tuple(replace(hour, seconds=mixed) for hour in card.hours))
    advice = run(blind(), card)
    assert not found(advice, RULE)
    assert "dram_active_ratio" in refused(advice, RULE)[0].missing


def test_a_power_limit_that_nobody_knows_is_refused() -> None:
    card = utilised(power_limit_w=None)
    card = replace(card, identity=replace(card.identity, power_limit_default_w=None))
    advice = run(blind(), card)
    assert not found(advice, RULE)
    assert "power_limit_w" in refused(advice, RULE)[0].missing


def test_a_mig_slice_does_not_get_its_parents_bandwidth() -> None:
    card = gpu(uuid="MIG-a")
    each = engine(uuid="MIG-a")
    advice = advise(evidence([card], [each]))
    assert not found(advice, RULE)
    assert "bandwidth of a MIG slice" in refused(advice, RULE)[0].missing


def test_an_idle_gpu_without_engine_is_passed_over() -> None:
    advice = run(None, gpu(gpu_hours(FORTNIGHT_H, Activity.EMPTY)))
    assert not found(advice, RULE)
    assert not refused(advice, RULE)


def test_unpublished_precision_is_told_from_memory() -> None:
    """W_est = 62.0 GB used − 400,000 tokens of KV − 1 GB is 1.07 bytes a parameter: 8-bit, half the bytes, half the MBU."""
    quiet = {key: value for key, value in SETTINGS.items() if key not in {"quantization", "dtype"}}
    card = gpu([replace(hour, memory_used_bytes=62.0e9) for hour in gpu_hours(FORTNIGHT_H)])
    advice = run(engine(engine_hours(FORTNIGHT_H, kv_used=0.01, step_s=0.0040), settings=quiet), card)
    finding = only(advice)
    assert finding.evidence["weight_precision"].startswith("8-bit (memory: 1.07")


def test_an_engine_that_is_seen_no_more_is_refused() -> None:
    advice = run(engine(engine_hours(FORTNIGHT_H - 96, kv_used=0.01)))
    assert not found(advice, RULE)
    assert refused(advice, RULE)[0].missing == ("recent samples",)


def test_an_engine_that_was_memory_bound_and_is_no_more_is_left_alone() -> None:
    hours = [
        engine_hour(i, kv_used=0.01)
        if i < FORTNIGHT_H - 48
        else engine_hour(i, running=300.0, kv_used=0.4, step_s=0.06)
        for i in range(FORTNIGHT_H)
    ]
    assert not found(run(engine(hours)), RULE)
