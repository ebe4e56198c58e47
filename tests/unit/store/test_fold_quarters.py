"""Samples of an hour folded into its quarters, and quarters packed into a column."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_samples import H0, SPAN, gpu_sample, host_sample

from core.activity import Activity
from core.quarters import OF_GPU, OF_HOST, QUARTER_MS, Quarter, Quarters, merged_quarters
from core.samples import GpuSample
from core.units import GIB, MINUTE_MS
from store.fold_hours import fold_gpu_hour
from store.fold_quarters import fold_gpu_quarters, fold_host_quarters
from store.quarter_rows import CODES, packed, quarters_in

GAP = Quarter(0.0, None, (None,) * len(OF_GPU))
SLOTS = QUARTER_MS // SPAN


def of(quarter: Quarter, name: str) -> float | None:
    return quarter.values[OF_GPU.index(name)]


def long_sample(minute: int, minutes: int, activity: Activity = Activity.BUSY, **values: float) -> GpuSample:
    """A sample of an import: ``minutes`` long."""
    span_ms = minutes * MINUTE_MS
    sample = gpu_sample(0, activity, covered_ms=span_ms, **values)
    return replace(sample, ts_ms=H0 + minute * MINUTE_MS, span_ms=span_ms)


def test_each_quarter_says_what_its_own_samples_say() -> None:
    samples = [gpu_sample(slot, Activity.EMPTY, power_w=70.0) for slot in range(SLOTS)]
    samples += [gpu_sample(SLOTS + slot, Activity.BUSY, power_w=300.0 + slot) for slot in range(3)]
    first, second, third, fourth = fold_gpu_quarters(H0, samples)
    assert (first.covered_s, first.activity, of(first, "power_w")) == (900.0, Activity.EMPTY, 70.0)
    assert (second.covered_s, second.activity, of(second, "power_w")) == (30.0, Activity.BUSY, 301.0)
    assert of(second, "sm_active_ratio") is None
    assert third == fourth == GAP


def test_the_activity_is_that_with_most_of_the_covered_time() -> None:
    short = [gpu_sample(slot, Activity.PARKED, covered_ms=2_000) for slot in range(4)]
    (quarter, *_) = fold_gpu_quarters(H0, [*short, gpu_sample(4, Activity.BUSY)])
    assert quarter.activity is Activity.BUSY
    assert quarter.covered_s == 18.0


def test_means_weigh_by_covered_time_and_skip_what_is_unknown() -> None:
    samples = [
        gpu_sample(0, power_w=100.0),
        gpu_sample(1, covered_ms=5_000, power_w=400.0),
        replace(gpu_sample(2), values={"busy_ratio": 0.0}),
    ]
    (quarter, *_) = fold_gpu_quarters(H0, samples)
    assert of(quarter, "power_w") == pytest.approx(200.0)
    assert of(quarter, "busy_ratio") == pytest.approx(0.9 * 15 / 25)


def test_a_sample_without_covered_time_is_a_gap() -> None:
    assert fold_gpu_quarters(H0, [gpu_sample(0, Activity.UNKNOWN, covered_ms=0)]) == (GAP,) * 4


def test_a_sample_longer_than_a_quarter_is_no_gap_after_it() -> None:
    half = [long_sample(0, 30, power_w=100.0), long_sample(30, 30, Activity.EMPTY, power_w=50.0)]
    quarters = fold_gpu_quarters(H0, half)
    assert [quarter.covered_s for quarter in quarters] == [900.0] * 4
    assert [quarter.activity for quarter in quarters] == [Activity.BUSY] * 2 + [Activity.EMPTY] * 2
    assert [of(quarter, "power_w") for quarter in quarters] == [100.0, 100.0, 50.0, 50.0]


def test_a_sample_beyond_the_hour_ends_with_it() -> None:
    quarters = fold_gpu_quarters(H0, [long_sample(40, 60)])
    assert [quarter.covered_s for quarter in quarters] == [0.0, 0.0, 300.0, 900.0]


@given(
    st.lists(
        st.tuples(st.sampled_from(list(Activity)), st.integers(0, SPAN), st.floats(0, 1_000)),
        min_size=1,
        max_size=360,
    )
)
def test_the_quarters_add_up_to_the_hour(told: list[tuple[Activity, int, float]]) -> None:
    samples = [
        gpu_sample(slot, activity, covered_ms=covered_ms, power_w=power_w)
        for slot, (activity, covered_ms, power_w) in enumerate(told)
    ]
    quarters, hour = fold_gpu_quarters(H0, samples), fold_gpu_hour("GPU-a", H0, samples)
    assert hour is not None
    assert sum(quarter.covered_s for quarter in quarters) == pytest.approx(hour.covered_s)
    joules = sum(quarter.covered_s * (of(quarter, "power_w") or 0.0) for quarter in quarters)
    assert joules == pytest.approx((hour.power_w or 0.0) * hour.covered_s)


def test_quarters_of_a_host_have_no_activity() -> None:
    quarters = fold_host_quarters(H0, [host_sample(slot, cpu_busy_ratio=0.5) for slot in range(SLOTS)])
    assert quarters[0] == Quarter(900.0, None, (0.5, None, None))
    assert quarters[1] == Quarter(0.0, None, (None,) * len(OF_HOST))


def test_what_was_packed_is_read_as_a_strip_shows_it() -> None:
    values = (0.45, 612.0, 71.3 * GIB, None, 0.0, 1.0)
    quarters: Quarters = (
        Quarter(899.5, Activity.MIXED, values),
        Quarter(0.01, Activity.UNKNOWN, values),
        GAP,
        GAP,
    )
    column = packed(quarters, OF_GPU)
    assert column is not None
    assert len(column) == 60
    first, second, *gaps = quarters_in(column, OF_GPU) or ()
    assert (first.covered_s, first.activity) == (899.5, Activity.MIXED)
    assert first.values == tuple(None if v is None else pytest.approx(v, rel=1 / 2048) for v in values)
    assert second.covered_s > 0, "an instant is no gap"
    assert gaps == [GAP, GAP]


def test_an_hour_without_quarters_has_none() -> None:
    assert packed(None, OF_GPU) is None
    assert quarters_in(None, OF_HOST) is None


def test_a_figure_beyond_half_precision_is_its_largest_and_no_failure() -> None:
    quarters = quarters_in(packed((Quarter(1.0, Activity.BUSY, (1e9,) * 6),) * 4, OF_GPU), OF_GPU) or ()
    assert of(quarters[0], "power_w") == 65_504.0


def test_every_activity_has_its_code() -> None:
    assert set(CODES) == set(Activity)
    assert len(CODES) == len(Activity)


def test_two_parts_of_an_hour_are_the_hour() -> None:
    samples = [gpu_sample(slot, power_w=100.0 + slot) for slot in range(300)]
    parts = [fold_gpu_quarters(H0, samples[:130]), fold_gpu_quarters(H0, samples[130:])]
    whole, merged = fold_gpu_quarters(H0, samples), merged_quarters(*parts)
    assert merged is not None
    assert merged == merged_quarters(*reversed(parts))
    for one, other in zip(whole, merged, strict=True):
        assert (one.covered_s, one.activity) == (other.covered_s, other.activity)
        assert of(one, "power_w") == pytest.approx(of(other, "power_w"))
    assert merged_quarters(None, whole) is None
    assert merged_quarters(whole, None) is None
