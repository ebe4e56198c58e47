"""The sender: in order, exactly once in the end, patient with a sink that says no, quick to stop."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from list_sink import ListSink
from spool_deliveries import T0, delivery

from agent import sender as sender_module
from agent.sender import SUSPECT_AFTER, Sender
from agent.sinks.base import RefusedError, SinkError, TooEarlyError
from agent.spool import Spool


class Moody(ListSink):
    """Raises what it is told to, by sequence or for the next deliveries."""

    def __init__(self) -> None:
        super().__init__()
        self.tried: list[int] = []
        self.moods: dict[int, Exception] = {}
        self.next: list[Exception] = []
        self.gate = threading.Event()
        self.gate.set()
        self.inside = threading.Event()

    def deliver_body(self, body: bytes, *, agent_id: str, sequence: int) -> None:
        self.tried.append(sequence)
        self.inside.set()
        self.gate.wait(20)
        if self.next:
            raise self.next.pop(0)
        if sequence in self.moods:
            raise self.moods[sequence]
        super().deliver_body(body, agent_id=agent_id, sequence=sequence)

    @property
    def taken(self) -> list[int]:
        return [number for _agent, number in self.numbers]


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    spool = Spool(tmp_path / "spool.db")
    yield spool
    spool.close()


@pytest.fixture
def sink() -> Moody:
    return Moody()


@pytest.fixture
def clock() -> list[int]:
    return [T0]


@pytest.fixture
def sender(spool: Spool, sink: Moody, clock: list[int]) -> Iterator[Sender]:
    sender = Sender(spool, sink, clock=lambda: clock[0], jitter=lambda: 0.001)
    yield sender
    sink.gate.set()
    if sender.alive:
        sender.stop()


def until(fact: Callable[[], bool]) -> None:
    """Wait for another thread; pytest's own timeout ends it."""
    while not fact():
        time.sleep(0.002)


def fill(spool: Spool, count: int) -> None:
    for number in range(count):
        spool.append(delivery(number), T0)


def test_a_backlog_is_sent_in_order_and_then_what_comes(spool: Spool, sink: Moody, sender: Sender) -> None:
    fill(spool, 20)
    sender.start()
    until(lambda: spool.waiting == 0)
    assert sink.taken == list(range(1, 21))
    spool.append(delivery(20), T0)
    sender.wake()
    until(lambda: sender.sent == 21)
    assert sender.stop()
    assert sink.closed
    assert (sender.errors, sender.last_error, sender.last_ok_ms) == (0, None, T0)
    assert sender.bytes_written > 21 * 100
    assert len(sink.gpu_rows) == 21


def test_without_work_it_sleeps_until_it_is_woken(
    spool: Spool, sink: Moody, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float | None] = []
    wait = threading.Event.wait

    def counted(event: threading.Event, timeout: float | None = None) -> bool:
        if event is sender._work:
            asked.append(timeout)
        return wait(event, timeout)

    monkeypatch.setattr(threading.Event, "wait", counted)
    sender.start()
    until(lambda: bool(asked))
    assert asked == [None]


def test_a_sink_that_is_away_is_asked_again_and_nothing_is_lost_or_doubled(
    spool: Spool, sink: Moody, sender: Sender, caplog: pytest.LogCaptureFixture
) -> None:
    fill(spool, 5)
    sink.next = [SinkError("no route to host")] * 4
    with caplog.at_level(logging.INFO):
        sender.start()
        until(lambda: spool.waiting == 0)
        sender.stop()
    assert sink.tried == [1] * 5 + [2, 3, 4, 5]
    assert sink.taken == [1, 2, 3, 4, 5]
    assert (sender.errors, sender.last_error) == (4, None)
    assert [record.message for record in caplog.records] == [
        "samples wait in the spool",
        "samples are delivered again",
    ], "one line for each change of state"


def test_waits_double_up_to_a_minute_with_full_jitter_and_retry_after_wins(spool: Spool, sink: Moody) -> None:
    sender = Sender(spool, sink, clock=lambda: T0, jitter=lambda: 1.0)
    waits = [sender._failed("away", None) for _try in range(8)]
    assert waits == [2, 4, 8, 16, 32, 60, 60, 60]
    assert sender._failed("away", 300.0) == 301.0
    calm = Sender(spool, sink, clock=lambda: T0, jitter=lambda: 0.25)
    assert [calm._failed("away", None) for _try in range(3)] == [0.5, 1.0, 2.0]


def test_a_wait_that_was_asked_for_is_not_cut_short_by_new_work(
    spool: Spool, sink: Moody, sender: Sender
) -> None:
    fill(spool, 1)
    sink.next = [SinkError("busy", wait_s=3_000)]
    sender.start()
    until(lambda: sender.errors == 1)
    for number in range(5):
        spool.append(delivery(number), T0)
        sender.wake()
    time.sleep(0.05)
    assert sink.tried == [1]
    sink.moods = {1: SinkError("busy")}
    assert sender.stop()
    assert sink.tried == [1, 1], "the end tries once more, and leaves the rest"
    assert spool.waiting == 6


def test_a_refused_delivery_steps_aside_for_good(
    spool: Spool, sink: Moody, sender: Sender, caplog: pytest.LogCaptureFixture
) -> None:
    fill(spool, 3)
    sink.moods = {2: RefusedError("ts_ms is negative")}
    sender.start()
    until(lambda: spool.waiting == 0)
    assert (sink.taken, sink.tried.count(2)) == ([1, 3], 1)
    assert (spool.refused, sender.errors) == (1, 1)
    assert caplog.records[0].error == "ts_ms is negative"  # type: ignore[attr-defined]


def test_early_samples_step_aside_and_are_sent_when_it_is_time(
    spool: Spool, sink: Moody, sender: Sender, clock: list[int]
) -> None:
    fill(spool, 3)
    sink.moods = {1: TooEarlyError("in the future", T0 + 30_000)}
    sender.start()
    until(lambda: spool.waiting == 1)
    assert sink.taken == [2, 3]
    sink.moods = {}
    clock[0] += 30_000
    sender.wake()
    until(lambda: spool.waiting == 0)
    assert sink.taken == [2, 3, 1]


def test_a_delivery_on_which_the_sink_breaks_does_not_hold_up_the_others(
    spool: Spool, sink: Moody, sender: Sender
) -> None:
    fill(spool, 3)
    sink.moods = {1: SinkError("500", suspect=True)}
    sender.start()
    until(lambda: spool.waiting == 1)
    assert sink.taken == [2, 3]
    assert sink.tried.count(1) == SUSPECT_AFTER
    assert spool.next_due_ms() is not None


def test_a_bug_in_a_sink_is_logged_and_the_thread_goes_on(
    spool: Spool, sink: Moody, sender: Sender, caplog: pytest.LogCaptureFixture
) -> None:
    fill(spool, 2)
    sink.next = [ZeroDivisionError("a bug")]
    sender.start()
    until(lambda: spool.waiting == 0)
    assert sink.taken == [1, 2]
    assert "ZeroDivisionError" in caplog.text


def test_the_end_sends_what_it_can_within_its_time_and_leaves_the_rest(
    spool: Spool, sink: Moody, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender_module, "STOP_S", 0.1)
    fill(spool, 3)
    sink.gate.clear()
    sender.start()
    sink.inside.wait()
    assert not sender.stop(), "a sink that hangs does not hold up the end"
    spool.close()
    sink.gate.set()
    sender._thread.join()
    assert sink.taken == [1], "what was acknowledged too late for the spool is sent again, and stored once"
    again = Spool(spool.path)
    assert again.waiting == 3
    again.close()


def test_a_stop_without_trouble_drains_the_spool(spool: Spool, sink: Moody, sender: Sender) -> None:
    sender.start()
    fill(spool, 50)
    assert sender.stop()
    assert sink.taken == list(range(1, 51))
