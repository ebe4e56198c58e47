"""R10: the right scheme for the hardware, gain by regime with its sign, and refusal without known precision."""

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
    gpu_hours,
    refused,
)

from advisor.engine import advise
from core.evidence import EngineEvidence
from core.finding import Advice, Finding, Grade, Risk

RULE = "quantization-candidate"


def served(gpu_key: str = "H100-SXM5-80GB", **more: Any) -> Advice:
    values: dict[str, Any] = {"running": 8.0, "kv_used": 0.01, "waiting": 0.0}
    values |= {
        name: more.pop(name)
        for name in tuple(more)
        if name in {"running", "kv_used", "waiting", "step_s", "seconds"}
    }
    count = more.pop("count", FORTNIGHT_H)
    card = gpu(gpu_hours(count), gpu_key=gpu_key)
    return advise(evidence([card], [engine(engine_hours(count, **values), **more)]))


def only(advice: Advice) -> Finding:
    (finding,) = found(advice, RULE)
    return finding


def replica(index: int) -> EngineEvidence:
    return engine(name=f"node-{index}:8000/0", uuid=f"GPU-{index}")


def test_fp8_at_a_small_batch_follows_the_formula() -> None:
    """By hand, R10: b_q 1, k 1.3, 0.4 of the arithmetic, at batch 8."""
    finding = only(served())
    read = 1.08 * 2 * 8_030_261_248 / 3.35e12
    math = 1.35 * 2 * 8_030_261_248 * 2 / 989e12
    before = read + 2.0e-3 + 8 * (500 * 131_072 / 3.35e12 + 42e-6 + math)
    after = before - read * (1 - 0.65) - 0.4 * 8 * math
    assert finding.evidence["scheme"] == "fp8"
    assert finding.evidence["speedup_p50"] == pytest.approx(before / after, rel=1e-4)
    assert finding.evidence["speedup_p10"] < finding.evidence["speedup_p50"] < finding.evidence["speedup_p90"]
    assert finding.evidence["freed_bytes"] == 8_030_261_248
    assert finding.state == "16-bit, memory-bound"


def test_the_published_gain_of_fp8_on_h100_lies_in_the_claimed_range() -> None:
    """Kurtic et al.: 1.40–1.51× at batch 1–8 for a 7B model."""
    finding = only(served(model="llama-2-7b", step_s=0.0068))
    assert finding.evidence["speedup_p10"] <= 1.40
    assert finding.evidence["speedup_p90"] >= 1.45


def test_every_finding_asks_for_an_own_evaluation() -> None:
    finding = only(served())
    assert any("own evaluation set" in action.text for action in finding.actions)
    assert "--quantization fp8" in (finding.actions[0].command or "")


def test_two_replicas_stay_two_when_one_and_a_quarter_is_all_it_gives() -> None:
    gpus = [gpu(uuid=f"GPU-{i}", host=f"node-{i}") for i in (1, 2)]
    advice = advise(evidence(gpus, [replica(1), replica(2)]))
    assert [finding.saving.is_empty for finding in found(advice, RULE)] == [True, True]
    assert "2 replicas stay 2" in (found(advice, RULE)[0].no_figure or "")


def test_sixteen_replicas_lose_whole_ones_and_save_the_certain_ones_to_the_cent() -> None:
    gpus = [gpu(uuid=f"GPU-{i}", host=f"node-{i}") for i in range(16)]
    findings = found(advise(evidence(gpus, [replica(i) for i in range(16)])), RULE)
    then = findings[0].evidence["replicas_then"]
    saved = [f.saving.cash_usd_month.p50 for f in findings if f.saving.cash_usd_month is not None]
    assert 16 - then == 3
    assert [round(usd, 2) for usd in saved] == [1825.00]
    unproven = [f for f in findings if "No cash figure, because it may save nothing" in (f.no_figure or "")]
    assert len(unproven) == 2
    assert all(f.saving.is_empty for f in unproven)


def test_replicas_are_counted_at_the_rate_of_the_busiest_hours() -> None:
    """Batch 8 for most of the day, 200 for six hours: there the weights are a small part of the step."""
    hours = [
        engine_hour(i, running=8.0, kv_used=0.01)
        if i % 24 < 18
        else engine_hour(i, running=200.0, kv_used=0.25, step_s=0.02)
        for i in range(FORTNIGHT_H)
    ]
    replicas = [engine(hours, name=f"node-{i}:8000/0", uuid=f"GPU-{i}") for i in range(5)]
    findings = found(
        advise(evidence([gpu(uuid=f"GPU-{i}", host=f"node-{i}") for i in range(5)], replicas)), RULE
    )
    assert len(findings) == 5
    assert {finding.state for finding in findings} == {"16-bit, memory-bound"}
    assert all(finding.saving.is_empty for finding in findings)


def test_at_saturation_the_claim_is_room_and_not_speed() -> None:
    finding = only(
        served(running=250.0, kv_used=0.97, step_s=0.036, settings={**SETTINGS, "num_gpu_blocks": "8000"})
    )
    assert finding.state == "16-bit, saturated: capacity, not speed"
    assert "capacity" in finding.not_claimed
    assert finding.saving.is_empty
    assert "not speed" in (finding.no_figure or "")


def test_a_mixture_of_experts_has_an_uncertain_sign_and_no_figure() -> None:
    finding = only(served(model="Qwen/Qwen3-30B-A3B", running=32.0, kv_used=0.04, step_s=0.02))
    assert finding.evidence["speedup_p10"] < 1
    assert "canary" in finding.confidence
    assert finding.saving.is_empty
    assert finding.risk is Risk.HIGH


@pytest.mark.parametrize(
    ("gpu_key", "running", "scheme"),
    [
        ("A100-SXM4-80GB", 8.0, "int4"),
        ("A100-SXM4-80GB", 40.0, "int8"),
        ("L40S", 8.0, "fp8"),
        ("B200-SXM-180GB", 8.0, "fp8"),
    ],
)
def test_the_scheme_follows_the_compute_capability(gpu_key: str, running: float, scheme: str) -> None:
    finding = only(served(gpu_key, running=running, kv_used=running * 500 / 400_000, step_s=0.014))
    assert finding.evidence["scheme"] == scheme


def test_hardware_without_a_scheme_is_left_alone() -> None:
    advice = served("V100-SXM2-32GB")
    assert not found(advice, RULE)
    assert not refused(advice, RULE)


def test_quantised_weights_are_left_alone() -> None:
    for settings in ({**SETTINGS, "quantization": "fp8"}, {**SETTINGS, "quantization": "awq_marlin"}):
        advice = served(settings=settings)
        assert not found(advice, RULE)
        assert not refused(advice, RULE)
    assert not found(served(model="neuralmagic/Meta-Llama-3.1-8B-Instruct-FP8", settings={}), RULE)


def test_unknown_precision_is_refused() -> None:
    quiet = {key: value for key, value in SETTINGS.items() if key not in {"quantization", "dtype"}}
    advice = served(settings=quiet)
    assert not found(advice, RULE)
    assert refused(advice, RULE)[0].missing == ("weight precision",)


def test_a_dtype_alone_is_no_proof_of_16_bit_weights() -> None:
    quiet = {key: value for key, value in SETTINGS.items() if key != "quantization"}
    assert refused(served(settings=quiet), RULE)[0].missing == ("weight precision",)


def test_an_unknown_model_is_refused() -> None:
    advice = served(model="in-house-9b")
    assert not found(advice, RULE)
    assert refused(advice, RULE)[0].missing == ("model architecture",)


def test_a_model_that_waits_for_the_host_is_left_alone() -> None:
    """OPT-1.3B at batch 1: 2 ms of launch overhead in a step of 3.6 ms (R15)."""
    small = {**SETTINGS, "num_gpu_blocks": "18573"}
    advice = served(model="opt-1.3b", running=1.0, kv_used=0.0013, step_s=0.0036, settings=small)
    assert not found(advice, RULE)
    assert not refused(advice, RULE)


def test_four_minutes_are_refused_and_half_an_hour_is_graded_down() -> None:
    assert refused(served(count=1, seconds=240.0), RULE)[0].missing == ("busy time",)
    assert only(served(count=1, seconds=1800.0)).grade is Grade.D


def test_thin_coverage_is_refused() -> None:
    each = engine()
    advice = advise(evidence([gpu()], [replace(each, hours=each.hours[::2])]))
    assert not found(advice, RULE)
    assert refused(advice, RULE)[0].missing == ("samples",)


@pytest.mark.parametrize(("gpu_key", "most"), [("L4", 2.0), ("H100-SXM5-80GB", 2.0), ("A100-SXM4-80GB", 3.6)])
@pytest.mark.parametrize("running", [1.0, 8.0])
def test_no_speed_up_beats_the_bytes_it_saves(gpu_key: str, most: float, running: float) -> None:
    each = served(gpu_key, running=running, kv_used=running * 500 / 400_000, step_s=0.06)
    assert only(each).evidence["speedup_p90"] <= most


def test_an_engine_that_is_seen_no_more_is_refused() -> None:
    advice = advise(evidence([gpu()], [engine(engine_hours(FORTNIGHT_H - 96, kv_used=0.01))]))
    assert not found(advice, RULE)
    assert refused(advice, RULE)[0].missing == ("recent samples",)


def test_a_batch_that_has_grown_past_memory_bound_is_refused() -> None:
    hours = [
        engine_hour(i, kv_used=0.01)
        if i < FORTNIGHT_H - 48
        else engine_hour(i, running=300.0, kv_used=0.4, step_s=0.02)
        for i in range(FORTNIGHT_H)
    ]
    advice = advise(evidence([gpu()], [engine(hours)]))
    assert not found(advice, RULE)
    assert refused(advice, RULE)[0].missing == ("steady recent work",)
