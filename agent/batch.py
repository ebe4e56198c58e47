"""Things from any source through the folds into deliveries: for a sink, a few thousand rows at a time, or for the spool."""

from dataclasses import dataclass, field
from typing import Any, Final

from agent.fold import EngineFold, GpuFold, ProcessFold
from agent.sinks.base import Sink
from agent.sources.series import Thing
from core.delivery import Delivery
from core.readings import EngineReading, GpuIdentity, GpuReading, ProcessReading
from core.samples import SAMPLE_MS, GpuEvent

BATCH_ROWS: Final = 5_000
KEPT_ROWS: Final = 50_000
"""Samples kept in memory while a sink refuses: a day of six GPUs."""


@dataclass(slots=True)
class Stored:
    """Rows made and rows newly stored; the difference was there already."""

    gpu_samples: int = 0
    process_samples: int = 0
    engine_samples: int = 0
    new_rows: int = 0
    from_ms: int | None = None
    to_ms: int | None = None
    gpu_uuids: set[str] = field(default_factory=set)
    engines: set[str] = field(default_factory=set)


class Batch:
    """Folds what comes into ``delivery``, until that is written to the sink or taken out for the spool.

    Attributes:
        delivery: what has gathered; what needs no fold (host, events, health) may be put there as it is.
        stored: what the sink has got so far.
    """

    def __init__(self, sink: Sink | None = None, *, span_ms: int = SAMPLE_MS) -> None:
        self._sink = sink
        self._span = span_ms
        self.gpu_fold = GpuFold(span_ms=span_ms)
        self.process_fold = ProcessFold(span_ms=span_ms)
        self.engine_fold = EngineFold(span_ms=span_ms)
        self.stored = Stored()
        self.delivery = Delivery()

    @property
    def waiting(self) -> int:
        """Rows that wait to be written, identities among them."""
        return self.delivery.row_count + len(self.delivery.gpus) + len(self.delivery.engines)

    @property
    def refused(self) -> int:
        """Readings that were not later than one already folded."""
        return self.gpu_fold.refused + self.engine_fold.refused + self.process_fold.refused

    def take(self, thing: Thing, *, write: bool = True) -> None:
        """Fold one thing; write when a batch is full, unless the caller does. Raises what the sink raises."""
        delivery, full = self.delivery, False
        if isinstance(thing, GpuReading):
            samples = self.gpu_fold.add(thing)
            if samples:
                delivery.gpu_samples += samples
                full = len(delivery.gpu_samples) >= BATCH_ROWS
        elif isinstance(thing, EngineReading):
            delivery.engine_samples += self.engine_fold.add(thing)
            full = len(delivery.engine_samples) >= BATCH_ROWS
        elif isinstance(thing, ProcessReading):
            delivery.process_samples += self.process_fold.add(thing)
            full = len(delivery.process_samples) >= BATCH_ROWS
        elif isinstance(thing, GpuIdentity):
            self.gpu_fold.identify(thing)
            delivery.gpus.append(thing)
        else:
            delivery.engines.append(thing)
        if full and write:
            self.write()

    def take_event(self, event: GpuEvent) -> None:
        """Keep an event for the next delivery; a GPU that is gone or silent has its open interval folded."""
        self.delivery.events.append(event)
        if event.kind in {"lost", "stuck"}:
            self.delivery.gpu_samples += self.gpu_fold.flush(event.gpu_uuid)

    def advance(self, now_ms: int) -> None:
        """Fold the intervals of processes that ended: no reading of theirs comes any more."""
        self.delivery.process_samples += self.process_fold.advance(now_ms)

    def flush(self) -> None:
        """Fold what is still open."""
        self.delivery.gpu_samples += self.gpu_fold.flush()
        self.delivery.engine_samples += self.engine_fold.flush()
        self.delivery.process_samples += self.process_fold.flush()

    def take_delivery(self) -> Delivery:
        """What has gathered, for the spool; a new delivery begins. Whoever takes it answers for it."""
        taken, self.delivery = self.delivery, Delivery()
        return taken

    def use(self, sink: Sink) -> None:
        """Write to another sink from now on."""
        self._sink = sink

    def trim(self) -> int:
        """Drop the oldest samples beyond ``KEPT_ROWS`` of each kind; how many were dropped."""
        delivery, dropped = self.delivery, 0
        rows: list[Any]
        for rows in (
            delivery.gpu_samples,
            delivery.process_samples,
            delivery.engine_samples,
            delivery.host_samples,
        ):
            surplus = len(rows) - KEPT_ROWS
            if surplus > 0:
                del rows[:surplus]
                dropped += surplus
        return dropped

    def end(self) -> Stored:
        """Fold what is still open and write the rest."""
        self.flush()
        self.write()
        return self.stored

    def write(self) -> None:
        """Hand over what has gathered, durable on return; what the sink refuses is kept for the next time.

        Raises:
            SinkError, RefusedError: the sink's.
        """
        if self._sink is None:
            raise TypeError("a batch without a sink is emptied by take_delivery")
        if self.delivery.empty:
            return
        self._count(self._sink.deliver(self.delivery))
        self.delivery = Delivery()

    def _count(self, new: int) -> None:
        stored, delivery = self.stored, self.delivery
        stored.new_rows += new
        stored.gpu_samples += len(delivery.gpu_samples)
        stored.engine_samples += len(delivery.engine_samples)
        stored.process_samples += len(delivery.process_samples)
        stored.gpu_uuids.update(sample.gpu_uuid for sample in delivery.gpu_samples)
        stored.engines.update(identity.engine for identity in delivery.engines)
        starts = [sample.ts_ms for sample in delivery.gpu_samples]
        starts += [sample.ts_ms for sample in delivery.engine_samples]
        if starts:
            stored.from_ms = min(starts) if stored.from_ms is None else min(stored.from_ms, *starts)
            end = max(starts) + self._span
            stored.to_ms = end if stored.to_ms is None else max(stored.to_ms, end)
