"""What a card is: asked once, and again only while something is unknown."""

from __future__ import annotations

from agent.collectors.memory import memory_of
from agent.driver.library import GpuLost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from agent.driver.device import Device

CLOCK_SM = 1
AMPERE, ADA = 7, 8
GA100 = (8, 0)
UNKNOWN_ARCHITECTURE = 0xFFFFFFFF


def identity(device: Device) -> dict[str, Any]:
    """The fields of ``core.readings.GpuIdentity`` by name, without the host.

    Never raises: what a card that is being lost does not say is None, and the next reading tells the loss.
    """
    if device.known is not None:
        return device.known
    facts: dict[str, Any] = {
        "gpu_uuid": device.uuid,
        "index": device.index,
        "model": None,
        "memory_total_bytes": None,
        "pci_bus_id": None,
        "driver_version": device.library.driver_version,
        "max_sm_clock_hz": None,
        "power_limit_default_w": None,
        "compute_capability": None,
        "power_averaging_s": None,
    }
    try:
        _ask(device, facts)
    except GpuLost:
        return facts
    if None not in (facts["model"], facts["memory_total_bytes"]):
        device.known = facts
    return facts


def _ask(device: Device, facts: dict[str, Any]) -> None:
    facts["model"] = device.text("nvmlDeviceGetName")
    memory = memory_of(device)
    facts["memory_total_bytes"] = None if memory is None else int(memory.total)
    capability = compute_capability(device)
    if capability is not None:
        facts["compute_capability"] = f"{capability[0]}.{capability[1]}"
    if device.is_mig:
        return
    facts["pci_bus_id"] = _bus_id(device)
    clock = device.call("nvmlDeviceGetMaxClockInfo", CLOCK_SM)
    facts["max_sm_clock_hz"] = None if clock is None else clock * 1e6
    limit = device.call("nvmlDeviceGetPowerManagementDefaultLimit")
    facts["power_limit_default_w"] = None if limit is None else limit / 1000
    facts["power_averaging_s"] = power_averaging_s(device)


def compute_capability(device: Device) -> tuple[int, int] | None:
    """Major and minor; None when unknown. Raises ``GpuLost``."""
    said = device.call("nvmlDeviceGetCudaComputeCapability")
    return None if said is None or said[0] <= 0 else (int(said[0]), int(said[1]))


def power_averaging_s(device: Device) -> float | None:
    """Time that the power reading averages over: 1 s on Ampere except GA100 and on everything newer, else 0.

    GA100 calls itself Ampere and is told apart by its compute capability only (nvml.h, nvmlDeviceGetPowerUsage).
    None when the card does not say what it is. Raises ``GpuLost``.
    """
    capability = compute_capability(device)
    if capability is not None:
        return 1.0 if capability > GA100 else 0.0
    architecture = device.call("nvmlDeviceGetArchitecture")
    if architecture in (None, AMPERE, UNKNOWN_ARCHITECTURE):
        return None
    return 1.0 if architecture >= ADA else 0.0


def _bus_id(device: Device) -> str | None:
    info = device.call("nvmlDeviceGetPciInfo")
    try:
        bus_id = getattr(info, "busId", None)
    except UnicodeDecodeError:
        return None
    if isinstance(bus_id, bytes):
        bus_id = bus_id.decode("ascii", "replace")
    return bus_id or None
