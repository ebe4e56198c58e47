"""The fleet: GPUs with their newest sample, hosts, engines with their GPUs."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import and_, func, not_, select
from sqlalchemy.orm import Session

from core.readings import SLICE_PREFIX, EngineIdentity, GpuIdentity
from core.samples import GpuSample
from store.known import KnownGpu, known_engines, known_gpus, placed_gpus
from store.models.gpu import GpuRow
from store.models.gpu_sample import GpuSampleRow
from store.models.host import HostRow
from store.rows import GPU_SAMPLE_COLUMNS, gpu_sample_of


@dataclass(frozen=True, slots=True)
class FleetGpu:
    """A GPU.

    Attributes:
        identity: as the driver or exporter names it.
        first_seen_ms, last_seen_ms: start of its first and end of its newest sample; None without samples.
        latest: its newest sample; None without samples, or when that one was purged.
    """

    identity: GpuIdentity
    first_seen_ms: int | None
    last_seen_ms: int | None
    latest: GpuSample | None


@dataclass(frozen=True, slots=True)
class FleetHost:
    """A host with GPUs; ``host`` None gathers the GPUs whose host no source names."""

    host: str | None
    gpu_uuids: tuple[str, ...]
    first_seen_ms: int | None
    last_seen_ms: int | None


@dataclass(frozen=True, slots=True)
class FleetEngine:
    """An engine.

    Attributes:
        identity: name, kind, model, published settings.
        gpu_uuids: GPUs it runs on; empty when that could not be told. join: ``process``, ``host`` or ``unknown``.
        first_seen_ms, last_seen_ms: start of its first and end of its newest sample; None without samples.
    """

    identity: EngineIdentity
    gpu_uuids: tuple[str, ...]
    join: str
    first_seen_ms: int | None
    last_seen_ms: int | None


def gpus(session: Session) -> list[FleetGpu]:
    """Every GPU, by host, index and UUID; two queries."""
    connection = session.connection()
    known = known_gpus(connection)
    newest = select(*GPU_SAMPLE_COLUMNS).join(
        GpuRow, and_(GpuSampleRow.gpu_id == GpuRow.id, GpuSampleRow.ts_ms == GpuRow.last_sample_ms)
    )
    uuids = {gpu.id: gpu.identity.gpu_uuid for gpu in known}
    latest = {
        row[0]: gpu_sample_of(uuids[row[0]], row) for row in connection.execute(newest) if row[0] in uuids
    }
    return [
        FleetGpu(gpu.identity, gpu.first_sample_ms, gpu.seen_until_ms, latest.get(gpu.id)) for gpu in known
    ]


def hosts(session: Session) -> list[FleetHost]:
    """Every host that has GPUs, by name."""
    by_host: dict[str | None, list[KnownGpu]] = {}
    for gpu in known_gpus(session.connection()):
        by_host.setdefault(gpu.identity.host, []).append(gpu)
    return [
        _host(host, by_host[host]) for host in sorted(by_host, key=lambda name: (name is None, name or ""))
    ]


def _host(host: str | None, of_host: Sequence[KnownGpu]) -> FleetHost:
    first = [gpu.first_sample_ms for gpu in of_host if gpu.first_sample_ms is not None]
    last = [gpu.seen_until_ms for gpu in of_host if gpu.seen_until_ms is not None]
    return FleetHost(
        host,
        tuple(gpu.identity.gpu_uuid for gpu in of_host),
        min(first, default=None),
        max(last, default=None),
    )


def gpu_counts(known: Iterable[KnownGpu]) -> Counter[str]:
    """Cards by host; MIG slices are parts of one and do not count."""
    return Counter(
        gpu.identity.host for gpu in known if gpu.identity.host is not None and not gpu.identity.is_slice
    )


def cards_by_host(session: Session) -> Counter[str]:
    """The same of every GPU, counted by the database."""
    statement = (
        select(HostRow.name, func.count())
        .join(GpuRow, GpuRow.host_id == HostRow.id)
        .where(not_(GpuRow.gpu_uuid.startswith(SLICE_PREFIX, autoescape=True)))
        .group_by(HostRow.name)
    )
    return Counter(dict(session.execute(statement).all()))


def engines(session: Session) -> list[FleetEngine]:
    """Every engine by name, with the GPUs the roll-up gives it."""
    connection = session.connection()
    return [
        FleetEngine(
            engine.identity,
            engine.join.gpu_uuids,
            engine.join.join,
            engine.first_sample_ms,
            engine.seen_until_ms,
        )
        for engine in known_engines(connection, placed_gpus(connection))
    ]
