"""A page of memory that both processes see: which GPU each thread is asking, and since when.

A driver call that never returns cannot be interrupted, and its thread cannot say so. It wrote down beforehand what it
was about to do, and the main process reads that from outside. Times are CLOCK_MONOTONIC, which is one for all
processes of a machine.
"""

import mmap
import os
import struct
import time

IDLE = -2
"""No call is under way."""
DRIVER = -1
"""The driver as a whole is asked (start, count, list), not one GPU."""

MAIN, QUICK, SLOW, EVENTS = range(4)
"""Threads of the driver process."""

_SLOT = struct.Struct("<qq")
_SIZE = 4 * _SLOT.size


class Board:
    """Four slots of (GPU index, since monotonic ns)."""

    __slots__ = ("_map", "fd")

    def __init__(self, fd: int | None = None) -> None:
        """Make a board, or open the one another process made and passed on as ``fd``."""
        made = fd is None
        self.fd = os.memfd_create("gpuwise-board", 0) if fd is None else fd
        if made:
            os.ftruncate(self.fd, mmap.PAGESIZE)
        self._map = mmap.mmap(self.fd, _SIZE)
        if made:
            for slot in range(4):
                self.leave(slot)

    def enter(self, slot: int, index: int) -> None:
        """A thread is about to ask GPU ``index`` (or ``DRIVER``)."""
        _SLOT.pack_into(self._map, slot * _SLOT.size, index, time.monotonic_ns())

    def leave(self, slot: int) -> None:
        """The thread's calls have returned."""
        _SLOT.pack_into(self._map, slot * _SLOT.size, IDLE, 0)

    def look(self) -> list[tuple[int, int]]:
        """(GPU index, since) by slot."""
        return [_SLOT.unpack_from(self._map, slot * _SLOT.size) for slot in range(4)]

    def close(self) -> None:
        """Give the page back."""
        self._map.close()
        os.close(self.fd)
