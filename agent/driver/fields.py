"""Many values in one driver call: nvmlDeviceGetFieldValues, with the buffer reused.

The call succeeds when any entry was filled, so each entry's own code decides; an entry that can never be served is
left out from then on.
"""

from __future__ import annotations

from ctypes import byref, create_string_buffer, memmove
from struct import Struct

from agent.driver.library import (
    ARGUMENT_VERSION,
    GPU_IS_LOST,
    INVALID_ARGUMENT,
    NO_FUNCTION,
    STABLE,
    STATE,
    TIMEOUT,
    GpuLost,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from agent.driver.library import Library

    Entry: TypeAlias = "int | tuple[int, int]"

CALL = "nvmlDeviceGetFieldValues"
ALL_LINKS = 0xFFFFFFFF
"""Scope of the NVLink counters: the sum over all links."""
UNFILLED = TIMEOUT
"""Code written into every entry beforehand: one that the driver passes over must not show the value of last time."""

_ENTRY = Struct(
    "=IIqqIIQ"
)  # fieldId, scopeId, timestamp, latencyUsec, valueType, nvmlReturn, value: nvmlFieldValue_t
_RAW = Struct("=Q")
_DOUBLE, _SIGNED, _SIGNED_32 = Struct("=d"), Struct("=q"), Struct("=i4x")
_NONE_64, _NONE_32 = (1 << 64) - 1, (1 << 32) - 1


class FieldBatch:
    """The entries of one regular question to one device.

    Attributes:
        entries: those that are still asked.
        lacking: code by entry that this card and driver will never serve.
    """

    __slots__ = ("_buffer", "_library", "_template", "entries", "lacking")

    def __init__(self, library: Library, entries: tuple[Entry, ...]) -> None:
        self._library = library
        self.lacking: dict[Entry, int] = {}
        self._keep(entries)

    def ask(self, handle: Any) -> dict[Entry, float]:
        """Values by entry, in the driver's units; what it does not say this time is not in it. Raises ``GpuLost``."""
        entries = self.entries
        if not entries:
            return {}
        function = self._library.function(CALL)
        if function is None:
            self._drop(dict.fromkeys(entries, NO_FUNCTION))
            return {}
        buffer = self._buffer
        memmove(buffer, self._template, len(self._template))
        code = function(handle, len(entries), byref(buffer))
        if code:
            return self._refused(handle, code)
        values: dict[Entry, float] = {}
        gone: dict[Entry, int] | None = None
        for entry, (_, _, _, _, kind, own, raw) in zip(entries, _ENTRY.iter_unpack(buffer), strict=True):
            if own == 0:
                value = decoded(kind, raw)
                if value is not None:
                    values[entry] = value
            elif own in STABLE:
                gone = gone or {}
                gone[entry] = own
            elif own == GPU_IS_LOST:
                raise GpuLost(own)
        if gone:
            self._drop(gone)
        return values

    def _refused(self, handle: Any, code: int) -> dict[Entry, float]:
        if code in STATE:
            raise GpuLost(code)
        if code not in STABLE:
            return {}
        entries = self.entries
        if len(entries) == 1 or code not in (INVALID_ARGUMENT, ARGUMENT_VERSION):
            self._drop(dict.fromkeys(entries, code))
            return {}
        # A driver that refuses all for one entry it does not know: ask each alone, once, to learn which.
        values: dict[Entry, float] = {}
        for entry in entries:
            alone = FieldBatch(self._library, (entry,))
            values.update(alone.ask(handle))
            self.lacking.update(alone.lacking)
        self._keep(tuple(entry for entry in entries if entry not in self.lacking))
        return values

    def _drop(self, gone: dict[Entry, int]) -> None:
        self.lacking.update(gone)
        self._keep(tuple(entry for entry in self.entries if entry not in gone))

    def _keep(self, entries: tuple[Entry, ...]) -> None:
        self.entries = entries
        pairs = (entry if isinstance(entry, tuple) else (entry, 0) for entry in entries)
        self._template = b"".join(_ENTRY.pack(field, scope, 0, 0, 0, UNFILLED, 0) for field, scope in pairs)
        self._buffer = create_string_buffer(len(self._template))


def decoded(kind: int, raw: int) -> float | None:
    """The union's right member by its type; None for all bits set (not available), no number, and types to come.

    Args:
        kind: nvmlValueType_t: 0 double, 1 unsigned, 2 unsigned long, 3 unsigned long long, 4 signed long long,
            5 signed, 6 unsigned short.
        raw: the union's eight bytes.
    """
    if kind in (2, 3):
        return None if raw == _NONE_64 else raw
    if kind == 1:
        low = raw & _NONE_32
        return None if low == _NONE_32 else low
    if kind == 0:
        value: float = _DOUBLE.unpack(_RAW.pack(raw))[0]
        return value if abs(value) < float("inf") else None
    if kind == 4:
        return float(_SIGNED.unpack(_RAW.pack(raw))[0])
    if kind == 5:
        return float(_SIGNED_32.unpack(_RAW.pack(raw))[0])
    return raw & 0xFFFF if kind == 6 else None
