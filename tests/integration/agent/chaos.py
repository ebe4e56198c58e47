"""Agents and servers that are killed with SIGKILL at random points, round after round, and started again at once.

Every agent and server is a process of its own, forked from one that has imported everything, so that a round costs
the work and not the imports. Before and after each kill the spool's file is read, see ``chaos_notes``.
"""

import json
import os
import random
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Self

from core.clock import now_ms

ROOT: Final = Path(__file__).resolve().parents[3]
DRIVER: Final = Path(__file__).with_name("quick_driver.py")
LONGEST_LIFE_S: Final = 3.0
AIM_S: Final = 1.5
"""How long an aimed kill waits for a write."""
AFTER_WRITE_S: Final = 0.006
PATIENCE_S: Final = 60.0
PERIODS: Final = {"PROCESSES_S": 0.3, "HEALTH_S": 1.0, "EVENT_WAIT_MS": 100}
SETS: Final = {"agent.loop.GRACE_MS": 300}
POWER_W: Final = 420.0


class Child:
    """A forked process; told from a later one of the same number."""

    def __init__(self, pid: int, log: Path) -> None:
        self.pid, self.log = pid, log
        try:
            self._fd = os.pidfd_open(pid)
        except ProcessLookupError:
            raise AssertionError(f"ended at once: {log.read_text()[-2000:]}") from None

    @property
    def ended(self) -> bool:
        """It is gone."""
        return self._wait(0)

    def end(self, number: signal.Signals, seconds: float = PATIENCE_S) -> None:
        """Signal it and wait until it is gone."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._fd, number)
        assert self._wait(seconds), f"does not end: {self.log.read_text()[-2000:]}"
        os.close(self._fd)

    def _wait(self, seconds: float) -> bool:
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))


class Nursery:
    """The process that all others are forked from; they end with it."""

    def __init__(self) -> None:
        environment = {name: value for name, value in os.environ.items() if name[:8] != "GPUWISE_"}
        environment |= {"PYTHONPATH": str(ROOT), "no_proxy": "*"}
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )
        self._lock = threading.Lock()

    def start(self, words: Sequence[str], environment: Mapping[str, str], log: Path, **sets: object) -> Child:
        """``gpuwise WORDS`` with more environment; ``sets`` are constants by their full name."""
        told = {"words": words, "environment": environment, "log": str(log), "sets": sets}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(json.dumps(told) + "\n")
            self._process.stdin.flush()
            return Child(int(self._process.stdout.readline()), log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


class Server:
    """``gpuwise serve`` on one port."""

    def __init__(self, nursery: Nursery, folder: Path, database_url: str, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.flags = ["--sink", "server", "--server-url", self.url]
        self._nursery, self._log = nursery, folder / "server.log"
        self._words = ["serve", "--database-url", database_url, "--port", str(port)]
        self._written = (
            Path(f"{database_url.removeprefix('sqlite:///')}-wal")
            if database_url.startswith("sqlite")
            else None
        )
        self._mutex = threading.Lock()
        self._child: Child | None = None
        self.kills = 0

    def start(self) -> None:
        """Begin, or again."""
        with self._mutex:
            self._child = self._nursery.start(self._words, {}, self._log)

    def again(self, down_s: float = 0.0) -> None:
        """Kill it, leave it down, start it."""
        with self._mutex:
            assert self._child is not None
            assert not self._child.ended, self._log.read_text()[-2000:]
            self._child.end(signal.SIGKILL)
            self.kills += 1
            time.sleep(down_s)
            self._child = self._nursery.start(self._words, {}, self._log)

    def rounds(self, count: int, rng: random.Random) -> None:
        """Live for a while, die, come back."""
        for _round in range(count):
            time.sleep(rng.uniform(0.3, LONGEST_LIFE_S))
            if self._written is not None and rng.random() < 0.5:
                aim(self._written, rng)
            self.again(rng.uniform(0, 1.0) if rng.random() < 0.5 else 0.0)

    def end(self) -> None:
        """In order."""
        with self._mutex:
            if self._child is not None:
                self._child.end(signal.SIGTERM)
                self._child = None


def aim(written: Path, rng: random.Random) -> None:
    """Wait for a write to a file, and a few milliseconds more: what follows hits the middle of the work."""
    before, until_s = _stamp(written), time.monotonic() + AIM_S
    while _stamp(written) == before and time.monotonic() < until_s:
        time.sleep(0.0005)
    time.sleep(rng.uniform(0, AFTER_WRITE_S))


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


def uuid_of(host: int, gpu: int) -> str:
    """UUID of a GPU of an agent."""
    return f"GPU-{host:08x}-c4a0-4ab1-8e00-{gpu:012x}"


@dataclass
class Agent:
    """``gpuwise agent`` on the stand-in driver, with a spool that outlives it.

    Attributes:
        notes: what was durable in its spool. backlog: the most deliveries that a kill left waiting.
    """

    nursery: Nursery
    folder: Path
    number: int
    library: Path
    sink: Sequence[str]
    gpus: int = 2
    environment: Mapping[str, str] = field(default_factory=dict)
    engine_url: str | None = None
    words: Sequence[str] = ()
    sets: Mapping[str, object] = field(default_factory=dict)
    kills: int = 0
    backlog: int = 0

    def __post_init__(self) -> None:
        from tests.integration.agent.chaos_notes import Notes

        self.folder /= f"agent-{self.number}"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.host = f"node-{self.number}"
        self.notes = Notes(self.folder / "spool.db")
        self.log = self.folder / "agent.log"
        self._child: Child | None = None
        self._own = {
            "LD_LIBRARY_PATH": str(self.library),
            "GPUWISE_STANDIN": str(self._scenario()),
            "GPUWISE_TEST_DRIVER": json.dumps(PERIODS),
            "GPUWISE_LOG": "json",
            "XDG_CONFIG_HOME": str(self.folder),
            "XDG_STATE_HOME": str(self.folder),
            **self.environment,
        }

    def _scenario(self) -> Path:
        from tests.standin.profiles import busy_decode
        from tests.standin.scenario import GIB

        scenario = busy_decode(self.gpus, start_s=time.time_ns() / 1e9 - 60)
        for gpu in range(self.gpus):
            scenario.at(0, gpu, "uuid", uuid_of(self.number, gpu))
            scenario.processes(f"compute:{os.getpid()}:{40 * GIB}", gpu=gpu)
            scenario.process_util(f"{os.getpid()}:95:57:0:0", gpu=gpu)
        for event in range(1_000):
            scenario.xid(13 + event % 3, gpu=event % self.gpus, at=60 + 0.4 * event)
        return scenario.write(self.folder / "scenario")

    def start(self) -> None:
        """Begin, or again."""
        words = ["agent", "--interval", "0.1", "--sample-s", "1", "--hostname", self.host, "--dcgm-url", ""]
        words += ["--spool-path", str(self.notes.spool), *self.sink, *self.words]
        if self.engine_url is not None:
            words += ["--engine-url", self.engine_url]
        self._child = self.nursery.start(words, self._own, self.log, **{**SETS, **self.sets})

    def rounds(self, count: int, rng: random.Random, server: Server | None) -> None:
        """Live for a while, be read, die, be read, come back."""
        self.start()
        for _round in range(count):
            time.sleep(rng.uniform(0.0, LONGEST_LIFE_S))
            self.notes.take_live()
            if rng.random() < 0.5:
                aim(self.notes.spool.with_name("spool.db-wal"), rng)
            self.kill()
            if server is not None and rng.random() < 0.1:
                server.again()
            self.start()

    @property
    def ended(self) -> bool:
        """It is gone by itself."""
        return self._child is None or self._child.ended

    def kill(self) -> None:
        """SIGKILL, and read what it left."""
        assert self._child is not None
        assert not self._child.ended, self.log.read_text()[-3000:]
        self._child.end(signal.SIGKILL)
        self.kills += 1
        self.backlog = max(self.backlog, self.notes.take_left())

    def end(self) -> None:
        """SIGTERM, and read what it left."""
        assert self._child is not None
        self._child.end(signal.SIGTERM)
        self.notes.take_left()


def all_at_once(*work: Callable[[], None]) -> None:
    """Do things in threads; the first error is raised."""
    errors: list[BaseException] = []

    def run(one: Callable[[], None]) -> None:
        try:
            one()
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(one,)) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def drain(agent: Agent, sink: Any, clock: Callable[[], int] = now_ms) -> None:
    """Deliver what waits in the spool of an agent that ended."""
    from agent.sender import Sender
    from agent.spool import Spool

    with closing(Spool(agent.notes.spool)) as spool:
        sender = Sender(spool, sink, clock=clock, jitter=lambda: 0.01)
        sender.start()
        until_s = time.monotonic() + PATIENCE_S
        while spool.waiting:
            assert time.monotonic() < until_s, (spool.waiting, sender.last_error)
            time.sleep(0.01)
        assert sender.stop()


# the nursery itself


def _nursery() -> None:
    for module in (
        "agent.service",
        "agent.once",
        "gpuwise.commands.cli",
        "gpuwise.server",
        "store.schema",
        "psycopg",
    ):
        import_module(module)
    for module in ("agent.sinks.server", "agent.sinks.database", "alembic.command", "api.app", "agent.cli"):
        import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody is left as a zombie
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            os._exit(_child(json.loads(line)))
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()


def _child(told: Mapping[str, Any]) -> int:
    import ctypes

    import agent.cli
    import agent.driver.process
    import agent.service
    from agent.scraper import Scraper
    from gpuwise.__main__ import main

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: not to outlive the tests
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    random.seed()
    os.environ.update(told["environment"])
    log = os.open(told["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number in (1, 2):
        os.dup2(log, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    agent.driver.process.PROGRAM = (str(DRIVER),)  # type: ignore[misc,assignment]
    agent.service.Scraper = partial(Scraper, period_s=0.4)  # type: ignore[attr-defined,assignment]
    for name, value in told["sets"].items():
        module, _, attribute = name.rpartition(".")
        assert hasattr(import_module(module), attribute), name
        setattr(import_module(module), attribute, value)
    words = told["words"]
    try:
        return agent.cli.main(words[1:]) if words[0] == "agent" else main(words)
    except BaseException:  # noqa: BLE001 - the log is all that is seen of it
        import traceback

        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


if __name__ == "__main__":
    sys.path[0] = str(ROOT)
    _nursery()
