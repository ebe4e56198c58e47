"""The driver's tables of processes, read in one call each into a buffer that is kept.

The binding asks twice per table (size, then rows) and makes an object per row; a table with room to spare needs one
call. The rows are decoded here because their layout is not what every driver says it is.
"""

from __future__ import annotations

from ctypes import Structure, addressof, byref, c_uint, c_ulonglong, c_void_p, create_string_buffer, memset
from struct import Struct

from agent.driver.library import INSUFFICIENT_SIZE, NO_FUNCTION, STATE, GpuLost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from agent.driver.library import Library

    Row: TypeAlias = "tuple[int, int | None, int | None]"
    Use: TypeAlias = "tuple[int, int, int]"

ROOM = 64
MOST = 65_536
NOT_AVAILABLE = (1 << 64) - 1
NO_INSTANCE = 0xFFFFFFFF
MOST_INSTANCES = 1 << 16
PLAIN, FIVE_MEMBERS, ODD = 24, 32, 40
"""Bytes a row: 535.43 to 535.86 added a fifth member to a layout that readers take for four (nvitop 75, 79, 88, 89);
another stride was seen too (nvitop 226)."""
WIDEST = ODD

_PROCESS = Struct("=I4xQII")  # pid, usedGpuMemory, gpuInstanceId, computeInstanceId
_USE_INFO = Struct(
    "=QIIIIIII4x"
)  # timeStamp, pid, sm, mem, enc, dec, jpg, ofa: nvmlProcessUtilizationInfo_v1_t
_USE_SAMPLE = Struct("=I4xQIIII")  # pid, timeStamp, sm, mem, enc, dec: nvmlProcessUtilizationSample_t
_INFO_VERSION = 0x01000018


class Table:
    """One list of running processes.

    Args:
        library: open.
        names: functions, the newest first; they share the layout.
        pid_max: the highest process number there can be.
    """

    __slots__ = ("_buffer", "_library", "_names", "_pid_max", "_room", "_stride")

    def __init__(self, library: Library, names: tuple[str, ...], pid_max: int) -> None:
        self._library = library
        self._names = names
        self._pid_max = pid_max
        self._room = 0
        self._stride: int | None = None
        self._grow(ROOM)

    def ask(self, handle: Any) -> tuple[int, list[Row] | None]:
        """NVML code and rows (PID, bytes, GPU instance); None with code 0 when nothing in the list can be believed.

        Raises:
            GpuLost: the card stopped answering.
        """
        for name in self._names:
            function = self._library.function(name)
            if function is None:
                continue
            code, count = self._fill(function, handle)
            if code in STATE:
                raise GpuLost(code)
            if code != NO_FUNCTION:
                return code, self._decoded(count) if code == 0 else None
        return NO_FUNCTION, None

    def _fill(self, function: Any, handle: Any) -> tuple[int, int]:
        while True:
            count = c_uint(self._room)
            memset(self._buffer, 0, len(self._buffer))
            code = function(handle, byref(count), self._buffer)
            if code != INSUFFICIENT_SIZE or count.value <= self._room or count.value > MOST:
                return code, min(count.value, self._room)
            self._grow(count.value * 2)

    def _grow(self, room: int) -> None:
        self._room = room
        self._buffer = create_string_buffer(room * WIDEST)  # wide enough for what any driver writes

    def _decoded(self, count: int) -> list[Row] | None:
        strides = (PLAIN, FIVE_MEMBERS, ODD) if self._stride is None else (self._stride,)
        if self._stride is None and self._has_five():
            strides = (FIVE_MEMBERS, ODD, PLAIN)
        for stride in strides:
            rows = self._rows(count, stride)
            if rows is not None:
                if count > 1:
                    self._stride = stride  # a single row looks alike in all of them
                return rows
        self._stride = None
        return None

    def _has_five(self) -> bool:
        """Whether this looks like one of the drivers that fill five members."""
        return (
            self._library.function("nvmlDeviceGetConfComputeMemSizeInfo") is not None
            and self._library.function("nvmlDeviceGetRunningProcessDetailList") is None
        )

    def _rows(self, count: int, stride: int) -> list[Row] | None:
        rows: list[Row] = []
        for at in range(0, count * stride, stride):
            pid, memory, instance, part = _PROCESS.unpack_from(self._buffer, at)
            if not 0 < pid <= self._pid_max or not _is_id(instance) or not _is_id(part):
                return None
            rows.append(
                (
                    pid,
                    None if memory == NOT_AVAILABLE else memory,
                    None if instance == NO_INSTANCE else instance,
                )
            )
        return rows


def _is_id(number: int) -> bool:
    return number < MOST_INSTANCES or number == NO_INSTANCE


class _Info(Structure):
    _fields_ = (
        ("version", c_uint),
        ("count", c_uint),
        ("since", c_ulonglong),
        ("rows", c_void_p),
    )


class UseTable:
    """Shares of time by process, as the driver sampled them."""

    __slots__ = ("_buffer", "_library", "_room")

    def __init__(self, library: Library) -> None:
        self._library = library
        self._room = 0
        self._grow(2 * ROOM)

    def info(self, handle: Any, since_us: int) -> tuple[int, list[Use]]:
        """NVML code and rows (PID, wall-clock µs, SM percent) newer than ``since_us``; drivers from R550 on."""
        function = self._library.function("nvmlDeviceGetProcessesUtilizationInfo")
        if function is None:
            return NO_FUNCTION, []
        while True:
            request = _Info(_INFO_VERSION, self._room, since_us, addressof(self._buffer))
            code = function(handle, byref(request))
            if not self._must_grow(code, request.count):
                break
        if code:
            return code, []
        rows = (_USE_INFO.unpack_from(self._buffer, at) for at in self._places(request.count, _USE_INFO.size))
        return 0, [(row[1], row[0], row[2]) for row in rows]

    def samples(self, handle: Any, since_us: int) -> tuple[int, list[Use]]:
        """The same from older drivers."""
        function = self._library.function("nvmlDeviceGetProcessUtilization")
        if function is None:
            return NO_FUNCTION, []
        while True:
            count = c_uint(self._room)
            code = function(handle, self._buffer, byref(count), c_ulonglong(since_us))
            if not self._must_grow(code, count.value):
                break
        if code:
            return code, []
        rows = (
            _USE_SAMPLE.unpack_from(self._buffer, at) for at in self._places(count.value, _USE_SAMPLE.size)
        )
        return 0, [(row[0], row[1], row[2]) for row in rows]

    def _must_grow(self, code: int, count: int) -> bool:
        if code != INSUFFICIENT_SIZE or count <= self._room or count > MOST:
            return False
        self._grow(count * 2)
        return True

    def _places(self, count: int, size: int) -> range:
        return range(0, min(count, self._room) * size, size)

    def _grow(self, room: int) -> None:
        self._room = room
        self._buffer = create_string_buffer(room * _USE_INFO.size)
