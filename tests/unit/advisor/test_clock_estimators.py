"""Clock lock and throttle loss: figures, refusals and laws."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.estimators.clock_lock import clock_lock
from advisor.estimators.throttle_loss import throttle_loss

CLOCKS = st.floats(0.2e9, 2.5e9)


def test_a_memory_bound_engine_gets_the_whole_reported_range() -> None:
    found = clock_lock(reduction_ratio=0.2, mbu=0.7, mfu=0.1)
    assert found is not None
    assert (found.energy_ratio.p10, found.energy_ratio.p90) == (-0.25, -0.10)
    assert (found.itl_ratio.p10, found.itl_ratio.p90) == (0.0, 0.06)


@pytest.mark.parametrize(
    ("reduction", "mbu", "mfu"),
    [(0.2, 0.5, 0.1), (0.2, 0.7, 0.3), (0.2, None, 0.1), (0.2, 0.7, None), (0.1, 0.7, 0.1), (0.4, 0.7, 0.1)],
)
def test_a_lock_is_refused_outside_what_was_reported(
    reduction: float, mbu: float | None, mfu: float | None
) -> None:
    assert clock_lock(reduction_ratio=reduction, mbu=mbu, mfu=mfu) is None


def test_compute_bound_work_loses_what_the_clock_loses() -> None:
    loss = throttle_loss(clock_hz=1.2e9, reference_hz=1.6e9, memory_bound=False)
    assert loss is not None
    assert loss.p50 == pytest.approx(0.25)


def test_memory_bound_work_loses_a_few_percent_at_most() -> None:
    loss = throttle_loss(clock_hz=0.8e9, reference_hz=1.6e9, memory_bound=True)
    assert loss is not None
    assert loss.p90 == 0.05


@pytest.mark.parametrize(("clock", "reference"), [(0.0, 1e9), (1e9, 0.0), (0.01e9, 1.9e9)])
def test_clocks_that_cannot_be_are_refused(clock: float, reference: float) -> None:
    assert throttle_loss(clock_hz=clock, reference_hz=reference, memory_bound=False) is None


@given(CLOCKS, CLOCKS, CLOCKS, st.sampled_from([True, False, None]))
def test_a_loss_is_a_share_and_grows_as_the_clock_falls(
    one: float, other: float, reference: float, bound: bool | None
) -> None:
    slow, fast = sorted((one, other))
    more = throttle_loss(clock_hz=slow, reference_hz=reference, memory_bound=bound)
    less = throttle_loss(clock_hz=fast, reference_hz=reference, memory_bound=bound)
    assert more is not None
    assert less is not None
    assert 0 <= more.p10 <= more.p50 <= more.p90 <= 1
    assert more.p50 >= less.p50
