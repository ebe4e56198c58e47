"""Spend to the end of a month: what is learned, what is left out, and when no forecast is made."""

from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.forecast import DaySpend, Forecast, Refused, forecast

MONDAY = date(2026, 8, 3)


def spend(at: int, usd: float, *, covered: float = 1.0, priced: float = 1.0, whole: bool = True) -> DaySpend:
    """One GPU's day."""
    return DaySpend(
        MONDAY + timedelta(days=at),
        Decimal(f"{usd:.6f}"),
        covered,
        priced,
        whole,
    )


def series(count: int, usd: Callable[[int], float]) -> list[DaySpend]:
    return [spend(at, usd(at)) for at in range(count)]


def ahead(days: list[DaySpend], count: int) -> Forecast | Refused:
    first = days[-1].day + timedelta(days=1)
    return forecast(days, first, first + timedelta(days=count))


def made(days: list[DaySpend], count: int) -> Forecast:
    found = ahead(days, count)
    assert isinstance(found, Forecast)
    return found


def week(at: int) -> float:
    return 40.0 if at % 7 >= 5 else 100.0


def test_what_never_changes_goes_on_without_doubt() -> None:
    found = made(series(28, lambda _: 24.0), 10)
    assert found.total == (240, 240, 240)
    assert [day.p50 for day in found.path] == [24 * n for n in range(1, 11)]
    assert (found.history_days, dict(found.left_out)) == (28, {})


def test_a_weekend_is_known_for_one() -> None:
    found = made(series(56, week), 7)
    days = [float(b.p50 - a.p50) for a, b in zip(found.path, found.path[1:], strict=False)]
    assert days[4:] == pytest.approx([40, 40], rel=0.06)
    assert float(found.total.p50) == pytest.approx(580, rel=0.02)


def test_after_a_step_the_new_level_holds() -> None:
    found = made(series(60, lambda at: week(at) * (2.0 if at >= 50 else 1.0)), 14)
    assert float(found.total.p50) == pytest.approx(2 * 1160, rel=0.1)
    assert found.total.p50 < found.total.p90


def test_growth_is_followed() -> None:
    found = made(series(84, lambda at: 100.0 * 1.01**at), 14)
    actual = sum(100.0 * 1.01**at for at in range(84, 98))
    assert float(found.total.p50) == pytest.approx(actual, rel=0.05)
    assert float(found.total.p90) > actual


def test_restless_days_make_a_wider_interval() -> None:
    calm = made(series(56, lambda at: 100.0 + at * 7919 % 3), 10).total
    restless = made(series(56, lambda at: 100.0 + at * 7919 % 61), 10).total
    assert restless.p90 - restless.p10 > 3 * (calm.p90 - calm.p10)


@pytest.mark.parametrize(
    ("odd", "why"),
    [({"covered": 0.5}, "gap"), ({"priced": 0.5}, "unpriced"), ({"whole": False}, "partial")],
)
def test_days_that_say_too_little_are_left_out_and_counted(odd: dict[str, float], why: str) -> None:
    days = series(40, lambda _: 24.0)
    for at in (20, 21, 30):
        days[at] = spend(at, 5.0, **odd)  # type: ignore[arg-type]
    found = made(days, 5)
    assert found.total == (120, 120, 120)
    assert (found.history_days, dict(found.left_out)) == (37, {why: 3})


def test_under_two_weeks_there_is_no_forecast_and_it_says_so() -> None:
    found = ahead(series(13, week), 10)
    assert isinstance(found, Refused)
    assert found.why == "13 whole days with spend are known, a forecast needs 14"
    days = [*series(13, week), spend(13, 9.0, covered=0.1)]
    refused = ahead(days, 10)
    assert isinstance(refused, Refused)
    assert refused.why.endswith("(left out: 1 gap)")
    assert isinstance(ahead(series(14, week), 10), Forecast)


def test_time_before_the_first_spend_is_no_history() -> None:
    days = series(40, lambda at: 0.0 if at < 30 else 10.0)
    assert isinstance(ahead(days, 10), Refused)
    assert ahead(days, 10).history_days == 10


def test_days_without_spend_count_as_such() -> None:
    found = made(series(60, lambda at: 100.0 if at % 10 == 0 else 0.0), 10)
    assert 0 <= found.total.p10 <= found.total.p50 <= found.total.p90
    assert float(found.total.p50) == pytest.approx(100, rel=0.35)


def test_days_to_come_are_not_looked_at() -> None:
    days = series(40, week)
    first = days[30].day
    assert forecast(days, first, first + timedelta(days=5)) == forecast(
        days[:30], first, first + timedelta(days=5)
    )


def test_at_the_end_of_a_month_nothing_is_left() -> None:
    assert made(series(30, week), 0).total == (0, 0, 0)


@given(st.lists(st.floats(0, 1e6), min_size=14, max_size=40), st.integers(1, 31))
def test_intervals_are_in_order_and_never_shrink(values: list[float], count: int) -> None:
    found = ahead([spend(at, value) for at, value in enumerate(values)], count)
    if isinstance(found, Refused):
        return
    assert len(found.path) == count
    for day in found.path:
        assert 0 <= day.p10 <= day.p50 <= day.p90
    for before, after in zip(found.path, found.path[1:], strict=False):
        assert all(then <= now for then, now in zip(before, after, strict=True))
