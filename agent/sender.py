"""The thread between spool and sink: oldest first, deleted when acknowledged, patient with a sink that says no.

It sleeps without waking while there is nothing to send. A delivery that is refused, too early or suspect steps aside,
so that the ones behind it go on; a sink that does not answer is asked again after a wait that doubles up to a minute,
with full jitter, so that a fleet does not come back all at once.
"""

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Final

from agent.sinks.base import BodySink, RefusedError, SinkError, TooEarlyError
from agent.spool import LATEST_MS, Entry, Spool
from core.clock import now_ms
from core.errors import GpuwiseError

log = logging.getLogger(__name__)

FIRST_WAIT_S: Final = 1.0
MOST_WAIT_S: Final = 60.0
STOP_S: Final = 2.0
"""How long the end of the agent waits for what can still be sent; the rest stays in the spool."""
SUSPECT_AFTER: Final = 3
"""Failures of one delivery that the sink answers, before the ones behind it go first."""
SUSPECT_WAIT_MS: Final = 600_000
EARLY_LOG_S: Final = 3_600.0


class Sender:
    """Sends what the spool holds.

    Attributes:
        sent: deliveries acknowledged. bytes_written: their bodies, as sent.
        errors: tries that failed. last_error: the sentence of the last one; None while all is well.
        last_ok_ms: when the sink last took one, UTC epoch; None: never.
    """

    def __init__(
        self,
        spool: Spool,
        sink: BodySink,
        *,
        clock: Callable[[], int] = now_ms,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.sent = self.bytes_written = self.errors = 0
        self.last_error: str | None = None
        self.last_ok_ms: int | None = None
        self._spool, self._sink = spool, sink
        self._clock, self._jitter = clock, jitter
        self._work = threading.Event()
        self._stopping = threading.Event()
        self._stop_at_s = 0.0
        self._failures = 0
        self._suspect = (0, 0)
        self._down: str | None = None
        self._early_s: float | None = None
        self._thread = threading.Thread(target=self._run, name="sender", daemon=True)

    def start(self) -> None:
        """Begin to send, with what an earlier agent left."""
        self._work.set()
        self._thread.start()

    def wake(self) -> None:
        """Something was appended."""
        self._work.set()

    @property
    def alive(self) -> bool:
        """The thread runs."""
        return self._thread.is_alive()

    def stop(self) -> bool:
        """Try for ``STOP_S`` to send the rest; whether the thread ended and the sink is closed."""
        self._stop_at_s = time.monotonic() + STOP_S
        self._stopping.set()
        self._work.set()
        self._thread.join(STOP_S)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            self._work.clear()
            wait_s = self._drain()
            if self._stopping.is_set():
                break
            if self._failures:
                self._stopping.wait(wait_s)
                self._work.set()
            else:
                self._work.wait(wait_s)
        self._sink.close()

    def _drain(self) -> float | None:
        """Send until nothing is due, or the sink says no; how long to wait then (None: until woken)."""
        while not self._over():
            try:
                entry = self._spool.oldest(self._clock())
                if entry is None:
                    return self._until_due_s()
                if self._send(entry):
                    self._failures = 0
            except GpuwiseError as error:
                return self._failed(str(error), getattr(error, "wait_s", None))
            except Exception as error:
                # The thread must outlive a bug in a sink, or nothing would be delivered until a restart.
                log.exception("a delivery failed")
                return self._failed(repr(error), None)
        return 0.0

    def _over(self) -> bool:
        return self._stopping.is_set() and time.monotonic() >= self._stop_at_s

    def _send(self, entry: Entry) -> bool:
        """Send one; False: the sink failed on it, and it steps aside."""
        try:
            self._sink.deliver_body(entry.body, agent_id=entry.agent_id, sequence=entry.sequence)
        except RefusedError as error:
            self.errors += 1
            log.error(  # noqa: TRY400 - the sentence says it all
                "a delivery was refused and set aside",
                extra={"sequence": entry.sequence, "error": str(error)},
            )
            self._spool.refuse(entry.sequence, str(error), self._clock())
        except TooEarlyError as error:
            self.errors += 1
            self._say_early(str(error))
            self._spool.later(entry.sequence, self._not_before_ms(error.until_ms))
        except SinkError as error:
            if not error.suspect or not self._is_suspect(entry.sequence):
                raise
            self.errors += 1
            self._say(str(error))
            self._spool.later(entry.sequence, self._not_before_ms(self._clock() + SUSPECT_WAIT_MS))
            return False
        else:
            self._spool.done(entry.sequence)
            self.sent += 1
            self.bytes_written += len(entry.body)
            self.last_ok_ms = self._clock()
            self._recovered()
        return True

    def _is_suspect(self, sequence: int) -> bool:
        before, count = self._suspect
        count = count + 1 if before == sequence else 1
        self._suspect = (sequence, count)
        return count >= SUSPECT_AFTER

    def _not_before_ms(self, until_ms: int) -> int:
        """At least a second, so that it does not spin; at most what the spool takes for a sane clock."""
        now = self._clock()
        return min(max(until_ms, now + 1_000), now + LATEST_MS)

    def _failed(self, sentence: str, wait_s: float | None) -> float:
        self.errors += 1
        self._failures += 1
        self._say(sentence)
        if self._stopping.is_set():
            self._stop_at_s = 0.0
        if wait_s is not None:
            # What was asked for is kept; the jitter on top spreads a fleet that was sent away together.
            return wait_s + self._jitter() * FIRST_WAIT_S
        return self._jitter() * min(MOST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(self._failures, 16))

    def _say(self, sentence: str) -> None:
        """One line when the state changes, not one for each try."""
        if sentence != self._down:
            log.warning(
                "samples wait in the spool", extra={"error": sentence, "waiting": self._spool.waiting}
            )
        self._down = self.last_error = sentence

    def _say_early(self, sentence: str) -> None:
        """One line an hour: others may be taken meanwhile, so that there is no change of state to tell of."""
        now_s = time.monotonic()
        if self._early_s is None or now_s - self._early_s >= EARLY_LOG_S:
            self._early_s = now_s
            log.warning(
                "samples are early for the sink's clock: compare the clocks", extra={"error": sentence}
            )
        self.last_error = sentence

    def _recovered(self) -> None:
        self.last_error = None
        if self._down is not None:
            self._down = None
            log.info("samples are delivered again", extra={"waiting": self._spool.waiting})

    def _until_due_s(self) -> float | None:
        due_ms = self._spool.next_due_ms()
        if due_ms is None:
            return None
        return min(max((due_ms - self._clock()) / 1000, 0.05), LATEST_MS / 1000)
