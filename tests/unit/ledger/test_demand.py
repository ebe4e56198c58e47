"""How many GPUs were wanted at once: what counts, what is left out, and the duration curve."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.units import HOUR_MS
from ledger.demand import Duration, HourOfGpus, demand_of, present_ms_by_hour

T0 = 1_791_158_400_000


def hour(at: int, wanted: float, known: float = 4.0, present: float = 4.0) -> HourOfGpus:
    """GPUs instead of GPU-milliseconds."""
    return HourOfGpus(
        T0 + at * HOUR_MS, round(wanted * HOUR_MS), round(known * HOUR_MS), round(present * HOUR_MS)
    )


def test_demand_is_the_gpus_wanted_at_once_in_each_hour() -> None:
    demand = demand_of([hour(1, 4.0), hour(0, 1.5)])
    assert [(start, wanted / HOUR_MS) for start, wanted in demand.hours] == [(T0, 1.5), (T0 + HOUR_MS, 4.0)]
    assert demand.use_ratio == pytest.approx(5.5 / 8)
    assert (demand.full_ratio, demand.present_gpus, demand.unseen_ratio) == (0.5, 4.0, 0.0)
    assert demand.duration.mean_gpus == 2.75


def test_an_hour_that_was_hardly_seen_is_a_gap_and_is_counted_as_one() -> None:
    demand = demand_of([hour(0, 2.0), hour(1, 0.0, known=1.0), hour(2, 0.0, known=0.0)])
    assert [start for start, _ in demand.hours] == [T0]
    assert demand.left_out_hours == 2
    assert demand.duration.mean_gpus == 2.0


def test_what_is_unseen_of_a_counted_hour_is_taken_as_the_seen_and_said() -> None:
    demand = demand_of([hour(0, 1.9, known=3.8)])
    assert demand.hours[0][1] == 2 * HOUR_MS
    assert demand.unseen_ratio == pytest.approx(0.05)


def test_without_any_hour_nothing_is_known() -> None:
    demand = demand_of([hour(0, 0.0, known=0.0, present=0.0)])
    assert (demand.hours, demand.use_ratio, demand.weeks, demand.by_week()) == ((), None, 0.0, [])
    assert demand.left_out_hours == 0


def test_weeks_are_of_168_hours_from_the_first_counted_one() -> None:
    demand = demand_of([hour(at, 1.0) for at in range(336) if at != 200])
    assert [len(week) for week in demand.by_week()] == [168, 167]
    assert demand.weeks == pytest.approx(335 / 168)


def test_gpus_are_there_from_their_first_to_their_last_sample() -> None:
    half = HOUR_MS // 2
    spans = [(T0 + half, T0 + 2 * HOUR_MS + half), (T0, T0 + HOUR_MS), (T0 + 10, T0 + 20), (T0 - HOUR_MS, T0)]
    assert present_ms_by_hour(spans, T0, T0 + 4 * HOUR_MS) == {
        T0: half + HOUR_MS + 10,
        T0 + HOUR_MS: HOUR_MS,
        T0 + 2 * HOUR_MS: half,
    }


def test_percentiles_are_those_of_the_hours() -> None:
    duration = Duration([gpus * HOUR_MS for gpus in range(1, 11)])
    assert (duration.wanted_gpus(0.1), duration.wanted_gpus(0.2), duration.wanted_gpus(1.0)) == (1, 2, 10)
    assert (duration.use_ratio(1), duration.use_ratio(10), duration.use_ratio(11)) == (1.0, 0.1, 0.0)


@given(demands=st.lists(st.integers(0, 6 * HOUR_MS), min_size=1, max_size=30), gpus=st.integers(0, 8))
def test_what_gpus_serve_is_the_demand_capped_at_them(demands: list[int], gpus: int) -> None:
    duration = Duration(demands)
    assert duration.served_ms(gpus) == sum(min(demand, gpus * HOUR_MS) for demand in demands)
    assert duration.served_ms(duration.most_gpus) == duration.total_ms == sum(demands)
    if gpus:
        assert 0 <= duration.use_ratio(gpus + 1) <= duration.use_ratio(gpus) <= 1


@given(
    spans=st.lists(st.tuples(st.integers(-5, 40), st.integers(-5, 40)), max_size=8),
    minutes=st.integers(1, 7),
)
def test_presence_adds_up_to_the_length_of_the_spans(spans: list[tuple[int, int]], minutes: int) -> None:
    step = minutes * 600_000
    asked = [(T0 + a * step, T0 + b * step) for a, b in spans]
    inside = sum(max(0, min(b, T0 + 6 * HOUR_MS) - max(a, T0)) for a, b in asked)
    assert sum(present_ms_by_hour(asked, T0, T0 + 6 * HOUR_MS).values()) == inside
