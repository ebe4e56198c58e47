"""Profiling counters reach the readings of the time they were taken over."""

from agent.windows import PATIENCE_MS, Windows
from core.readings import GpuReading

UUID = "GPU-a"


def reading(ts_ms: int) -> GpuReading:
    return GpuReading(UUID, ts_ms, {"busy_ratio": 0.5})


def test_a_card_without_counters_never_waits() -> None:
    one = reading(1_000)
    assert Windows().reading(one) == [one]


def test_readings_of_the_pair_get_its_means_and_earlier_ones_do_not() -> None:
    windows = Windows()
    assert windows.pair(UUID, 0, 10_000, {"sm_active_ratio": 0.1}) == []
    for ts_ms in (10_000, 11_000, 20_000, 20_500):
        assert windows.reading(reading(ts_ms)) == []
    ready = windows.pair(UUID, 10_000, 20_000, {"sm_active_ratio": 0.7})
    assert [one.ts_ms for one in ready] == [10_000, 11_000, 20_000]
    assert [one.values.get("sm_active_ratio") for one in ready] == [None, 0.7, 0.7]
    assert [one.ts_ms for one in windows.release(UUID)] == [20_500]


def test_counters_that_stop_coming_hold_nothing_up() -> None:
    windows = Windows()
    windows.pair(UUID, 0, 10_000, {"sm_active_ratio": 0.1})
    assert windows.reading(reading(11_000)) == []
    ready = windows.reading(reading(10_000 + PATIENCE_MS + 1))
    assert len(ready) == 2
    late = reading(10_000 + PATIENCE_MS + 1_000)
    assert windows.reading(late) == [late], "without a new pair the card is one without counters"


def test_all_that_waits_can_be_had_before_an_end() -> None:
    windows = Windows()
    windows.pair(UUID, 0, 10_000, {})
    windows.reading(reading(11_000))
    assert [one.ts_ms for one in windows.release_all()] == [11_000]
    assert windows.release_all() == []
