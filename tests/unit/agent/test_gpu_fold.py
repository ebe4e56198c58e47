"""Readings become samples: time weights, borders, gaps, resets, unknown values."""

from dataclasses import replace
from itertools import pairwise
from math import inf, isclose, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.fold import GpuFold
from core.activity import Activity
from core.readings import GpuIdentity, GpuReading
from core.samples import EnergyMethod, GpuSample

T0 = 1_791_187_200_000
UUID = "GPU-a"


def at(second: float, **values: float | None) -> GpuReading:
    return GpuReading(UUID, T0 + round(second * 1000), values)  # type: ignore[arg-type]


def folded(readings: list[GpuReading], *, span_ms: int = 10_000, total: int | None = None) -> list[GpuSample]:
    fold = GpuFold(span_ms=span_ms, identities=[GpuIdentity(UUID, memory_total_bytes=total)])
    return [sample for reading in readings for sample in fold.add(reading)] + fold.flush()


def trapezoid(readings: list[GpuReading], key: str = "power_w") -> float:
    return sum(
        (b.ts_ms - a.ts_ms) / 1000 * (a.values[key] + b.values[key]) / 2 for a, b in pairwise(readings)
    )


def test_a_mean_weighs_by_time_and_not_by_readings() -> None:
    sample = folded([at(0, power_w=100), at(1, power_w=100), at(2, power_w=100), at(5, power_w=400)])[0]
    assert sample.values["power_w"] == pytest.approx((100 + 100 + 3 * 250) / 5)
    assert sample.covered_ms == 5_000


def test_a_segment_over_a_border_is_split_by_interpolation() -> None:
    first, second = folded([at(8, power_w=100), at(12, power_w=300)])
    assert (first.ts_ms, second.ts_ms) == (T0, T0 + 10_000)
    assert first.covered_ms == second.covered_ms == 2_000
    assert first.values["energy_j"] == pytest.approx(2 * 150)
    assert second.values["energy_j"] == pytest.approx(2 * 250)
    assert first.values["power_max_w"] == pytest.approx(200)
    assert first.energy_method is EnergyMethod.INTEGRATED


@given(
    st.lists(
        st.tuples(st.integers(1, 4_999), st.floats(0, 1_000, allow_nan=False)), min_size=2, max_size=120
    ),
    st.sampled_from([1_000, 10_000, 300_000]),
)
def test_energy_over_samples_is_the_trapezoid_of_the_series(
    steps: list[tuple[int, float]], span_ms: int
) -> None:
    readings, ts_ms = [], T0 + 137
    for step, power in steps:
        ts_ms += step
        readings.append(GpuReading(UUID, ts_ms, {"power_w": power, "busy_ratio": power / 1_000}))
    samples = folded(readings, span_ms=span_ms)
    joules = sum(sample.values.get("energy_j", 0.0) for sample in samples)
    assert isclose(joules, trapezoid(readings), rel_tol=1e-9, abs_tol=1e-9)
    assert sum(sample.covered_ms for sample in samples) == readings[-1].ts_ms - readings[0].ts_ms
    for sample in samples:
        values = sample.values
        assert values["busy_min_ratio"] - 1e-12 <= values["busy_ratio"] <= values["busy_max_ratio"] + 1e-12
        assert 0 <= values["busy_ratio"] <= 1
        assert sample.ts_ms % span_ms == 0
        assert 0 <= sample.covered_ms <= span_ms
    assert len({sample.ts_ms for sample in samples}) == len(samples)


@given(
    st.lists(st.tuples(st.integers(1, 4_999), st.floats(0, 900), st.integers(0, 3)), min_size=3, max_size=60)
)
def test_energy_is_the_trapezoid_when_two_logs_alternate(steps: list[tuple[int, float, int]]) -> None:
    """Power comes from one log, memory from another; every third reading or so has no power."""
    readings, ts_ms = [], T0 + 7
    for step, power, kind in steps:
        ts_ms += step // 2 + 1
        values = {"memory_used_bytes": 1e9} if kind == 0 else {"power_w": power}
        readings.append(GpuReading(UUID, ts_ms, values))
    with_power = [reading for reading in readings if "power_w" in reading.values]
    if len(with_power) < 2 or any(b.ts_ms - a.ts_ms > 5_000 for a, b in pairwise(with_power)):
        return
    samples = folded(readings)
    joules = sum(sample.values.get("energy_j", 0.0) for sample in samples)
    assert isclose(joules, trapezoid(with_power), rel_tol=1e-9, abs_tol=1e-9)


def test_a_slow_series_fills_the_intervals_between_its_readings() -> None:
    samples = folded([at(60 * i, power_w=100 + 60 * i, busy_ratio=0.5) for i in range(4)])
    assert [sample.ts_ms for sample in samples] == [T0 + 10_000 * i for i in range(19)]
    assert all(sample.covered_ms == 10_000 for sample in samples[:-1])
    assert samples[1].values["power_w"] == pytest.approx(115)
    assert samples[1].values["busy_ratio"] == pytest.approx(0.5)


def test_a_pause_longer_than_the_cadence_allows_is_a_gap() -> None:
    before = [at(i, power_w=200) for i in range(20)]
    after = [at(40 + i, power_w=200) for i in range(10)]
    fold = GpuFold()
    samples = [s for r in before + after for s in fold.add(r)] + fold.flush()
    assert fold.gaps == 1
    assert sum(sample.values.get("energy_j", 0.0) for sample in samples) == pytest.approx(200 * (19 + 9))
    assert T0 + 20_000 not in {sample.ts_ms for sample in samples}
    assert sum(sample.covered_ms for sample in samples) == 28_000


def test_a_stall_of_four_seconds_in_a_1_hz_log_is_no_gap() -> None:
    samples = folded([at(s, power_w=100) for s in (0, 1, 2, 3, 4, 8, 9)])
    assert sum(sample.values["energy_j"] for sample in samples) == pytest.approx(900)


def test_two_readings_alone_are_neighbours_up_to_two_minutes() -> None:
    assert sum(s.covered_ms for s in folded([at(0, power_w=1), at(120, power_w=1)])) == 120_000
    assert sum(s.covered_ms for s in folded([at(0, power_w=1), at(121, power_w=1)])) == 0


def test_nothing_vouches_for_more_than_five_minutes() -> None:
    slow = [at(100 * i, power_w=1) for i in range(12)]
    assert sum(s.covered_ms for s in folded([*slow, at(1_100 + 300, power_w=1)])) == 1_400_000
    assert sum(s.covered_ms for s in folded([*slow, at(1_100 + 301, power_w=1)])) == 1_100_000


def test_a_single_reading_is_kept_without_coverage_and_without_energy() -> None:
    (sample,) = folded([at(3, power_w=120, busy_ratio=0.4)])
    assert sample.covered_ms == 0
    assert sample.values["power_w"] == 120
    assert "energy_j" not in sample.values
    assert sample.energy_method is None


def test_time_going_backwards_and_the_same_instant_are_refused_and_counted() -> None:
    fold = GpuFold()
    for reading in (at(1, power_w=1), at(2, power_w=1), at(1.5, power_w=9_999), at(2, power_w=9_999)):
        fold.add(reading)
    (sample,) = fold.flush()
    assert fold.refused == 2
    assert sample.values["power_max_w"] == 1


@pytest.mark.parametrize("unknown", [None, nan, inf, -inf])
def test_unknown_values_are_absent_and_never_zero(unknown: float | None) -> None:
    samples = folded([at(i, power_w=100.0, temperature_c=unknown) for i in range(10)])
    assert "temperature_c" not in samples[0].values
    assert samples[0].values["power_w"] == 100


def test_a_value_missing_now_and_then_keeps_its_mean_and_energy() -> None:
    readings = [at(i, busy_ratio=1.0, power_w=None if i == 4 else 100.0) for i in range(11)]
    first = folded(readings)[0]
    assert first.values["energy_j"] == pytest.approx(1_000)
    assert first.values["power_w"] == pytest.approx(100)


def test_a_value_missing_for_long_has_no_energy_there() -> None:
    readings = [at(i, busy_ratio=1.0, power_w=None if 20 < i < 40 else 100.0) for i in range(61)]
    by_start = {(s.ts_ms - T0) // 1000: s for s in folded(readings)}
    assert "power_w" not in by_start[30].values
    assert "energy_j" not in by_start[30].values
    assert by_start[30].covered_ms == 10_000
    assert sum(s.values.get("energy_j", 0.0) for s in by_start.values()) == pytest.approx(100 * (20 + 20))


def test_the_energy_counter_is_preferred_over_power() -> None:
    samples = folded([at(i, power_w=100, energy_j=5_000.0 + 90 * i) for i in range(21)])
    assert [sample.energy_method for sample in samples[:2]] == [EnergyMethod.COUNTER] * 2
    assert samples[0].values["energy_j"] == pytest.approx(900)


def test_a_reset_counter_gives_nothing_negative_and_power_fills_the_segment() -> None:
    counter = {i: 5_000.0 + 90 * i for i in range(5)} | {i: 90.0 * (i - 5) for i in range(5, 10)}
    samples = folded([at(i, power_w=100, energy_j=counter[i]) for i in range(10)])
    assert samples[0].values["energy_j"] == pytest.approx(90 * 8 + 100)
    assert samples[0].energy_method is EnergyMethod.MIXED


def test_a_reset_counter_without_power_leaves_its_segment_out() -> None:
    samples = folded(
        [at(0, energy_j=500.0), at(1, energy_j=600.0), at(2, energy_j=10.0), at(3, energy_j=110.0)]
    )
    assert samples[0].values["energy_j"] == pytest.approx(200)


def test_flags_are_ored_and_memory_is_the_highest_reading() -> None:
    readings = [at(i, event_reasons_flags=1 << (i % 3), memory_used_bytes=1e9 * i) for i in range(10)]
    first = folded([*readings, at(10, event_reasons_flags=64, memory_used_bytes=5e10)])[0]
    assert first.values["event_reasons_flags"] == 7
    assert first.values["memory_used_bytes"] == 9e9


def test_activity_uses_the_memory_that_the_identity_gives() -> None:
    idle = [at(i, busy_ratio=0.0, memory_used_bytes=1.2e9) for i in range(10)]
    assert folded(idle, total=80 << 30)[0].activity is Activity.EMPTY
    assert folded(idle, total=16 << 30)[0].activity is Activity.PARKED
    assert folded([at(0, power_w=50)])[0].activity is Activity.UNKNOWN


def test_interleaved_gpus_do_not_touch_each_other() -> None:
    fold = GpuFold()
    samples = []
    for i in range(20):
        samples += fold.add(at(i, power_w=100))
        samples += fold.add(replace(at(i, power_w=700), gpu_uuid="GPU-b"))
    samples += fold.flush()
    joules = {
        uuid: sum(s.values["energy_j"] for s in samples if s.gpu_uuid == uuid) for uuid in (UUID, "GPU-b")
    }
    assert joules == {UUID: pytest.approx(1_900), "GPU-b": pytest.approx(13_300)}


def test_flushing_one_gpu_leaves_the_others_open() -> None:
    fold = GpuFold()
    fold.add(at(0, power_w=1))
    fold.add(replace(at(0, power_w=2), gpu_uuid="GPU-b"))
    assert [sample.gpu_uuid for sample in fold.flush(UUID)] == [UUID]
    assert [sample.gpu_uuid for sample in fold.flush()] == ["GPU-b"]
    assert fold.flush() == []
