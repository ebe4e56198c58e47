"""The simulated fleet, live: one reading a second of each GPU, samples into the database every ten seconds."""

import logging
import signal
from threading import Event
from types import FrameType
from typing import Final

from agent.fold import EngineFold, GpuFold, ProcessFold
from agent.sources.simulator.fleet import fleet
from agent.sources.simulator.live import snapshot
from core.clock import now_ms
from core.errors import StoreError
from core.samples import SAMPLE_MS
from core.settings import Settings
from core.units import MINUTE_MS, SECOND_MS
from store.dbapi import Connection, open_connection
from store.ingest import Ingest

log = logging.getLogger(__name__)

LONGEST_CATCH_UP_MS: Final = 15 * MINUTE_MS
"""What passed while the feed was away is simulated up to this far back; more stays a gap until the next seed."""
_ANCHOR: Final = "SELECT value FROM meta WHERE key = 'demo_anchor_ms'"
_UNTIL: Final = "SELECT max(seen_until_ms) FROM gpu"


class Feed:
    """Simulated readings on their way into one database.

    Args:
        connection: to a seeded demo database.
        from_ms: where to go on at the latest; not further back than its newest sample or ``LONGEST_CATCH_UP_MS``.
    """

    def __init__(self, connection: Connection, from_ms: int) -> None:
        rows = connection.fetch(_ANCHOR)
        if not rows:
            raise StoreError("this database holds no demo fleet: run: gpuwise demo --seed-only")
        until = connection.fetch(_UNTIL)[0][0] or 0
        connection.rollback()
        self._fleet = fleet(int(rows[0][0]))
        self._ingest = Ingest(connection)
        self._gpus = GpuFold(identities=[probe.identity for probe in self._fleet.gpus])
        self._engines = EngineFold()
        self._processes = ProcessFold()
        self._next_ms = max(until, from_ms - LONGEST_CATCH_UP_MS) // SAMPLE_MS * SAMPLE_MS

    def advance(self, to_ms: int) -> int:
        """Read every second up to ``to_ms`` and store the samples that are complete; how many were stored."""
        self._next_ms = max(self._next_ms, (to_ms - LONGEST_CATCH_UP_MS) // SAMPLE_MS * SAMPLE_MS)
        gpu_samples, engine_samples, process_samples = [], [], []
        while self._next_ms <= to_ms:
            seen = snapshot(self._fleet, self._next_ms)
            for gpu in seen.gpus:
                gpu_samples += self._gpus.add(gpu)
            for engine in seen.engines:
                engine_samples += self._engines.add(engine)
            for process in seen.processes:
                process_samples += self._processes.add(process)
            self._next_ms += SECOND_MS
        if not (gpu_samples or engine_samples or process_samples):
            return 0
        stored = self._ingest.gpu_samples(gpu_samples)
        stored += self._ingest.engine_samples(engine_samples)
        stored += self._ingest.process_samples(process_samples)
        self._ingest.commit()
        return stored


def feed(settings: Settings) -> int:
    """Run until SIGTERM. A part of ``up``: started again when it fails."""
    stop = Event()

    def ask(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, ask)
    with open_connection(settings.database_url) as connection:
        live = Feed(connection, now_ms())
        while not stop.is_set():
            live.advance(now_ms())
            stop.wait((SECOND_MS - now_ms() % SECOND_MS) / 1000)
    return 0
