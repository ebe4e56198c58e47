"""The thread that asks local HTTP pages: LLM engines every five seconds, dcgm-exporter every ten.

A page that is slow or hangs holds up nothing but its own round; what was read waits in a queue for the hub.
"""

import logging
import threading
import time
from collections.abc import Mapping
from queue import SimpleQueue
from typing import Any, Final

from agent.collectors.dcgm import DcgmCollector
from agent.collectors.engines import EngineCollector
from core.clock import SteadyClock
from core.readings import EngineIdentity, EngineReading

log = logging.getLogger(__name__)

ENGINES_S: Final = 5.0
DCGM_ROUNDS: Final = 2
"""dcgm-exporter is asked in every second round."""

Servers = Mapping[int, tuple[Any, tuple[str, ...]]]


class Scraper:
    """Rounds over engines and dcgm-exporter in a thread of its own.

    Attributes:
        servers: LLM servers found among the processes; set by the hub, read at the next round.
        found: what engines said, to be taken by the hub.
        outside: counters of dcgm-exporter by GPU UUID with the monotonic instant they were read at.
    """

    def __init__(
        self,
        engines: EngineCollector,
        dcgm: DcgmCollector,
        clock: SteadyClock,
        *,
        period_s: float = ENGINES_S,
    ) -> None:
        self._engines, self._dcgm, self._clock, self._period = engines, dcgm, clock, period_s
        self.servers: Servers = {}
        self.found: SimpleQueue[EngineIdentity | EngineReading] = SimpleQueue()
        self.outside: SimpleQueue[tuple[Mapping[str, Mapping[str, float]], int]] = SimpleQueue()
        self._watched: Servers = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scraper", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the request that is under way; it is not waited for."""
        self._stop.set()

    def round(self, *, with_dcgm: bool = True) -> None:
        """Ask everything once."""
        servers = self.servers
        if servers != self._watched:
            self._watched = servers
            self._engines.watch([(pid, flags, gpus) for pid, (flags, gpus) in servers.items()])
        for thing in self._engines.round(self._clock.ms_now):
            self.found.put(thing)
        if with_dcgm:
            values = self._dcgm.round()
            if values:
                self.outside.put((values, time.monotonic_ns()))

    def _run(self) -> None:
        due, rounds = time.monotonic(), 0
        while not self._stop.is_set():
            try:
                self.round(with_dcgm=rounds % DCGM_ROUNDS == 0)
            except Exception:
                # One of the few places of such a catch: a page nobody foresaw must not end engine telemetry.
                log.exception("engine round failed")
            rounds += 1
            due = max(due + self._period, time.monotonic())
            self._stop.wait(due - time.monotonic())
