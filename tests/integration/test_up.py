"""The supervisor of ``gpuwise up``, with real processes."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from core.errors import GpuwiseError
from core.settings import Settings
from gpuwise.up import check_port

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys, time
from pathlib import Path
from core.settings import Settings
from gpuwise.up import run

HERE = Path(__file__).parent

def note(name):
    with (HERE / "log.txt").open("a") as log:
        log.write(name + "\\n")

def steady(settings):
    note("web")
    time.sleep(60)

def dies_once(settings):
    note("feed")
    if (HERE / "log.txt").read_text().count("feed") == 1:
        raise SystemExit(3)
    time.sleep(60)

def jobs(settings):
    note("jobs")
    time.sleep(60)

if __name__ == "__main__":
    settings = Settings(port=int(sys.argv[1]), database_url="sqlite:///x.db")
    sys.exit(run(settings, feed=dies_once, web=steady, jobs=jobs, before_jobs=lambda _s: note("seed")))
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(log: Path, lines: int, deadline_s: float = 30) -> list[str]:
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        seen = log.read_text().split() if log.exists() else []
        if len(seen) >= lines:
            return seen
        time.sleep(0.05)
    pytest.fail(f"only saw {seen}")


def alive_children(pid: int) -> list[str]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return path.read_text().split() if path.exists() else []


def test_a_part_that_dies_is_started_again_and_sigterm_ends_them_all(tmp_path: Path) -> None:
    script = tmp_path / "parts.py"
    script.write_text(SCRIPT)
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    up = subprocess.Popen(
        [sys.executable, str(script), str(free_port())], env=env, stdout=subprocess.PIPE, text=True
    )
    try:
        seen = wait_for(tmp_path / "log.txt", 5)
        assert seen.count("feed") == 2
        assert "seed" in seen[:2]
        children = alive_children(up.pid)
        assert len(children) >= 3
        up.send_signal(signal.SIGTERM)
        assert up.wait(10) == 0
        assert not [
            pid
            for pid in children
            if Path(f"/proc/{pid}/exe").exists() and "parts.py" in Path(f"/proc/{pid}/cmdline").read_text()
        ]
    finally:
        up.kill()
        up.communicate()


def test_a_killed_parent_leaves_no_part_behind(tmp_path: Path) -> None:
    script = tmp_path / "parts.py"
    script.write_text(SCRIPT)
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    up = subprocess.Popen([sys.executable, str(script), str(free_port())], env=env, stdout=subprocess.DEVNULL)
    try:
        wait_for(tmp_path / "log.txt", 5)
        children = alive_children(up.pid)
        up.kill()
        up.wait(10)
        end = time.monotonic() + 10
        while time.monotonic() < end and any(running(pid) for pid in children):
            time.sleep(0.05)
        assert not [pid for pid in children if running(pid)]
    finally:
        up.kill()


def running(pid: str) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_taken_port_is_said_before_anything_starts() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(
            GpuwiseError, match=f"127.0.0.1:{port} is in use: stop what listens there, or give --port"
        ):
            check_port(Settings(port=port, database_url="sqlite:///x.db"))
