"""Rates out of counters: never out of a reset, a wrap or a pause."""

from agent.collectors.counter import Rate

S = 1_000_000_000


def test_a_rate_is_the_increase_over_the_time() -> None:
    rate = Rate()
    assert rate.per_s(100.0, 0) is None
    assert rate.per_s(300.0, 2 * S) == 100.0
    assert rate.per_s(300.0, 3 * S) == 0.0


def test_a_fall_a_gap_and_a_pause_start_anew() -> None:
    rate = Rate()
    rate.per_s(100.0, 0)
    assert rate.per_s(50.0, S) is None
    assert rate.per_s(60.0, 2 * S) == 10.0
    assert rate.per_s(None, 3 * S) is None
    assert rate.per_s(80.0, 4 * S) is None
    assert rate.per_s(90.0, 4 * S) is None
    assert rate.per_s(1e9, 400 * S) is None
    assert rate.per_s(1e9 + 5, 401 * S) == 5.0
