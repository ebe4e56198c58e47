"""One GPU or MIG instance, and the gate every call on it goes through.

What a card or driver does not have is None and is not asked for again; what it does not say this time is None; a card
that is gone raises ``GpuLost``. Only reading calls go through here: the agent never changes a card.
"""

from __future__ import annotations

from agent.driver.fields import FieldBatch
from agent.driver.library import NO_FUNCTION, NOT_SUPPORTED, STABLE, STATE, GpuLost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from agent.driver.fields import Entry
    from agent.driver.library import Library

UNREADABLE = -1
"""In place of an NVML code: the answer could not be decoded (a corrupt name)."""


class Device:
    """A handle and what is known to be absent behind it.

    Args:
        library: open.
        handle: never None: NULL crashes some drivers.
        index: NVML index of the GPU; for a MIG instance the index of its GPU.
        parent: the GPU a MIG instance is part of.

    Attributes:
        uuid: ``GPU-…`` or ``MIG-…``.
        absent: code by call (or ``field N``) that this card and driver will never answer.
        elsewhere: names of readings that GPM gives, better than counters could.
        gpu_instance, compute_instance: ids of a MIG instance; None elsewhere.
        shares_instance: a MIG instance whose GPU instance holds others too, so its figures are not its own.
        mig_enabled: as last seen by ``collectors.mig``; None when never asked.
        known: identity facts, once complete.

    Raises:
        GpuLost: the card does not say which one it is.
    """

    __slots__ = (
        "_batches",
        "_refused",
        "absent",
        "compute_instance",
        "elsewhere",
        "gpu_instance",
        "handle",
        "index",
        "is_mig",
        "known",
        "library",
        "mig_enabled",
        "parent",
        "shares_instance",
        "uuid",
    )

    def __init__(self, library: Library, handle: Any, *, index: int, parent: Device | None = None) -> None:
        if handle is None:
            raise GpuLost(NOT_SUPPORTED)
        self.library = library
        self.handle = handle
        self.index = index
        self.parent = parent
        self.is_mig = parent is not None
        self.absent: dict[str, int] = {}
        self.elsewhere: frozenset[str] = frozenset()
        self.gpu_instance: int | None = None
        self.compute_instance: int | None = None
        self.shares_instance = False
        self.mig_enabled: bool | None = None
        self.known: dict[str, Any] | None = None
        self._refused: set[tuple[Any, ...]] = set()
        self._batches: dict[tuple[Entry, ...], FieldBatch] = {}
        uuid = self.text("nvmlDeviceGetUUID")
        if not uuid:
            raise GpuLost(NOT_SUPPORTED)
        self.uuid: str = uuid

    def call(self, name: str, *args: Any) -> Any:
        """The result of a pynvml function on this device, or None. Raises ``GpuLost``."""
        if name in self.absent or (args and (name, *args) in self._refused):
            return None
        code, value = self.attempt(name, *args)
        if code in STABLE:
            if args and hasattr(self.library.nvml, name):  # another argument may be answered
                self._refused.add((name, *args))
                self.absent[f"{name}({', '.join(map(str, args))})"] = code
            else:
                self.absent[name] = code
        return value

    def attempt(self, name: str, *args: Any) -> tuple[int, Any]:
        """Code and result of a call, without remembering that it is absent: for calls that come and go.

        Code 0 raised as an error (an empty list, in this binding) is a None with code 0. Raises ``GpuLost``.
        """
        library = self.library
        function = getattr(library.nvml, name, None)
        if function is None:  # a binding older than the call
            return NO_FUNCTION, None
        try:
            return 0, function(self.handle, *args)
        except library.error as error:
            # Never compare the error itself: the binding's __eq__ asks the other side for .value.
            code: int = error.value
        except library.mismatch:
            return NO_FUNCTION, None
        except UnicodeDecodeError:
            return UNREADABLE, None
        if code in STATE:
            raise GpuLost(code)
        return code, None

    def text(self, name: str) -> str | None:
        """A string the driver gives; None when it is empty or unknown. Raises ``GpuLost``."""
        value = self.call(name)
        if isinstance(value, bytes):  # bindings before 11.5
            value = value.decode("utf-8", "replace")
        return value or None

    def fields(self, entries: tuple[Entry, ...]) -> dict[Entry, float]:
        """Field values in one driver call, by entry: an id, or (id, scope). Raises ``GpuLost``.

        The same tuple is meant to be asked again and again: its buffer is kept. One tuple belongs to one thread.
        """
        batch = self._batches.get(entries)
        if batch is None:
            batch = self._batches[entries] = FieldBatch(self.library, entries)
        known = len(batch.lacking)
        values = batch.ask(self.handle)
        if len(batch.lacking) != known:
            for entry, code in batch.lacking.items():
                self.absent[_label(entry)] = code
        return values

    def lacks(self, entry: Entry) -> bool:
        """Whether a field was refused for good."""
        return _label(entry) in self.absent

    def forget(self) -> None:
        """Ask for everything again: after a change of mode other calls are answered."""
        self.absent.clear()
        self._refused.clear()
        self._batches.clear()
        self.known = None

    def renew(self, other: Device) -> None:
        """Take over the handle of a fresh look at the same UUID: a MIG handle dies with its instance.

        A new handle means a card that was reset or attached again: it may answer what it refused.
        """
        if other.handle is not self.handle:
            self.handle = other.handle
            self.forget()
        if other.index != self.index:  # another card left, and its successors moved up
            self.index = other.index
            self.known = None
        self.parent = other.parent
        self.gpu_instance, self.compute_instance = other.gpu_instance, other.compute_instance
        self.shares_instance = other.shares_instance
        self.mig_enabled = other.mig_enabled


def _label(entry: Entry) -> str:
    return f"field {entry[0]} scope {entry[1]}" if isinstance(entry, tuple) else f"field {entry}"
