"""The only module that imports pynvml. Raw NVML units stop here, and so do its error codes.

What a card or driver does not report is None, never 0; a card that is lost raises ``GpuLostError``, and only
that card is concerned.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from core.errors import GpuwiseError
from core.readings import GpuIdentity

SHUTDOWN_S: Final = 0.3
INIT_S: Final = 20.0
"""nvmlInit itself was seen to hang (H200, driver 570.148.08: NVIDIA/go-nvml issue 152); healthy ones take under 5 s."""

NOT_SUPPORTED: Final = 3
NO_PERMISSION: Final = 4
NOT_FOUND: Final = 6
ABSENT: Final = frozenset({2, NOT_SUPPORTED, NO_PERMISSION, 13, 25, 26})
"""Codes that stay for this card and driver: invalid argument, not supported, no permission, function not found,
version mismatch of an argument, deprecated. Everything else is a state and is asked for again."""
PASSING: Final = frozenset({NOT_FOUND, 7, 10, 17, 20})
"""Not found, too small a buffer, timeout, operating system, memory: unknown this time."""
_SENTENCES: Final = {
    9: "the NVIDIA driver is installed but not loaded (run: nvidia-smi, or modprobe nvidia)",
    12: "no NVIDIA driver on this machine (libnvidia-ml.so.1 was not found)",
    NO_PERMISSION: "the NVIDIA driver refuses this user (check the permissions of /dev/nvidia*)",
    18: "the NVIDIA driver was upgraded while it ran: reload its module or reboot",
    999: "the NVIDIA driver does not work here (unknown error; in a container its device rules may be lost: create it anew)",
}
_FALLBACK_PID_MAX: Final = 4_194_304

Handle = Any


class NvmlError(GpuwiseError):
    """The driver cannot be used at all."""


class GpuLostError(Exception):
    """One GPU stopped answering; ``code`` is NVML's."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class Process:
    """A process on a GPU.

    Attributes:
        pid: as the driver gives it.
        memory_used_bytes: None where the driver does not tell.
        computes: it is in the compute or MPS list; a display server is in the graphics list only.
    """

    pid: int
    memory_used_bytes: float | None
    computes: bool = True


def driver_present(library: ModuleType | Any | None = None) -> str | None:
    """None when there is a driver with a GPU to sample; else the reason in one clause without a full stop."""
    try:
        driver = Driver(library)
    except NvmlError as error:
        return str(error)
    try:
        return None if driver.gpus() else "the NVIDIA driver is there but shows no GPU"
    finally:
        driver.close()


class Gpu:
    """One GPU or MIG instance: what it is, and its readings.

    Attributes:
        identity: UUID, name, memory and the like.
        is_mig: a MIG instance: it has memory and processes of its own and nothing else.
    """

    def __init__(
        self, library: Any, handle: Handle, *, index: int, driver_version: str | None, is_mig: bool = False
    ) -> None:
        self._lib = library
        self._handle = handle
        self._absent: set[str] = set()
        self.is_mig = is_mig
        uuid = self._text("nvmlDeviceGetUUID")
        if uuid is None:
            raise GpuLostError(NOT_SUPPORTED)
        memory = self._memory()
        limit = None if is_mig else self._read("nvmlDeviceGetPowerManagementDefaultLimit", 1e-3)
        clock = None if is_mig else self._read("nvmlDeviceGetMaxClockInfo", 1e6, "NVML_CLOCK_SM")
        self.identity = GpuIdentity(
            uuid,
            index=index,
            model=self._text("nvmlDeviceGetName"),
            memory_total_bytes=None if memory is None else int(memory.total) or None,
            pci_bus_id=None if is_mig else self._bus_id(),
            driver_version=driver_version,
            max_sm_clock_hz=clock,
            power_limit_default_w=limit,
        )

    def quick(self) -> dict[str, float]:
        """What is cheap to ask every second, by reading name; unknown values are left out.

        Raises:
            GpuLostError: the card stopped answering.
        """
        values: dict[str, float | None] = {}
        memory = self._memory()
        if memory is not None:
            values["memory_used_bytes"] = float(memory.used)
            reserved = getattr(memory, "reserved", None)
            values["memory_reserved_bytes"] = None if reserved is None else float(reserved)
        if not self.is_mig:
            used = self._call("nvmlDeviceGetUtilizationRates")
            if used is not None:
                values["busy_ratio"] = used.gpu * 0.01
                values["memory_busy_ratio"] = used.memory * 0.01
            values["power_w"] = self._read("nvmlDeviceGetPowerUsage", 1e-3)
            values["energy_j"] = self._read("nvmlDeviceGetTotalEnergyConsumption", 1e-3)
            values["sm_clock_hz"] = self._read("nvmlDeviceGetClockInfo", 1e6, "NVML_CLOCK_SM")
            values["memory_clock_hz"] = self._read("nvmlDeviceGetClockInfo", 1e6, "NVML_CLOCK_MEM")
            values["event_reasons_flags"] = self._first(
                "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"
            )
        return {name: value for name, value in values.items() if value is not None}

    def slow(self) -> dict[str, float]:
        """What changes slowly or costs more: temperatures and the limit. Raises ``GpuLostError``."""
        if self.is_mig:
            return {}
        values = {
            "temperature_c": self._temperature(),
            "memory_temperature_c": self._memory_temperature(),
            "power_limit_w": self._read("nvmlDeviceGetEnforcedPowerLimit", 1e-3),
        }
        return {name: value for name, value in values.items() if value is not None}

    def processes(self) -> list[Process] | None:
        """Compute, graphics and MPS processes, one entry per PID; None when the driver does not tell.

        One process may stand in several lists with the same memory, and on a MIG parent once per instance.
        Raises ``GpuLostError``.
        """
        found: dict[tuple[int, int], float | None] = {}
        computing: set[int] = set()
        told = False
        for name in ("Compute", "Graphics", "MPSCompute"):
            entries = self._call(f"nvmlDeviceGet{name}RunningProcesses_v3")
            if entries is None:
                continue
            told = True
            for entry in entries:
                if not 0 < entry.pid <= _pid_max():
                    return None  # drivers 535.43 to 535.86 fill the list with another layout: nothing in it is true
                if name != "Graphics":
                    computing.add(entry.pid)
                key = (entry.pid, getattr(entry, "gpuInstanceId", 0) or 0)
                memory = None if entry.usedGpuMemory is None else float(entry.usedGpuMemory)
                held = found.get(key)
                found[key] = memory if held is None else max(held, memory or 0.0)
        if not told:
            return None
        by_pid: dict[int, float | None] = {}
        for (pid, _instance), memory in found.items():
            held = by_pid.get(pid)
            by_pid[pid] = memory if held is None else held + (memory or 0.0)
        return [Process(pid, memory, pid in computing) for pid, memory in by_pid.items()]

    def instances(self) -> list["Gpu"]:
        """Its MIG instances; none where MIG is off or not known. Raises ``GpuLostError``."""
        mode = self._call("nvmlDeviceGetMigMode")
        if self.is_mig or not mode or not mode[0]:
            return []
        count = self._call("nvmlDeviceGetMaxMigDeviceCount") or 0
        found = []
        for number in range(int(count)):
            try:
                handle = self._lib.nvmlDeviceGetMigDeviceHandleByIndex(self._handle, number)
                if handle is not None:
                    found.append(
                        Gpu(
                            self._lib,
                            handle,
                            index=number,
                            driver_version=self.identity.driver_version,
                            is_mig=True,
                        )
                    )
            except (self._lib.NVMLError, GpuLostError):
                continue  # holes between instances are normal
        return found

    def _call(self, name: str, *args: object) -> Any:
        """One call: its result, or None where this card or driver does not have it."""
        if name in self._absent:
            return None
        function = getattr(self._lib, name, None)
        if function is None:  # a binding older than the call
            self._absent.add(name)
            return None
        try:
            return function(self._handle, *args)
        except self._lib.NVMLError as error:
            # Never compare the error itself: the binding's __eq__ asks the other side for .value.
            code = error.value
        except UnicodeDecodeError:
            return None
        if code in ABSENT:
            self._absent.add(name)
            return None
        if code in PASSING or code == 0:
            return None
        raise GpuLostError(code)

    def _read(self, name: str, per_unit: float, constant: str | None = None) -> float | None:
        """One figure in base units. Calls that differ by a constant are remembered as absent together."""
        if constant is None:
            value = self._call(name)
        else:
            kind = getattr(self._lib, constant, None)
            value = None if kind is None else self._call(name, kind)
        return None if value is None else value * per_unit

    def _first(self, *names: str) -> float | None:
        for name in names:
            value = self._call(name)
            if value is not None:
                return float(value)
        return None

    def _text(self, name: str) -> str | None:
        value = self._call(name)
        if isinstance(value, bytes):  # bindings before 11.5
            value = value.decode("utf-8", "replace")
        return value or None

    def _memory(self) -> Any:
        """Version 2 counts what processes allocated; version 1 adds the driver's reserve to it and is the fallback."""
        version = getattr(self._lib, "nvmlMemory_v2", None)
        memory = None
        if version is not None and "nvmlMemory_v2" not in self._absent:
            memory = self._call("nvmlDeviceGetMemoryInfo", version)
            if memory is None and "nvmlDeviceGetMemoryInfo" in self._absent:
                self._absent.discard("nvmlDeviceGetMemoryInfo")  # that was version 2; version 1 may be there
                self._absent.add("nvmlMemory_v2")
        if memory is None and (version is None or "nvmlMemory_v2" in self._absent):
            memory = self._call("nvmlDeviceGetMemoryInfo")
        # Integrated boards answer with a total of 0: that is "not known".
        return memory if memory is not None and memory.total else None

    def _temperature(self) -> float | None:
        sensor = getattr(self._lib, "NVML_TEMPERATURE_GPU", 0)
        value = self._call("nvmlDeviceGetTemperatureV", sensor)
        if value is None:
            value = self._call("nvmlDeviceGetTemperature", sensor)
        return None if value is None else float(value)

    def _memory_temperature(self) -> float | None:
        field = getattr(self._lib, "NVML_FI_DEV_MEMORY_TEMP", 82)
        if "memory temperature" in self._absent:
            return None
        values = self._call("nvmlDeviceGetFieldValues", [field])
        if not values:
            return None
        # The call succeeds when any entry was filled; without a look at the entry's own code there is a false 0.
        code = values[0].nvmlReturn
        if code in ABSENT:
            self._absent.add("memory temperature")
        return float(values[0].value.uiVal) if code == 0 else None

    def _bus_id(self) -> str | None:
        info = self._call("nvmlDeviceGetPciInfo")
        bus_id = getattr(info, "busId", None)
        return bus_id.decode("ascii", "replace") if isinstance(bus_id, bytes) else bus_id


class Driver:
    """An initialised NVML; held open, because every opening of an idle driver re-initialises the cards.

    Args:
        library: a module with pynvml's names; default pynvml itself.

    Raises:
        NvmlError: no driver, none that works, or one that does not answer; says which.
    """

    def __init__(self, library: ModuleType | Any | None = None) -> None:
        self._lib = _pynvml() if library is None else library
        self._init()
        self.version = self._version()

    def gpus(self) -> list[Gpu]:
        """GPUs that answer, each followed by its MIG instances; ones that may not be opened are left out."""
        try:
            count = self._lib.nvmlDeviceGetCount()
        except self._lib.NVMLError as error:
            raise NvmlError(_sentence(error.value)) from error
        found: list[Gpu] = []
        for index in range(count):
            with suppress(GpuLostError, self._lib.NVMLError):
                handle = self._lib.nvmlDeviceGetHandleByIndex(index)
                if handle is None:  # NULL would crash some drivers
                    continue
                gpu = Gpu(self._lib, handle, index=index, driver_version=self.version)
                found.append(gpu)
                found.extend(gpu.instances())
        return found

    def close(self) -> None:
        """Let go of the driver; one that hangs is left alone, so that the process can end."""
        self._bounded(self._lib.nvmlShutdown, SHUTDOWN_S)

    def _init(self) -> None:
        outcome = self._bounded(self._lib.nvmlInit, INIT_S)
        if outcome is None:
            raise NvmlError(f"the NVIDIA driver does not answer (nvmlInit takes longer than {INIT_S:.0f} s)")
        error = outcome[0]
        if isinstance(error, self._lib.NVMLError):
            raise NvmlError(_sentence(error.value)) from error
        if error is not None:
            raise NvmlError(f"the NVIDIA driver cannot be used ({error})") from error

    def _bounded(self, call: Callable[[], object], seconds: float) -> tuple[BaseException | None] | None:
        """Call in a thread: what it raised (None: nothing), or None when it takes longer than ``seconds``."""
        outcome: list[BaseException | None] = []

        def target() -> None:
            try:
                call()
            except BaseException as error:  # noqa: BLE001 - handed to the waiting thread, whatever it is
                outcome.append(error)
            else:
                outcome.append(None)

        waiter = threading.Thread(target=target, name="nvml-call", daemon=True)
        waiter.start()
        waiter.join(seconds)
        return (outcome[0],) if outcome else None

    def _version(self) -> str | None:
        try:
            version = self._lib.nvmlSystemGetDriverVersion()
        except (self._lib.NVMLError, UnicodeDecodeError):
            return None
        return version.decode("utf-8", "replace") if isinstance(version, bytes) else version


def _pynvml() -> Any:
    try:
        import pynvml
    except ImportError as error:
        raise NvmlError("the NVIDIA binding is not installed (pip install nvidia-ml-py)") from error
    if not hasattr(pynvml, "_nvmlGetFunctionPointer"):
        # Another distribution called pynvml can lie over the real one.
        raise NvmlError(
            "another package named pynvml hides nvidia-ml-py: pip uninstall pynvml, then reinstall nvidia-ml-py"
        )
    return pynvml


def _sentence(code: int) -> str:
    return _SENTENCES.get(code, f"the NVIDIA driver cannot be used (NVML error {code})")


@cache
def _pid_max() -> int:
    """Highest process number of this kernel."""
    try:
        return int(Path("/proc/sys/kernel/pid_max").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return _FALLBACK_PID_MAX
