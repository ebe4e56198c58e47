"""R19 and its estimator: compared per GPU at the promise, counted in whole GPUs."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from advice_builders import FORTNIGHT_H, PRICE, SETTINGS, engine_hour, evidence, gpu, gpu_hours, histogram
from hypothesis import given, settings
from hypothesis import strategies as st
from serving_builders import fleet, judge, replica

from advisor.estimators import shard
from advisor.estimators.decode_step import DecodeStep, Weights, formula
from advisor.rules.over_sharded import RULE, OverShardedLimits
from core.evidence import EngineEvidence, Evidence
from core.finding import Finding, NotEvaluated

PARAMETERS = 8_030_261_248
HOURS_MONTH = 730.0


def law(size: int, *, parameters: float = PARAMETERS, layers: int = 32, kv: float = 131_072) -> DecodeStep:
    return formula(
        weights=Weights(2 * parameters),
        layers=layers,
        active_parameters=parameters,
        kv_bytes_per_token=kv,
        context_tokens=500,
        prompt_per_generated=1,
        tensor_parallel=size,
        bandwidth_bytes_per_s=3.35e12,
        flops=989e12,
        half_width=0.2,
    )


NOW_S = law(4).step_s(8)


def split(size: int = 4, index: int = 1, hours: Sequence[Any] = (), **more: Any) -> EngineEvidence:
    """Llama-3.1-8B over ``size`` GPUs of node ``index``, with the step that the formula says unless told."""
    settings_ = {**SETTINGS, "tensor_parallel_size": str(size), **more.pop("flags", {})}
    if not hours:
        more = {"step_s": law(size).step_s(8), **more}
    one = replica(index, hours, settings=settings_, **more)
    return replace(one, gpu_uuids=tuple(f"GPU-{index}-{rank}" for rank in range(size)))


def run(
    *engines: EngineEvidence, limits: OverShardedLimits | None = None, **more: Any
) -> tuple[list[Finding], list[NotEvaluated]]:
    return judge(RULE, fleet(*engines, **more), limits)


def test_sizes_divide_the_gpus_and_the_heads() -> None:
    assert shard.smaller_sizes(8, 32) == (1, 2, 4)
    assert shard.smaller_sizes(8, 28) == (1, 2, 4)
    assert shard.smaller_sizes(6, 28) == (1, 2)
    assert shard.smaller_sizes(1, 32) == ()


def test_room_is_what_weights_and_overhead_leave() -> None:
    room = shard.room_tokens(
        tensor_parallel=1, memory_bytes=80e9, weight_bytes=16e9, kv_bytes_per_token=100_000
    )
    assert room == (0.9 * 80e9 - 5e9 - 16e9) // 100_000
    none = shard.room_tokens(
        tensor_parallel=1, memory_bytes=80e9, weight_bytes=70e9, kv_bytes_per_token=100_000
    )
    assert none == 0


def test_a_32b_model_makes_more_per_gpu_on_two_because_of_its_kv_room() -> None:
    """The public case: 961 tok/s per GPU on one GPU (B ≤ 29), 2,577 on two (B 256)."""
    weights, kv = 2 * 32.8e9, 262_144.0
    found = []
    for size in (1, 2):
        room = shard.room_tokens(
            tensor_parallel=size, memory_bytes=80 * 2**30, weight_bytes=weights, kv_bytes_per_token=kv
        )
        one = shard.shard(
            law(size, parameters=32.8e9, layers=64, kv=kv),
            tensor_parallel=size,
            room=room,
            end_tokens=750,
            promise_s=0.1,
            ceiling=256,
        )
        assert one is not None
        found.append(one)
    alone, two = found
    assert alone.batch < 40
    assert two.tokens_per_s_per_gpu.p50 > 1.5 * alone.tokens_per_s_per_gpu.p50


def test_at_equal_batch_two_gpus_are_under_twice_as_fast() -> None:
    """Public: 1.65–1.77 for a 32B model at B 8–29."""
    for batch in (8, 29):
        ratio = law(1, parameters=32.8e9, layers=64).step_s(batch) / law(
            2, parameters=32.8e9, layers=64
        ).step_s(batch)
        assert 1.5 < ratio < 1.85


def test_nothing_fits_in_no_time_or_no_memory() -> None:
    good = {"tensor_parallel": 1, "room": 1e5, "end_tokens": 750.0, "promise_s": 0.02}
    assert shard.shard(law(1), **good) is not None  # type: ignore[arg-type]
    for bad in ({"room": 100.0}, {"promise_s": 0.001}, {"end_tokens": 0.0}):
        assert shard.shard(law(1), **{**good, **bad}) is None  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(st.floats(10, 20_000), st.integers(1, 3), st.floats(0.3, 1.0))
def test_more_load_never_takes_fewer_replicas(load: float, times: int, utilization: float) -> None:
    one = shard.shard(law(1), tensor_parallel=1, room=4e5, end_tokens=667, promise_s=0.02)
    assert one is not None
    less, more = (one.replicas_for(each, utilization) for each in (load, load * (1 + times)))
    assert less is not None
    assert more is not None
    assert all(a <= b for a, b in zip(less, more, strict=True))
    assert less[0] >= less[1] >= less[2] >= 1


@given(st.floats(1, 400))
def test_the_batch_for_a_rate_makes_it(batch: float) -> None:
    step = law(1)
    found = shard.batch_for(step, step.tokens_per_s(batch), 500)
    assert found == pytest.approx(batch, rel=1e-6)
    assert shard.batch_for(step, step.tokens_per_s(600), 500) is None


def test_a_small_batch_over_four_gpus_frees_three_to_the_cent() -> None:
    (finding,), none = run(split())
    assert not none
    assert finding.evidence["tensor_parallel_then"] == 1
    assert finding.evidence["gpus_now"] == 4
    assert finding.evidence["gpus_then"] == 1
    promise = 2 * NOW_S
    alone, four = law(1), law(4)
    then, now = alone.largest_batch_within(promise), four.largest_batch_within(promise)
    assert finding.evidence["tokens_per_s_per_gpu_at_promise_then_p50"] == pytest.approx(
        then / promise, rel=1e-5
    )
    assert finding.evidence["tokens_per_s_per_gpu_at_promise_now_p50"] == pytest.approx(
        now / promise / 4, rel=1e-5
    )
    assert finding.saving.capacity_gpu_h_month is not None
    assert finding.saving.cash_usd_month is not None
    assert round(finding.saving.capacity_gpu_h_month.p50, 2) == 3 * HOURS_MONTH
    assert round(finding.saving.cash_usd_month.p50, 2) == 5475.00
    # one replica carries the load at the low end of its rate too: what is left is the grade's own width
    assert round(finding.saving.cash_usd_month.p10, 2) == 4380.00
    assert finding.gpu_uuids == ("GPU-1-1", "GPU-1-2", "GPU-1-3")
    assert finding.stage == "consolidate"
    assert "--tensor-parallel-size 1" in (finding.actions[0].command or "")
    assert NOW_S < finding.evidence["itl_s_then_at_peak"] <= promise


def test_where_the_low_end_needs_a_second_replica_only_two_gpus_are_sure() -> None:
    """Its load is 0.58 of the rate at the promise, and 0.64 of that at the low end."""
    (finding,), _ = run(split(), limits=OverShardedLimits(utilization=0.6))
    assert finding.evidence["tensor_parallel_then"] == 1
    assert finding.saving.cash_usd_month is not None
    assert round(finding.saving.cash_usd_month.p50, 2) == 5475.00
    assert round(finding.saving.cash_usd_month.p10, 2) == 2920.00


def test_a_tight_promise_keeps_the_split() -> None:
    found, none = run(split(), limits=OverShardedLimits(itl_limit_s=1.05 * NOW_S))
    assert not found
    assert not none


def test_what_fits_only_there_keeps_the_split() -> None:
    """70B in 16 bits: neither one nor two GPUs hold it; on four it is where it has to be."""
    step = law(4, parameters=70.6e9, layers=80, kv=327_680).step_s(8)
    assert run(split(model="meta-llama/Llama-3.1-70B-Instruct", step_s=step)) == ([], [])


def test_a_long_context_that_must_fit_keeps_the_split() -> None:
    long = {"max_model_len": "1000000"}
    assert run(split(flags=long)) == ([], [])


def test_a_cache_that_was_nearly_full_once_needs_its_room() -> None:
    """One GPU has room for some 429,000 tokens; the pool of 400,000 was full once, and slower steps hold it longer."""
    step = law(4).step_s(8)
    hours = [engine_hour(i, step_s=step, kv_used=0.01) for i in range(FORTNIGHT_H)]
    spiked = list(hours)
    spiked[100] = replace(hours[100], kv_used=histogram((0.01, 3590.0), (0.98, 10.0)))
    (before,), _ = run(split(hours=hours))
    (after,), _ = run(split(hours=spiked))
    assert before.evidence["tensor_parallel_then"] == 1
    assert after.evidence["tensor_parallel_then"] == 2


@pytest.mark.parametrize(
    "more",
    [
        {"running": 200.0, "kv_used": 0.25, "step_s": law(4).step_s(200)},  # fills the split
        {"waiting": 5.0},  # load unknown
    ],
)
def test_silent_where_the_load_needs_it(more: dict[str, Any]) -> None:
    assert run(split(**more)) == ([], [])


def test_one_gpu_cannot_become_fewer() -> None:
    assert run(replica(1)) == ([], [])


def test_a_peak_that_takes_as_many_gpus_saves_nothing_and_says_why() -> None:
    """Two GPUs, half a percent of the time at a batch whose rate takes one of them each."""
    big = 64.0
    hours = [
        engine_hour(i, running=30.0, kv_used=0.0375, step_s=law(2).step_s(30))
        if i % 50
        else engine_hour(i, running=big, kv_used=0.08, step_s=law(2).step_s(big))
        for i in range(FORTNIGHT_H)
    ]
    found, _ = run(split(2, hours=hours))
    for finding in found:
        assert finding.saving.is_empty
        assert "2 GPUs stay 2" in (finding.no_figure or "")
    assert found


def test_a_reserved_node_saves_capacity_and_no_cash() -> None:
    reserved = replace(PRICE, billing="reserved", gpus_per_unit=4)
    (finding,), _ = run(split(), price=reserved)
    assert finding.saving.cash_usd_month is None
    assert finding.saving.capacity_gpu_h_month is not None
    assert "reserved capacity costs the same" in (finding.no_figure or "")


def node_of_four() -> Evidence:
    one = split()
    cards = [
        gpu(
            gpu_hours(FORTNIGHT_H),
            uuid=uuid,
            host_gpu_count=4,
            price=replace(PRICE, gpus_per_unit=4),
        )
        for uuid in one.gpu_uuids
    ]
    return evidence(cards, [one])


def test_three_of_a_node_of_four_end_no_billing_unit() -> None:
    (finding,), _ = judge(RULE, node_of_four())
    assert finding.saving.cash_usd_month is None
    assert "3 of 4" in (finding.no_figure or "")


def test_replicas_stay_as_many_as_they_are() -> None:
    (finding,), _ = run(split(2, 1), split(2, 2))
    assert finding.evidence["replicas_then"] == 2
    assert finding.gpu_uuids == ("GPU-2-0", "GPU-2-1")


@pytest.mark.parametrize(
    ("more", "missing"),
    [
        ({"step_s": 2 * NOW_S}, "a step that follows the formula"),
        ({"flags": {"enable_expert_parallel": "true"}}, "a model of mixed parallelism"),
        ({"flags": {"data_parallel_size": "2"}}, "a model of mixed parallelism"),
        ({"flags": {"cpu_offload_gb": "20"}}, "weights on the GPU"),
        ({"flags": {"pipeline_parallel_size": "2"}}, "a model of pipeline parallelism"),
        ({"model": "acme/secret-7"}, "model architecture"),
    ],
)
def test_what_the_formula_does_not_cover_is_refused(more: dict[str, Any], missing: str) -> None:
    found, (refusal,) = run(split(**more))
    assert not found
    assert missing in refusal.missing


def test_short_data_and_gaps() -> None:
    (finding,), _ = run(split(count=12))
    assert finding.saving.is_empty
    assert "12 hours of load" in (finding.no_figure or "")
    whole = split()
    found, (refusal,) = run(replace(whole, hours=whole.hours[::2]))
    assert not found
    assert refusal.missing == ("samples",)


def test_no_engine_is_said() -> None:
    assert judge(RULE, evidence([gpu()]))[1][0].missing == ("engine metrics",)
