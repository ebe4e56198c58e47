"""When a message is tried again."""

from core.fault import has_grown
from core.outbox import retry_at
from core.units import MINUTE_MS


def test_waits_grow_and_end() -> None:
    waits = [retry_at(tries, 0) for tries in range(1, 7)]
    assert waits == [5 * MINUTE_MS, 15 * MINUTE_MS, 60 * MINUTE_MS, 240 * MINUTE_MS, None, None]


def test_a_fault_grew_when_it_is_worse_or_a_quarter_more() -> None:
    assert has_grown(3, None, 2, None)
    assert has_grown(2, 125.0, 2, 100.0)
    assert has_grown(1, 1.0, 1, 0.0)
    assert not has_grown(2, 124.9, 2, 100.0)
    assert not has_grown(1, 100.0, 2, 100.0)
    assert not has_grown(2, None, 2, 100.0)
    assert not has_grown(2, 100.0, 2, None)
    assert not has_grown(2, 0.0, 2, 0.0)
