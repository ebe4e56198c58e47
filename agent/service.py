"""The daemon: builds the parts from the settings, runs the hub until told to end, and answers pause and resume."""

import logging
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent import notify
from agent.attribution import Attribution
from agent.collectors.dcgm import DcgmCollector
from agent.collectors.engines import EngineCollector
from agent.collectors.host import HostCollector, OwnCost
from agent.control import STATE, State, left_paused, pause_asked
from agent.intake import Intake
from agent.loop import Hub, Parts
from agent.reader import Reader
from agent.scraper import Scraper
from agent.sender import Sender
from agent.sinks.choose import make_sink
from agent.spool import Spool
from core.clock import SteadyClock, iso, now_ms
from core.settings import Settings
from core.units import MIB
from core.version import VERSION

log = logging.getLogger(__name__)

STATE_S: Final = 10.0
"""How often the account beside the spool is renewed when nothing changed."""


def run(settings: Settings, host: str) -> None:
    """Sample until SIGTERM or SIGINT, then hand over what is there.

    Raises:
        GpuwiseError: the spool cannot be used (another agent holds it, its folder cannot be written).
    """
    service = _Service(settings, host)
    before = {
        number: signal.signal(number, service.signalled)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)
    }
    try:
        service.run()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Service:
    """The running agent."""

    def __init__(self, settings: Settings, host: str) -> None:
        self._settings = settings
        self._folder = Path(settings.spool_path).parent
        clock = SteadyClock()
        self._spool = Spool(
            settings.spool_path,
            max_bytes=settings.spool_max_mb * MIB,
            max_age_days=settings.spool_max_days,
        )
        self._sender = Sender(self._spool, make_sink(settings))
        self._parts = Parts(
            reader=Reader(interval_s=settings.interval_s, gpm_s=settings.sample_s),
            intake=Intake(host, Attribution(host), clock),
            clock=clock,
            scraper=Scraper(
                EngineCollector(host, settings.engine_urls), DcgmCollector(settings.dcgm_url), clock
            ),
            spool=self._spool,
            sender=self._sender,
            host=HostCollector(host, version=VERSION),
            cost=OwnCost(),
        )
        self._port = None
        watch = None
        if settings.agent_metrics_port is not None:
            from agent.exposition import Exposition  # only where it is asked for: the agent counts its memory
            from agent.metrics_port import open_port

            exposition = Exposition(host, VERSION)
            self._port = open_port(settings.agent_metrics_host, settings.agent_metrics_port, exposition.text)
            watch = None if self._port is None else exposition.take
        self._hub = Hub(self._parts, span_ms=round(settings.sample_s * 1000), watch=watch)
        self._state = State(self._folder / STATE)
        self._stop = threading.Event()
        self._asked: list[int] = []
        self._paused_until_ms: int | None = None

    def signalled(self, number: int, _frame: object) -> None:
        """SIGUSR1 pauses, SIGUSR2 resumes, the others end; done by the loop, not here."""
        if number in {signal.SIGUSR1, signal.SIGUSR2}:
            self._asked.append(number)
        else:
            self._stop.set()

    def run(self) -> None:
        """Until told to end."""
        self._paused_until_ms = left_paused(self._folder, now_ms())
        if self._paused_until_ms is not None:
            self._parts.reader.paused = True
        self._sender.start()
        self._parts.scraper.start()
        self._tell()
        notify.ready()
        beat = _Every(notify.watchdog_interval_s(), notify.watchdog)
        account = _Every(STATE_S, self._tell)
        driver_pids = self._parts.reader.pids
        try:
            while not self._stop.is_set():
                self._hub.step()
                self._obey()
                beat()
                account()
                if self._parts.reader.pids != driver_pids:
                    driver_pids = self._parts.reader.pids
                    self._tell()
        finally:
            self._end()

    def _end(self) -> None:
        notify.stopping()
        self._parts.reader.close()
        self._parts.scraper.stop()
        self._hub.end()
        if self._port is not None:
            self._port.close()
        self._sender.stop()
        self._spool.close()
        if self._paused_until_ms is None:
            self._state.remove()
        log.info("agent ended", extra={"waiting": self._spool.waiting, "unsaved": len(self._hub.unsaved)})

    def _obey(self) -> None:
        while self._asked:
            if self._asked.pop(0) == signal.SIGUSR1:
                self._pause(pause_asked(self._folder, now_ms()))
            else:
                self._resume()
        if self._paused_until_ms is not None and now_ms() >= self._paused_until_ms:
            self._resume()

    def _pause(self, until_ms: int) -> None:
        released = self._parts.reader.pause()
        self._hub.let_go()
        self._paused_until_ms = until_ms
        log.warning("paused, the driver is let go of", extra={"until": iso(until_ms), "released": released})
        self._tell()

    def _resume(self) -> None:
        with suppress(OSError):
            (self._folder / "agent.control").unlink(missing_ok=True)
        self._paused_until_ms = None
        self._parts.reader.resume()
        log.info("resumed")
        self._tell()

    def _tell(self) -> None:
        """Renew the account for ``agent status`` and the line for systemd."""
        reader = self._parts.reader
        waiting = self._spool.waiting
        self._state.write(
            version=VERSION,
            paused=self._paused_until_ms is not None,
            paused_until_ms=self._paused_until_ms,
            driver_pid=reader.pids[0] if reader.pids else None,
            sink=self._settings.sink,
            waiting=waiting,
            gpus=len(self._parts.intake.gpus) - len(self._parts.intake.away),
            silent_gpu_indices=reader.silent,
            last_error=self._sender.last_error,
        )
        state = "paused" if self._paused_until_ms is not None else "sampling"
        notify.status(f"{state}, {len(self._parts.intake.gpus)} GPUs, {waiting} deliveries wait")


class _Every:
    """Calls something at most once each ``seconds``; never when None."""

    def __init__(self, seconds: float | None, call: Callable[[], None]) -> None:
        self._seconds, self._call = seconds, call
        self._due = 0.0

    def __call__(self) -> None:
        if self._seconds is not None and time.monotonic() >= self._due:
            self._due = time.monotonic() + self._seconds
            self._call()
