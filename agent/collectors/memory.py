"""Device memory, with the driver's own reserve apart where it can be told."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from agent.driver.device import Device

CALL = "nvmlDeviceGetMemoryInfo"


def memory_of(device: Device) -> Any:
    """What nvmlDeviceGetMemoryInfo gives (``total``, ``used``, in version 2 ``reserved``), or None. Raises ``GpuLost``.

    Version 2 counts what processes allocated. Version 1 adds the reserve to it, and is asked only where there is no
    version 2 for good: a mixture over time would look like memory that comes and goes. Integrated boards that answer
    with a total of 0, or not at all, have no memory of their own: unknown.
    """
    version = getattr(device.library.nvml, "nvmlMemory_v2", None)
    memory = None
    if version is not None:
        memory = device.call(CALL, version)
    if memory is None and (version is None or f"{CALL}({version})" in device.absent):
        memory = device.call(CALL)
    return memory if memory is not None and memory.total else None
