"""A file system without room under the spool or under the database: the agent lives, and nothing acknowledged is lost."""

import errno
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.sinks.database import DatabaseSink
from core.samples import GpuSample, HostSample
from tests.integration.agent.chaos import Agent, Nursery, drain
from tests.integration.agent.chaos_notes import Row, doubles, losses, stored_rows
from tests.standin.build import build_or_skip

pytestmark = [pytest.mark.xdist_group("chaos"), pytest.mark.timeout(180)]

GPUS = 2
SIZE_MIB = 12
KEPT = 3


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    with Nursery() as started:
        yield started


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with little room."""
    folder = tmp_path / "disk"
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MIB}m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("no right to mount a small file system here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Take all the room there is."""
    ballast = folder / "ballast"
    with ballast.open("ab", buffering=0) as file:
        for piece in (1 << 20, 4096, 1):
            while True:
                try:
                    os.write(file.fileno(), b"\0" * piece)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    break
    return ballast


def events(agent: Agent, name: str) -> int:
    lines = [json.loads(line) for line in agent.log.read_text().splitlines() if line.startswith("{")]
    return sum(line["event"] == name for line in lines)


def until(fact: Callable[[], object], agent: Agent) -> None:
    patience_s = time.monotonic() + 60
    while not fact():
        assert time.monotonic() < patience_s, agent.log.read_text()[-3000:]
        assert not agent.ended, agent.log.read_text()[-3000:]
        time.sleep(0.05)


def intervals(rows: list[Row]) -> list[int]:
    """Starts of the samples of the first GPU."""
    samples = [row for row in rows if isinstance(row, GpuSample)]
    return sorted(row.ts_ms for row in samples if row.gpu_uuid == samples[0].gpu_uuid)


def dropped(rows: list[Row]) -> float:
    return sum(row.values.get("agent_dropped_count", 0.0) for row in rows if isinstance(row, HostSample))


@pytest.mark.parametrize("database_kind", ["sqlite"], indirect=True)
@pytest.mark.parametrize("kept", [360, KEPT])
def test_a_spool_without_room_is_waited_for_and_what_is_dropped_is_counted(
    ready_database: str, tmp_path: Path, small_disk: Path, nursery: Nursery, kept: int
) -> None:
    library = build_or_skip(tmp_path / "driver")
    sink = ["--sink", "database", "--database-url", ready_database]
    sets = {"agent.loop.UNSAVED": kept}
    agent = Agent(nursery, tmp_path, 0, library, sink, GPUS, sets=sets)
    agent.notes.spool = small_disk / "spool.db"
    agent.start()
    until(lambda: len(intervals(stored_rows(ready_database))) >= 2, agent)
    ballast = fill(small_disk)
    taken = "samples are kept in memory: the spool takes none"
    until(lambda: fill(small_disk) and events(agent, taken), agent)
    full_from = len(intervals(stored_rows(ready_database)))
    time.sleep(KEPT + 4)
    assert not agent.ended
    assert events(agent, taken) == 1, "said once"
    ballast.unlink()
    until(lambda: events(agent, "the spool takes samples again"), agent)
    until(lambda: len(intervals(stored_rows(ready_database))) >= full_from + 2, agent)
    time.sleep(2)
    agent.end()
    drain(agent, DatabaseSink(ready_database))
    rows = stored_rows(ready_database)
    assert not losses([agent.notes], rows)
    assert not doubles(rows)
    starts = intervals(rows)
    lacking = (starts[-1] - starts[0]) // 1000 + 1 - len(starts)
    if kept == KEPT:
        assert lacking >= 1
        # A host sample, and two of each GPU (with its process), of each interval; events come on top.
        assert dropped(rows) >= lacking * (1 + 2 * GPUS)
        assert dropped(rows) <= (lacking + 1) * (1 + 2 * GPUS + 4)
    else:
        assert lacking == 0
        assert dropped(rows) == 0


def test_a_database_without_room_is_waited_for(
    sqlite_template: Path, tmp_path: Path, small_disk: Path, nursery: Nursery
) -> None:
    library = build_or_skip(tmp_path / "driver")
    database = small_disk / "gpuwise.db"
    shutil.copyfile(sqlite_template, database)
    url = f"sqlite:///{database}"
    agent = Agent(nursery, tmp_path, 0, library, ["--sink", "database", "--database-url", url], GPUS)
    agent.start()
    until(lambda: len(intervals(stored_rows(url))) >= 2, agent)
    ballast = fill(small_disk)
    waits = "samples wait in the spool"
    until(lambda: fill(small_disk) and events(agent, waits), agent)
    time.sleep(3)
    assert not agent.ended
    assert "full" in agent.log.read_text()
    agent.notes.take_live()
    noted = len(agent.notes.rows)
    assert noted
    ballast.unlink()
    until(lambda: events(agent, "samples are delivered again"), agent)
    agent.end()
    drain(agent, DatabaseSink(url))
    rows = stored_rows(url)
    assert not losses([agent.notes], rows)
    assert not doubles(rows)
    starts = intervals(rows)
    assert (starts[-1] - starts[0]) // 1000 + 1 == len(starts), "no interval is lacking"
    assert dropped(rows) == 0


def test_the_database_sink_is_durable_on_return(sqlite_template: Path, tmp_path: Path) -> None:
    path = tmp_path / "gpuwise.db"
    shutil.copyfile(sqlite_template, path)
    with DatabaseSink(f"sqlite:///{path}") as sink:
        assert sink._connection is not None
        assert sink._connection.fetch("PRAGMA synchronous") == [(2,)], "an fsync for each commit"
