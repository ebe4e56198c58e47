"""``python -m agent.doctor.probe``: asks the driver everything once, in a process that may be left behind.

One JSON object a line: ``{"asking": …}`` before anything that may hang, so that the reader knows where it did; then
``{"driver": {…}}`` or ``{"failed": {…}}``, ``{"gpu": {…}}`` for each card, ``{"end": true}``. Nothing is written to
the driver, and a card that sleeps is left asleep.
"""

import json
import sys
import time
from typing import Any, Final

from agent.collectors.gpm import Gpm
from agent.collectors.health import facts
from agent.collectors.identity import identity
from agent.collectors.mig import instances
from agent.collectors.processes import Processes
from agent.collectors.readings import Readings
from agent.driver.device import Device
from agent.driver.library import DriverError, GpuLost, Library
from agent.driver.suspended import Suspended

GAP_S: Final = 0.25
"""Two looks at counters are this far apart; profiling counters refresh every 100 ms."""


def main() -> int:
    """Ask; 0 when the driver could be opened."""
    library = Library()
    _say(asking="the start of NVML (nvmlInit)")
    before = time.monotonic()
    try:
        library.open()
        _say(asking="the number of GPUs")
        count = library.count()
    except DriverError as error:
        _say(failed={"code": error.code, "sentence": error.sentence, "library": _library_version(library)})
        return 1
    took_s = time.monotonic() - before
    asleep = sorted(Suspended().indices())
    _say(
        driver={
            "version": library.driver_version,
            "library": library.nvml_version,
            "cuda": library.cuda_driver_version,
            "init_s": round(took_s, 3),
            "count": count,
            "asleep": asleep,
        }
    )
    for index in range(count):
        if index not in asleep:
            _gpu(library, index)
    _say(end=True)
    library.close()
    return 0


def _library_version(library: Library) -> str | None:
    """The library tells its version even where the driver cannot be opened."""
    try:
        return str(library.nvml.nvmlSystemGetNVMLVersion())
    except Exception:  # noqa: BLE001 - whatever the binding raises, it is unknown
        return None


def _gpu(library: Library, index: int) -> None:
    _say(asking=f"GPU {index}")
    try:
        handle = library.handle(index)
        if handle is None:
            _say(gpu={"index": index, "lost": 4})
            return
        device = Device(library, handle, index=index)
        _say(gpu=_everything(device))
    except GpuLost as error:
        _say(gpu={"index": index, "lost": error.code})


def _everything(device: Device) -> dict[str, Any]:
    """All that one card tells. Raises ``GpuLost``."""
    card = f"GPU {device.index}"
    parts = instances(device)
    found: dict[str, Any] = {
        "index": device.index,
        "identity": identity(device),
        "instances": len(parts),
    }
    # Profiling counters of a card with MIG on are told per instance.
    counted = parts[0] if parts else device
    readings, gpm = Readings(device), Gpm(counted)
    try:
        names = set(readings.quick())
        _say(asking=f"the profiling counters of {card}")
        gpm.supported()
        time.sleep(GAP_S)
        names |= readings.quick().keys()
        found["gpm"] = _gpm(counted, gpm)
        _say(asking=f"the PCIe rate of {card}")
        found["values"] = sorted(names | readings.slow().keys())
    finally:
        gpm.close()
    _say(asking=f"the processes of {card}")
    held = Processes(device).read()
    told = None if held is None else [one[6] is not None for one in held]
    found["processes"] = None if told is None else {"count": len(told), "busy": all(told) if told else None}
    _say(asking=f"the health of {card}")
    found["facts"] = facts(device)
    found["events"] = device.call("nvmlDeviceGetSupportedEventTypes")
    found["virtualization"] = device.call("nvmlDeviceGetVirtualizationMode")
    found["absent"] = dict(device.absent)
    return found


def _gpm(device: Device, gpm: Gpm) -> dict[str, Any]:
    """Metrics of a live pair, how long it took, and else the code of a sample: support alone is no proof."""
    offered = (device.parent or device).call("nvmlGpmQueryDeviceSupport")
    found: dict[str, Any] = {
        "offered": None if offered is None else bool(offered.isSupportedDevice),
        "names": None,
        "code": None,
    }
    if gpm.supported():
        time.sleep(GAP_S)
        before = time.monotonic()
        values = gpm.pair(time.monotonic_ns())
        found["call_ms"] = round((time.monotonic() - before) * 1000, 3)
        found["names"] = None if values is None else sorted(values)
    elif found["offered"]:
        found["code"] = _sample_code(device)
    return found


def _sample_code(device: Device) -> int:
    """What the driver says to one sample, 0 when it takes it."""
    library, nvml = device.library, device.library.nvml
    try:
        sample = nvml.nvmlGpmSampleAlloc()
        try:
            if device.parent is None:
                nvml.nvmlGpmSampleGet(device.handle, sample)
            else:
                nvml.nvmlGpmMigSampleGet(device.parent.handle, device.gpu_instance, sample)
        finally:
            nvml.nvmlGpmSampleFree(sample)
    except library.error as error:
        return int(error.value)
    return 0


def _say(**line: Any) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
