"""A real agent on the stand-in driver, with short periods: its process, its log, its account, and what it stored.

    with LiveAgent(tmp_path, busy_decode(gpus=2)) as agent:
        agent.until(lambda: agent.samples(0))

Run as a program it is that agent: JSON of what to set, then the words of ``gpuwise agent``.
"""

import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self, TypeVar

ROOT = Path(__file__).parents[3]
DRIVER = Path(__file__).with_name("quick_driver.py")
PATIENCE_S = 30.0
"""Before a test gives up waiting; never how long it waits."""
SHORT = {
    "agent.reader.FIRST_WAIT_S": 0.5,
    "agent.reader.START_HANG_S": 2.0,
    "agent.reader.CALL_HANG_S": 1.0,
    "agent.reader.SLOW_HANG_S": 1.5,
    "agent.reader.EVENTS_HANG_S": 1.2,
    "agent.reader.PROBE_S": 1.0,
    "agent.reader.RESTART_S": 0.2,
    "agent.reader.VERSION_LOOK_S": 0.2,
    "agent.service.STATE_S": 0.2,
    "agent.loop.GRACE_MS": 400,
}
QUICK = {"PROCESSES_S": 0.4, "HEALTH_S": 0.3, "RESCAN_S": 0.4, "EVENT_WAIT_MS": 200, "EVENTS_AGAIN_S": 0.3}

T = TypeVar("T")


@cache
def _empty_database() -> bytes:
    from store.schema import ensure_ready

    with TemporaryDirectory() as folder:
        path = Path(folder) / "empty.db"
        ensure_ready(f"sqlite:///{path}")
        copy = path.with_name("copy.db")
        with closing(sqlite3.connect(path)) as database:
            database.execute("VACUUM INTO ?", (str(copy),))
        return copy.read_bytes()


def environment_of(folder: Path, scenario: Any, driver: Mapping[str, Any] | None = None) -> dict[str, str]:
    """For any process of the agent: the stand-in, no settings of this machine, the driver process's periods."""
    from tests.standin.build import build_or_skip, environment

    library = build_or_skip(folder / "driver", without=scenario.without)
    found = environment(library, scenario.write(folder / "scenario"), folder / "calls-%p")
    found = {
        name: value
        for name, value in found.items()
        if name.startswith("GPUWISE_STANDIN") or name[:8] != "GPUWISE_"
    }
    return found | {
        "PYTHONPATH": str(ROOT),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "XDG_STATE_HOME": str(folder / "state"),
        "GPUWISE_LOG": "json",
        "GPUWISE_TEST_DRIVER": json.dumps({**QUICK, **(driver or {})}),
    }


class LiveAgent:
    """One agent process.

    Args:
        folder: for everything it writes. scenario: what the driver answers; may be changed with ``change``.
        driver: periods of the driver process that differ from ``QUICK``. sets: constants that differ from ``SHORT``.
        words: more of the command line.
    """

    def __init__(
        self,
        folder: Path,
        scenario: Any,
        *,
        driver: Mapping[str, Any] | None = None,
        sets: Mapping[str, Any] | None = None,
        words: Sequence[str] = (),
    ) -> None:
        self.folder, self.scenario = folder, scenario
        self.database, self.state = folder / "gpuwise.db", folder / "spool" / "agent.json"
        self.version_file = folder / "version"
        if not self.database.exists():
            self.database.write_bytes(_empty_database())
        self.env = environment_of(folder, scenario, driver)
        told = {**SHORT, **(sets or {}), "version_file": str(self.version_file)}
        self._words = [sys.executable, __file__, json.dumps(told)]
        self._flags = [
            "--interval", "0.1", "--sample-s", "1", "--hostname", "node-a", "--dcgm-url", "",
            "--spool-path", str(folder / "spool" / "spool.db"), "--database-url", f"sqlite:///{self.database}", *words,
        ]  # fmt: skip
        self._log = folder / f"log-{time.monotonic_ns()}"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen([*self._words, *self._flags], env=self.env, stderr=log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_exc: object) -> None:
        code = self.end()
        if kind is not None:
            sys.stderr.write(self._log.read_text())  # what a failed test shows
        else:
            assert code == 0, self._log.read_text()
            assert "Traceback" not in self._log.read_text(), self._log.read_text()

    def end(self) -> int:
        """SIGTERM, and its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(20)
        finally:
            self.process.kill()

    def until(self, what: Callable[[], T]) -> T:
        """Wait for something that is true of it."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := what()):
            assert self.process.poll() is None, self._log.read_text()
            assert time.monotonic() < deadline, self._log.read_text()
            time.sleep(0.05)
        return found

    def change(self, scenario: Any) -> None:
        """Have the driver answer otherwise from now on."""
        scenario.write(self.folder / "scenario")

    def order(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run ``gpuwise agent …`` beside it."""
        command = [
            sys.executable,
            "-m",
            "gpuwise",
            "agent",
            *words,
            "--spool-path",
            str(self.folder / "spool" / "spool.db"),
        ]
        return subprocess.run(
            command, env=self.env, capture_output=True, text=True, timeout=30, check=False, cwd=ROOT
        )

    def again(self) -> subprocess.CompletedProcess[str]:
        """A second agent with the same settings."""
        return subprocess.run(
            [*self._words, *self._flags],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    @property
    def log(self) -> list[dict[str, Any]]:
        """Its log lines."""
        return [json.loads(line) for line in self._log.read_text().splitlines() if line.startswith("{")]

    @property
    def account(self) -> dict[str, Any]:
        """``agent.json``; empty where there is none."""
        try:
            found: dict[str, Any] = json.loads(self.state.read_text())
        except (OSError, ValueError):
            return {}
        return found

    def rows(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        """What a question to its database gives."""
        with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=10)) as database:
            database.row_factory = sqlite3.Row
            return [dict(row) for row in database.execute(sql, values)]

    def samples(self, uuid: str, where: str = "1") -> list[dict[str, Any]]:
        """Samples of a GPU in the order of time."""
        sql = f"SELECT s.* FROM gpu_sample s JOIN gpu g ON g.id = s.gpu_id WHERE g.gpu_uuid = ? AND {where} ORDER BY s.ts_ms"
        return self.rows(sql, uuid)

    def processes(self, uuid: str) -> list[dict[str, Any]]:
        """Samples of its workloads."""
        sql = "SELECT p.*, w.kind, w.key, w.name, w.natural_key FROM process_sample p JOIN gpu g ON g.id = p.gpu_id"
        return self.rows(
            f"{sql} JOIN workload w ON w.id = p.workload_id WHERE g.gpu_uuid = ? ORDER BY p.ts_ms", uuid
        )

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Events of a kind with the GPU they are about."""
        sql = "SELECT g.gpu_uuid, e.* FROM gpu_event e JOIN gpu g ON g.id = e.gpu_id WHERE e.kind = ? ORDER BY e.ts_ms"
        return self.rows(sql, kind)

    def about(self, kind: str) -> set[str]:
        """GPUs that had an event of a kind."""
        return {event["gpu_uuid"] for event in self.events(kind)}

    def calls(self) -> dict[tuple[str, int | None], int]:
        """Calls of the driver processes that ended in order, by function and GPU."""
        from tests.standin.scenario import counts

        added: dict[tuple[str, int | None], int] = {}
        for path in self.folder.glob("calls-*"):
            for call, times in counts(path).items():
                added[call] = added.get(call, 0) + times
        return added


def _main(told: dict[str, Any], words: list[str]) -> int:
    import agent.cli
    from agent.reader import Reader
    from core.errors import GpuwiseError

    version_file = Path(told.pop("version_file"))
    told |= {
        "agent.service.Reader": partial(Reader, version_file=version_file),
        "agent.driver.process.PROGRAM": (str(DRIVER),),
    }
    for name, value in told.items():
        module, _, attribute = name.rpartition(".")
        found = import_module(module)
        if not hasattr(found, attribute):
            raise AttributeError(name)
        setattr(found, attribute, value)
    try:
        return agent.cli.main(words)
    except GpuwiseError as error:
        sys.stderr.write(f"{error}\n")
        return 1


if __name__ == "__main__":
    sys.path[0] = str(ROOT)
    sys.exit(_main(json.loads(sys.argv[1]), sys.argv[2:]))
