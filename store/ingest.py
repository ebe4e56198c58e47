"""Samples into the database, exactly once, by the driver's fast path. Plain DB-API: the agent's sink runs on it.

Everything of one ``commit`` is one transaction: samples, what they say about first and last sight, and the marks
of the hours to roll up again. A sample stored before is ignored; one that covers more of the same interval (the
rest of an interval that a restart or the end of a file had cut) replaces it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from secrets import randbits
from typing import Final, TypeVar

from core.activity import Activity
from core.delivery import Delivery
from core.errors import StoreError
from core.readings import EngineIdentity, GpuHealth, GpuIdentity
from core.samples import EngineSample, GpuEvent, GpuSample, HostSample, ProcessSample
from core.units import HOUR_MS
from store.dbapi import Connection, shown
from store.identities import Identities
from store.ingest_rows import Rows, engine_rows, gpu_rows, host_rows, process_rows
from store.sample_tables import (
    ENGINE_SAMPLE,
    GPU_SAMPLE,
    HOST_SAMPLE,
    PROCESS_SAMPLE,
    Row,
    SampleTable,
    SampleWriter,
)
from store.states import AgentSight, States

T = TypeVar("T")

BATCH_ROWS: Final = 5_000
"""Rows handed to the driver at once: constant memory however long the source."""
_KINDS: Final = ("engine", "gpu", "host")
"""What samples are of, in the order in which their rows are locked."""
_UNHELD: Final = frozenset({Activity.EMPTY.value, Activity.UNKNOWN.value})
_MARK = """
    INSERT INTO rollup_pending (hour_ms, kind, entity_id, mark) VALUES (?, ?, ?, ?)
    ON CONFLICT (hour_ms, kind, entity_id) DO UPDATE SET mark = excluded.mark
"""
_SEEN = """
    UPDATE {table} SET
        first_sample_ms = CASE WHEN first_sample_ms < ? THEN first_sample_ms ELSE ? END,
        last_sample_ms = CASE WHEN last_sample_ms > ? THEN last_sample_ms ELSE ? END,
        seen_until_ms = CASE WHEN seen_until_ms > ? THEN seen_until_ms ELSE ? END
    WHERE id = ?
"""
_HELD = """
    UPDATE gpu SET last_held_ms = CASE WHEN last_held_ms > ? THEN last_held_ms ELSE ? END WHERE id = ?
"""
_EVENT = """
    INSERT INTO gpu_event (gpu_id, ts_ms, kind, message, code) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (gpu_id, ts_ms, kind, message) DO NOTHING
"""


@dataclass(slots=True)
class _Seen:
    """First and last sight of one GPU, engine or host within a transaction."""

    first_ms: int
    last_ms: int
    until_ms: int


class Ingest:
    """Stores identities, samples and events on one connection; nothing is kept before ``commit``.

    Raises:
        StoreError: the database has no tables, or refuses (locked for longer than the timeout, full, gone).
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._identities = Identities(connection)
        self._writer = SampleWriter(connection)
        self._states = States(connection, self._identities)
        self._hours: dict[str, set[tuple[int, int]]] = {kind: set() for kind in _KINDS}
        self._seen: dict[str, dict[int, _Seen]] = {kind: {} for kind in _KINDS}
        self._held: dict[int, int] = {}
        try:
            connection.fetch("SELECT 1 FROM rollup_pending LIMIT 1")
            connection.rollback()
        except connection.errors as error:
            raise StoreError(
                f"database {shown(connection.url)} is not set up ({error}): run: gpuwise db upgrade"
            ) from error

    def gpus(self, identities: Iterable[GpuIdentity]) -> None:
        """Register GPUs or complete what is known of them."""
        with self._sentences():
            self._identities.put_gpus(identities)

    def engines(self, identities: Iterable[EngineIdentity]) -> None:
        """Register engines or complete what is known of them."""
        with self._sentences():
            self._identities.put_engines(identities)

    def gpu_samples(self, samples: Iterable[GpuSample]) -> int:
        """Store samples; how many were new or completed a stored one."""
        return self._store(GPU_SAMPLE, "gpu", samples, gpu_rows)

    def process_samples(self, samples: Iterable[ProcessSample]) -> int:
        """Store samples of workloads; how many were new."""
        return self._store(PROCESS_SAMPLE, "gpu", samples, process_rows)

    def engine_samples(self, samples: Iterable[EngineSample]) -> int:
        """Store samples of engines; how many were new or completed a stored one."""
        if not self._identities.exchanged:
            return self._store(ENGINE_SAMPLE, "engine", samples, engine_rows)
        kept = list(samples)
        stored = self._store(ENGINE_SAMPLE, "engine", kept, engine_rows)
        self._note_exchanged(kept)
        return stored

    def host_samples(self, samples: Iterable[HostSample]) -> int:
        """Store samples of hosts; how many were new."""
        return self._store(HOST_SAMPLE, "host", samples, host_rows)

    def events(self, events: Iterable[GpuEvent]) -> int:
        """Store events; how many were new."""
        with self._sentences():
            gpu_id = self._identities.gpu_id
            rows = [(gpu_id(e.gpu_uuid), e.ts_ms, e.kind, e.message, e.code) for e in events]
            self._connection.begin()
            return self._connection.executemany(_EVENT, rows) if rows else 0

    def health(self, states: Iterable[GpuHealth]) -> None:
        """Keep the newest state of each GPU with it."""
        with self._sentences():
            self._states.put_health(states)

    def deliver(
        self,
        delivery: Delivery,
        *,
        agent_id: str | None = None,
        sequence: int | None = None,
        now_ms: int | None = None,
    ) -> int:
        """Store all of a delivery; how many rows were new. The same delivery again changes nothing.

        Args:
            delivery: what an agent has to say; its host is completed as GPUs are.
            agent_id, sequence: which delivery of whose; kept with the host.
            now_ms: when it came; None: the end of its newest sample stands for it.
        """
        self.gpus(delivery.gpus)
        self.engines(delivery.engines)
        new = self.gpu_samples(delivery.gpu_samples)
        new += self.process_samples(delivery.process_samples)
        new += self.engine_samples(delivery.engine_samples)
        new += self.host_samples(delivery.host_samples)
        new += self.events(delivery.events)
        self.health(delivery.health)
        if delivery.host is not None:
            seen_ms = _newest_end(delivery) if now_ms is None else now_ms
            with self._sentences():
                self._states.put_host(delivery.host, AgentSight(agent_id, sequence, seen_ms))
        return new

    def commit(self) -> None:
        """Make all of it durable at once: samples, first and last sight, marks of the hours to roll up."""
        with self._sentences():
            if any(self._hours.values()) or not self._states.empty:
                self._connection.begin()
                self._write_seen()
                self._states.write()
                self._write_marks()
            self._connection.commit()
        self._states.committed()
        self._clear()

    def rollback(self) -> None:
        """Drop what was given since the last ``commit``."""
        self._connection.rollback()
        self._forget()

    def _forget(self) -> None:
        self._identities.forget()
        self._writer.forget()
        self._states.forget()
        self._clear()

    def _clear(self) -> None:
        for kind in _KINDS:
            self._hours[kind].clear()
            self._seen[kind].clear()
        self._held.clear()

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        try:
            yield
        except self._connection.errors as error:
            with suppress(self._connection.errors):  # a lost connection cannot roll back either
                self._connection.rollback()
            self._forget()
            raise StoreError(
                f"database {shown(self._connection.url)} refused to store ({error}): check space, permissions and server"
            ) from error

    def _note_exchanged(self, samples: Sequence[EngineSample]) -> None:
        """Events of GPUs whose engine serves another model, from its first sample on."""
        since: dict[str, int] = {}
        for sample in samples:
            if sample.engine in self._identities.exchanged:
                since[sample.engine] = min(sample.ts_ms, since.get(sample.engine, sample.ts_ms))
        rows: list[Row] = []
        for engine, ts_ms in since.items():
            note = self._identities.exchanged.pop(engine)
            rows += ((gpu_id, ts_ms, note.kind, note.message, None) for gpu_id in note.gpu_ids)
        if rows:
            with self._sentences():
                self._connection.begin()
                self._connection.executemany(_EVENT, rows)

    def _store(
        self,
        table: SampleTable,
        kind: str,
        samples: Iterable[T],
        rows_of: Callable[[Identities, Sequence[T]], Rows],
    ) -> int:
        stored, source = 0, iter(samples)
        while batch := list(islice(source, BATCH_ROWS)):
            with self._sentences():
                columns, rows = rows_of(self._identities, batch)
                written = self._writer.write(table, columns, rows)
            if written:
                stored += written
                self._hours[kind].update({(row[0], row[1] - row[1] % HOUR_MS) for row in rows})
                if table is not PROCESS_SAMPLE:
                    self._note_sight(self._seen[kind], rows)
                if table is GPU_SAMPLE:
                    self._held.update(_last_held(rows, self._held))
        return stored

    def _note_sight(self, seen: dict[int, _Seen], rows: Sequence[Row]) -> None:
        for row in rows:
            ts_ms = row[1]
            sight = seen.get(row[0])
            if sight is None:
                seen[row[0]] = _Seen(ts_ms, ts_ms, ts_ms + row[2])
            elif ts_ms > sight.last_ms:
                sight.last_ms, sight.until_ms = ts_ms, ts_ms + row[2]
            elif ts_ms < sight.first_ms:
                sight.first_ms = ts_ms

    def _write_seen(self) -> None:
        # In key order, as everything that locks rows, so that two writers cannot wait for each other.
        for kind in _KINDS:
            rows = [
                (s.first_ms, s.first_ms, s.last_ms, s.last_ms, s.until_ms, s.until_ms, key)
                for key, s in sorted(self._seen[kind].items())
            ]
            if rows:
                self._connection.executemany(_SEEN.format(table=kind), rows)
        if self._held:
            self._connection.executemany(_HELD, [(ts, ts, key) for key, ts in sorted(self._held.items())])

    def _write_marks(self) -> None:
        mark = randbits(62)
        rows = [(hour_ms, kind, key, mark) for kind in _KINDS for key, hour_ms in sorted(self._hours[kind])]
        if rows:
            self._connection.executemany(_MARK, rows)


def _last_held(rows: Sequence[Row], held: Mapping[int, int]) -> dict[int, int]:
    last: dict[int, int] = {}
    for row in rows:
        if row[5] not in _UNHELD and row[1] > last.get(row[0], held.get(row[0], -1)):
            last[row[0]] = row[1]
    return last


def _newest_end(delivery: Delivery) -> int | None:
    samples = (
        delivery.gpu_samples,
        delivery.process_samples,
        delivery.engine_samples,
        delivery.host_samples,
    )
    return max((s.ts_ms + s.span_ms for of_kind in samples for s in of_kind), default=None)
