"""Time that runs evenly whatever happens to the wall clock."""

import pytest

from core import clock
from core.clock import SteadyClock


class Walls:
    """A wall clock that tests set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.offset_ns = 1_000_000_000_000
        monkeypatch.setattr(clock, "_offset_ns", lambda: self.offset_ns)


@pytest.fixture
def walls(monkeypatch: pytest.MonkeyPatch) -> Walls:
    return Walls(monkeypatch)


def test_an_instant_keeps_its_distance_to_others(walls: Walls) -> None:
    steady = SteadyClock()
    first = steady.ms(5_000_000_000)
    walls.offset_ns += 3_600 * 10**9
    assert steady.ms(6_000_000_000) - first == 1_000, "a step reaches nobody before look() says so"


def test_a_step_is_told_and_followed(walls: Walls) -> None:
    steady = SteadyClock()
    before = steady.ms(0)
    walls.offset_ns += 3_600 * 10**9
    assert steady.look() == 3_600_000
    assert steady.ms(0) - before == 3_600_000
    assert steady.look() == 0
    walls.offset_ns -= 7_200 * 10**9
    assert steady.look() == -7_200_000


def test_drift_is_followed_slowly_and_without_a_step(walls: Walls) -> None:
    steady = SteadyClock()
    before = steady.ms(0)
    walls.offset_ns += 500_000_000
    assert steady.look() == 0
    assert steady.ms(0) - before == 50
    for _ in range(200):
        steady.look()
    assert steady.ms(0) - before == pytest.approx(500, abs=1)
