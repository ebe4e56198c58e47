"""The MIG instances of a card: each with memory, processes and (on Hopper and newer) counters of its own."""

from __future__ import annotations

from agent.driver.device import Device
from agent.driver.library import STATE, GpuLost

MODE = "nvmlDeviceGetMigMode"


def instances(device: Device) -> list[Device]:
    """MIG instances of a GPU; none where MIG is off, not there or not known.

    Numbers between instances may be free: they are skipped, not the end. A handle dies with its instance and may come
    to mean another one, so every call makes new devices; ``Device.renew`` hands a handle over to one that is kept.

    Raises:
        GpuLost: the card stopped answering.
    """
    if device.is_mig:
        return []
    mode = device.call(MODE)
    enabled = bool(mode and mode[0])
    if device.mig_enabled is not None and enabled != device.mig_enabled:
        device.forget()  # under MIG other calls are answered
    device.mig_enabled = enabled
    if not enabled:
        return []
    found = []
    for number in range(int(device.call("nvmlDeviceGetMaxMigDeviceCount") or 0)):
        instance = _instance(device, number)
        if instance is not None:
            found.append(instance)
    _mark_shared(found)
    return found


def _instance(device: Device, number: int) -> Device | None:
    library = device.library
    try:
        handle = library.kept(library.nvml.nvmlDeviceGetMigDeviceHandleByIndex(device.handle, number))
        if handle is None:
            return None
        instance = Device(library, handle, index=device.index, parent=device)
        instance.gpu_instance = instance.call("nvmlDeviceGetGpuInstanceId")
        instance.compute_instance = instance.call("nvmlDeviceGetComputeInstanceId")
    except library.error as error:
        if error.value in STATE:
            raise GpuLost(error.value) from None
        return None
    except (GpuLost, AttributeError):  # gone between the two calls; a binding older than MIG
        return None
    return instance


def _mark_shared(found: list[Device]) -> None:
    """Several compute instances in one GPU instance: counters tell of them together only."""
    held: dict[int | None, int] = {}
    for instance in found:
        held[instance.gpu_instance] = held.get(instance.gpu_instance, 0) + 1
    for instance in found:
        instance.shares_instance = instance.gpu_instance is None or held[instance.gpu_instance] > 1
