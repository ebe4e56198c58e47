"""Things from any source through the folds into a sink, a few thousand rows at a time."""

from dataclasses import dataclass, field
from typing import Final

from agent.fold import EngineFold, GpuFold, ProcessFold
from agent.sinks.base import Sink
from agent.sources.series import Thing
from core.readings import EngineIdentity, EngineReading, GpuIdentity, GpuReading, ProcessReading
from core.samples import SAMPLE_MS, EngineSample, GpuEvent, GpuSample, ProcessSample

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
    """Folds what comes and hands full batches to the sink, each durable by itself."""

    def __init__(self, sink: Sink, *, span_ms: int = SAMPLE_MS) -> None:
        self._sink = sink
        self._span = span_ms
        self.gpu_fold = GpuFold(span_ms=span_ms)
        self.process_fold = ProcessFold(span_ms=span_ms)
        self.engine_fold = EngineFold(span_ms=span_ms)
        self.stored = Stored()
        self._gpus: list[GpuIdentity] = []
        self._engines: list[EngineIdentity] = []
        self._gpu_samples: list[GpuSample] = []
        self._process_samples: list[ProcessSample] = []
        self._engine_samples: list[EngineSample] = []
        self._events: list[GpuEvent] = []

    @property
    def waiting(self) -> int:
        """Rows that wait to be written."""
        samples = len(self._gpu_samples) + len(self._process_samples) + len(self._engine_samples)
        return samples + len(self._gpus) + len(self._engines) + len(self._events)

    @property
    def refused(self) -> int:
        """Readings that were not later than one already folded."""
        return self.gpu_fold.refused + self.engine_fold.refused + self.process_fold.refused

    def take(self, thing: Thing, *, write: bool = True) -> None:
        """Fold one thing; write when a batch is full, unless the caller does. Raises what the sink raises."""
        full = False
        if isinstance(thing, GpuReading):
            samples = self.gpu_fold.add(thing)
            if samples:
                self._gpu_samples += samples
                full = len(self._gpu_samples) >= BATCH_ROWS
        elif isinstance(thing, EngineReading):
            self._engine_samples += self.engine_fold.add(thing)
            full = len(self._engine_samples) >= BATCH_ROWS
        elif isinstance(thing, ProcessReading):
            self._process_samples += self.process_fold.add(thing)
            full = len(self._process_samples) >= BATCH_ROWS
        elif isinstance(thing, GpuIdentity):
            self.gpu_fold.identify(thing)
            self._gpus.append(thing)
        else:
            self._engines.append(thing)
        if full and write:
            self.write()

    def take_event(self, event: GpuEvent) -> None:
        """Keep an event for the next write; a GPU that is lost has its open interval folded."""
        self._events.append(event)
        if event.kind == "lost":
            self._gpu_samples += self.gpu_fold.flush(event.gpu_uuid)

    def advance(self, now_ms: int) -> None:
        """Fold the intervals of processes that ended: no reading of theirs comes any more."""
        self._process_samples += self.process_fold.advance(now_ms)

    def flush(self) -> None:
        """Fold what is still open."""
        self._gpu_samples += self.gpu_fold.flush()
        self._engine_samples += self.engine_fold.flush()
        self._process_samples += self.process_fold.flush()

    def use(self, sink: Sink) -> None:
        """Write to another sink from now on."""
        self._sink = sink

    def trim(self) -> int:
        """Drop the oldest samples beyond ``KEPT_ROWS``; how many were dropped."""
        dropped = 0
        for rows in (self._gpu_samples, self._process_samples, self._engine_samples):
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
        """Hand over what has gathered and commit it; what the sink refuses is kept for the next time."""
        sink, new = self._sink, 0
        if self._gpus:
            sink.gpus(self._gpus)
        if self._engines:
            sink.engines(self._engines)
        if self._gpu_samples:
            new += sink.gpu_samples(self._gpu_samples)
        if self._engine_samples:
            new += sink.engine_samples(self._engine_samples)
        if self._process_samples:
            new += sink.process_samples(self._process_samples)
        if self._events:
            sink.events(self._events)
        sink.commit()
        self._count(new)
        self._gpus, self._engines, self._events = [], [], []
        self._gpu_samples, self._process_samples, self._engine_samples = [], [], []

    def _count(self, new: int) -> None:
        stored = self.stored
        stored.new_rows += new
        stored.gpu_samples += len(self._gpu_samples)
        stored.engine_samples += len(self._engine_samples)
        stored.process_samples += len(self._process_samples)
        stored.gpu_uuids.update(sample.gpu_uuid for sample in self._gpu_samples)
        stored.engines.update(identity.engine for identity in self._engines)
        starts = [sample.ts_ms for sample in self._gpu_samples]
        starts += [sample.ts_ms for sample in self._engine_samples]
        if starts:
            stored.from_ms = min(starts) if stored.from_ms is None else min(stored.from_ms, *starts)
            end = max(starts) + self._span
            stored.to_ms = end if stored.to_ms is None else max(stored.to_ms, end)
