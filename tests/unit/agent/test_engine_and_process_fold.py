"""Engine counters, busy time, and processes per workload."""

import pytest

from agent.fold import EngineFold, ProcessFold
from core.readings import EngineReading, ProcessReading, WorkloadKey
from core.samples import EngineSample

T0 = 1_791_187_200_000


def folded(points: list[tuple[float, dict[str, float]]]) -> list[EngineSample]:
    fold = EngineFold()
    samples = [
        s
        for sec, values in points
        for s in fold.add(EngineReading("n:8000/0", T0 + round(sec * 1000), values))
    ]
    return samples + fold.flush()


def test_counters_become_increases_that_add_up() -> None:
    samples = folded([(1.3 * i, {"generated_tokens": 7.0 * i, "running_requests": 2.0}) for i in range(40)])
    assert sum(s.values["generated_tokens"] for s in samples) == pytest.approx(7 * 39)
    assert all(s.values["running_requests"] == pytest.approx(2) for s in samples)


def test_a_restarted_engine_adds_nothing_negative() -> None:
    tokens = [100, 200, 300, 5, 105, 205]
    samples = folded([(i, {"generated_tokens": float(n)}) for i, n in enumerate(tokens)])
    assert sum(s.values["generated_tokens"] for s in samples) == pytest.approx(400)


def test_busy_time_is_that_with_requests_running_at_either_end() -> None:
    running = [0, 0, 4, 4, 0, 0, 0]
    (sample,) = folded([(i, {"running_requests": float(n)}) for i, n in enumerate(running)])
    assert sample.busy_ms == 3_000
    assert sample.covered_ms == 6_000
    assert sample.busy_running_requests == pytest.approx((2 + 4 + 2) / 3)
    assert sample.values["running_max_requests"] == 4


def test_tokens_between_two_readings_make_them_busy_though_none_ran_at_either() -> None:
    points = [(0, 0.0, 5.0), (1, 0.0, 5.0), (2, 0.0, 9.0), (3, 0.0, 9.0)]
    (sample,) = folded([(t, {"running_requests": r, "generated_tokens": g}) for t, r, g in points])
    assert sample.busy_ms == 1_000
    assert sample.busy_running_requests == 0


def test_an_engine_that_never_ran_has_no_batch_size() -> None:
    (sample,) = folded([(i, {"running_requests": 0.0}) for i in range(5)])
    assert (sample.busy_ms, sample.busy_running_requests) == (0, None)


def test_busy_time_over_a_border_is_split() -> None:
    first, second = folded([(9, {"running_requests": 2.0}), (12, {"running_requests": 2.0})])
    assert (first.busy_ms, second.busy_ms) == (1_000, 2_000)


def process(
    sec: float, pid: int, memory: float | None, key: str = "1:0", gpu: str = "GPU-a"
) -> ProcessReading:
    workload = WorkloadKey("process", key, "python", host="n")
    return ProcessReading(gpu, T0 + round(sec * 1000), pid, workload, memory_used_bytes=memory)


def test_processes_of_one_workload_are_summed_per_instant() -> None:
    fold = ProcessFold()
    for sec in (0, 5):
        assert fold.add(process(sec, 1, 1e9 + sec)) == []
        assert fold.add(process(sec, 2, 2e9)) == []
    (sample,) = fold.flush()
    assert sample.memory_used_bytes == pytest.approx(3e9 + 5)
    assert sample.process_count == 2
    assert sample.ts_ms == T0


def test_unknown_process_memory_stays_unknown() -> None:
    fold = ProcessFold()
    fold.add(process(0, 1, None))
    assert fold.flush()[0].memory_used_bytes is None


def test_a_later_reading_closes_the_interval_and_an_older_one_is_refused() -> None:
    fold = ProcessFold()
    fold.add(process(5, 1, 1.0))
    assert [s.ts_ms for s in fold.add(process(11, 1, 2.0))] == [T0]
    assert fold.add(process(3, 1, 9.0)) == []
    assert fold.refused == 1
    assert [s.memory_used_bytes for s in fold.flush()] == [2.0]


def test_a_process_that_ended_is_not_held_back() -> None:
    fold = ProcessFold()
    fold.add(process(5, 1, 1.0))
    assert fold.advance(T0 + 9_999) == []
    assert len(fold.advance(T0 + 10_000)) == 1
    assert fold.flush() == []
