"""Shifting in time: the same kWh at other hours' prices, never below zero, never above the whole bill's spread."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.estimators.shift import Run, best_delay_h, cost, saved_by_one_hour, saved_by_waiting, shifted

NIGHT = tuple(0.10 if hour < 6 else 0.30 for hour in range(24))
"""Cheap from midnight to six."""
PRICES = st.lists(st.floats(-0.5, 2), min_size=24, max_size=24)
RUNS = st.builds(Run, st.integers(0, 23), st.lists(st.floats(0, 50), min_size=1, max_size=12).map(tuple))


def test_an_evening_job_waits_for_midnight_to_the_cent() -> None:
    run = Run(20, (10.0, 10.0))
    assert cost(run, NIGHT) == pytest.approx(6.00)
    assert best_delay_h(run, NIGHT, max_delay_h=23) == 4
    figure = shifted([run], NIGHT)
    assert figure is not None
    assert (round(figure.p10, 2), round(figure.p50, 2), round(figure.p90, 2)) == (4.00, 4.00, 4.00)


def test_a_morning_job_waits_longer_than_a_cautious_policy_allows() -> None:
    figure = shifted([Run(9, (10.0,))], NIGHT)
    assert figure is not None
    assert figure.p10 == 0
    assert figure.p90 == pytest.approx(2.00)


def test_one_start_hour_serves_all_and_harms_none() -> None:
    runs = [Run(20, (10.0,)), Run(2, (10.0,))]
    hour, saved = saved_by_one_hour(runs, NIGHT, max_delay_h=23)
    assert hour == 0
    assert saved == pytest.approx(2.00)


def test_hours_without_room_are_not_starts() -> None:
    full = [hour >= 6 for hour in range(24)]
    assert best_delay_h(Run(20, (10.0,)), NIGHT, max_delay_h=23, allowed=full) == 0
    figure = shifted([Run(20, (10.0,))], NIGHT, allowed=full)
    assert figure is not None
    assert figure.p90 == 0


def test_one_price_all_day_saves_nothing() -> None:
    figure = shifted([Run(9, (10.0, 5.0))], [0.2] * 24)
    assert figure is not None
    assert figure.p90 == 0
    assert saved_by_one_hour([Run(9, (1.0,))], [0.2] * 24, max_delay_h=23) == (None, 0.0)


def test_it_refuses_without_runs_energy_or_a_whole_day_of_prices() -> None:
    assert shifted([], NIGHT) is None
    assert shifted([Run(9, (0.0,))], NIGHT) is None
    assert shifted([Run(9, (1.0,))], NIGHT[:23]) is None
    assert shifted([Run(9, (1.0,))], [float("nan"), *NIGHT[1:]]) is None


@given(st.lists(RUNS, min_size=1, max_size=4), PRICES)
def test_the_saving_is_bounded_by_the_spread_of_prices(runs: list[Run], prices: list[float]) -> None:
    figure = shifted(runs, prices)
    whole = sum(sum(run.kwh) for run in runs)
    if figure is None:
        assert whole <= 0
        return
    assert 0 <= figure.p10 <= figure.p50 <= figure.p90
    assert figure.p90 <= whole * (max(prices) - min(prices)) + 1e-6


@given(RUNS, PRICES, st.integers(0, 23), st.integers(0, 23))
def test_waiting_longer_never_saves_less(run: Run, prices: list[float], one: int, other: int) -> None:
    less, more = sorted((one, other))
    short = saved_by_waiting([run], prices, max_delay_h=less)
    assert short <= saved_by_waiting([run], prices, max_delay_h=more) + 1e-9
