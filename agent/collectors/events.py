"""What the driver reports by itself: XIDs, MIG changes, a card that became unavailable, an action it asks for.

Nothing before the registration is told. A stream that fails is dead: silence from it would look like health.
"""

from __future__ import annotations

from agent.driver.library import TIMEOUT, GpuLost, address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from agent.driver.device import Device
    from agent.driver.library import Library

KINDS = {
    0x8: "xid",
    0x100: "mig",
    0x4000: "lost",
    0x8000: "recovery_action",
}
"""Event types by bit, as kinds of ``core.samples.GpuEvent``."""
XID = 0x8
WANTED = sum(KINDS)
MOST_AT_ONCE = 64


class StreamDead(Exception):  # noqa: N818 - a state
    """The stream has to be built anew; ``code`` is NVML's (0: no card takes registrations)."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Events:
    """One event set over several GPUs; MIG instances cannot be registered and are passed over.

    Args:
        library: open.
        devices: whose.

    Raises:
        StreamDead: there is no set to be had, or no card can be registered.
    """

    __slots__ = ("_by_address", "_by_uuid", "_library", "_set")

    def __init__(self, library: Library, devices: Iterable[Device]) -> None:
        self._library = library
        self._set: Any = None
        self._by_uuid: dict[str, int] = {}
        self._by_address: dict[int, int] = {}
        try:
            self._set = library.nvml.nvmlEventSetCreate()
        except library.error as error:
            raise StreamDead(error.value) from None
        for device in devices:
            if not device.is_mig and self._register(device):
                self._by_uuid[device.uuid] = device.index
                where = address(device.handle)
                if where is not None:
                    self._by_address[where] = device.index
        if not self._by_uuid:
            self.close()
            raise StreamDead(0)

    def wait(self, timeout_ms: int) -> list[tuple[int, str, int]]:
        """(GPU index, kind, code) of everything that happened, waiting up to ``timeout_ms`` for the first.

        Kinds: ``xid`` (code: its number, 999 unknown), ``mig`` (its configuration changed), ``lost`` (unavailable),
        ``recovery_action`` (code: the action).

        Raises:
            StreamDead: any failure but the timeout.
        """
        told: list[tuple[int, str, int]] = []
        wait_ms = timeout_ms
        for _ in range(MOST_AT_ONCE):
            try:
                data = self._library.nvml.nvmlEventSetWait_v2(self._set, wait_ms)
            except self._library.error as error:
                if error.value == TIMEOUT:
                    break
                if told:
                    break  # what was heard is not lost; the next wait says that the stream is dead
                raise StreamDead(error.value) from None
            wait_ms = 0
            kind = KINDS.get(data.eventType)
            index = self._index(data.device)
            if kind is not None and index is not None:
                told.append((index, kind, int(data.eventData)))
        return told

    def close(self) -> None:
        """Give the set back."""
        held, self._set = self._set, None
        if held is None:
            return
        try:
            self._library.nvml.nvmlEventSetFree(held)
        except self._library.error:
            return

    def _register(self, device: Device) -> bool:
        try:
            supported = device.call("nvmlDeviceGetSupportedEventTypes")
            mask = XID if supported is None else WANTED & supported
            if not mask:
                return False
            code, _ = device.attempt("nvmlDeviceRegisterEvents", mask, self._set)
        except GpuLost:
            return False
        return code == 0

    def _index(self, handle: Any) -> int | None:
        """Which GPU an event is about. A card that just failed may not say its name any more: then by its handle."""
        index = self._by_address.get(address(handle) or 0)
        if index is not None:
            return index
        try:
            return self._by_uuid.get(self._library.nvml.nvmlDeviceGetUUID(handle))
        except (self._library.error, UnicodeDecodeError):
            return None
