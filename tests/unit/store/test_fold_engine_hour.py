"""Samples of one engine folded over an hour."""

import pytest
from store_samples import H0, engine_sample, gpu_sample

from core.hours import BatchPoint
from core.samples import EngineSample, GpuSample
from store.fold_hours import fold_engine_hour


def by_time(*samples: GpuSample) -> dict[int, GpuSample]:
    return {sample.ts_ms: sample for sample in samples}


def idle(slot: int) -> EngineSample:
    return engine_sample(slot, None, busy_ms=0, generated_tokens=0.0, prompt_tokens=0.0, waiting_requests=0.0)


def test_no_samples_make_no_hour() -> None:
    assert fold_engine_hour("e", H0, [], []) is None


def test_batch_queue_and_cache_count_busy_time_only() -> None:
    hour = fold_engine_hour(
        "e", H0, [engine_sample(0, 8.0, kv_used_ratio=0.5), engine_sample(1, 4.0, busy_ms=2_000), idle(2)], []
    )
    assert hour is not None
    assert hour.running.seconds == {8.0: 10.0, 4.0: 2.0}
    assert hour.waiting.seconds == {2.0: 12.0}
    assert hour.kv_used.seconds == {0.5: 10.0}
    assert (hour.covered_s, hour.busy_s) == (30.0, 12.0)


def test_profile_gathers_tokens_by_batch_size() -> None:
    hour = fold_engine_hour(
        "e", H0, [engine_sample(0, 8.0), engine_sample(1, 8.0), engine_sample(2, 1.0, busy_ms=5_000)], []
    )
    assert hour is not None
    assert hour.profile == {8.0: BatchPoint(20.0, 2_000.0, 1_000.0), 1.0: BatchPoint(5.0, 1_000.0, 500.0)}


def test_counters_are_sums_and_unknown_where_the_engine_has_none() -> None:
    hour = fold_engine_hour(
        "e", H0, [engine_sample(0, ttft_sum_s=1.5), engine_sample(1, ttft_sum_s=0.5), idle(2)], []
    )
    assert hour is not None
    assert hour.generated_tokens == 2_000.0
    assert hour.busy_generated_tokens == 2_000.0
    assert hour.ttft_sum_s == 2.0
    assert hour.itl_sum_s is None
    assert hour.preemption_count is None


def test_busy_energy_is_the_busy_share_of_each_interval_over_all_gpus() -> None:
    hour = fold_engine_hour(
        "e",
        H0,
        [engine_sample(0), engine_sample(1, busy_ms=2_500), idle(2)],
        [
            by_time(*(gpu_sample(slot, energy_j=4_000.0) for slot in range(3))),
            by_time(*(gpu_sample(slot, gpu="GPU-b", energy_j=2_000.0) for slot in range(3))),
        ],
    )
    assert hour is not None
    assert hour.busy_energy_j == pytest.approx(4_000 + 2_000 + 1_000 + 500)


def test_a_gpu_sample_cut_short_belongs_whole_to_as_much_busy_time() -> None:
    hour = fold_engine_hour(
        "e",
        H0,
        [engine_sample(0, busy_ms=4_000, covered_ms=4_000)],
        [by_time(gpu_sample(0, covered_ms=4_000, energy_j=1_600.0))],
    )
    assert hour is not None
    assert hour.busy_energy_j == 1_600.0


def test_busy_energy_is_unknown_without_gpus() -> None:
    hour = fold_engine_hour("e", H0, [engine_sample(0)], [])
    assert hour is not None
    assert hour.busy_energy_j is None


def test_busy_energy_is_unknown_when_one_gpu_has_none() -> None:
    hour = fold_engine_hour("e", H0, [engine_sample(0)], [by_time(gpu_sample(0)), {}])
    assert hour is not None
    assert hour.busy_energy_j is None


def test_busy_energy_is_refused_when_more_than_a_sliver_of_it_is_missing() -> None:
    busy = [engine_sample(slot) for slot in range(40)]
    nearly = fold_engine_hour("e", H0, busy, [by_time(*(gpu_sample(slot) for slot in range(1, 40)))])
    too_little = fold_engine_hour("e", H0, busy, [by_time(*(gpu_sample(slot) for slot in range(5, 40)))])
    assert nearly is not None
    assert too_little is not None
    assert nearly.busy_energy_j == pytest.approx(39 * 3_000)
    assert too_little.busy_energy_j is None


def test_an_engine_that_never_worked_has_no_busy_energy() -> None:
    hour = fold_engine_hour("e", H0, [idle(0)], [by_time(gpu_sample(0))])
    assert hour is not None
    assert (hour.busy_s, hour.busy_energy_j) == (0.0, None)
    assert hour.running.total_s == 0.0
