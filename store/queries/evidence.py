"""The fleet over one window as the rules may see it, whole or in chunks of whole hosts.

Days are read with a constant number of queries per chunk; hours stay where they are until a rule touches them, and
are then read by GPU or engine. So evidence must be used while its session is open.
"""

import json
from collections.abc import Callable, Collection, Iterator
from typing import Final

from sqlalchemy import Connection, func, select
from sqlalchemy.orm import Session

from catalog.gpu_specs import resolve
from core.days import MIN_EMPTY_S
from core.evidence import EngineEvidence, Evidence, GpuEvidence, HostEvidence, Price, Site, Window
from core.hour_merge import merged_engine_hours
from core.readings import GpuIdentity
from core.samples import GpuEvent
from core.units import DAY_MS
from store.known import KnownGpu, known_engines, known_gpus, known_hosts, placed_gpus
from store.models.gpu import GpuRow
from store.models.gpu_day import GpuDayRow
from store.models.gpu_event import GpuEventRow
from store.models.gpu_hour import GpuHourRow
from store.models.host import HostRow
from store.queries.chunks import Chunk, in_chunks
from store.queries.fleet import cards_by_host, gpu_counts
from store.queries.hour_groups import Group
from store.queries.kinds import ENGINES, GPUS, HOSTS
from store.queries.plain_rows import plain_rows
from store.queries.shelves import Shelves
from store.queries.stored_hours import StoredHours
from store.queries.uses import workload_uses

PriceOf = Callable[[GpuIdentity, str | None, int], Price | None]
"""Price of a GPU (its identity, its row in the catalogue) at a time."""
FEW: Final = 500
"""GPUs that are asked for by name: more are read with all others."""
CHUNK_GPUS: Final = 176
"""GPUs read at once: their fortnight of hours, were all of it touched, fits on the shelf (``HOURS_KEPT``), 120 MB."""


def evidence(
    session: Session,
    *,
    window: Window,
    now_ms: int,
    site: Site,
    price_of: PriceOf,
    gpu_uuids: Collection[str] | None = None,
    engine_names: Collection[str] | None = None,
) -> Evidence:
    """Evidence of every GPU and engine that has hours in the window; of a MIG slice its card stands for it.

    Args:
        session: where to read, open as long as the evidence is used.
        window: what is judged; hours that overlap it count.
        now_ms: when.
        site: the site's settings.
        price_of: price in force; asked at the window's end.
        gpu_uuids, engine_names: only these, for a look at what runs there; default all.
    """
    chunks = evidence_chunks(
        session,
        window=window,
        now_ms=now_ms,
        site=site,
        price_of=price_of,
        gpu_uuids=gpu_uuids,
        engine_names=engine_names,
    )
    return Evidence.joined([Evidence(now_ms, window, (), (), site), *chunks])


def evidence_chunks(
    session: Session,
    *,
    window: Window,
    now_ms: int,
    site: Site,
    price_of: PriceOf,
    gpu_uuids: Collection[str] | None = None,
    engine_names: Collection[str] | None = None,
    chunk_gpus: int = CHUNK_GPUS,
) -> Iterator[Evidence]:
    """The same evidence in chunks of about ``chunk_gpus`` GPUs: whole hosts, engines with all of their GPUs' hosts."""
    fleet = FleetReader(session, window=window, now_ms=now_ms, site=site, price_of=price_of)
    for chunk in fleet_chunks(session, gpu_uuids=gpu_uuids, engine_names=engine_names, chunk_gpus=chunk_gpus):
        seen = fleet.read(chunk)
        if seen is not None:
            yield seen


def fleet_chunks(
    session: Session,
    *,
    gpu_uuids: Collection[str] | None = None,
    engine_names: Collection[str] | None = None,
    chunk_gpus: int = CHUNK_GPUS,
) -> list[Chunk]:
    """The fleet, or a part of it, cut into chunks as of ``evidence_chunks``; nothing of them is read yet."""
    connection = session.connection()
    hosts = known_hosts(connection)
    if gpu_uuids is None:
        gpus = known_gpus(connection)
        engines, on_host = known_engines(connection, gpus), gpu_counts(gpus)
    else:
        gpus = _wanted(connection, set(gpu_uuids))
        engines, on_host = known_engines(connection, placed_gpus(connection)), cards_by_host(session)
    if engine_names is not None:
        engines = [engine for engine in engines if engine.identity.engine in engine_names]
        places = {gpu.identity.host for gpu in gpus}
        hosts = [host for host in hosts if host.name in places]
    return list(in_chunks(gpus, engines, hosts, on_host, chunk_gpus))


def _wanted(connection: Connection, gpu_uuids: set[str]) -> list[KnownGpu]:
    """GPUs of these UUIDs; a fleet of them is not asked for one by one."""
    named = gpu_uuids if len(gpu_uuids) <= FEW else None
    return [gpu for gpu in known_gpus(connection, gpu_uuids=named) if gpu.identity.gpu_uuid in gpu_uuids]


class FleetReader:
    """Reads chunks one after the other; what it gives must be used while its session is open."""

    def __init__(
        self, session: Session, *, window: Window, now_ms: int, site: Site, price_of: PriceOf
    ) -> None:
        """Begin; arguments as of ``evidence``."""
        self.session = session
        self.shelves = Shelves()
        self._window = window
        self._now_ms = now_ms
        self._site = site
        self._price_of = price_of

    def read(self, chunk: Chunk) -> Evidence | None:
        """What the rules may see of a chunk; None where nothing of it has hours in the window."""
        reader = _ChunkReader(self.session, self._window, chunk, self.shelves)
        seen = Evidence(
            now_ms=self._now_ms,
            window=self._window,
            gpus=tuple(reader.gpus(self._price_of)),
            engines=tuple(reader.engines()),
            site=self._site,
            hosts=tuple(reader.hosts()),
        )
        return seen if seen.gpus or seen.engines or seen.hosts else None


class _ChunkReader:
    """Reads one chunk."""

    def __init__(self, session: Session, window: Window, chunk: Chunk, shelves: Shelves) -> None:
        self._session = session
        self._window = window
        self._chunk = chunk
        gpu_names = {gpu.id: gpu.identity.gpu_uuid for gpu in chunk.gpus if not gpu.identity.is_slice}
        engine_names = {engine.id: engine.identity.engine for engine in chunk.engines}
        host_names = {host.id: host.name for host in chunk.hosts}
        self._gpu_group = Group(session, window, GPUS, gpu_names, shelves)
        self._engine_group = Group(session, window, ENGINES, engine_names, shelves)
        self._host_group = Group(session, window, HOSTS, host_names, shelves)

    def gpus(self, price_of: PriceOf) -> Iterator[GpuEvidence]:
        """GPUs with hours in the window."""
        present = set(self._gpu_group.present())
        uses = workload_uses(self._session, self._window, present, self._gpu_group.stale)
        events = self._events(present)
        health = self._health(present)
        idle_w = self._bare_idle_w(present)
        for gpu in self._chunk.gpus:
            identity = gpu.identity
            if gpu.id not in present or gpu.first_sample_ms is None or gpu.seen_until_ms is None:
                continue
            spec = resolve(identity.model, identity.memory_total_bytes)
            gpu_key = None if spec is None else spec.gpu_key
            health_ms, facts = health.get(gpu.id, (None, {}))
            yield GpuEvidence(
                identity=identity,
                gpu_key=gpu_key,
                hours=StoredHours(self._gpu_group, gpu.id),
                first_sample_ms=gpu.first_sample_ms,
                # Of a window in the past nobody knows yet what came after it.
                last_sample_ms=min(gpu.seen_until_ms, self._window.to_ms),
                price=price_of(identity, gpu_key, self._window.to_ms),
                bare_idle_w=idle_w.get(gpu.id),
                host_gpu_count=self._chunk.on_host[identity.host] if identity.host is not None else 1,
                uses=uses.get(gpu.id, ()),
                events=tuple(events.get(gpu.id, ())),
                health=facts,
                health_ms=health_ms,
            )

    def engines(self) -> Iterator[EngineEvidence]:
        """Engines with hours in the window."""
        present = set(self._engine_group.present())
        for engine in self._chunk.engines:
            if engine.id in present:
                hours = StoredHours(self._engine_group, engine.id, merged_engine_hours)
                yield EngineEvidence(engine.identity, engine.join.gpu_uuids, engine.join.join, hours)

    def hosts(self) -> Iterator[HostEvidence]:
        """Hosts whose agent told of them in the window."""
        present = set(self._host_group.present())
        cores = select(HostRow.id, HostRow.cpu_count).where(HostRow.id.in_(present))
        cpu_counts = dict(plain_rows(self._session, cores))
        for host in self._chunk.hosts:
            if host.id in present:
                yield HostEvidence(host.name, StoredHours(self._host_group, host.id), cpu_counts[host.id])

    def _events(self, gpu_ids: Collection[int]) -> dict[int, list[GpuEvent]]:
        row = GpuEventRow
        statement = (
            select(row.gpu_id, GpuRow.gpu_uuid, row.ts_ms, row.kind, row.message, row.code)
            .join(GpuRow, GpuRow.id == row.gpu_id)
            .where(row.gpu_id.in_(gpu_ids), row.ts_ms >= self._window.from_ms, row.ts_ms < self._window.to_ms)
            .order_by(row.gpu_id, row.ts_ms, row.kind, row.message)
        )
        found: dict[int, list[GpuEvent]] = {}
        for gpu_id, uuid, ts_ms, kind, message, code in plain_rows(self._session, statement):
            found.setdefault(gpu_id, []).append(GpuEvent(uuid, ts_ms, kind, message, code))
        return found

    def _health(self, gpu_ids: Collection[int]) -> dict[int, tuple[int | None, dict[str, float | str]]]:
        row = GpuRow
        statement = select(row.id, row.health_ms, row.health).where(
            row.id.in_(gpu_ids), row.health.is_not(None)
        )
        return {
            gpu_id: (health_ms, json.loads(text or "{}"))
            for gpu_id, health_ms, text in plain_rows(self._session, statement)
        }

    def _bare_idle_w(self, gpu_ids: Collection[int]) -> dict[int, float]:
        """Lowest hourly power while empty of each GPU, over all its days, not only the window's."""
        day, hour, pending = GpuDayRow, GpuHourRow, self._gpu_group.pending
        statements = [
            select(day.gpu_id, func.min(day.bare_idle_w))
            .where(day.gpu_id.in_(gpu_ids), day.bare_idle_w.is_not(None), day.day_ms.not_in(pending))
            .group_by(day.gpu_id)
        ]
        if pending:
            statements.append(
                select(hour.gpu_id, func.min(hour.empty_power_w))
                .where(
                    hour.gpu_id.in_(gpu_ids),
                    hour.hour_ms >= min(pending),
                    hour.hour_ms < max(pending) + DAY_MS,
                    (hour.hour_ms - hour.hour_ms % DAY_MS).in_(pending),
                    hour.empty_s >= MIN_EMPTY_S,
                    hour.empty_power_w.is_not(None),
                )
                .group_by(hour.gpu_id)
            )
        found: dict[int, float] = {}
        for statement in statements:
            for gpu_id, power_w in plain_rows(self._session, statement):
                if power_w is not None:
                    found[gpu_id] = min(power_w, found.get(gpu_id, power_w))
        return found
