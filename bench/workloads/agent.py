"""The agent under test: started with a database of its own, watched from outside, ended in order."""

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from agent import control

ROOT: Final = Path(__file__).resolve().parents[2]
START_S: Final = 90.0
PREPARE: Final = "import sys; from store.schema import ensure_ready; ensure_ready(sys.argv[1])"
TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
PAGE_BYTES: Final = os.sysconf("SC_PAGESIZE")


class Agent:
    """``gpuwise agent`` at 1 s against a temporary SQLite database.

    Args:
        folder: for database, spool and log.
        python: has gpuwise's dependencies.
        sample_s: length of a stored sample, seconds.
        empty_database: an upgraded, empty one, for a machine without the server part.
    """

    def __init__(self, folder: Path, python: str, sample_s: float, empty_database: Path | None) -> None:
        self.folder = folder
        self.database = folder / "gpuwise.db"
        self._python, self._sample_s, self._empty = python, sample_s, empty_database
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start it and wait until its first samples are stored."""
        url = f"sqlite:///{self.database}"
        if self._empty is not None:
            shutil.copyfile(self._empty, self.database)
        else:
            subprocess.run([self._python, "-c", PREPARE, url], cwd=ROOT, check=True)
        own = {
            "GPUWISE_DATABASE_URL": url,
            "GPUWISE_SPOOL_PATH": str(self.folder / "spool.db"),
            "GPUWISE_HOSTNAME": "bench",
            "GPUWISE_DCGM_URL": "",
            "GPUWISE_SAMPLE_S": str(self._sample_s),
            "XDG_CONFIG_HOME": str(self.folder),
        }
        with (self.folder / "agent.log").open("wb") as log:
            self._child = subprocess.Popen(
                [self._python, "-m", "gpuwise", "agent", "--interval", "1"],
                cwd=ROOT,
                env=with_root(own),
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + START_S
        while not self.gpus():
            if self._child.poll() is not None or time.monotonic() > deadline:
                self.__exit__(None, None, None)
                sys.exit(f"the agent stored nothing: {(self.folder / 'agent.log').read_text()[-2000:]}")
            time.sleep(1.0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it as systemd would."""
        assert self._child is not None
        self._child.terminate()
        try:
            self._child.wait(20)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait(5)

    def gpus(self) -> dict[int, str]:
        """Whole cards of which a sample is stored: UUID by NVML index."""
        sql = (
            "SELECT gpu_index, gpu_uuid FROM gpu WHERE gpu_uuid LIKE 'GPU-%' AND gpu_index IS NOT NULL "
            "AND id IN (SELECT gpu_id FROM gpu_sample) ORDER BY gpu_index"
        )
        with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)) as connection:
            return dict(connection.execute(sql).fetchall())

    def pause(self) -> None:
        """Let go of the driver."""
        control.pause(self.folder, 3_600)

    def resume(self) -> None:
        """Take it up again."""
        control.resume(self.folder)

    def cost(self) -> tuple[float, int]:
        """CPU seconds so far and resident bytes now, of the whole process tree."""
        assert self._child is not None
        ticks = pages = 0
        for pid in _tree(self._child.pid):
            try:
                stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
                pages += int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1])
            except OSError:
                continue  # it ended between two looks
            # Its own time, and that of its children that ended and were waited for.
            ticks += sum(map(int, stat[11:15]))
        return ticks / TICKS_PER_S, pages * PAGE_BYTES


def with_root(more: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process that imports this checkout."""
    path = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{path}" if path else str(ROOT), **more}


def _tree(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                stat = (
                    (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
                )
            except OSError:
                continue
            children.setdefault(int(stat[1]), []).append(int(folder.name))
    found = [root]
    for pid in found:
        found.extend(children.get(pid, ()))
    return found
