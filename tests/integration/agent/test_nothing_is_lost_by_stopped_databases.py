"""A database that is away for longer than the spool has room: the oldest goes and is counted, the rest arrives."""

import json
import shutil
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import postgres_for_tests as postgres
import pytest

from agent.sinks.database import DatabaseSink
from core.samples import HostSample
from store.schema import upgrade
from tests.integration.agent.chaos import Agent, Nursery, drain
from tests.integration.agent.chaos_notes import Row, doubles, losses, stored_rows
from tests.standin.build import build_or_skip

pytestmark = [pytest.mark.xdist_group("chaos"), pytest.mark.timeout(180)]

GPUS = 4
SPOOL_BYTES = 48 << 10
"""Seven pages are the tables' own; what is left holds some ten deliveries."""
MOST_ROWS = 1 + 2 * GPUS + 5
"""Of one delivery: the host, each GPU and its process, events."""
DROPPED = "the spool is over its bounds: its oldest deliveries were dropped"


class Postgres:
    """A PostgreSQL that can be stopped, and started on the same files."""

    def __init__(self, home: Path) -> None:
        self._binaries, self._home = postgres._binaries(), home
        if user := postgres._as_server_user():
            shutil.chown(home, user["user"], user["group"])
        postgres._initialise(self._binaries, home)
        self.url = f"postgresql://postgres@/postgres?host={postgres.quote(str(home), safe='')}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        options = [word for option in postgres.OPTIONS for word in ("-c", option)]
        command = [
            str(self._binaries / "bin" / "postgres"),
            "-D",
            f"{self._home}/data",
            "-k",
            str(self._home),
            *options,
        ]
        self._process = subprocess.Popen(
            command,
            cwd="/",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **postgres._as_server_user(),
        )
        postgres._wait_for(self.url, self._home, self._process)

    def stop(self) -> None:
        """Fast: sessions are cut off."""
        if self._process is not None:
            self._process.send_signal(2)
            self._process.wait(60)
            self._process = None


@contextmanager
def _postgresql() -> Iterator[tuple[str, Callable[[], None], Callable[[], None]]]:
    home = Path(tempfile.mkdtemp(prefix="gpuwise-pg-stopped-", dir=postgres._data_root()))
    server = None
    try:
        try:
            server = Postgres(home)
            server.start()
        except (postgres.NoPostgresError, OSError) as error:
            pytest.skip(f"no PostgreSQL for tests: {error}")
        upgrade(server.url)
        yield server.url, server.stop, server.start
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def _sqlite(path: Path, template: Path) -> Iterator[tuple[str, Callable[[], None], Callable[[], None]]]:
    shutil.copyfile(template, path)
    holder = sqlite3.connect(path, isolation_level=None)
    try:
        yield f"sqlite:///{path}", lambda: lock(holder), lambda: free(holder)
    finally:
        holder.close()


def lock(holder: sqlite3.Connection) -> None:
    holder.execute("PRAGMA busy_timeout = 10000")
    holder.execute("BEGIN EXCLUSIVE")


def free(holder: sqlite3.Connection) -> None:
    holder.execute("ROLLBACK")


def told(agent: Agent, name: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in agent.log.read_text().splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == name]


def until(fact: Callable[[], object], agent: Agent) -> None:
    patience_s = time.monotonic() + 90
    while not fact():
        assert time.monotonic() < patience_s, agent.log.read_text()[-3000:]
        assert not agent.ended, agent.log.read_text()[-3000:]
        agent.notes.take_live()
        time.sleep(0.02)


def counted(rows: list[Row]) -> float:
    return sum(row.values.get("agent_dropped_count", 0.0) for row in rows if isinstance(row, HostSample))


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_database_that_is_away_for_long_costs_the_oldest_and_that_is_counted(
    kind: str, tmp_path: Path, sqlite_template: Path
) -> None:
    library = build_or_skip(tmp_path / "driver")
    place = _postgresql() if kind == "postgresql" else _sqlite(tmp_path / "gpuwise.db", sqlite_template)
    with place as (url, stop, start), Nursery() as nursery:
        sink = ["--sink", "database", "--database-url", url]
        # Four MiB are the least that can be set.
        sets = {"agent.service.MIB": SPOOL_BYTES // 4, "agent.sender.MOST_WAIT_S": 1.0}
        agent = Agent(nursery, tmp_path, 0, library, sink, GPUS, {"GPUWISE_SPOOL_MAX_MB": "4"}, sets=sets)
        agent.start()
        until(lambda: counted_rows(url), agent)
        stop()
        until(lambda: len(told(agent, DROPPED)) >= 2, agent)
        start()
        until(lambda: told(agent, "samples are delivered again"), agent)
        back = time.monotonic()
        until(lambda: time.monotonic() > back + 3, agent)
        agent.end()
        drain(agent, DatabaseSink(url))
        rows = stored_rows(url)
    gone = sum(line["rows"] for line in told(agent, DROPPED))
    lacking = losses([agent.notes], rows)
    assert all(line.startswith("lost: ") for line in lacking), "nothing is stored otherwise"
    assert not doubles(rows)
    assert agent.notes.refused == 0
    assert 0 < len(lacking) <= gone
    # What was dropped may have told of an earlier drop: that count lives on in the next. One delivery that was
    # dropped may have been on its way, and be stored after all.
    assert len(lacking) <= counted(rows) <= len(lacking) + MOST_ROWS
    assert len(told(agent, "samples wait in the spool")) <= 3, (
        "said once, or twice where the sentence changes"
    )


def counted_rows(url: str) -> int:
    return len(stored_rows(url))
