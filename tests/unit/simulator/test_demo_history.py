"""The demo's past: which cadence serves which age, and what is folded from it."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.sources.simulator.cast import SILENT_H
from agent.sources.simulator.fleet import fleet
from core.activity import Activity
from core.samples import EnergyMethod
from core.units import DAY_MS, HOUR_MS, MINUTE_MS
from gpuwise.demo_history import Tier, engine_history, gpu_history, tiers

ANCHOR_MS = 1_794_996_000_000


@given(st.integers(0, 40 * DAY_MS), st.integers(0, 40 * DAY_MS))
def test_stretches_follow_each_other_from_start_to_end(start: int, length: int) -> None:
    found = tiers(ANCHOR_MS + start, ANCHOR_MS + start + length)

    assert all(before.to_ms == after.from_ms for before, after in pairwise(found))
    assert all(tier.from_ms % tier.span_ms == 0 == tier.to_ms % tier.span_ms for tier in found)
    assert all(tier.step_ms <= 5 * MINUTE_MS for tier in found)
    if found:
        assert 0 <= found[0].from_ms - (ANCHOR_MS + start) < MINUTE_MS
        assert 0 <= ANCHOR_MS + start + length - found[-1].to_ms < MINUTE_MS
    else:
        assert length < 2 * MINUTE_MS


def test_thirty_days_get_coarser_with_age() -> None:
    spans = [tier.span_ms // MINUTE_MS for tier in tiers(ANCHOR_MS - 30 * DAY_MS, ANCHOR_MS)]

    assert spans == [30, 15, 5, 1]


@pytest.mark.parametrize("span_min", [1, 5, 15, 30])
def test_every_minute_of_a_stretch_is_covered_at_any_cadence(span_min: int) -> None:
    step_ms = min(span_min, 5) * MINUTE_MS
    tier = Tier(ANCHOR_MS - 6 * HOUR_MS, ANCHOR_MS, step_ms, span_min * MINUTE_MS)

    samples, held = gpu_history(fleet(ANCHOR_MS).gpus[0], tier)
    engine = engine_history(fleet(ANCHOR_MS).engines[0], tier)

    assert sum(sample.covered_ms for sample in samples) == 6 * HOUR_MS
    assert sum(sample.covered_ms for sample in engine) == 6 * HOUR_MS
    assert len(samples) == len(held) == len(engine) == 6 * 60 // span_min
    assert {sample.energy_method for sample in samples} == {EnergyMethod.COUNTER}


def test_energy_does_not_depend_on_the_length_of_the_samples() -> None:
    def joules(span_min: int) -> float:
        tier = Tier(ANCHOR_MS - 6 * HOUR_MS, ANCHOR_MS, 5 * MINUTE_MS, span_min * MINUTE_MS)
        samples, _held = gpu_history(fleet(ANCHOR_MS).gpus[5], tier)
        return sum(sample.values["energy_j"] for sample in samples)

    assert joules(30) == pytest.approx(joules(5), rel=1e-9)


def test_a_silent_agent_leaves_a_gap() -> None:
    down_ms, up_ms = (ANCHOR_MS - hours * HOUR_MS for hours in SILENT_H)
    tier = Tier(down_ms - HOUR_MS, up_ms + HOUR_MS, 5 * MINUTE_MS, 15 * MINUTE_MS)
    probe = next(one for one in fleet(ANCHOR_MS).gpus if one.identity.host == "lab-01")

    samples, held = gpu_history(probe, tier)

    assert sum(sample.covered_ms for sample in samples) == 2 * HOUR_MS - 5 * MINUTE_MS
    assert not [sample for sample in samples if down_ms <= sample.ts_ms < up_ms]
    assert not [sample for sample in held if down_ms <= sample.ts_ms < up_ms]


@pytest.mark.parametrize(
    ("host", "index", "activity"),
    [
        ("chat-01", 0, Activity.MEMORY_BOUND),
        ("chat-01", 1, Activity.MIXED),
        ("train-01", 0, Activity.COMPUTE_BOUND),
        ("lab-01", 0, Activity.PARKED),
        ("lab-01", 2, Activity.STARVED),
        ("lab-01", 3, Activity.STARVED),
        ("lab-01", 4, Activity.SPINNING),
        ("lab-01", 6, Activity.BUSY),
        ("batch-01", 7, Activity.EMPTY),
    ],
)
@pytest.mark.parametrize(("step_ms", "span_min"), [(1000, 1), (60_000, 1), (300_000, 5), (300_000, 30)])
def test_each_case_of_the_cast_has_its_activity_at_any_cadence(
    host: str, index: int, activity: Activity, step_ms: int, span_min: int
) -> None:
    tier = Tier(ANCHOR_MS - 2 * HOUR_MS, ANCHOR_MS - HOUR_MS, step_ms, span_min * MINUTE_MS)
    seat = (host, index)
    probe = next(one for one in fleet(ANCHOR_MS).gpus if (one.identity.host, one.identity.index) == seat)

    samples, _held = gpu_history(probe, tier)

    named = [sample.activity for sample in samples]
    assert named.count(activity) >= 0.9 * len(named)
