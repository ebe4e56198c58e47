"""One driver process as its parent holds it: start, frames, orders, end."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from agent.driver.board import Board
from agent.driver.frames import Frame, FrameReader

ROOT: Final = Path(__file__).resolve().parents[2]
"""Folder that holds the packages: the child imports the same code, installed or not."""
PROGRAM: Final = ("-m", "agent.driver")
KILL_WAIT_S: Final = 0.5


class DriverProcess:
    """A running ``python -m agent.driver``.

    Attributes:
        board: what its threads are asking.
        frames: what it says; ``frames.closed`` when it ended.
        started_s: monotonic.
    """

    def __init__(self, *, interval_s: float, gpm_s: float, skip: set[int]) -> None:
        self.board = Board()
        words = [str(self.board.fd), str(os.getpid()), str(interval_s), str(gpm_s)]
        self._child = _spawn(
            [*words, ",".join(map(str, sorted(skip)))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            fds=(self.board.fd,),
        )
        assert self._child.stdout is not None
        self.fd = self._child.stdout.fileno()
        self.frames = FrameReader(self.fd)
        self.started_s = time.monotonic()
        self.pid = self._child.pid

    def read(self) -> list[Frame]:
        """Frames after one read; call it when ``fd`` is readable."""
        return self.frames.read()

    def order(self, text: str) -> None:
        """Give one order; a process that is gone takes none."""
        assert self._child.stdin is not None
        try:
            os.write(self._child.stdin.fileno(), f"{text}\n".encode())
        except OSError:
            return

    def exit_code(self) -> int | None:
        """None while it runs; negative: the signal that ended it."""
        return self._child.poll()

    def stop(self, seconds: float) -> bool:
        """Ask it to let go of the driver and end; killed after ``seconds``. Whether it is gone."""
        assert self._child.stdin is not None
        try:
            self._child.stdin.close()
            self._child.wait(seconds)
        except (OSError, subprocess.TimeoutExpired):
            return self.kill()
        self._close()
        return True

    def kill(self) -> bool:
        """End it at once; False when even that waits for the driver (uninterruptible sleep)."""
        self._child.send_signal(signal.SIGKILL)
        try:
            self._child.wait(KILL_WAIT_S)
        except subprocess.TimeoutExpired:
            return False
        finally:
            self._close()
        return True

    def _close(self) -> None:
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()
        if self.board.fd >= 0:
            self.board.close()
            self.board.fd = -1


def probe(index: int) -> "subprocess.Popen[bytes]":
    """A process that asks one GPU a little; exit code 0 when it answers."""
    return _spawn(["--probe", str(index)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def _spawn(
    words: list[str], *, stdin: int, stdout: int, fds: tuple[int, ...] = ()
) -> "subprocess.Popen[bytes]":
    path = os.environ.get("PYTHONPATH")
    environment = os.environ | {
        "PYTHONPATH": f"{ROOT}{os.pathsep}{path}" if path else str(ROOT),
        "MALLOC_ARENA_MAX": "1",  # one arena for all threads: 1 to 2 MiB less
    }
    # -S: no site module, no .pth files; the paths of the packages are given by name. -P: nor the folder somebody stands in.
    sites = os.pathsep.join(part for part in sys.path if part.endswith("-packages"))
    if sites:
        environment["PYTHONPATH"] += f"{os.pathsep}{sites}"
    return subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, "-S", "-P", *PROGRAM, *words],
        stdin=stdin,
        stdout=stdout,
        pass_fds=fds,
        env=environment,
        start_new_session=False,
    )
