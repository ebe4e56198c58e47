"""A day is what its hours add up to."""

from dataclasses import fields, replace
from typing import Any

import pytest
from advice_builders import START_MS, engine_hour, gpu_hour
from hypothesis import given
from hypothesis import strategies as st

from core.activity import Activity
from core.days import engine_day, folded_by_day, gpu_day, host_day, seen_hours, usage_days
from core.hour_merge import MEANS, merged_gpu_hours
from core.hours import GpuHour, HostHour, UsageHour
from core.readings import WorkloadKey
from core.samples import EnergyMethod
from core.units import DAY_MS, GIB, HOUR_MS
from store.day_rows import engine_day_values, gpu_day_values
from store.rows_as_days import ENGINE_DAY, GPU_DAY, engine_day_in, gpu_day_in

ANN = WorkloadKey("pod", "ns/a", "a", None, "h1")
BOB = WorkloadKey("pod", "ns/b", "b", None, "h1")


@st.composite
def days_of_hours(draw: st.DrawFn) -> list[GpuHour]:
    found = []
    for at in sorted(draw(st.sets(st.integers(0, 23), min_size=1))):
        activity = draw(st.sampled_from(list(Activity)))
        seconds = float(draw(st.integers(1, 3600)))
        known = draw(st.booleans())
        more: dict[str, Any] = {
            name: draw(st.floats(0, 1)) if draw(st.booleans()) else None for name in MEANS[:4]
        }
        if not known:
            more |= {"energy_j": None, "joules": {}, "energy_method": None, "energy_covered_s": 0.0}
        found.append(gpu_hour(at, activity, seconds=seconds, **more))
    return found


@given(days_of_hours())
def test_the_sums_of_a_day_are_the_sums_of_its_hours(hours: list[GpuHour]) -> None:
    day = gpu_day(hours)
    for name in ("covered_s", "allocated_s", "active_s", "effective_s", "energy_covered_s"):
        assert getattr(day.whole, name) == sum(getattr(hour, name) for hour in hours)
    for activity in Activity:
        assert day.whole.seconds.get(activity, 0.0) == sum(h.seconds.get(activity, 0.0) for h in hours)
    known = [hour.energy_j for hour in hours if hour.energy_j is not None]
    assert day.whole.energy_j == (sum(known) if known else None)
    assert seen_hours(day.day_ms, day.seen) == [hour.hour_ms for hour in hours]
    assert sum(day.covered_s) == pytest.approx(day.whole.covered_s)


@given(days_of_hours())
def test_means_of_a_day_lie_between_those_of_its_hours_and_unknown_stays_unknown(
    hours: list[GpuHour],
) -> None:
    whole = gpu_day(hours).whole
    for name in MEANS[:4]:
        known = [value for hour in hours if (value := getattr(hour, name)) is not None]
        mean = getattr(whole, name)
        if not known:
            assert mean is None
        else:
            assert min(known) - 1e-9 <= mean <= max(known) + 1e-9


@given(days_of_hours())
def test_a_day_of_one_hour_says_what_the_hour_says(hours: list[GpuHour]) -> None:
    one = hours[0]
    whole = merged_gpu_hours([one], one.hour_ms)
    for part in fields(GpuHour):
        assert getattr(whole, part.name) == getattr(one, part.name), part.name


@given(days_of_hours())
def test_a_gpu_day_comes_back_from_its_row(hours: list[GpuHour]) -> None:
    day = gpu_day(hours)
    row = gpu_day_values(day, 1)
    assert gpu_day_in("GPU-a", [row[name] for name in GPU_DAY]) == day


def test_an_engine_day_merges_histograms_and_keeps_the_median_of_each_hour() -> None:
    hours = [engine_hour(0, running=4), engine_hour(5, running=12), engine_hour(6, running=8, seconds=0.0)]
    day = engine_day(hours)
    assert day.whole.generated_tokens == sum(hour.generated_tokens or 0.0 for hour in hours)
    assert set(day.whole.running.seconds) >= {4.0, 12.0}
    assert (day.running_p50[0], day.running_p50[5], day.running_p50[6], day.running_p50[7]) == (
        4,
        12,
        None,
        None,
    )
    row = engine_day_values(day, 1)
    assert engine_day_in(day.engine, [row[name] for name in ENGINE_DAY]) == day


def test_only_hours_with_a_models_memory_are_parked_and_only_long_empty_ones_tell_bare_power() -> None:
    hours = [
        gpu_hour(0, Activity.PARKED),
        gpu_hour(1, Activity.PARKED, memory_used_bytes=0.5 * GIB),
        gpu_hour(2, Activity.EMPTY, empty_power_w=70.0),
        gpu_hour(3, Activity.EMPTY, seconds=200.0, empty_power_w=60.0),
    ]
    day = gpu_day(hours)
    assert day.parked_s[:4] == (3600, 0, 0, 0)
    assert day.empty_s[:4] == (0, 0, 3600, 200)
    assert day.bare_idle_w == 70.0


def test_a_moment_of_work_is_not_lost_to_rounding() -> None:
    day = gpu_day([replace(gpu_hour(0), active_s=0.2)])
    assert day.active_s[0] == 1


def test_methods_of_energy_mix() -> None:
    hours = [gpu_hour(0), replace(gpu_hour(1), energy_method=EnergyMethod.INTEGRATED)]
    assert gpu_day(hours).whole.energy_method is EnergyMethod.MIXED


def test_hours_of_two_days_make_two_days() -> None:
    hours = [gpu_hour(23), gpu_hour(24)]
    assert [day.day_ms for day in folded_by_day(hours, gpu_day)] == [START_MS, START_MS + DAY_MS]


def test_usage_of_a_day_says_who_shared() -> None:
    def line(
        workload: WorkloadKey | None, at: int, allocated_s: float, cpu: float | None = None
    ) -> UsageHour:
        start = START_MS + at * HOUR_MS
        return UsageHour(workload, "GPU-a", start, allocated_s, allocated_s, 0.0, 1.0, None, "whole", cpu)

    found = usage_days(
        [line(ANN, 0, 3600, 1.0), line(ANN, 1, 1800, 3.0), line(BOB, 1, 1800), line(None, 2, 60)]
    )
    assert [(day.workload, day.allocated_s, day.shared) for day in found] == [
        (ANN, 5400, True),
        (BOB, 1800, True),
        (None, 60, False),
    ]
    assert found[0].cpu_ratio == pytest.approx((3600 * 1 + 1800 * 3) / 5400)
    assert (found[0].first_ms, found[0].last_ms) == (START_MS, START_MS + 2 * HOUR_MS)


def test_a_host_day_weighs_by_covered_time() -> None:
    hours = [HostHour("h1", START_MS, 3600.0, 0.2), HostHour("h1", START_MS + HOUR_MS, 1200.0, 0.6)]
    day = host_day(hours)
    assert (day.whole.covered_s, day.seen) == (4800.0, 0b11)
    assert day.whole.cpu_busy_ratio == pytest.approx((3600 * 0.2 + 1200 * 0.6) / 4800)
