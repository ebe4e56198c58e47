"""R11: twice the tokens; speed only where requests wait for the cache, money only through whole replicas."""

from dataclasses import replace
from typing import Any

import pytest
from advice_builders import FORTNIGHT_H, SETTINGS, engine_hour, evidence, gpu, histogram
from hypothesis import given
from hypothesis import strategies as st
from serving_builders import fleet, judge, replica

from advisor.estimators.decode_step import DecodeStep
from advisor.estimators.kv_need import with_half_the_kv_bytes
from advisor.rules.kv_cache_precision import RULE, KvCachePrecisionLimits
from core.evidence import EngineEvidence
from core.finding import Finding, NotEvaluated

LIMITED: dict[str, Any] = {"running": 64.0, "waiting": 20.0, "kv_used": 0.97, "step_s": 0.02}
"""6,060 tokens a sequence: 64 of them fill the pool."""


def run(
    *engines: EngineEvidence, limits: KvCachePrecisionLimits | None = None
) -> tuple[list[Finding], list[NotEvaluated]]:
    return judge(RULE, fleet(*engines), limits)


def test_a_full_cache_with_a_queue_is_a_speed_claim() -> None:
    (finding,), none = run(replica(1, **LIMITED))
    assert not none
    assert finding.cause == "kv"
    assert finding.evidence["pool_tokens_then"] == 800_000
    assert 64 < finding.evidence["batch_then"] <= 128
    assert finding.evidence["gain_p50"] > 1.1
    assert finding.saving.is_empty
    assert "one replica cannot become fewer" in (finding.no_figure or "")
    assert finding.actions[0].command == "vllm serve meta-llama/Llama-3.1-8B-Instruct --kv-cache-dtype fp8"
    assert "800,000 tokens instead of 400,000" in finding.because


def test_the_gain_follows_the_step_law_with_half_of_the_kv_term() -> None:
    fixed = 1.08 * 2 * 8_030_261_248 / 3.35e12 + 2.0e-3
    read = 0.97 * 400_000 / 64 * 131_072 / 3.35e12
    rest = 42e-6 + 1.35 * 2 * 8_030_261_248 * 2 / 989e12
    (finding,), _ = run(replica(1, **LIMITED))
    batch = min(128, (5 * (fixed + read + rest) - fixed) / (read / 2 + rest))
    assert finding.evidence["batch_then"] == pytest.approx(batch, rel=1e-6)
    now, then = 64 / (fixed + 64 * (read + rest)), batch / (fixed + batch * (read / 2 + rest))
    assert finding.evidence["gain_p50"] == pytest.approx(then / now, rel=1e-5)


def test_enough_replicas_make_a_whole_one_fall_away_to_the_cent() -> None:
    found, _ = run(*(replica(i, **LIMITED) for i in range(1, 6)))
    saved = [finding for finding in found if finding.saving.cash_usd_month is not None]
    then = saved[0].evidence["replicas_then"]
    assert 5 - then == 2
    assert len(saved) == 1, "the second falls away at the middle of the range, not at its low end"
    for finding in saved:
        assert finding.saving.cash_usd_month is not None
        assert round(finding.saving.cash_usd_month.p50, 2) == 1825.00


def test_without_a_queue_the_claim_is_room() -> None:
    (finding,), _ = run(replica(1, running=64.0, kv_used=0.85, step_s=0.02))
    assert finding.cause == "room"
    assert finding.saving.is_empty
    assert (finding.no_figure or "").startswith("No figure, because")
    assert "gain_p50" not in finding.evidence
    assert "the claim is room" in finding.not_claimed


def test_preemptions_count_also_below_the_use() -> None:
    many: dict[str, Any] = {
        "running": 64.0,
        "kv_used": 0.7,
        "step_s": 0.02,
        "preemption_count": 10.0,
        "finished_requests": 1000.0,
    }
    (finding,), _ = run(replica(1, **many))
    assert finding.evidence["preemptions_per_finished_request"] == 0.01
    assert run(replica(1, **{**many, "finished_requests": 100_000.0})) == ([], [])


def test_a_cache_with_room_is_left_alone() -> None:
    assert run(replica(1, running=64.0, kv_used=0.79, step_s=0.02)) == ([], [])


@pytest.mark.parametrize(
    "setting", [{"cache_dtype": "fp8"}, {"kv_cache_dtype": "fp8_e5m2"}, {"cache_type_k": "q8_0"}]
)
def test_an_eight_bit_cache_is_left_alone(setting: dict[str, str]) -> None:
    assert run(replica(1, settings={**SETTINGS, **setting}, **LIMITED)) == ([], [])


def test_a_gpu_that_does_not_read_fp8_is_left_alone_and_an_unknown_one_refused() -> None:
    base = replica(1, **LIMITED)
    a100 = fleet(base)
    a100 = replace(a100, gpus=tuple(replace(each, gpu_key="A100-SXM4-80GB") for each in a100.gpus))
    assert judge(RULE, a100) == ([], [])
    unknown = replace(a100, gpus=tuple(replace(each, gpu_key=None) for each in a100.gpus))
    found, (refusal,) = judge(RULE, unknown)
    assert not found
    assert refusal.missing == ("GPU model in the catalogue",)


def test_a_shortage_of_last_week_is_over() -> None:
    hours = [
        engine_hour(i, **{**LIMITED, "kv_used": 0.97 if i < FORTNIGHT_H - 48 else 0.5, "waiting": 0.0})
        for i in range(FORTNIGHT_H)
    ]
    assert run(replica(1, hours)) == ([], [])


def test_neither_use_nor_preemptions_published_is_refused() -> None:
    base = replica(1)
    hours = tuple(replace(hour, kv_used=histogram(), preemption_count=None) for hour in base.hours)
    found, (refusal,) = run(replace(base, hours=hours))
    assert not found
    assert refusal.missing == ("kv_used_ratio", "preemption_count")


def test_four_minutes_and_thin_samples_are_refused() -> None:
    assert run(replica(1, count=1, seconds=240.0, **LIMITED))[1][0].missing == ("busy time",)
    base = replica(1, **LIMITED)
    assert run(replace(base, hours=base.hours[::2]))[1][0].missing == ("samples",)


def test_a_batch_limit_that_is_reached_gives_no_batch() -> None:
    (finding,), _ = run(replica(1, settings={**SETTINGS, "max_num_seqs": "64"}, **LIMITED))
    assert finding.evidence["batch_then"] == 64


def test_llama_cpp_keeps_q8_on_any_gpu() -> None:
    case = fleet(replica(1, kind="llamacpp", **LIMITED))
    case = replace(case, gpus=tuple(replace(each, gpu_key="A100-SXM4-80GB") for each in case.gpus))
    (finding,), _ = judge(RULE, case)
    assert "-ctk q8_0" in (finding.actions[0].command or "")


def test_a_fleet_without_engines_says_what_is_missing() -> None:
    assert judge(RULE, evidence([gpu()]))[1][0].missing == ("engine metrics",)


@given(st.floats(1e-3, 0.1), st.floats(1e-5, 1e-3), st.floats(1, 1e5), st.floats(1, 500))
def test_half_of_the_bytes_never_slows_a_step_nor_more_than_halves_it(
    fixed: float, each: float, context: float, batch: float
) -> None:
    step = DecodeStep(fixed, each, "fit", 0.1)
    then = with_half_the_kv_bytes(
        step, context_tokens=context, kv_bytes_per_token=131_072, tensor_parallel=1, bandwidth_bytes_per_s=3.35e12
    )  # fmt: skip
    assert 0.5 * step.step_s(batch) <= then.step_s(batch) * (1 + 1e-9) <= step.step_s(batch) * (1 + 2e-9)
