"""Roll-up: samples of hours that changed become hours, usage and days, in chunks, each in a transaction of its own.

Stopping in the middle loses nothing: what is not yet written is still marked. Running twice changes nothing: an
hour is computed from all its samples and replaced whole, or merged where the samples behind it are purged. Samples
that arrive while their hour is being folded leave a new mark, and that hour is left for the next run.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Engine

from core.collector import rarely_collected
from core.evidence import Window
from core.hours import GpuHour, HostHour
from core.readings import WorkloadKey
from core.samples import EngineSample, GpuSample, HostSample, ProcessSample
from core.sharing import ShareMethod
from core.units import HOUR_MS
from store import pending
from store.components import Component, components
from store.day_writer import write_days
from store.engine import begin_write
from store.engine_effect import UNTOLD, by_engine_rate
from store.fold_host import fold_host_hour
from store.fold_hours import FOLDED, fold_engine_hour, fold_gpu_hour
from store.fold_quarters import fold_gpu_quarters, fold_host_quarters
from store.fold_usage import fold_usage_hour, holders_by_time
from store.hour_merge import Folded, span_of, span_of_host
from store.hour_writer import HourWriter, Unit
from store.known import KnownEngine, known_engines, known_gpus, known_hosts
from store.mig_slices import SliceOfCard, slices_of_cards
from store.pending import Mark
from store.raw import RawReader, SqlRawReader
from store.usage_shares import SliceHolders

log = logging.getLogger(__name__)

MARKS_READ: Final = 20_000
FIRST_CHUNK: Final = 64
LARGEST_CHUNK: Final = 4_096
"""Hours of GPUs, engines and hosts read at once: adapted so that a chunk holds about ``CHUNK_SAMPLES``."""
CHUNK_SAMPLES: Final = 8_000


@dataclass(frozen=True, slots=True)
class RollUpResult:
    """Hours written by one run, and marks it left.

    ``partial_hours``: hours that came again and miss something, because samples behind the stored one are purged
    and overlap the new ones.
    """

    gpu_hours: int
    engine_hours: int
    usage_hours: int
    pending_left: int
    partial_hours: int = 0
    host_hours: int = 0


@dataclass(slots=True)
class _Chunk:
    """Components and hours that are read together, with the marks that asked for them."""

    hours: list[int]
    components: dict[int, Component]
    marks: dict[tuple[int, int], list[Mark]]

    @property
    def window(self) -> Window:
        """From the first hour to the end of the last."""
        return Window(self.hours[0], self.hours[-1] + HOUR_MS)


def roll_up(
    engine: Engine,
    reader: RawReader | None = None,
    *,
    now_ms: int,
    limit: int | None = None,
    share_method: ShareMethod = ShareMethod.MEMORY_TIME,
) -> RollUpResult:
    """Fold every marked hour that has begun by ``now_ms`` (a host's clock may run ahead).

    Args:
        engine: the database of marks and hours.
        reader: where raw samples are; default the same database.
        now_ms: the time.
        limit: at most about this many marks in this run; the rest stays for the next.
        share_method: how time of a GPU that several held together is split; hours folded before keep theirs.
    """
    raw = SqlRawReader(engine, FOLDED) if reader is None else reader
    with engine.begin() as connection:
        begin_write(connection)
        gpus = known_gpus(connection)
        engines = known_engines(connection, gpus)
        hosts = known_hosts(connection)
        pending.mark_changed_joins(connection, engines, gpus)
    by_slice = share_method is ShareMethod.MIG_SLICE
    slices = slices_of_cards(gpu.identity for gpu in gpus) if by_slice else {}
    sharing = _Sharing(share_method, slices)
    parts = components(gpus, engines, hosts, {uuid: one.card_uuid for uuid, one in slices.items()})
    writer = HourWriter(engine, gpus, engines, hosts)
    size, done = FIRST_CHUNK, 0
    after: tuple[int, str, int] | None = None
    while limit is None or done < limit:
        with engine.connect() as connection:
            marks = pending.next_marks(
                connection, after, now_ms, min(MARKS_READ, limit - done) if limit else MARKS_READ
            )
        if not marks:
            break
        after = marks[-1].place
        done += len(marks)
        queue = _by_unit(marks, parts)
        with rarely_collected():
            while queue:
                chunk = _take(queue, size)
                samples = _read(raw, chunk)
                writer.write(_fold(chunk, samples, sharing), chunk.marks)
                size = _next_size(size, chunk, samples.count)
    write_days(engine)
    with engine.connect() as connection:
        left = pending.count(connection)
    if writer.partial_hours:
        log.warning(
            "hours folded again without all of their samples: the part that covers more was kept",
            extra={"partial_hours": writer.partial_hours},
        )
    return RollUpResult(
        writer.gpu_hours,
        writer.engine_hours,
        writer.usage_hours,
        left,
        writer.partial_hours,
        writer.host_hours,
    )


def _by_unit(marks: Sequence[Mark], parts: Sequence[Component]) -> list[tuple[int, Component, list[Mark]]]:
    """Marks grouped by hour and component, in order of time; last first, to be taken from the end.

    A GPU, engine or host that appeared after the fleet was read keeps its marks for the next run.
    """
    part_of = {("gpu", gpu.id): part for part in parts for gpu in part.gpus}
    part_of |= {("engine", engine.id): part for part in parts for engine in part.engines}
    part_of |= {("host", host.id): part for part in parts for host in part.hosts}
    units: dict[tuple[int, int], tuple[int, Component, list[Mark]]] = {}
    for mark in marks:
        part = part_of.get((mark.kind, mark.entity_id))
        if part is not None:
            units.setdefault((mark.hour_ms, part.number), (mark.hour_ms, part, []))[2].append(mark)
    return sorted(units.values(), key=lambda unit: (unit[0], unit[1].number), reverse=True)


def _take(queue: list[tuple[int, Component, list[Mark]]], size: int) -> _Chunk:
    """The next hours in a row that, over all components met in them, are at most ``size`` members × hours."""
    hour_ms, part, marks = queue.pop()
    chunk = _Chunk([hour_ms], {part.number: part}, {(hour_ms, part.number): marks})
    members = part.size
    while queue:
        hour_ms, part, marks = queue[-1]
        new_hour = hour_ms != chunk.hours[-1]
        members_then = members + (0 if part.number in chunk.components else part.size)
        if hour_ms > chunk.hours[-1] + HOUR_MS or members_then * (len(chunk.hours) + new_hour) > size:
            break
        queue.pop()
        members = members_then
        chunk.components[part.number] = part
        chunk.marks[hour_ms, part.number] = marks
        if new_hour:
            chunk.hours.append(hour_ms)
    return chunk


def _next_size(size: int, chunk: _Chunk, samples: int) -> int:
    """Larger chunks while they hold few samples (coarse spans), smaller ones when they hold many."""
    read = len(chunk.hours) * sum(part.size for part in chunk.components.values())
    if samples == 0 or read < size // 2:
        return size
    return max(8, min(LARGEST_CHUNK, size * 2, read * CHUNK_SAMPLES // samples))


@dataclass(slots=True)
class _Samples:
    """Raw samples of a chunk by whose they are and hour."""

    gpu: dict[tuple[str, int], list[GpuSample]]
    process: dict[tuple[str, int], list[ProcessSample]]
    engine: dict[tuple[str, int], list[EngineSample]]
    host: dict[tuple[str, int], list[HostSample]]

    @property
    def count(self) -> int:
        """Samples of GPUs, engines and hosts."""
        return sum(len(found) for kind in (self.gpu, self.engine, self.host) for found in kind.values())


def _read(raw: RawReader, chunk: _Chunk) -> _Samples:
    uuids = [gpu.identity.gpu_uuid for part in chunk.components.values() for gpu in part.gpus]
    names = [engine.identity.engine for part in chunk.components.values() for engine in part.engines]
    hosts = [host.name for part in chunk.components.values() for host in part.hosts]
    samples = _Samples({}, {}, {}, {})
    if uuids:
        for gpu in raw.gpu_samples(uuids, chunk.window):
            samples.gpu.setdefault((gpu.gpu_uuid, gpu.ts_ms - gpu.ts_ms % HOUR_MS), []).append(gpu)
        for process in raw.process_samples(uuids, chunk.window):
            hour_ms = process.ts_ms - process.ts_ms % HOUR_MS
            samples.process.setdefault((process.gpu_uuid, hour_ms), []).append(process)
    if names:
        for engine in raw.engine_samples(names, chunk.window):
            samples.engine.setdefault((engine.engine, engine.ts_ms - engine.ts_ms % HOUR_MS), []).append(
                engine
            )
    if hosts:
        for host in raw.host_samples(hosts, chunk.window):
            samples.host.setdefault((host.host, host.ts_ms - host.ts_ms % HOUR_MS), []).append(host)
    return samples


@dataclass(frozen=True, slots=True)
class _Sharing:
    """How GPUs are shared out: the method, and MIG slices by UUID where that is by them."""

    method: ShareMethod
    slices: Mapping[str, SliceOfCard]


def _fold(chunk: _Chunk, samples: _Samples, sharing: _Sharing) -> Iterator[tuple[tuple[int, int], Unit]]:
    for hour_ms, number in chunk.marks:
        yield (hour_ms, number), _fold_unit(chunk.components[number], hour_ms, samples, sharing)


def _fold_unit(part: Component, hour_ms: int, samples: _Samples, sharing: _Sharing) -> Unit:
    of_gpu = {
        gpu.identity.gpu_uuid: samples.gpu.get((gpu.identity.gpu_uuid, hour_ms), []) for gpu in part.gpus
    }
    of_engine = {
        e.identity.engine: samples.engine.get((e.identity.engine, hour_ms), []) for e in part.engines
    }
    by_time = {uuid: {s.ts_ms: s for s in found} for uuid, found in of_gpu.items()} if part.engines else {}
    holders = {
        uuid: holders_by_time(
            found, samples.process.get((uuid, hour_ms), ()), _seen_engines(part, uuid, of_engine)
        )
        for uuid, found in of_gpu.items()
    }
    told = {
        uuid: by_engine_rate(of_engine[one.identity.engine], one.reachable_tokens_per_s, found, holders[uuid])
        for uuid, found in by_time.items()
        if (one := _only_engine(part, uuid)) is not None
    }
    gpu_hours = [
        fold_gpu_hour(uuid, hour_ms, found, told.get(uuid, UNTOLD)) for uuid, found in of_gpu.items()
    ]
    engine_hours = [
        fold_engine_hour(
            engine.identity.engine,
            hour_ms,
            of_engine[engine.identity.engine],
            [by_time.get(uuid, {}) for uuid in engine.join.gpu_uuids],
        )
        for engine in part.engines
    ]
    slices: dict[str, list[SliceHolders]] = {}
    for uuid, of_slice in holders.items():
        if uuid in sharing.slices:
            place = sharing.slices[uuid]
            slices.setdefault(place.card_uuid, []).append(SliceHolders(place.share, of_slice))
    usage = {
        uuid: fold_usage_hour(
            uuid,
            hour_ms,
            found,
            holders[uuid],
            method=sharing.method,
            slices=slices.get(uuid, ()),
            by_engine=told.get(uuid, UNTOLD),
        )
        for uuid, found in of_gpu.items()
        if found
    }
    return Unit(
        tuple(_with_quarters(hour, of_gpu[hour.gpu_uuid]) for hour in gpu_hours if hour is not None),
        tuple(Folded(hour, span_of(of_engine[hour.engine])) for hour in engine_hours if hour is not None),
        usage,
        tuple(_fold_hosts(part, hour_ms, samples)),
    )


def _with_quarters(hour: GpuHour, samples: Sequence[GpuSample]) -> Folded[GpuHour]:
    return Folded(hour, span_of(samples), fold_gpu_quarters(hour.hour_ms, samples))


def _only_engine(part: Component, gpu_uuid: str) -> KnownEngine | None:
    """The engine of a GPU; None where there is none, or more than one."""
    found = [engine for engine in part.engines if gpu_uuid in engine.join.gpu_uuids]
    return found[0] if len(found) == 1 else None


def _fold_hosts(part: Component, hour_ms: int, samples: _Samples) -> Iterator[Folded[HostHour]]:
    for host in part.hosts:
        found = samples.host.get((host.name, hour_ms), [])
        hour = fold_host_hour(host.name, hour_ms, found)
        if hour is not None:
            yield Folded(hour, span_of_host(found), fold_host_quarters(hour_ms, found))


def _seen_engines(
    part: Component, gpu_uuid: str, of_engine: Mapping[str, Sequence[EngineSample]]
) -> dict[WorkloadKey, frozenset[int]]:
    """Engines of one GPU as workloads, with the intervals in which they were seen."""
    return {
        engine_workload(engine): frozenset(s.ts_ms for s in of_engine[engine.identity.engine])
        for engine in part.engines
        if gpu_uuid in engine.join.gpu_uuids
    }


def engine_workload(engine: KnownEngine) -> WorkloadKey:
    """An engine as the workload that holds its GPUs."""
    identity = engine.identity
    return WorkloadKey("engine", identity.engine, identity.model or identity.engine, None, identity.host)
