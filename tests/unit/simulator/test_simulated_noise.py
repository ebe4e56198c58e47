"""Noise of the simulated fleet: repeatable, centred, continuous."""

from statistics import fmean, pstdev

from hypothesis import given
from hypothesis import strategies as st

from agent.sources.simulator.calendar import in_weekend_pause, traffic_ratio, weekday
from agent.sources.simulator.noise import drift, normal, normal_pair
from core.units import DAY_MS, HOUR_MS

MONDAY_MS = 1_794_787_200_000
"""16 November 2026, 00:00 UTC."""


def test_draws_have_mean_0_and_deviation_1() -> None:
    draws = [normal(7, step) for step in range(20_000)]

    assert abs(fmean(draws)) < 0.05
    assert abs(pstdev(draws) - 1.0) < 0.05


def test_neighbouring_seeds_and_pairs_are_not_alike() -> None:
    ours = [normal(7, step) for step in range(5_000)]
    theirs = [normal(8, step) for step in range(5_000)]
    first, second = zip(*(normal_pair(7, step) for step in range(5_000)), strict=True)

    assert abs(fmean(a * b for a, b in zip(ours, theirs, strict=True))) < 0.06
    assert abs(fmean(a * b for a, b in zip(first, second, strict=True))) < 0.06


@given(st.integers(0, 2**32), st.integers(0, 2 * 10**12))
def test_drift_is_continuous_and_repeatable(seed: int, ts_ms: int) -> None:
    here = drift(seed, ts_ms, 600_000)

    assert here == drift(seed, ts_ms, 600_000)
    assert abs(drift(seed, ts_ms + 1, 600_000) - here) < 1e-3
    assert abs(here) <= 6.0


def test_the_week_begins_on_monday() -> None:
    assert [weekday(MONDAY_MS + day * DAY_MS) for day in range(7)] == list(range(7))


def test_traffic_is_high_at_work_and_low_at_night_and_on_weekends() -> None:
    assert traffic_ratio(MONDAY_MS + 10 * HOUR_MS) == 1.0
    assert traffic_ratio(MONDAY_MS + 3 * HOUR_MS) < 0.05
    assert traffic_ratio(MONDAY_MS + 5 * DAY_MS + 10 * HOUR_MS) < 0.2


@given(st.integers(MONDAY_MS, MONDAY_MS + 7 * DAY_MS - 60_001))
def test_traffic_never_jumps(ts_ms: int) -> None:
    assert abs(traffic_ratio(ts_ms + 60_000) - traffic_ratio(ts_ms)) < 0.01
    assert 0.0 <= traffic_ratio(ts_ms) <= 1.0


def test_the_pause_lasts_from_friday_evening_to_monday_morning() -> None:
    friday_ms = MONDAY_MS + 4 * DAY_MS

    assert not in_weekend_pause(friday_ms + 20 * HOUR_MS - 1)
    assert in_weekend_pause(friday_ms + 20 * HOUR_MS)
    assert in_weekend_pause(MONDAY_MS + 7 * DAY_MS + 6 * HOUR_MS - 1)
    assert not in_weekend_pause(MONDAY_MS + 7 * DAY_MS + 6 * HOUR_MS)
