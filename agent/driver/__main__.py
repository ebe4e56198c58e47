"""``python -m agent.driver``: the process that talks to the driver, and does nothing else.

A call into a wedged driver can hang for ever, crash, or keep a card from being reset; only a process of its own can be
ended then. It writes frames to standard output and ends when standard input does. Orders on standard input, one a
line: ``admit INDEX`` (a GPU that was left alone may be asked again), ``rescan``.

Exit codes: 0 told to end, 3 the driver cannot be used (a ``failed`` frame says why), 4 a probe found its GPU dead.
"""

import ctypes
import os
import signal
import sys
import threading

from agent.driver import rounds
from agent.driver.board import DRIVER, MAIN, Board
from agent.driver.device import Device
from agent.driver.frames import FrameWriter
from agent.driver.library import DriverError, GpuLost, Library

FAILED = 3
DEAD = 4
CLOSE_S = 0.5
PR_SET_PDEATHSIG = 1


def main(words: list[str]) -> int:
    """``BOARD_FD PARENT_PID INTERVAL_S GPM_S SKIP`` (SKIP: NVML indices with commas), or ``--probe INDEX``."""
    if words[0] == "--probe":
        return _probe(int(words[1]))
    board_fd, parent, interval_s, gpm_s, skipped = words
    _end_with(int(parent))
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C reaches the whole group; the main process ends this one
    board = Board(int(board_fd))
    writer = FrameWriter(os.dup(1))
    os.dup2(2, 1)  # whatever a library prints must not fall among the frames
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: os.close(0))
    library = Library()
    board.enter(MAIN, DRIVER)
    cards = rounds.Cards(library, board, writer, {int(part) for part in skipped.split(",") if part})
    try:
        library.open()
        writer.write(("hello", library.driver_version, library.nvml_version))
        cards.scan(MAIN)
    except DriverError as error:
        writer.write(("failed", error.code, str(error)))
        return FAILED
    finally:
        board.leave(MAIN)
    for name, target in (
        (
            "quick",
            lambda: rounds.quick(
                cards, board, writer, stop, interval_s=float(interval_s), gpm_s=float(gpm_s)
            ),
        ),
        ("slow", lambda: rounds.slow(cards, board, writer, stop)),
        ("events", lambda: rounds.events(library, cards, board, writer, stop)),
    ):
        threading.Thread(target=_guarded, args=(target, writer), name=name, daemon=True).start()
    _obey(cards)
    stop.set()
    closer = threading.Thread(target=rounds.end, args=(cards, library), daemon=True)
    closer.start()
    closer.join(CLOSE_S)
    return 0


def _obey(cards: rounds.Cards) -> None:
    """Orders from the main process until it closes the pipe."""
    while True:
        try:
            line = os.read(0, 256)
        except OSError:
            return  # SIGTERM closed it
        if not line:
            return
        for order in line.decode().split("\n"):
            if order.startswith("admit "):
                cards.skip.discard(int(order[6:]))
            if order:
                cards.changed.set()


def _guarded(target: object, writer: FrameWriter) -> None:
    """A thread that fails takes the process with it: the main one starts a fresh one and says so."""
    try:
        target()  # type: ignore[operator]
    except DriverError as error:  # of a look round: the driver as a whole is gone
        writer.write(("failed", error.code, str(error)))
        os._exit(FAILED)
    except BaseException as error:  # noqa: BLE001 - a driver process without one of its threads would lie by silence
        kind = type(error).__name__
        if not isinstance(error, BrokenPipeError):
            sys.stderr.write(f"driver process: {kind}: {error}\n")
        os._exit(1)


def _probe(index: int) -> int:
    """Ask one GPU everything once; the main process ends this one when it takes too long."""
    library = Library()
    try:
        library.open()
        rounds.try_all(Device(library, library.handle(index), index=index))
        library.close()
    except (DriverError, GpuLost):
        return DEAD
    return 0


def _end_with(parent: int) -> None:
    """Have the kernel kill this process when the main one dies: no orphan keeps the GPU open."""
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    except (OSError, AttributeError):
        return
    if os.getppid() != parent:
        os._exit(0)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)  # threads may hang in the driver: they are not waited for
