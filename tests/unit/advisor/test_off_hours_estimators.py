"""Hours of the week, cold starts, and the laws they keep."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.estimators.cold_start import cold_start_s, keep_warm_s, load_s, widest_s
from advisor.estimators.off_hours import (
    WEEK_H,
    Block,
    Schedule,
    back_test,
    bin_of,
    blocks_of,
    in_common,
    is_quiet,
    saved_h_month,
    schedule_of,
)
from core.finding import Range
from core.units import HOUR_MS

MONDAY_MS = round(datetime(2026, 9, 7, tzinfo=UTC).timestamp() * 1000)
BINS = st.frozensets(st.integers(0, WEEK_H - 1))
BUSY = st.frozensets(st.integers(0, WEEK_H * 3 - 1))
"""Hours at work of three weeks."""


def weeks(count: int, off_from: int = 20, off_to: int = 6, active: float = 1.0) -> list[tuple[int, float]]:
    """Off from 20:00 to 06:00 every night."""
    return [
        (MONDAY_MS + i * HOUR_MS, 0.0 if i % 24 >= off_from or i % 24 < off_to else active)
        for i in range(count * WEEK_H)
    ]


def test_monday_midnight_is_the_first_hour_of_the_week() -> None:
    assert bin_of(MONDAY_MS) == 0
    assert bin_of(MONDAY_MS - HOUR_MS) == WEEK_H - 1


def test_quiet_nights_are_seven_blocks_over_the_end_of_the_week_too() -> None:
    schedule = schedule_of(weeks(4), min_weeks=4)
    assert schedule is not None
    assert schedule.off_h == 70
    assert schedule.starts == 7
    assert Block(WEEK_H - 4, 10) in schedule.blocks
    assert schedule.weeks == 4


def test_three_of_four_weeks_suffice_and_two_do_not() -> None:
    assert is_quiet([0, 0, 0, 1], max_active=0.1, weeks_ratio=0.75)
    assert not is_quiet([0, 0, 1, 1], max_active=0.1, weeks_ratio=0.75)
    assert not is_quiet([0, 0, 1], max_active=0.1, weeks_ratio=0.75)
    assert not is_quiet([], max_active=0.1, weeks_ratio=0.75)


def test_a_bin_that_was_not_seen_often_enough_is_not_off() -> None:
    assert schedule_of(weeks(1), min_weeks=2) is None
    assert schedule_of([], min_weeks=1) is None


def test_a_single_quiet_hour_is_no_block() -> None:
    assert schedule_of(weeks(4, off_from=23, off_to=0), min_weeks=4) is None


def test_the_back_test_counts_work_that_would_have_been_cut_off() -> None:
    schedule = schedule_of(weeks(3), min_weeks=3)
    assert schedule is not None
    tested = back_test(schedule, weeks(1, off_from=22))
    assert tested.off_h == 70
    assert tested.wrongly_off_min == 2 * 7 * 60
    assert tested.seen_h == WEEK_H


def test_a_node_is_off_only_when_all_of_it_is() -> None:
    early, late = schedule_of(weeks(4), min_weeks=4), schedule_of(weeks(4, off_from=22), min_weeks=4)
    assert early is not None
    assert late is not None
    both = in_common([early, late])
    assert both is not None
    assert both.off_h == 56
    never = schedule_of(weeks(4, off_from=12, off_to=0), min_weeks=4)
    noon = schedule_of(weeks(4, off_from=24, off_to=6), min_weeks=4)
    assert never is not None
    assert noon is not None
    assert in_common([never, noon]) is None
    assert in_common([]) is None


def test_starts_are_paid_from_the_saving() -> None:
    schedule = Schedule((Block(20, 10), Block(44, 10)), 4)
    saved = saved_h_month(schedule, Range(360, 1800, 3600))
    assert saved.p50 == pytest.approx((20 - 2 * 0.5) * 730 / 168)
    assert saved.p10 == pytest.approx(18 * 730 / 168)
    assert saved.p90 == pytest.approx(19.8 * 730 / 168)


def test_a_week_that_is_all_off_never_starts() -> None:
    assert blocks_of(range(WEEK_H)) == (Block(0, WEEK_H),)
    assert Schedule(blocks_of(range(WEEK_H)), 4).starts == 0


@given(BINS)
def test_blocks_hold_each_bin_once(bins: frozenset[int]) -> None:
    schedule = Schedule(blocks_of(bins), 1)
    assert schedule.bins == bins
    assert schedule.off_h == len(bins)


@given(BUSY, st.integers(0, WEEK_H * 3 - 1))
def test_more_work_never_makes_more_off_hours(busy: frozenset[int], busier: int) -> None:
    hours, more = (
        [(MONDAY_MS + i * HOUR_MS, float(i in work)) for i in range(WEEK_H * 3)]
        for work in (busy, busy | {busier})
    )
    before, after = schedule_of(hours, min_weeks=2), schedule_of(more, min_weeks=2)
    was = before.bins if before else frozenset()
    assert (after.bins if after else frozenset()) <= was


@given(BINS, st.floats(0, 7200), st.floats(0, 7200))
def test_saved_hours_are_bounded_and_fall_with_the_start_time(
    bins: frozenset[int], one: float, other: float
) -> None:
    schedule = Schedule(blocks_of(bins), 1)
    fast, slow = sorted((one, other))
    quick, late = (saved_h_month(schedule, Range(s, s, s)).p50 for s in (fast, slow))
    assert 0 <= late <= quick <= 730 + 1e-9


def test_the_vendors_two_models_start_as_published() -> None:
    assert load_s(8e9) == pytest.approx(20)
    assert load_s(70e9) == pytest.approx(75)
    assert cold_start_s(parameters=8e9) == Range(20, 260, 500)


def test_a_start_outside_the_figures_is_refused() -> None:
    assert load_s(0) is None
    assert load_s(671e9) is None
    assert cold_start_s(parameters=None) is None
    assert cold_start_s(parameters=8e9, measured_s=0) is None


def test_a_measured_start_wins() -> None:
    assert cold_start_s(parameters=8e9, measured_s=100) == Range(75, 100, 125)


@given(st.floats(1e6, 140e9), st.floats(1e6, 140e9))
def test_larger_models_start_no_faster(one: float, other: float) -> None:
    small, large = (load_s(size) for size in sorted((one, other)))
    assert small is not None
    assert large is not None
    assert 20 <= small <= large
    assert widest_s().p10 <= 20


def test_a_model_is_kept_warm_for_as_long_as_its_start_costs() -> None:
    assert keep_warm_s(60, usd_per_gpu_hour=None) == 60
    assert keep_warm_s(60, usd_per_gpu_hour=3.6, penalty_usd=0.5) == pytest.approx(560)
    assert keep_warm_s(60, usd_per_gpu_hour=None, penalty_usd=0.5) is None
