"""A GPU's hour split among those who held it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_samples import H0, SPAN, bare_sample, gpu_sample, process_sample, workload

from core.activity import Activity
from core.hours import UsageHour
from core.readings import WorkloadKey
from core.samples import GpuSample
from store.fold_hours import fold_gpu_hour
from store.fold_usage import Holder, fold_usage_hour, holders_by_time

ENGINE = WorkloadKey("engine", "h1:8000/0", "llama-2-13b", None, "h1")


def by_workload(rows: list[UsageHour]) -> dict[str | None, UsageHour]:
    return {None if row.workload is None else row.workload.key: row for row in rows}


def split(samples: list[GpuSample], *processes: tuple[int, str, float | None]) -> dict[str | None, UsageHour]:
    seen = [process_sample(slot, key, memory) for slot, key, memory in processes]
    return by_workload(fold_usage_hour("GPU-a", H0, samples, holders_by_time(samples, seen, {})))


def test_a_workload_alone_has_the_whole() -> None:
    rows = split([gpu_sample(0)], (0, "a", 5e9))
    assert rows["a"] == UsageHour(workload("a"), "GPU-a", H0, 10.0, 10.0, 0.0, 5e10, 3_000.0, "whole")


def test_a_shared_gpu_is_split_by_memory_and_time() -> None:
    rows = split([gpu_sample(0)], (0, "a", 3e9), (0, "b", 1e9))
    assert (rows["a"].allocated_s, rows["b"].allocated_s) == (7.5, 2.5)
    assert (rows["a"].energy_j, rows["b"].energy_j) == (2_250.0, 750.0)
    assert rows["a"].share_method == rows["b"].share_method == "memory_time"


def test_a_shared_gpu_is_split_evenly_when_any_memory_is_unknown() -> None:
    rows = split([gpu_sample(0)], (0, "a", 3e9), (0, "b", None))
    assert (rows["a"].allocated_s, rows["b"].allocated_s) == (5.0, 5.0)
    assert rows["a"].share_method == "even"


def test_the_weakest_method_of_the_hour_is_named() -> None:
    rows = split([gpu_sample(0), gpu_sample(1)], (0, "a", 3e9), (1, "a", 3e9), (1, "b", 1e9))
    assert rows["a"].share_method == "memory_time"


def test_time_nobody_held_is_a_row_without_workload() -> None:
    rows = split([gpu_sample(0), gpu_sample(1, Activity.EMPTY, energy_j=700.0)], (0, "a", 1e9))
    assert rows[None].allocated_s == 10.0
    assert rows[None].active_s == 0.0
    assert rows[None].energy_j == 700.0


def test_what_rounding_leaves_goes_to_the_largest() -> None:
    rows = split([gpu_sample(0, covered_ms=10_000)], (0, "a", 1e9), (0, "b", 1e9), (0, "c", 1e9))
    assert sorted(row.allocated_s for row in rows.values()) == [3.333, 3.333, 3.334]


def test_unknown_energy_stays_unknown() -> None:
    rows = split([bare_sample(0, Activity.BUSY)], (0, "a", 1e9))
    assert rows["a"].energy_j is None


def test_memory_of_a_workload_alone_is_the_cards_where_nobody_says_more() -> None:
    rows = split([gpu_sample(0, memory_used_bytes=4e9)], (0, "a", None))
    assert rows["a"].memory_byte_s == 4e10


def test_unknown_memory_stays_unknown() -> None:
    rows = split([gpu_sample(0)], (0, "a", None))
    assert rows["a"].memory_byte_s is None


def test_idle_time_of_a_holder_is_allocated_and_not_active() -> None:
    rows = split([gpu_sample(0, Activity.PARKED)], (0, "a", 1e9))
    assert (rows["a"].allocated_s, rows["a"].active_s) == (10.0, 0.0)


def test_an_engine_stands_in_where_no_process_was_seen() -> None:
    samples = [gpu_sample(0), gpu_sample(1), gpu_sample(2)]
    seen = holders_by_time(samples, [process_sample(0, "a")], {ENGINE: frozenset({H0, H0 + SPAN})})
    rows = by_workload(fold_usage_hour("GPU-a", H0, samples, seen))
    assert rows["a"].allocated_s == 10.0
    assert rows[ENGINE.key].allocated_s == 10.0
    assert rows[ENGINE.key].share_method == "whole"
    assert rows[None].allocated_s == 10.0


def test_an_engine_does_not_hold_a_gpu_that_is_empty() -> None:
    samples = [gpu_sample(0, Activity.EMPTY)]
    rows = by_workload(
        fold_usage_hour("GPU-a", H0, samples, holders_by_time(samples, [], {ENGINE: frozenset({H0})}))
    )
    assert set(rows) == {None}


def test_two_engines_on_one_gpu_share_it_evenly() -> None:
    other = replace(ENGINE, key="h1:8001/0")
    samples = [gpu_sample(0)]
    seen = holders_by_time(samples, [], {ENGINE: frozenset({H0}), other: frozenset({H0})})
    rows = by_workload(fold_usage_hour("GPU-a", H0, samples, seen))
    assert rows[ENGINE.key].allocated_s == rows[other.key].allocated_s == 5.0


@st.composite
def shared_hours(draw: st.DrawFn) -> tuple[list[GpuSample], dict[int, list[Holder]]]:
    samples, holders = [], {}
    for slot in range(draw(st.integers(1, 20))):
        values = draw(
            st.dictionaries(st.sampled_from(["energy_j", "sm_active_ratio"]), st.floats(0, 1e5), max_size=2)
        )
        sample = bare_sample(
            slot, draw(st.sampled_from(Activity)), covered_ms=draw(st.integers(0, SPAN)), **values
        )
        samples.append(sample)
        keys = draw(st.lists(st.sampled_from("abcde"), unique=True, max_size=5))
        memory = st.none() | st.floats(0, 1e12, allow_nan=False)
        holders[sample.ts_ms] = [Holder(workload(key), draw(memory)) for key in keys]
    return samples, holders


@given(shared_hours())
def test_the_rows_of_an_hour_sum_to_it(case: tuple[list[GpuSample], dict[int, list[Holder]]]) -> None:
    samples, holders = case
    hour = fold_gpu_hour("GPU-a", H0, samples)
    rows = fold_usage_hour("GPU-a", H0, samples, holders)
    assert hour is not None
    assert round(sum(row.allocated_s for row in rows) * 1000) == round(hour.covered_s * 1000)
    assert round(sum(row.active_s for row in rows) * 1000) == round(hour.active_s * 1000)
    assert round(sum(row.effective_s for row in rows) * 1000) == round(hour.effective_s * 1000)
    of_covered = sum(s.values.get("energy_j", 0.0) for s in samples)
    shared = [row.energy_j for row in rows if row.energy_j is not None]
    if all(s.covered_ms for s in samples):
        assert sum(shared) == pytest.approx(of_covered, abs=1e-6)
        assert (hour.energy_j is None) == (not shared)
    for row in rows:
        assert row.effective_s <= row.active_s <= row.allocated_s


def test_processors_are_means_over_the_time_in_which_they_are_known() -> None:
    samples = [gpu_sample(0), gpu_sample(1, covered_ms=5_000), gpu_sample(2), gpu_sample(3)]
    seen = [
        process_sample(0, "a", cpu=1.0, thread=0.5),
        process_sample(1, "a", cpu=4.0),
        process_sample(2, "a"),
        process_sample(1, "b", cpu=8.0, thread=1.0),
    ]
    rows = by_workload(fold_usage_hour("GPU-a", H0, samples, holders_by_time(samples, seen, {})))
    assert (rows["a"].cpu_ratio, rows["a"].cpu_thread_ratio) == (2.0, 0.5)
    assert (rows["b"].cpu_ratio, rows["b"].cpu_thread_ratio) == (8.0, 1.0)
    assert (rows[None].cpu_ratio, rows[None].cpu_thread_ratio) == (None, None)


def test_a_workload_is_the_same_whatever_else_becomes_known_of_it() -> None:
    samples = [gpu_sample(0), gpu_sample(1)]
    engine = replace(ENGINE, name="renamed", attributes=(("pod", "a"),))
    seen = [replace(process_sample(0), workload=engine)]
    rows = fold_usage_hour(
        "GPU-a", H0, samples, holders_by_time(samples, seen, {ENGINE: frozenset({H0 + SPAN})})
    )
    assert [(row.workload, row.allocated_s) for row in rows] == [(engine, 20.0)]
