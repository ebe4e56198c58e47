"""The daemon's loop: a grid of deadlines, samples into the sink as they are complete, an orderly end.

The driver is asked in a thread of its own: a call that hangs there neither stops what is folded already from
being stored nor the end of the process.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from agent.batch import Batch
from agent.nvml import NvmlError
from agent.sinks.base import Sink
from agent.sources.live import LiveSource
from agent.sources.series import Thing
from core.clock import now_ms
from core.errors import GpuwiseError
from core.samples import GpuEvent

log = logging.getLogger(__name__)

QUEUED_TICKS: Final = 600
"""Rounds that wait while the sink is slow; after that the newest are dropped and counted."""
RETRY_S: Final = 10.0
"""Time until the next try after the sink refused."""
CLOCK_STEP_MS: Final = 10_000
"""A clock set back by more than this starts new series; by less, readings wait until it has caught up."""

Round = list[Thing | GpuEvent]


@dataclass(slots=True)
class Counts:
    """What the loop did; for the log and for tests."""

    ticks: int = 0
    skipped: int = 0
    failed: int = 0
    dropped: int = 0
    sink_errors: int = 0


class Poller:
    """Asks the source on a grid of monotonic deadlines. A tick that is late skips, it never queues."""

    def __init__(self, source: LiveSource, interval_s: float, stop: threading.Event, counts: Counts) -> None:
        self._source, self._interval, self._stop, self._counts = source, interval_s, stop, counts
        self.rounds: queue.Queue[Round] = queue.Queue(QUEUED_TICKS)
        self.thread = threading.Thread(target=self._run, name="nvml-poller", daemon=True)

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stop.is_set():
            self._tick()
            due += self._interval
            late = time.monotonic() - due
            if late > 0:
                missed = int(late // self._interval) + 1
                self._counts.skipped += missed
                due += missed * self._interval
            self._stop.wait(due - time.monotonic())

    def _tick(self) -> None:
        try:
            self.rounds.put_nowait(self._source.tick(now_ms))
            self._counts.ticks += 1
        except queue.Full:
            self._counts.dropped += 1
        except NvmlError as error:
            self._counts.failed += 1
            log.warning("driver does not answer", extra={"error": str(error)})
        except Exception:
            # One of the three places of such a catch: a tick that fails is logged and the next one comes.
            self._counts.failed += 1
            log.exception("tick failed")


def run(
    source: LiveSource,
    make_sink: Callable[[], Sink],
    *,
    interval_s: float,
    stop: threading.Event,
) -> Counts:
    """Sample until ``stop`` is set, then flush within a second.

    Args:
        source: the GPUs.
        make_sink: opens the sink; called again after it refused.
        interval_s: distance of readings.
        stop: ends the loop.

    Raises:
        GpuwiseError: the sink cannot be opened at the start.
    """
    counts = Counts()
    writer = _Writer(make_sink, counts)
    poller = Poller(source, interval_s, stop, counts)
    poller.thread.start()
    try:
        while not stop.is_set():
            try:
                writer.take(poller.rounds.get(timeout=0.25))
            except queue.Empty:
                continue
    finally:
        stop.set()
        poller.thread.join(0.3)
        while not poller.rounds.empty():
            writer.take(poller.rounds.get_nowait())
        writer.end()
    log.info(
        "agent ended",
        extra={
            "ticks": counts.ticks,
            "skipped": counts.skipped,
            "failed": counts.failed,
            "dropped": counts.dropped,
        },
    )
    return counts


class _Writer:
    """Folds rounds and writes what is complete; keeps it for the next try when the sink refuses."""

    def __init__(self, make_sink: Callable[[], Sink], counts: Counts) -> None:
        self._make_sink = make_sink
        self._counts = counts
        self._sink: Sink | None = make_sink()
        self._batch = Batch(self._sink)
        self._retry_s = 0.0
        self._last_ms = 0

    def take(self, things: Round) -> None:
        """Fold one round; write when an interval was completed."""
        for thing in things:
            if isinstance(thing, GpuEvent):
                self._batch.take_event(thing)
            else:
                self._take(thing)
        self._batch.advance(self._last_ms)
        if self._batch.waiting and time.monotonic() >= self._retry_s:
            self._write()

    def end(self) -> None:
        """Fold what is open and write it: the last chance."""
        self._batch.flush()
        self._write()
        if self._sink is not None:
            self._sink.close()

    def _take(self, thing: Thing) -> None:
        ts_ms = getattr(thing, "ts_ms", None)
        if ts_ms is not None:
            if ts_ms < self._last_ms - CLOCK_STEP_MS:
                log.warning("the clock was set back", extra={"by_ms": self._last_ms - ts_ms})
                self._batch.flush()
                self._last_ms = ts_ms
            self._last_ms = max(self._last_ms, ts_ms)
        self._batch.take(thing, write=False)

    def _write(self) -> None:
        try:
            if self._sink is None:
                self._sink = self._make_sink()
                self._batch.use(self._sink)
            self._batch.write()
        except GpuwiseError as error:
            self._counts.sink_errors += 1
            self._retry_s = time.monotonic() + RETRY_S
            self._counts.dropped += self._batch.trim()
            log.warning(
                "samples could not be stored", extra={"error": str(error), "waiting": self._batch.waiting}
            )
            if self._sink is not None:
                self._sink.close()
            self._sink = None
