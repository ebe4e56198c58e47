"""Cuts through a GPU's hour: whatever the cut, the parts are the hour."""

from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.resources.gpu_slice import Slice, gap, whole
from api.resources.splits import by_activity, by_engine, by_workload
from core.activity import Activity
from core.readings import WorkloadKey
from core.samples import EnergyMethod
from store.queries.hour_sums import GpuSum, WorkloadSum

SUMS = ("known_s", "covered_s", "energy_covered_s", "allocated_s", "active_s")


def hour(
    seconds: dict[Activity, float], *, effective_s: float = 0.0, unknown_s: float = 0.0, watts: float = 100.0
) -> GpuSum:
    covered = fsum(seconds.values())
    idle = seconds.get(Activity.EMPTY, 0.0)
    unnamed = seconds.get(Activity.UNKNOWN, 0.0)
    return GpuSum(
        gpu_uuid="GPU-1",
        from_ms=0,
        covered_s=covered,
        seconds=seconds,
        joules={activity: s * watts for activity, s in seconds.items()},
        energy_j=covered * watts,
        energy_method=EnergyMethod.COUNTER,
        energy_covered_s=covered,
        allocated_s=covered - idle - unnamed,
        active_s=covered - idle - unnamed - seconds.get(Activity.PARKED, 0.0),
        effective_s=effective_s,
        effective_unknown_s=unknown_s,
    )


def usage(name: str, allocated_s: float, active_s: float, energy_j: float | None = None) -> WorkloadSum:
    key = WorkloadKey("process", f"{name}:1", name, user="ann", host="h1")
    return WorkloadSum(key, "GPU-1", 0, allocated_s, active_s, 0.0, energy_j, "memory_time")


def named(workload: WorkloadKey) -> tuple[str | None, str]:
    return workload.key, workload.name


def total(parts: list[Slice], field: str) -> float:
    return fsum(getattr(part, field) for part in parts)


@given(
    st.dictionaries(st.sampled_from(list(Activity)), st.floats(0.0, 400.0), max_size=9),
    st.just(0.0) | st.floats(0.001, 50.0),
)
def test_activities_add_up_to_the_hour_and_the_gap_is_unknown(
    seconds: dict[Activity, float], gap_s: float
) -> None:
    row = hour(seconds)
    part = whole(row, 0, row.covered_s + gap_s)
    parts = list(by_activity(part, row))
    for field in SUMS:
        assert total(parts, field) == pytest.approx(getattr(part, field), abs=1e-3)
    assert fsum(p.energy_j or 0.0 for p in parts) == pytest.approx(part.energy_j or 0.0, abs=1e-6)
    gaps = [p for p in parts if p.known_s - p.covered_s > 1e-6]
    assert [p.key for p in gaps] == (["unknown"] if gap_s > 1e-6 else [])


def test_time_bound_by_memory_or_arithmetic_is_effective_by_its_own_threshold() -> None:
    row = hour(
        {Activity.MEMORY_BOUND: 100.0, Activity.COMPUTE_BOUND: 50.0, Activity.PARKED: 10.0}, effective_s=150.0
    )
    found = {part.key: part.effective_s for part in by_activity(whole(row, 0, 160.0), row)}
    assert found == {"memory_bound": 100.0, "compute_bound": 50.0, "parked": 0.0}


def test_effective_time_that_cannot_be_told_apart_is_unknown_for_both() -> None:
    row = hour({Activity.MIXED: 100.0, Activity.BUSY: 50.0}, effective_s=60.0)
    found = {
        part.key: (part.effective_s, part.effective_unknown_s)
        for part in by_activity(whole(row, 0, 150.0), row)
    }
    assert found == {"mixed": (0.0, 100.0), "busy": (0.0, 50.0)}


def test_busy_time_without_counters_keeps_what_an_engine_told() -> None:
    row = hour({Activity.BUSY: 50.0}, effective_s=20.0, unknown_s=30.0)
    (part,) = by_activity(whole(row, 0, 50.0), row)
    assert (part.effective_s, part.effective_unknown_s) == (20.0, 30.0)


def test_an_hour_without_samples_is_one_unknown_part() -> None:
    (part,) = by_activity(gap("GPU-1", 0, 3600.0), None)
    assert (part.key, part.known_s, part.covered_s, part.energy_j) == ("unknown", 3600.0, 0.0, None)


def test_engines_on_one_gpu_share_its_hour_evenly() -> None:
    row = hour({Activity.BUSY: 100.0})
    part = whole(row, 0, 100.0)
    parts = list(by_engine(part, [("a", "A"), ("b", "B")]))
    assert [(p.key, p.covered_s, p.energy_j, p.share_method) for p in parts] == [
        ("a", 50.0, 5000.0, "even"),
        ("b", 50.0, 5000.0, "even"),
    ]
    assert [p.key for p in by_engine(part, [])] == [None]


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_workloads_and_the_rest_add_up_to_the_hour(first: float, second: float, active: float) -> None:
    row = hour(
        {Activity.EMPTY: 300.0, Activity.PARKED: 600.0, Activity.MEMORY_BOUND: 1500.0, Activity.MIXED: 900.0}
    )
    held = row.allocated_s * first
    other = (row.allocated_s - held) * second
    usages = [
        usage("a", held, min(held, row.active_s * active * first), 10_000.0),
        usage("b", other, min(other, row.active_s * (1 - active) * second * (1 - first)), 5_000.0),
    ]
    part = whole(row, 0, 3600.0)
    parts = list(by_workload(part, usages, named))
    for field in SUMS:
        assert total(parts, field) == pytest.approx(getattr(part, field), abs=1e-3)
    assert fsum(p.energy_j or 0.0 for p in parts) == pytest.approx(330_000.0)
    assert parts[-1].key is None
    for p in parts[:-1]:
        assert fsum(p.seconds.values()) == pytest.approx(p.covered_s, abs=1e-3)


def test_a_workload_alone_on_its_gpu_has_the_gpus_own_mix() -> None:
    row = hour({Activity.PARKED: 900.0, Activity.MEMORY_BOUND: 2000.0, Activity.MIXED: 700.0})
    (part,) = by_workload(whole(row, 0, 3600.0), [usage("a", 3600.0, 2700.0, row.energy_j)], named)
    assert part.key == "a:1"
    assert part.seconds == pytest.approx(
        {Activity.PARKED: 900.0, Activity.MEMORY_BOUND: 2000.0, Activity.MIXED: 700.0}
    )
