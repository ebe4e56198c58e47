"""What the driver process says to the main one: marshalled tuples behind their length, on a pipe.

marshal is the standard library's cheapest encoding, and both ends are the same interpreter. The first field of every
frame names it:

- ``("hello", driver_version, nvml_version)``
- ``("gpus", identities, skipped)``: all GPUs and MIG instances after a look round; ``skipped`` are NVML indices left alone
- ``("tick", mono_ns, took_ns, [(uuid, mono_ns, values), …], missed)``: one round over all GPUs, base units by reading name
- ``("gpm", uuid, from_ns, to_ns, values)``: means over the time between two GPM samples
- ``("processes", uuid, mono_ns, [(pid, memory, computes, graphics, mps, instance, busy), …] | None)``
- ``("slow", uuid, mono_ns, values)``: readings that stay as they are until the next of these
- ``("health", uuid, mono_ns, facts)``
- ``("event", mono_ns, uuid, kind, code)``: kinds of ``core.samples.GpuEvent``
- ``("lost", mono_ns, uuid, code)``
- ``("failed", code, sentence)``: the driver cannot be used; the process ends after it
"""

import marshal
import os
import struct
import threading
from typing import Any

Frame = tuple[Any, ...]

_LENGTH = struct.Struct("<I")


class FrameWriter:
    """Writes whole frames, from any thread."""

    __slots__ = ("_fd", "_lock")

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()

    def write(self, frame: Frame) -> None:
        """Write one frame; raises ``OSError`` when the reader is gone."""
        body = marshal.dumps(frame)
        data = memoryview(_LENGTH.pack(len(body)) + body)
        with self._lock:
            while data:
                data = data[os.write(self._fd, data) :]


class FrameReader:
    """Cuts frames out of what a pipe gives."""

    __slots__ = ("_fd", "_held", "closed")

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._held = bytearray()
        self.closed = False

    def read(self) -> list[Frame]:
        """Frames that are complete after one read of the pipe; ``closed`` at its end."""
        data = os.read(self._fd, 1 << 16)
        if not data:
            self.closed = True
            return []
        held = self._held
        held += data
        frames: list[Frame] = []
        at = 0
        while len(held) - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(held, at)
            end = at + _LENGTH.size + length
            if len(held) < end:
                break
            frames.append(marshal.loads(memoryview(held)[at + _LENGTH.size : end]))  # noqa: S302 - our own process
            at = end
        del held[:at]
        return frames
