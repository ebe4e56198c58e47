"""Work that no counter judges is effective when the engine on the GPU runs at half of what it can."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_samples import H0, SPAN, bare_sample, engine_sample, gpu_sample, workload

from core.activity import Activity
from core.samples import GpuSample
from store.engine_effect import by_engine_rate, effective
from store.fold_hours import fold_gpu_hour
from store.fold_usage import fold_usage_hour
from store.usage_shares import Holder

BUSY = bare_sample(0, Activity.BUSY, busy_ratio=0.9)


def told(tokens_per_s: float, reachable: float | None = 200.0, sample: GpuSample = BUSY) -> bool | None:
    engine = engine_sample(generated_tokens=tokens_per_s * SPAN / 1000)
    return effective(sample, by_engine_rate([engine], reachable, {H0: sample}, {}))


@pytest.mark.parametrize(("rate", "expected"), [(99.9, False), (100.0, True), (0.0, False), (300.0, True)])
def test_half_of_what_it_can_is_enough(rate: float, expected: bool) -> None:
    assert told(rate) is expected


def test_nothing_is_told_by_an_engine_whose_reach_is_not_known() -> None:
    assert told(1_000.0, None) is None


def test_counters_and_idleness_go_before_the_engine() -> None:
    assert told(1_000.0, sample=bare_sample(0, Activity.BUSY, sm_active_ratio=0.1)) is False
    assert told(0.0, sample=bare_sample(0, Activity.MIXED, sm_active_ratio=0.9)) is True
    assert told(1_000.0, sample=bare_sample(0, Activity.PARKED)) is False


def test_the_rate_is_over_the_time_that_was_seen() -> None:
    engine = engine_sample(generated_tokens=500.0, covered_ms=5_000)
    assert by_engine_rate([engine], 200.0, {H0: BUSY}, {}) == {H0: True}
    assert by_engine_rate([replace(engine, covered_ms=0)], 200.0, {H0: BUSY}, {}) == {}


def test_an_engine_without_figures_or_of_other_intervals_tells_nothing() -> None:
    silent = engine_sample()
    silent = replace(silent, values={"waiting_requests": 0.0})
    assert by_engine_rate([silent], 200.0, {H0: BUSY}, {}) == {}
    assert by_engine_rate([engine_sample(1)], 200.0, {H0: BUSY}, {}) == {}
    assert by_engine_rate([replace(engine_sample(), span_ms=2 * SPAN)], 200.0, {H0: BUSY}, {}) == {}


def test_an_engine_that_shares_the_gpu_tells_nothing_of_it() -> None:
    one, two = Holder(workload("a"), None), Holder(workload("b"), None)
    assert by_engine_rate([engine_sample()], 1.0, {H0: BUSY}, {H0: [one]}) == {H0: True}
    assert by_engine_rate([engine_sample()], 1.0, {H0: BUSY}, {H0: [one, two]}) == {}


@given(
    st.lists(st.tuples(st.sampled_from(Activity), st.sampled_from([None, 0.2, 0.8])), min_size=1, max_size=8),
    st.dictionaries(st.integers(0, 7), st.booleans()),
)
def test_hour_and_usage_agree_on_it(
    seen: list[tuple[Activity, float | None]], decided: dict[int, bool]
) -> None:
    samples = [
        gpu_sample(slot, activity, **({} if sm is None else {"sm_active_ratio": sm}))
        for slot, (activity, sm) in enumerate(seen)
    ]
    by_engine = {H0 + slot * SPAN: good for slot, good in decided.items()}
    hour = fold_gpu_hour("GPU-a", H0, samples, by_engine)
    assert hour is not None
    holders = {sample.ts_ms: [Holder(workload("a"), 1e9)] for sample in samples}
    (row,) = fold_usage_hour("GPU-a", H0, samples, holders, by_engine=by_engine)
    assert row.effective_s == hour.effective_s
    assert hour.effective_s + hour.effective_unknown_s <= hour.active_s
    plain = fold_gpu_hour("GPU-a", H0, samples)
    assert plain is not None
    assert plain.effective_s <= hour.effective_s
    assert plain.effective_unknown_s >= hour.effective_unknown_s
