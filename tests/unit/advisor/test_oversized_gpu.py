"""R20: a cheaper card must carry the busiest time at the slow end of its estimate, and only what is handed back saves."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from advice_builders import FORTNIGHT_H, PRICE, SETTINGS, engine_hour, evidence, gpu, histogram
from hypothesis import given, settings
from hypothesis import strategies as st
from serving_builders import fleet, judge, replica

from advisor.estimators import decode_step, shard, smaller_gpu
from advisor.estimators.decode_step import DecodeStep
from advisor.estimators.precision import Precision
from advisor.gpu_offers import cheaper, runs
from advisor.rules.oversized_gpu import RULE, OversizedGpuLimits
from catalog import gpu_specs
from core.evidence import EngineEvidence, Price
from core.finding import Finding, Grade, NotEvaluated
from core.hours import BatchPoint

LIMITED = {**SETTINGS, "max_num_seqs": "64", "max_model_len": "8192"}
HALF = Precision(16, 2.0, "setting")
OWN_L40S = Price(Decimal("1.00"), "your price of 2026-09-01", "on_demand", 1, "2026-09-01", from_user=True)


def small(index: int = 1, **more: Any) -> EngineEvidence:
    """Two requests at a time on an H100."""
    return replica(
        index, **{"running": 2.0, "kv_used": 0.0025, "step_s": 0.0075, "settings": LIMITED, **more}
    )


def run(
    *engines: EngineEvidence, limits: OversizedGpuLimits | None = None, price: Price | None = None
) -> tuple[list[Finding], list[NotEvaluated]]:
    return judge(RULE, fleet(*engines, price=price), limits)


def with_l40s(price: Price = OWN_L40S) -> tuple[list[Finding], list[NotEvaluated]]:
    """Beside a fleet that holds an L40S at a price of its own."""
    base = fleet(small())
    other = replace(gpu(uuid="GPU-l40s", host="node-9"), gpu_key="L40S", price=price)
    return judge(
        RULE,
        replace(base, gpus=(*base.gpus, other)),
        OversizedGpuLimits(min_saving_ratio=0.5, itl_limit_s=0.05),
    )


def test_a_nearly_idle_engine_moves_to_a_card_of_its_size() -> None:
    (finding,), none = run(small())
    assert not none
    assert finding.state == "larger than the load"
    assert finding.evidence["needed_bytes_p90"] <= 0.9 * finding.evidence["memory_bytes_then"]
    assert finding.evidence["itl_then_s_p90"] <= finding.evidence["itl_limit_s"]
    assert finding.evidence["load_ratio_then"] <= 0.7
    assert finding.evidence["usd_per_million_tokens_then"] < finding.evidence["usd_per_million_tokens_now"]
    assert finding.gpu_uuids == ("GPU-1",)
    assert finding.stage == "consolidate"


def test_the_saving_is_the_price_difference_times_the_hours_to_the_cent() -> None:
    (finding,), _ = with_l40s(replace(OWN_L40S, usd_per_gpu_hour=Decimal("0.30")))
    assert finding.evidence["gpu_key_then"] == "L40S"
    assert finding.evidence["price_basis_then"] == "your price of 2026-09-01"
    assert finding.saving.cash_usd_month is not None
    assert round(finding.saving.cash_usd_month.p50, 2) == 1606.00  # (2.50 − 0.30) · 730
    assert finding.saving.capacity_gpu_h_month is None
    assert finding.grade is Grade.D


def test_the_step_on_the_other_card_is_the_formula_times_what_is_measured_here() -> None:
    (finding,), _ = with_l40s(replace(OWN_L40S, usd_per_gpu_hour=Decimal("0.30")))
    weights, kv = 2 * 8_030_261_248, 500 * 131_072

    def step(bandwidth: float, flops: float, batch: float) -> float:
        fixed = 1.08 * weights / bandwidth + 2e-3
        return fixed + batch * (kv / bandwidth + 42e-6 + 1.35 * 2 * 8_030_261_248 * 2 / flops)

    factor = 0.0075 / step(3.35e12, 989e12, 2)
    assert finding.evidence["measured_over_formula_ratio"] == pytest.approx(factor, rel=1e-3)
    batch = finding.evidence["running_p99_then"]
    assert finding.evidence["itl_then_s_p50"] == pytest.approx(factor * step(864e9, 362e12, batch), rel=1e-3)
    assert finding.evidence["itl_then_s_p90"] == pytest.approx(1.5 * finding.evidence["itl_then_s_p50"])


def test_more_requests_run_at_once_on_a_slower_card() -> None:
    (finding,), _ = run(small())
    assert finding.evidence["running_p99_then"] >= finding.evidence["running_p99"]


def test_a_full_engine_is_left_alone() -> None:
    wide = {**LIMITED, "max_num_seqs": "256"}
    busy: dict[str, Any] = {"running": 200.0, "kv_used": 0.25, "step_s": 0.027, "settings": wide}
    assert run(small(**busy)) == ([], [])


def test_a_tight_promise_keeps_the_fast_card() -> None:
    found, none = run(small(), limits=OversizedGpuLimits(itl_limit_s=0.008))
    assert not found
    assert not none


def test_long_prompts_that_a_slow_card_cannot_read_in_time_keep_the_fast_one() -> None:
    assert run(small(), limits=OversizedGpuLimits(max_prefill_s=0.001)) == ([], [])


def test_a_model_that_needs_the_memory_stays() -> None:
    needy = {**LIMITED, "max_model_len": "500000"}
    assert run(small(settings=needy))[0] == []


def test_requests_that_wait_are_no_sign_of_a_large_card() -> None:
    assert run(small(waiting=3.0)) == ([], [])


def test_two_busy_hours_a_day_are_enough_to_stay() -> None:
    hours = [
        engine_hour(i, running=200.0, kv_used=0.25, step_s=0.027)
        if i % 24 < 2
        else engine_hour(i, running=2.0, kv_used=0.0025)
        for i in range(FORTNIGHT_H)
    ]
    assert run(small(hours=hours, settings={**LIMITED, "max_num_seqs": "256"})) == ([], [])


def test_a_reserved_card_saves_nothing_and_says_why() -> None:
    (finding,), _ = run(small(), price=replace(PRICE, billing="reserved"))
    assert finding.saving.is_empty
    assert "reserved" in (finding.no_figure or "")


def test_one_gpu_of_a_reserved_node_of_eight_saves_nothing() -> None:
    price = replace(PRICE, gpus_per_unit=8)
    cards = [gpu(uuid=f"GPU-{i}", host="node-1", price=price, host_gpu_count=8) for i in range(1, 9)]
    (finding,), _ = judge(RULE, evidence(cards, [small()]))
    assert finding.saving.is_empty
    assert "billed with its host" in (finding.no_figure or "")


def test_a_week_is_refused_and_so_are_gaps() -> None:
    assert run(small(count=168))[1][0].missing == ("time",)
    one = small()
    assert run(replace(one, hours=one.hours[::2]))[1][0].missing == ("samples",)


def test_a_gap_of_twenty_minutes_changes_little() -> None:
    one = small()
    hours = tuple(
        engine_hour(i, running=2.0, kv_used=0.0025, seconds=2400.0) if i == 100 else hour
        for i, hour in enumerate(one.hours)
    )
    (gapped,), _ = run(replace(one, hours=hours))
    (whole,), _ = run(one)
    assert gapped.evidence["gpu_key_then"] == whole.evidence["gpu_key_then"]


def test_what_is_not_known_is_named() -> None:
    one = small()
    blind = replace(one, hours=tuple(replace(hour, waiting=histogram()) for hour in one.hours))
    assert run(blind)[1][0].missing == ("waiting_requests",)
    assert "model architecture" in run(small(model="acme/own-model"))[1][0].missing
    unknown = {key: value for key, value in LIMITED.items() if key != "quantization"}
    assert "weight precision" in run(small(settings=unknown))[1][0].missing
    unpriced = replace(fleet(small()), gpus=tuple(replace(g, price=None) for g in fleet(small()).gpus))
    assert judge(RULE, unpriced)[1][0].missing == ("a price",)


def test_a_step_far_from_the_formula_is_refused() -> None:
    assert run(small(step_s=0.03))[1][0].missing == ("a step time that the formula explains",)


def test_engines_on_one_gpu_and_on_two_are_refused() -> None:
    pair = [small(), small(2, uuid="GPU-1", name="node-1:8001/0")]
    assert {item.missing for item in run(*pair)[1]} == {("a GPU of its own",)}
    split = replace(small(settings={**LIMITED, "tensor_parallel_size": "2"}), gpu_uuids=("GPU-1", "GPU-2"))
    assert run(split)[1][0].missing == ("a replica on one GPU",)


def test_a_mig_slice_is_refused() -> None:
    base = fleet(small(uuid="MIG-1"))
    assert "bandwidth of a MIG slice" in judge(RULE, base)[1][0].missing


def test_a_fleet_without_engines_says_what_is_missing() -> None:
    assert judge(RULE, evidence([gpu()]))[1][0].missing == ("engine metrics",)


def test_only_data_centre_cards_that_can_run_the_weights_are_offered() -> None:
    spec = gpu_specs.by_key("H100-SXM5-80GB")
    assert spec is not None
    keys = {offer.spec.gpu_key for offer in cheaper(evidence([gpu()]), spec, PRICE, HALF)}
    assert keys
    assert not any(key.startswith(("RTX-30", "RTX-40", "RTX-50")) and "Ada" not in key for key in keys)
    assert "T4" not in keys
    assert all(key in {s.gpu_key for s in gpu_specs.specs() if s.vendor == "NVIDIA"} for key in keys)
    a100 = gpu_specs.by_key("A100-SXM4-80GB")
    assert a100 is not None
    assert runs(a100, HALF)
    assert not runs(a100, Precision(8, 1.0, "fp8"))


def test_a_price_of_yours_is_scaled_by_the_market() -> None:
    spec = gpu_specs.by_key("H100-SXM5-80GB")
    assert spec is not None
    for offer in cheaper(evidence([gpu()]), spec, PRICE, HALF):
        assert "ratio" in offer.basis
        assert offer.usd_per_gpu_hour < PRICE.usd_per_gpu_hour


LAWS = st.builds(
    lambda fixed, each, width: DecodeStep(fixed, each, "formula", width),
    st.floats(1e-3, 5e-2),
    st.floats(1e-5, 1e-3),
    st.sampled_from([0.0, decode_step.HALF_WIDTH_DENSE_HOPPER, decode_step.HALF_WIDTH_ELSEWHERE]),
)


@settings(max_examples=100)
@given(LAWS, st.floats(1, 5000), st.floats(1e-3, 0.2))
def test_what_is_carried_keeps_promise_and_rate(law: DecodeStep, load: float, promise: float) -> None:
    found = smaller_gpu.carried(law, load_tokens_per_s=load, promise_s=promise)
    if found is None:
        return
    assert found.step_s <= promise * (1 + 1e-9)
    assert found.step_p50_s <= found.step_s
    assert 1 <= found.batch <= found.batch_within * (1 + 1e-9)
    assert found.load_ratio <= 0.7
    assert found.batch / found.step_s >= load * (1 - 1e-6)


@settings(max_examples=60)
@given(LAWS, st.floats(1, 5000), st.floats(1.0, 4.0))
def test_a_slower_card_carries_no_more(law: DecodeStep, load: float, factor: float) -> None:
    slower = shard.scaled(law, factor)
    if smaller_gpu.carried(slower, load_tokens_per_s=load, promise_s=0.05) is not None:
        assert smaller_gpu.carried(law, load_tokens_per_s=load, promise_s=0.05) is not None


def test_the_correction_refuses_outside_of_what_the_formula_explains() -> None:
    law = DecodeStep(0.007, 0.0005, "formula", 0.2)  # 8 ms at a batch of 2

    def at(step_s: float) -> float | None:
        return smaller_gpu.correction(law, {2.0: BatchPoint(100.0, 200 / step_s, 0.0)})

    assert at(0.010) == pytest.approx(1.25)
    assert at(0.020) is None
    assert at(0.004) is None
    assert smaller_gpu.correction(law, {}) is None


def test_the_correction_does_not_mix_nights_and_days() -> None:
    law = DecodeStep(0.007, 0.0001, "formula", 0.2)
    profile = {
        batch: BatchPoint(seconds, seconds * law.tokens_per_s(batch), 0.0)
        for batch, seconds in ((2.0, 9000.0), (200.0, 1000.0))
    }
    assert smaller_gpu.correction(law, profile) == pytest.approx(1.0)
