# ruff: noqa: N802 - the names are those of the binding
"""A stand-in for the pynvml module: as many GPUs as a test wants, each call scripted to answer, lack or fail."""

import struct
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

SYMBOLS = {
    "nvmlDeviceGetUtilizationRates": lambda gpu: SimpleNamespace(gpu=gpu.busy, memory=40),
    "nvmlDeviceGetPowerUsage": lambda gpu: gpu.milliwatts,
    "nvmlDeviceGetTotalEnergyConsumption": lambda gpu: gpu.millijoules(),
    "nvmlDeviceGetCurrentClocksEventReasons": lambda _gpu: 4,
    "nvmlDeviceGetEnforcedPowerLimit": lambda _gpu: 700_000,
    "nvmlDeviceGetPowerManagementDefaultLimit": lambda _gpu: 700_000,
    "nvmlDeviceGetPciInfo": lambda _gpu: SimpleNamespace(busId="00000000:0C:00.0"),
    "nvmlDeviceGetUUID": lambda gpu: gpu.uuid,
    "nvmlDeviceGetName": lambda gpu: gpu.name,
}


@dataclass
class FakeGpu:
    """One card. ``fails`` maps a call's name to the NVML code it raises; "" is every call."""

    uuid: str = "GPU-a"
    name: str = "NVIDIA H200"
    busy: int = 50
    milliwatts: int = 300_000
    energy: list[int] = field(default_factory=lambda: [1_000_000])
    fails: dict[str, int] = field(default_factory=dict)
    used_bytes: int = 60 << 30
    calls: list[str] = field(default_factory=list)
    fields: dict[tuple[int, int], tuple[int, int, int]] = field(default_factory=dict)
    """Code, value type and raw value by field and scope; one that is not here is passed over by the driver."""
    asked: list[tuple[tuple[int, int], ...]] = field(default_factory=list)
    """Fields and scopes of each batch."""

    def millijoules(self) -> int:
        return self.energy.pop(0) if len(self.energy) > 1 else self.energy[0]


FIELD = struct.Struct("=IIqqIIQ")


class FakeNvml:
    """Has pynvml's names; only what is asked for exists."""

    nvmlMemory_v2 = 33554472  # noqa: N815 - the binding's own name

    class NVMLError(Exception):
        """Like the binding's: no hash, and == with anything else fails."""

        __hash__ = None  # type: ignore[assignment]

        def __init__(self, value: int) -> None:
            super().__init__(value)
            self.value = value

        def __eq__(self, other: object) -> bool:
            return bool(self.value == other.value)  # type: ignore[attr-defined]

    def __init__(self, *gpus: FakeGpu | None, init_code: int = 0, lacks: tuple[str, ...] = ()) -> None:
        self.gpus = list(gpus)
        self.init_code = init_code
        self.lacks = lacks
        self.opened = 0

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("lacks", ()) or name not in SYMBOLS:
            raise AttributeError(name)
        return lambda gpu, *_args: self._answer(name, gpu, SYMBOLS[name])

    def _nvmlGetFunctionPointer(self, name: str) -> Any:
        if name in self.lacks or name != "nvmlDeviceGetFieldValues":
            raise self.NVMLError(13)
        return self._field_values

    def _field_values(self, gpu: FakeGpu, count: int, reference: Any) -> int:
        """As the library does it: 0 when any entry was filled, the code of the call when it is scripted to fail."""
        buffer = reference._obj
        rows = [list(FIELD.unpack_from(buffer, at * FIELD.size)) for at in range(count)]
        gpu.asked.append(tuple((row[0], row[1]) for row in rows))
        if gpu.fails.get("fields"):
            return gpu.fails["fields"]
        known = [(row[0], row[1]) in gpu.fields for row in rows]
        if not all(known) and gpu.fails.get("unknown field"):
            return gpu.fails["unknown field"]
        for at, row in enumerate(rows):
            if known[at]:
                row[5], row[4], row[6] = gpu.fields[row[0], row[1]]
                FIELD.pack_into(buffer, at * FIELD.size, *row)
        return 0

    def _answer(self, name: str, gpu: FakeGpu, answer: Any) -> Any:
        assert gpu is not None, "a NULL handle would crash"
        gpu.calls.append(name)
        for key in ("", name):
            if gpu.fails.get(key):
                raise self.NVMLError(gpu.fails[key])
        return answer(gpu)

    def nvmlInit(self) -> None:
        if self.init_code:
            raise self.NVMLError(self.init_code)
        self.opened += 1

    def nvmlShutdown(self) -> None:
        self.opened -= 1

    def nvmlSystemGetDriverVersion(self) -> str:
        return "590.48.01"

    def nvmlSystemGetNVMLVersion(self) -> bytes:
        return b"12.590.48.01"

    def nvmlSystemGetCudaDriverVersion(self) -> int:
        return 13_010

    def nvmlDeviceGetCount(self) -> int:
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> FakeGpu | None:
        gpu = self.gpus[index]
        if gpu is not None and "handle" in gpu.fails:
            raise self.NVMLError(gpu.fails["handle"])
        return gpu

    def nvmlDeviceGetMemoryInfo(self, gpu: FakeGpu, version: int | None = None) -> SimpleNamespace:
        if version is not None:
            return self._answer(
                "memory v2",
                gpu,
                lambda gpu: SimpleNamespace(total=150 << 30, used=gpu.used_bytes, reserved=1 << 29),
            )
        return self._answer("memory v1", gpu, lambda _gpu: SimpleNamespace(total=150 << 30, used=61 << 30))

    def nvmlDeviceGetClockInfo(self, gpu: FakeGpu, kind: int) -> int:
        return self._answer("clock", gpu, lambda _gpu: {1: 1_980, 2: 3_201}[kind])

    def nvmlDeviceGetMaxClockInfo(self, gpu: FakeGpu, _kind: int) -> int:
        return self._answer("max clock", gpu, lambda _gpu: 1_980)

    def nvmlDeviceGetTemperatureV(self, gpu: FakeGpu, _sensor: int) -> int:
        return self._answer("temperature v", gpu, lambda _gpu: 41)

    def nvmlDeviceGetTemperature(self, gpu: FakeGpu, _sensor: int) -> int:
        return self._answer("temperature", gpu, lambda _gpu: 40)
