"""Where the mean of a series changed."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.estimators.changepoint import changes


def test_one_step_is_found_where_it_is() -> None:
    (found,) = changes([1.0] * 30 + [0.5] * 20, variance=0.01)
    assert (found.at, found.first, found.last) == (30, 30, 30)
    assert found.step == pytest.approx(-0.5)


def test_two_steps_are_two_changes() -> None:
    found = changes([1.0] * 20 + [3.0] * 20 + [2.0] * 20, variance=0.01)
    assert [(one.at, round(one.step, 6)) for one in found] == [(20, 2.0), (40, -1.0)]


def test_a_small_step_in_noise_is_somewhere_in_its_interval() -> None:
    inside = 0
    for seed in range(40):
        random = Random(seed)
        values = [random.gauss(0.0 if at < 60 else -1.0, 1.0) for at in range(120)]
        falls = [one for one in changes(values, variance=1.0) if one.step < 0]
        inside += any(one.first <= 60 <= one.last for one in falls)
    assert inside >= 34


def test_noise_alone_hardly_ever_changes() -> None:
    quiet = 0
    for seed in range(60):
        random = Random(seed)
        quiet += not changes([random.gauss(0.0, 1.0) for _ in range(100)], variance=1.0)
    assert quiet >= 48


def test_a_short_series_has_no_change() -> None:
    assert changes([1.0, 0.0], variance=0.1) == []


def test_no_variance_is_refused() -> None:
    with pytest.raises(ValueError, match="must be positive"):
        changes([1.0] * 10, variance=0.0)


@given(
    st.lists(st.floats(-10, 10), min_size=8, max_size=40),
    st.floats(-1e3, 1e3),
)
def test_a_constant_added_changes_nothing(values: list[float], offset: float) -> None:
    plain = [one.at for one in changes(values, variance=2.0)]
    moved = [one.at for one in changes([value + offset for value in values], variance=2.0)]
    assert plain == moved or len(plain) == len(moved)
