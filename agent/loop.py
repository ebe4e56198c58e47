"""The hub of the agent: frames, pages and its own figures through the folds, an interval at a time into the spool."""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from agent.batch import Batch
from agent.collectors.host import HostCollector, OwnCost
from agent.intake import Intake, Something
from agent.reader import Reader
from agent.scraper import Scraper
from agent.sender import Sender
from agent.spool import Spool
from agent.spool_beside import SpoolError
from agent.spool_notes import lost_with
from core.activity import Activity
from core.clock import SteadyClock
from core.delivery import Delivery
from core.readings import EngineIdentity, GpuHealth
from core.samples import GpuEvent, GpuSample, HostSample

log = logging.getLogger(__name__)

GRACE_MS: Final = 1_500
"""An interval is handed on this long after its end: its last readings and counters are in by then."""
LONGEST_POLL_S: Final = 0.5
UNSAVED: Final = 360
"""Deliveries kept in memory while the disk of the spool is full: an hour of ten-second intervals."""


Watch = Callable[[Sequence[Something | HostSample]], None]
"""Sees everything that comes by."""


@dataclass(slots=True)
class Parts:
    """What the hub works with."""

    reader: Reader
    intake: Intake
    clock: SteadyClock
    scraper: Scraper
    spool: Spool
    sender: Sender
    host: HostCollector
    cost: OwnCost


class Hub:
    """One step at a time: take what came, and close an interval when its time has come.

    Attributes:
        unsaved: deliveries that found no room in the spool yet. dropped_rows: rows that were lost from there.
    """

    def __init__(self, parts: Parts, *, span_ms: int, watch: Watch | None = None) -> None:
        self._parts, self._span = parts, span_ms
        self._batch = Batch(span_ms=span_ms)
        self._engines: dict[str, EngineIdentity] = {}
        self._watch = watch
        self.unsaved: deque[Delivery] = deque()
        self.dropped_rows = 0
        self._full = False
        self._totals = parts.spool.bytes_written, parts.spool.dropped_rows
        self._border_ms = self._next_border()

    def step(self) -> None:
        """Wait for what comes, at most half a second."""
        parts = self._parts
        due_s = (self._border_ms + GRACE_MS - parts.clock.ms_now()) / 1000
        frames = parts.reader.poll(min(max(due_s, 0.0), LONGEST_POLL_S))
        step_ms = parts.clock.look()
        if step_ms:
            log.warning("the clock was set, new series begin", extra={"ahead_by_ms": step_ms})
            self._break()
            self._border_ms = self._next_border()
        for frame in frames:
            self._take(parts.intake.take(frame))
        self._take_pages()
        if parts.clock.ms_now() >= self._border_ms + GRACE_MS:
            self._close()

    def let_go(self) -> None:
        """Before a pause or the end: what is open is folded as far as it goes."""
        self._break()

    def end(self) -> None:
        """Fold what is open and hand it to the spool: the last chance."""
        self._break()
        self._deliver()

    def _break(self) -> None:
        self._take(self._parts.intake.release())
        self._batch.flush()

    def _next_border(self) -> int:
        now = self._parts.clock.ms_now()
        return now - now % self._span + self._span

    def _take(self, things: list[Something]) -> None:
        batch = self._batch
        for thing in things:
            if isinstance(thing, GpuEvent):
                batch.take_event(thing)
            elif isinstance(thing, GpuHealth):
                batch.delivery.health.append(thing)
            else:
                batch.take(thing, write=False)
        if self._watch is not None and things:
            self._watch(things)

    def _take_pages(self) -> None:
        scraper, intake = self._parts.scraper, self._parts.intake
        scraper.servers = intake.servers
        while not scraper.outside.empty():
            intake.outside(*scraper.outside.get())
        things: list[Something] = []
        while not scraper.found.empty():
            thing = scraper.found.get()
            if isinstance(thing, EngineIdentity):
                self._engines[thing.engine] = thing
            things.append(thing)
        self._take(things)

    def _close(self) -> None:
        """The interval that ended: the host, GPUs that do not answer, and everything folded since the last one."""
        parts, start_ms = self._parts, self._border_ms - self._span
        self._batch.advance(self._border_ms)
        delivery = self._batch.delivery
        told = {(sample.gpu_uuid, sample.ts_ms) for sample in delivery.gpu_samples}
        delivery.gpu_samples += [
            GpuSample(uuid, start_ms, self._span, 0, {}, None, Activity.UNKNOWN)
            for uuid, state in parts.intake.away.items()
            if state == "stuck" and (uuid, start_ms) not in told and not parts.reader.paused
        ]
        sample = parts.host.sample(start_ms, self._span, self._own_figures())
        if sample is not None:
            delivery.host_samples.append(sample)
            if self._watch is not None:
                self._watch([sample])
        self._deliver()
        self._border_ms = self._next_border()

    def _own_figures(self) -> dict[str, float]:
        parts = self._parts
        totals = (
            parts.spool.bytes_written + parts.sender.bytes_written,
            parts.spool.dropped_rows + self.dropped_rows,
        )
        before, self._totals = self._totals, totals
        return {
            **parts.cost.values(parts.reader.pids),
            **parts.intake.take_costs(),
            "agent_written_bytes": float(totals[0] - before[0]),
            "agent_dropped_count": float(totals[1] - before[1]),
            "agent_waiting_count": float(parts.spool.waiting),
        }

    def _deliver(self) -> None:
        """Everything that has gathered, with who says it, into the spool."""
        delivery = self._batch.take_delivery()
        if delivery.empty:
            return
        delivery.host = self._parts.host.identity()
        delivery.gpus = list(self._parts.intake.gpus.values())
        delivery.engines = list(self._engines.values())
        self.unsaved.append(delivery)
        self._save()

    def _save(self) -> None:
        spool = self._parts.spool
        try:
            while self.unsaved:
                spool.append(self.unsaved[0], self._parts.clock.ms_now())
                self.unsaved.popleft()
        except SpoolError as error:
            if not self._full:
                self._full = True
                log.warning("samples are kept in memory: the spool takes none", extra={"error": str(error)})
            while len(self.unsaved) > UNSAVED:
                self.dropped_rows += lost_with(self.unsaved.popleft())
        else:
            if self._full:
                self._full = False
                log.info("the spool takes samples again", extra={"dropped_rows": self.dropped_rows})
        self._parts.sender.wake()
