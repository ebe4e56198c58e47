"""Process readings → samples per workload: its processes together, per interval."""

from collections.abc import Callable
from dataclasses import dataclass, field

from core.readings import ProcessReading, WorkloadKey
from core.samples import SAMPLE_MS, ProcessSample


@dataclass(slots=True)
class _Instant:
    """The processes of one workload at one instant."""

    ts_ms: int
    count: int = 0
    memory_bytes: float | None = None
    busy_ratio: float | None = None
    cpu_ratio: float | None = None
    cpu_thread_ratio: float | None = None

    def take(self, reading: ProcessReading) -> None:
        self.count += 1
        if reading.cpu_ratio is not None:
            self.cpu_ratio = (self.cpu_ratio or 0.0) + reading.cpu_ratio
        if reading.cpu_thread_ratio is not None:
            self.cpu_thread_ratio = max(self.cpu_thread_ratio or 0.0, reading.cpu_thread_ratio)
        if reading.memory_used_bytes is not None:
            self.memory_bytes = (self.memory_bytes or 0.0) + reading.memory_used_bytes
        if reading.busy_ratio is not None:
            self.busy_ratio = min(1.0, (self.busy_ratio or 0.0) + reading.busy_ratio)


@dataclass(slots=True)
class _Workload:
    """One workload's interval so far: the instant being read, and what came before it."""

    key: WorkloadKey
    now: _Instant
    count: int = 0
    memory_bytes: float | None = None
    busy: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    cpu_thread: list[float] = field(default_factory=list)

    def take(self, reading: ProcessReading) -> None:
        if reading.ts_ms != self.now.ts_ms:
            self.settle()
            self.now = _Instant(reading.ts_ms)
        self.now.take(reading)

    def settle(self) -> None:
        self.count = max(self.count, self.now.count)
        if self.now.memory_bytes is not None:
            self.memory_bytes = max(self.memory_bytes or 0.0, self.now.memory_bytes)
        if self.now.busy_ratio is not None:
            self.busy.append(self.now.busy_ratio)
        if self.now.cpu_ratio is not None:
            self.cpu.append(self.now.cpu_ratio)
        if self.now.cpu_thread_ratio is not None:
            self.cpu_thread.append(self.now.cpu_thread_ratio)


@dataclass(slots=True)
class _Open:
    """The open interval of one GPU."""

    start: int
    latest: int
    workloads: dict[tuple[str, str, str | None], _Workload] = field(default_factory=dict)


class ProcessFold:
    """Readings of processes into one sample per GPU, workload and interval.

    Memory is the highest sum over the workload's processes, busy and CPU the mean of sums, the busiest thread the
    mean of the highest, the count the highest.
    """

    def __init__(self, *, span_ms: int = SAMPLE_MS) -> None:
        self._span = span_ms
        self._open: dict[str, _Open] = {}
        self.refused = 0

    def add(self, reading: ProcessReading) -> list[ProcessSample]:
        """Take one reading; returns the samples of the interval that it ends. Older than the last: refused."""
        start = reading.ts_ms - reading.ts_ms % self._span
        current = self._open.get(reading.gpu_uuid)
        done: list[ProcessSample] = []
        if current is not None and reading.ts_ms < current.latest:
            self.refused += 1
            return done
        if current is None or start > current.start:
            if current is not None:
                done = self._close(reading.gpu_uuid, current)
            current = self._open[reading.gpu_uuid] = _Open(start, reading.ts_ms)
        current.latest = reading.ts_ms
        workload = reading.workload
        key = (workload.kind, workload.key, workload.host)
        held = current.workloads.get(key)
        if held is None:
            held = current.workloads[key] = _Workload(workload, _Instant(reading.ts_ms))
        held.take(reading)
        return done

    def advance(self, now_ms: int) -> list[ProcessSample]:
        """Samples of the intervals that ended before ``now_ms``: when no process is left, no reading comes."""
        return self._take(lambda held: held.start + self._span <= now_ms)

    def flush(self) -> list[ProcessSample]:
        """Samples of the intervals still open."""
        return self._take(lambda _held: True)

    def _take(self, wanted: Callable[[_Open], bool]) -> list[ProcessSample]:
        ended = [uuid for uuid, held in self._open.items() if wanted(held)]
        return [sample for uuid in ended for sample in self._close(uuid, self._open.pop(uuid))]

    def _close(self, gpu_uuid: str, held: _Open) -> list[ProcessSample]:
        samples = []
        for workload in held.workloads.values():
            workload.settle()
            samples.append(
                ProcessSample(
                    gpu_uuid,
                    held.start,
                    self._span,
                    workload.key,
                    workload.memory_bytes,
                    _mean(workload.busy),
                    workload.count,
                    _mean(workload.cpu),
                    _mean(workload.cpu_thread),
                )
            )
        return samples


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
