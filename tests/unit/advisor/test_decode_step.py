"""The decode estimator against the public calibration rows of advisor-rules 2.4."""

from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.estimators import decode_step
from advisor.estimators.decode_step import DecodeStep, Weights
from catalog import gpu_specs, llm_models
from core.finding import Range
from core.hours import BatchPoint

BSC_BANDWIDTH = 1.63e12
"""H100 64 GB of the captures."""
H100_BANDWIDTH = 3.35e12
H100_FLOPS = 989e12

LLAMA_2_7B = {1: 92, 8: 652, 32: 1887, 64: 2810, 127: 3696, 209: 4073}
OPT_2_7B = {1: 165, 16: 1947, 64: 4472, 127: 5403, 249: 6075}
LLAMA_3_1_8B = {8: 1070, 32: 3391, 64: 5147, 128: 7037, 255: 9010, 511: 9806}
LLAMA_3_3_70B_TP4 = {8: 465, 64: 2564, 128: 3895, 255: 5130, 511: 5858}
"""Batch → tokens per second. The mean step is B over it; the rows' ITL of the chat runs is a median, which leaves the
steps out that carry a prefill."""


RIDGE = {
    "V100-SXM2-16GB": 139, "T4": 203, "A10": 208, "A100-SXM4-40GB": 201, "A100-SXM4-80GB": 153, "L4": 403, "L40S": 419,
    "H100-PCIE-80GB": 371, "H100-SXM5-80GB": 295, "H200-SXM-141GB": 206, "B200-SXM-180GB": 281,
}  # fmt: skip
"""FLOP per byte at which linear layers turn compute-bound, dense peaks (2.1)."""


def predicted(
    model: str, bandwidth: float, prompt_tokens: float, output_tokens: float, tensor_parallel: int = 1
) -> DecodeStep:
    llm = llm_models.resolve(model)
    assert llm is not None
    return decode_step.formula(
        weights=Weights(2 * llm.parameters),
        layers=llm.layers,
        active_parameters=llm.active_parameters,
        kv_bytes_per_token=llm_models.kv_bytes_per_token(llm),
        context_tokens=prompt_tokens + output_tokens / 2,
        prompt_per_generated=prompt_tokens / output_tokens,
        tensor_parallel=tensor_parallel,
        bandwidth_bytes_per_s=bandwidth,
        flops=H100_FLOPS,
        half_width=0.2,
    )


def errors(step: DecodeStep, rows: dict[int, float]) -> list[float]:
    return [step.step_s(batch) / (batch / rate) - 1 for batch, rate in rows.items()]


ROWS = {
    "llama-2-7b": (predicted("llama-2-7b", BSC_BANDWIDTH, 250, 260), LLAMA_2_7B),
    "opt-2.7b": (predicted("opt-2.7b", BSC_BANDWIDTH, 250, 260), OPT_2_7B),
    "llama-3.1-8b": (predicted("llama-3.1-8b", H100_BANDWIDTH, 250, 396), LLAMA_3_1_8B),
    "llama-3.3-70b": (predicted("llama-3.3-70b", H100_BANDWIDTH, 250, 396, 4), LLAMA_3_3_70B_TP4),
}


def test_mean_step_time_error_over_the_public_rows_is_within_seven_percent() -> None:
    every = [abs(error) for step, rows in ROWS.values() for error in errors(step, rows)]
    assert fmean(every) <= 0.07


def test_at_most_one_public_row_in_ten_is_off_by_more_than_the_half_width_and_none_by_twice_that() -> None:
    every = [abs(error) for step, rows in ROWS.values() for error in errors(step, rows)]
    assert sum(error > decode_step.HALF_WIDTH_DENSE_HOPPER for error in every) <= len(every) / 10
    assert max(every) <= 2 * decode_step.HALF_WIDTH_DENSE_HOPPER


@pytest.mark.parametrize("name", ROWS)
def test_throughput_gains_over_the_public_rows_err_by_eight_percent_at_most(name: str) -> None:
    step, rows = ROWS[name]
    first = min(rows)
    gains = [
        abs(step.gain(first, batch).p50 / (rate / rows[first]) - 1)
        for batch, rate in rows.items()
        if batch > first
    ]
    assert fmean(gains) <= 0.08


@pytest.mark.parametrize("gpu_key", [key for key in RIDGE if gpu_specs.by_key(key) is not None])
def test_ridge_points_follow_from_the_catalogue(gpu_key: str) -> None:
    spec = gpu_specs.by_key(gpu_key)
    assert spec is not None
    assert spec.bf16_flops is not None
    assert spec.bf16_flops / spec.bandwidth_bytes_per_s == pytest.approx(RIDGE[gpu_key], rel=0.02)


def test_most_ridge_points_are_checked() -> None:
    assert sum(gpu_specs.by_key(key) is not None for key in RIDGE) >= 9


def test_tensor_parallel_ranks_pay_for_talking() -> None:
    one = predicted("llama-3.1-8b", H100_BANDWIDTH, 250, 250)
    two = predicted("llama-3.1-8b", H100_BANDWIDTH, 250, 250, tensor_parallel=2)
    weights_s = 1.08 * 2 * 8_030_261_248 / H100_BANDWIDTH
    assert two.fixed_s == pytest.approx(weights_s / 2 + 2e-3 + 32 * 40e-6)
    assert one.step_s(1) / 2 < two.step_s(1) < one.step_s(1)


def test_a_mixture_reads_all_experts_once_the_batch_is_large() -> None:
    weights = Weights(shared_bytes=2e9, expert_bytes=58e9, expert_share=8 / 128)
    assert weights.read_bytes(1) == pytest.approx(2e9 + 58e9 / 16)
    assert weights.read_bytes(3 * 128 / 8) == pytest.approx(60e9, rel=0.05), (
        "beyond B = 3E/k nearly all are touched"
    )


def law_of_weights(weights: Weights, tensor_parallel: int) -> DecodeStep:
    return decode_step.formula(
        weights=weights,
        layers=48,
        active_parameters=3e9,
        kv_bytes_per_token=1e5,
        context_tokens=700,
        prompt_per_generated=0.4,
        tensor_parallel=tensor_parallel,
        bandwidth_bytes_per_s=H100_BANDWIDTH,
        flops=H100_FLOPS,
        half_width=0.23,
    )


def test_experts_spread_over_ranks_cost_each_layer_and_each_sequence_per_doubling() -> None:
    for ranks, doublings in ((1, 0), (2, 1), (8, 3)):
        mixture = law_of_weights(Weights(2e9, 58e9, 8 / 128), ranks)
        dense = law_of_weights(Weights(2e9), ranks)
        assert mixture.fixed_s - dense.fixed_s == pytest.approx(doublings * 48 * 45e-6)
        assert mixture.sequence_s - dense.sequence_s == pytest.approx(doublings * 11e-6)


def test_narrow_weights_take_longer_than_their_bytes() -> None:
    plain, narrow = law_of_weights(Weights(2e9), 1), law_of_weights(Weights(2e9, kernel=1.3), 1)
    assert narrow.fixed_s - plain.fixed_s == pytest.approx(0.3 * 1.08 * 2e9 / H100_BANDWIDTH)
    assert narrow.sequence_s == plain.sequence_s


def test_a_gain_is_surer_the_nearer_the_batches() -> None:
    step = predicted("llama-3.1-8b", H100_BANDWIDTH, 250, 250)
    none, some, far = (step.gain(8, batch) for batch in (8, 16, 256))
    assert none == Range(1.0, 1.0, 1.0)
    assert some.p10 / some.p50 == pytest.approx(1 - 1.1 * 0.2 / 2)
    assert far.p10 / far.p50 == pytest.approx(1 - 1.1 * 0.2 * (1 - 8 / 256))


def test_the_half_batch_of_a_mixture_is_where_fixed_time_equals_its_sequences() -> None:
    step = DecodeStep(2e-3, 1e-4, "formula", 0.5, experts_s=17e-3, expert_share=8 / 128)
    half = step.half_batch
    assert step.step_s(half) == pytest.approx(2 * half * step.sequence_s, rel=1e-6)


def points(a: float, b: float, *batches: float, seconds: float = 600.0) -> dict[float, BatchPoint]:
    return {batch: BatchPoint(seconds, batch / (a + b * batch) * seconds, 0.0) for batch in batches}


def test_a_fit_finds_the_line_it_was_made_from() -> None:
    found = decode_step.fit(points(0.0072, 0.0001, 4, 8, 16, 32))
    assert found is not None
    assert found.fixed_s == pytest.approx(0.0072)
    assert found.sequence_s == pytest.approx(0.0001)
    assert found.half_width == 0.05
    assert found.basis == "fit"


def test_a_fit_to_scattered_points_is_as_wide_as_they_scatter() -> None:
    """Residuals of ±8 % about the line, four points and two coefficients: 1.6·√2·8 %."""
    line = points(0.01, 0.0001, 10, 20, 30, 40)
    scattered = {
        batch: BatchPoint(point.seconds * (1 + sign * 0.08), point.generated_tokens, 0.0)
        for (batch, point), sign in zip(line.items(), (1, -1, -1, 1), strict=True)
    }
    found = decode_step.fit(scattered)
    assert found is not None
    assert found.half_width == pytest.approx(1.6 * 2**0.5 * 0.08, rel=0.03)


def test_a_fit_of_a_mixture_knows_that_more_sequences_read_more_experts() -> None:
    true = DecodeStep(5e-3, 1e-4, "formula", 0.23, experts_s=17e-3, expert_share=8 / 128)
    seen = {b: BatchPoint(600, 600 * true.tokens_per_s(b), 0.0) for b in (2.0, 8.0, 24.0, 64.0)}
    line, found = decode_step.fit(seen), decode_step.fit(seen, true)
    assert found is not None
    assert found.step_s(1) == pytest.approx(true.step_s(1))
    assert found.step_s(128) == pytest.approx(true.step_s(128))
    assert line is None or line.half_width > 0.1


def test_a_mixture_that_is_faster_than_its_experts_can_be_read_is_fitted_as_a_line() -> None:
    wrong = DecodeStep(5e-3, 1e-4, "formula", 0.23, experts_s=1.0, expert_share=8 / 128)
    found = decode_step.fit(points(0.0072, 0.0001, 4, 8, 16, 32), wrong)
    assert found is not None
    assert found.experts_s == 0.0
    assert found.fixed_s == pytest.approx(0.0072)


def test_a_fit_on_the_public_rows_agrees_with_the_formula() -> None:
    """2.2: on public traces the site fit and the formula agreed within ~10 % on B_half's parts."""
    step, rows = ROWS["llama-2-7b"]
    found = decode_step.fit({batch: BatchPoint(600, rate * 600, 0) for batch, rate in rows.items()})
    assert found is not None
    assert found.fixed_s == pytest.approx(step.fixed_s, rel=0.1)
    assert found.sequence_s == pytest.approx(step.sequence_s, rel=0.1)


@pytest.mark.parametrize(
    "profile",
    [
        points(0.0072, 0.0001, 4, 8),
        points(0.0072, 0.0001, 4, 8, 16, seconds=59),
        points(0.0072, 0.0001, 4, 8, 16, seconds=600) | points(0.05, 0, 9, 11, 13, seconds=600),
        points(0.0072, 0.0001, 10, 12, 14, seconds=900),
        points(0.02, -0.0004, 4, 8, 16),
        {},
    ],
    ids=["two batch sizes", "under a minute each", "no line", "no spread", "falling step time", "nothing"],
)
def test_data_that_cannot_carry_a_fit_give_none(profile: dict[float, BatchPoint]) -> None:
    assert decode_step.fit(profile) is None


def test_a_fit_is_wider_where_it_is_stretched() -> None:
    found = decode_step.fit(points(0.0072, 0.0001, 4, 8, 16, 32))
    assert found is not None
    assert found.width_at(64) == 0.05
    assert found.width_at(65) == 0.20


def test_anchoring_goes_through_the_measured_step() -> None:
    prior = predicted("llama-3.1-8b", H100_BANDWIDTH, 250, 250)
    step = decode_step.anchored(prior, batch=8, step_s=0.0080)
    assert step is not None
    assert step.step_s(8) == pytest.approx(0.0080)
    assert step.half_width >= 0.30
    assert decode_step.anchored(prior, batch=500, step_s=0.0001) is None


steps = st.builds(
    DecodeStep,
    fixed_s=st.floats(1e-3, 0.1),
    sequence_s=st.floats(1e-6, 1e-3),
    basis=st.just("formula"),
    half_width=st.sampled_from((0.1, 0.2, 0.5)),
    experts_s=st.sampled_from((0.0, 0.01, 0.05)),
    expert_share=st.just(0.0625),
)


@given(steps, st.floats(1, 1000), st.floats(1, 8))
def test_a_larger_batch_is_never_slower_in_total_nor_faster_per_token(
    step: DecodeStep, now: float, factor: float
) -> None:
    gain, slower = step.gain(now, now * factor), step.latency_factor(now, now * factor)
    assert 1 - 1e-9 <= gain.p10 <= gain.p50 <= gain.p90 <= factor * (1 + 1e-9)
    assert slower.p10 >= 1 - 1e-9


@given(steps)
def test_half_of_the_reachable_rate_is_reached_at_the_half_batch(step: DecodeStep) -> None:
    half = step.half_batch
    assert step.tokens_per_s(half) == pytest.approx(0.5 / step.sequence_s, rel=1e-6)
    assert step.saturation(half) == pytest.approx(0.5)


@given(steps, st.floats(1.01, 20))
def test_the_largest_batch_within_a_limit_keeps_it(step: DecodeStep, factor: float) -> None:
    limit = step.step_s(1) * factor
    batch = step.largest_batch_within(limit)
    assert step.step_s(batch) == pytest.approx(limit, rel=1e-6)
    assert step.largest_batch_within(step.step_s(1) * 0.99) == 0
