"""Start telemetry, jobs and web on this machine and keep them running.

Each part is a process of its own, so that a part that dies or hangs takes none of the others along: it is
started again, after 1 s the first time and up to a minute when it keeps dying.
"""

import contextlib
import ctypes
import errno
import logging
import os
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import connection, get_context
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Final

from core.errors import GpuwiseError
from core.settings import Settings

log = logging.getLogger(__name__)

FIRST_WAIT_S: Final = 1.0
LONGEST_WAIT_S: Final = 60.0
STEADY_S: Final = 60.0
"""A part that ran this long starts again after the first wait."""
STOP_S: Final = 5.0

PR_SET_PDEATHSIG: Final = 1
"""``prctl(2)``."""

Part = Callable[[Settings], object]
"""Runs until SIGTERM; must be a module-level function (parts are spawned)."""


def agent_part(settings: Settings) -> object:
    """Telemetry of the live GPUs into the database."""
    from agent.cli import main

    return main(["--sink", "database", "--database-url", settings.database_url])


def jobs_part(settings: Settings) -> object:
    """Scheduled work."""
    from gpuwise.scheduler import run

    return run(settings)


def web_part(settings: Settings) -> object:
    """Pages and REST."""
    from gpuwise.server import serve

    return serve(settings)


@dataclass(slots=True)
class _Child:
    name: str
    part: Part
    settings: Settings
    process: BaseProcess | None = None
    started_s: float = 0.0
    wait_s: float = FIRST_WAIT_S
    due_s: float = field(default=0.0)

    def start(self, now_s: float) -> None:
        self.process = get_context("spawn").Process(
            target=_enter, args=(self.part, self.settings, os.getpid()), name=f"gpuwise-{self.name}"
        )
        self.process.start()
        self.started_s = now_s

    def reap(self, now_s: float) -> None:
        assert self.process is not None
        self.process.join()
        code = self.process.exitcode
        steady = now_s - self.started_s >= STEADY_S
        self.wait_s = FIRST_WAIT_S if steady else min(self.wait_s * 2, LONGEST_WAIT_S)
        self.due_s = now_s + self.wait_s
        self.process = None
        log.warning(
            "part ended, starting again", extra={"part": self.name, "exit_code": code, "wait_s": self.wait_s}
        )


def _enter(part: Part, settings: Settings, parent_pid: int) -> None:
    _end_with(parent_pid)
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C reaches the whole group; the parent ends the parts in order
    try:
        code = part(settings)
    except GpuwiseError as error:
        print(f"gpuwise: {error}", flush=True)
        raise SystemExit(1) from error
    raise SystemExit(code if isinstance(code, int) else 0)


def _end_with(parent_pid: int) -> None:
    """Have the kernel ask this part to end when its parent dies, even by kill -9: no orphan keeps the port."""
    with contextlib.suppress(OSError, AttributeError):  # not Linux: parts then outlive a killed parent
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent_pid:  # it died before the call
        raise SystemExit(1)


def check_port(settings: Settings) -> None:
    """Refuse early, with a sentence, when the web address cannot be had."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise GpuwiseError(
                    f"{settings.host}:{settings.port} is in use: stop what listens there, or give --port"
                ) from error
            raise GpuwiseError(
                f"cannot listen on {settings.host}:{settings.port} ({error.strerror})"
            ) from error


def run(
    settings: Settings,
    *,
    feed: Part | None = agent_part,
    before_jobs: Part | None = None,
    web: Part = web_part,
    jobs: Part = jobs_part,
) -> int:
    """Start the parts and keep them running until SIGTERM or Ctrl-C.

    Args:
        settings: of all parts.
        feed: what brings telemetry; None: nothing does (only pages and jobs).
        before_jobs: runs once, beside the web server, before telemetry and jobs start (the demo's seed).
        web, jobs: the other parts.

    Raises:
        GpuwiseError: the web address is taken.
    """
    check_port(settings)
    stop = _Stop()
    children = [_Child("web", web, settings)]
    children[0].start(time.monotonic())
    print(f"gpuwise is at http://{settings.host}:{settings.port}", flush=True)
    try:
        if before_jobs is not None:
            before_jobs(settings)
        children.append(_Child("jobs", jobs, settings))
        if feed is not None:
            children.append(_Child("feed", feed, settings))
        while not stop.asked:
            _tend(children, stop)
    finally:
        _end(children)
    return 0


class _Stop:
    """SIGTERM and SIGINT ask for an orderly end."""

    def __init__(self) -> None:
        self.asked = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask)

    def _ask(self, _number: int, _frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


def _tend(children: list[_Child], stop: _Stop) -> None:
    now_s = time.monotonic()
    for child in children:
        if child.process is None and now_s >= child.due_s:
            child.start(now_s)
    sentinels = {child.process.sentinel: child for child in children if child.process is not None}
    for ready in connection.wait(list(sentinels), timeout=0.5):
        assert isinstance(ready, int)
        if not stop.asked:  # a part that ends because all do is not started again
            sentinels[ready].reap(time.monotonic())


def _end(children: list[_Child]) -> None:
    running = [child.process for child in children if child.process is not None]
    for process in running:
        process.terminate()
    deadline = time.monotonic() + STOP_S
    for process in running:
        process.join(max(0.0, deadline - time.monotonic()))
        if process.is_alive():
            process.kill()
            process.join()
