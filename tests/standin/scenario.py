"""Write scenario files for the stand-in driver library: what every call answers, over time.

    scenario = Scenario(gpus=8).at(0, "*", "utilization", 90).at(5, 3, "power_mw", 120_000)
    scenario.lost(3, at=10, until=20).hang("nvmlDeviceGetPowerUsage", gpu=2, at=30)
    folder = build(tmp_path / "driver", without=scenario.without)
    env = environment(folder, scenario.write(tmp_path / "scenario"))

A running process notices a rewritten file within 20 ms of its next call (a call under way, hanging or waiting for
events, within 200 ms). :mod:`tests.standin.profiles` has whole scenarios ready.

The file
    Lines of text; ``#`` begins a comment line. A line that means nothing ends the process with its number.

    ``gpus 8`` (at most 64, above the lines that name one), ``driver 570.148.08``, ``nvml 12.570.148.08``, ``cuda 12080``.
    ``start <epoch s>``: when t=0 is; without it, the first nvmlInit of each process. Time runs on the monotonic clock.
    ``global_lock 1``: the calls of a process serialise as in the driver, so that one that hangs blocks all.
    ``enumerate init``: GPUs keep their places until the next nvmlInit; otherwise a GPU that left makes room at once.
    ``<t s> <gpu|*> <key> <value...>``: from t on. The latest line of a key wins; at one t, the later line.
    ``none`` as a value: NOT_SUPPORTED, which is also the answer for every key without a line (identity excepted).

Identity
    ``name uuid pci serial`` (the rest of the line), ``pci_device_id minor arch cc_major cc_minor virtualization``
    ``addressing persistence compute_mode accounting``
Memory (bytes)
    ``memory_total memory_used memory_reserved bar1_total bar1_used``
Activity (percent)
    ``utilization memory_utilization encoder decoder jpg ofa``
Power and energy
    ``power_mw`` (also field 186), ``power_average_mw`` (field 185, otherwise as power_mw), ``module_power_mw`` (scope 1),
    ``memory_power_mw`` (field 185 scope 2), ``power_limit_mw power_enforced_mw power_default_mw power_min_mw power_max_mw``.
    ``energy integrate [base mJ]``: base plus the exact integral of power_mw since t=0; ``energy restart``: since this
    line's t (a driver reload); ``energy value <mJ>``: stands still.
Clocks, temperatures, fans, state
    ``sm_clock mem_clock video_clock max_sm_clock max_mem_clock`` (MHz), ``temperature memory_temperature
    temperature_margin`` (C), ``fan <%> [<%> ...]`` (one a fan), ``pstate``, ``reasons <bit mask>`` (0x allowed),
    ``reason_ns:<field id> <ns per s>`` (the field is the integral)
PCIe and NVLink
    ``pcie_tx pcie_rx`` (KB/s, nvmlDeviceGetPcieThroughput), ``pcie_counter_tx pcie_counter_rx`` (bytes/s; fields 197/198
    are the integral, wrapping at 2^32), ``pcie_gen pcie_width pcie_max_gen pcie_max_width pcie_replay``,
    ``nvlink_links``, ``nvlink_gen`` (4), ``nvlink_tx nvlink_rx`` (KiB/s over all links: fields 138-141 up to gen 4, the
    byte fields 202/204 link by link from gen 5)
Health
    ``ecc_mode <now> [pending]``, ``ecc_corrected``/``ecc_uncorrected <volatile> [aggregate]``,
    ``remapped <corrected> <uncorrected> <pending> <failure>``, ``retired_pages <single> <double> [pending]``,
    ``recovery_action``, ``xid <number>`` (an event at t), ``event <type mask> <data>`` (any event at t)
Presence
    ``present 0``: the GPU is gone from count and lookups (NOT_FOUND), and calls with its handle give GPU_IS_LOST
MIG
    ``mig <now> [pending]``, ``max_mig`` (7), ``instance <gi> <uuid> <memory MiB>``, ``instance <gi> none``. An instance keeps
    its slot, so removing one leaves a hole. Its memory in use is what its processes hold.
GPM
    ``gpm_supported 0|1``, ``gpm:<metric id> <value>``, ``gpm@<gi>:<metric id> <value>``; read as the mean between two samples;
    samples not more than 100 ms apart give NO_DATA for each metric.
Processes
    ``processes compute:<pid>:<bytes|none>[:<gi>] graphics:... mps:...`` (all of them, from t on; ``none``: no process)
    ``process_util <pid>:<sm>:<mem>:<enc>:<dec>[:<jpg>:<ofa>][@<age s>] ...``: rows stamped now, or that old; ``!junk`` a
    garbage row, ``none`` NOT_FOUND, ``empty`` SUCCESS without rows, ``unsupported`` NOT_SUPPORTED.
    ``layout 535``: v3 rows with the fifth member of 535.43-535.86 (32 bytes); ``layout 40``: rows of 40 bytes
Any function (by its exact symbol, or ``*``; gpu ``*`` also covers calls that name no GPU)
    ``fail:<function> <code>``, ``hang:<function> 1``, ``slow:<function> <ms>``; 0 ends each. ``fail:*`` spares nvmlShutdown;
    nvmlInit_v2 stands for nvmlInitWithFlags too, which is what pynvml calls.
    ``field:<id> ret <code>``, ``field:<id> value <number> [value type]``, ``field:<id> none`` (back to the card's own)

Functions that change a GPU exist and abort the process with a sentence.
"""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, Self

from tests.standin.drivers import has_wide_process_rows, missing_fields, missing_symbols

Value = str | int | float | None
GIB: Final = 1 << 30
MIB: Final = 1 << 20

_HOPPER: Final[Mapping[str, Value]] = {
    "arch": 9, "cc_major": 9, "cc_minor": 0, "virtualization": 0, "addressing": 0, "persistence": 1, "compute_mode": 0, "accounting": 0,
    "bar1_total": 128 * GIB, "bar1_used": MIB, "memory_used": 0, "memory_reserved": 600 * MIB,
    "utilization": 0, "memory_utilization": 0, "encoder": 0, "decoder": 0, "jpg": 0, "ofa": 0,
    "power_mw": 70_000, "power_limit_mw": 700_000, "power_default_mw": 700_000, "power_min_mw": 200_000, "power_max_mw": 700_000,
    "energy": "integrate", "sm_clock": 345, "mem_clock": 2619, "video_clock": 345, "max_sm_clock": 1980, "max_mem_clock": 2619,
    "temperature": 32, "memory_temperature": 38, "temperature_margin": 55, "pstate": 0, "reasons": 1,
    "pcie_tx": 0, "pcie_rx": 0, "pcie_counter_tx": 0, "pcie_counter_rx": 0, "pcie_gen": 5, "pcie_width": 16,
    "pcie_max_gen": 5, "pcie_max_width": 16, "pcie_replay": 0,
    "nvlink_links": 18, "nvlink_gen": 4, "nvlink_tx": 0, "nvlink_rx": 0,
    "ecc_mode": "1 1", "ecc_corrected": "0 0", "ecc_uncorrected": "0 0", "remapped": "0 0 0 0", "recovery_action": 0,
    "mig": "0 0", "max_mig": 7, "gpm_supported": 1,
    **{f"reason_ns:{field}": 0 for field in (74, 76, 269, 270, 271)},
    **{f"gpm:{metric}": 0 for metric in (*range(1, 14), 20, 21, 60, 61)},
}  # fmt: skip

H100: Final[Mapping[str, Value]] = {
    **_HOPPER, "name": "NVIDIA H100 80GB HBM3", "memory_total": 81559 * MIB, "pci_device_id": 0x233010DE,
}  # fmt: skip
H200: Final[Mapping[str, Value]] = {
    **_HOPPER, "name": "NVIDIA H200", "memory_total": 143771 * MIB, "mem_clock": 3201, "max_mem_clock": 3201,
    "pci_device_id": 0x233510DE,
}  # fmt: skip
A100: Final[Mapping[str, Value]] = {
    **{key: value for key, value in _HOPPER.items() if not key.startswith("gpm")},
    "name": "NVIDIA A100-SXM4-80GB", "memory_total": 81920 * MIB, "arch": 7, "cc_major": 8, "pci_device_id": 0x20B210DE,
    "power_limit_mw": 400_000, "power_default_mw": 400_000, "power_min_mw": 100_000, "power_max_mw": 400_000,
    "max_sm_clock": 1410, "mem_clock": 1593, "max_mem_clock": 1593, "nvlink_links": 12, "nvlink_gen": 3,
    "pcie_gen": 4, "pcie_max_gen": 4, "gpm_supported": 0, "temperature_margin": None, "jpg": 0,
}  # fmt: skip
V100: Final[Mapping[str, Value]] = {
    **{key: value for key, value in A100.items() if key not in {"remapped", "mig", "max_mig", "recovery_action", "ofa", "jpg"}},
    "name": "Tesla V100-SXM2-32GB", "memory_total": 32510 * MIB, "arch": 5, "cc_major": 7, "pci_device_id": 0x1DB510DE,
    "power_limit_mw": 300_000, "power_default_mw": 300_000, "power_min_mw": 150_000, "power_max_mw": 300_000,
    "max_sm_clock": 1530, "mem_clock": 877, "max_mem_clock": 877, "nvlink_links": 6, "nvlink_gen": 2,
    "pcie_gen": 3, "pcie_max_gen": 3, "retired_pages": "0 0 0",
}  # fmt: skip


def gpu_uuid(index: int) -> str:
    """Return the UUID a Scenario gives the GPU at this index."""
    return f"GPU-{index:08x}-5ca1-4ab1-8e00-{index:012x}"


def mig_uuid(index: int, gi: int) -> str:
    """Return the UUID :meth:`Scenario.instances` gives a GPU's instance."""
    return f"MIG-{index:08x}-{gi:04x}-5222-8e00-{index:012x}"


class Scenario:
    """Lines of a scenario, beginning with a full card at t=0. Every method that adds returns the scenario itself.

    ``card`` is what all GPUs are: :data:`H100` (default), :data:`H200`, :data:`A100`, :data:`V100`, or ``{}`` for a
    card that answers nothing. ``start_s`` is the epoch second of t=0: needed where several processes, one after the
    other, shall live on one timeline. ``without`` names the symbols that ``driver`` lacks, for ``build``;
    fields it does not know yet fail in their entries.
    """

    def __init__(
        self,
        gpus: int = 1,
        *,
        card: Mapping[str, Value] = H100,
        driver: str = "580.95.05",
        start_s: float | None = None,
        global_lock: bool = False,
        enumerate_at_init: bool = False,
    ) -> None:
        self.gpus = gpus
        self.driver = driver
        self.start_s = start_s
        self.global_lock = global_lock
        self.enumerate_at_init = enumerate_at_init
        self.without: tuple[str, ...] = missing_symbols(driver)
        self._lines: list[str] = []
        for key, value in card.items():
            self.at(0, "*", key, value)
        for index in range(gpus if card else 0):
            self.at(0, index, "uuid", gpu_uuid(index)).at(0, index, "serial", f"16535230{index:05d}")
            self.at(
                0,
                index,
                "pci",
                f"00000000:{0x0C + 16 * index:02X}:00.0" if index < 15 else f"00000001:{index:02X}:00.0",
            )
        for field in missing_fields(driver):
            self.at(0, "*", f"field:{field}", "ret", 3)
        if has_wide_process_rows(driver):
            self.at(0, "*", "layout", 535)

    def at(self, t_s: float, gpu: int | str, key: str, *values: Value) -> Self:
        """Set a key of a GPU (or of ``"*"``, all) from ``t_s`` seconds on; None is NOT_SUPPORTED."""
        text = " ".join("none" if value is None else str(value) for value in values)
        self._lines.append(f"{t_s:.9f} {gpu} {key} {text}")
        return self

    def values(self, t_s: float = 0, gpu: int | str = "*", **keys: Value) -> Self:
        """Set several keys at once: ``values(5, utilization=97, power_mw=650_000)``."""
        for key, value in keys.items():
            self.at(t_s, gpu, key, value)
        return self

    def gpm(
        self, metrics: Mapping[int, float], *, at: float = 0, gpu: int | str = "*", gi: int | None = None
    ) -> Self:
        """Set GPM metrics by id (percent, or MiB/s), of the card or of one of its MIG instances."""
        where = "gpm" if gi is None else f"gpm@{gi}"
        for metric, value in metrics.items():
            self.at(at, gpu, f"{where}:{metric}", value)
        return self

    def fail(
        self, function: str, code: int, *, gpu: int | str = "*", at: float = 0, until: float | None = None
    ) -> Self:
        """Let a function (``"*"``: each) return this NVML code, until a time or for good."""
        return self._span(f"fail:{function}", code, gpu, at, until)

    def hang(
        self, function: str = "*", *, gpu: int | str = "*", at: float = 0, until: float | None = None
    ) -> Self:
        """Let calls not return while this lasts."""
        return self._span(f"hang:{function}", 1, gpu, at, until)

    def slow(
        self, function: str, ms: float, *, gpu: int | str = "*", at: float = 0, until: float | None = None
    ) -> Self:
        """Let each call take this many milliseconds more."""
        return self._span(f"slow:{function}", ms, gpu, at, until)

    def lost(self, gpu: int, *, at: float, until: float | None = None, code: int = 15) -> Self:
        """Let every call of a GPU give GPU_IS_LOST (or another code), lookups included."""
        return self.fail("*", code, gpu=gpu, at=at, until=until)

    def absent(self, gpu: int, *, at: float = 0, until: float | None = None) -> Self:
        """Let a GPU be gone from count and lookups."""
        self.at(at, gpu, "present", 0)
        return self if until is None else self.at(until, gpu, "present", 1)

    def field(
        self, field_id: int, *, ret: int | None = None, value: float | None = None, value_type: int | None = None,
        gpu: int | str = "*", at: float = 0,
    ) -> Self:  # fmt: skip
        """Override one field's entry: a return code, or a value (with its nvmlValueType_t); neither: the card's own."""
        if ret is not None:
            return self.at(at, gpu, f"field:{field_id}", "ret", ret)
        if value is None:
            return self.at(at, gpu, f"field:{field_id}", None)
        kind = () if value_type is None else (value_type,)
        return self.at(at, gpu, f"field:{field_id}", "value", value, *kind)

    def processes(self, *listed: str, gpu: int | str = "*", at: float = 0) -> Self:
        """Set the processes of a GPU: ``"compute:1234:1000000000"``, ``"mps:99:none:5"``; none given: no process."""
        return self.at(at, gpu, "processes", *(listed or (None,)))

    def process_util(self, *rows: str, gpu: int | str = "*", at: float = 0) -> Self:
        """Set the utilization rows of a GPU: ``"1234:90:40:0:0"``, ``"7:1:1:0:0@30"``, ``"!junk"``, ``"empty"``."""
        return self.at(at, gpu, "process_util", *(rows or (None,)))

    def instances(self, memory_mib: Mapping[int, int], *, gpu: int = 0, at: float = 0) -> Self:
        """Turn MIG on and make instances, by GPU instance id; their UUIDs are those of :func:`mig_uuid`."""
        self.at(at, gpu, "mig", 1, 1)
        for gi, mib in memory_mib.items():
            self.at(at, gpu, "instance", gi, mig_uuid(gpu, gi), mib)
        return self

    def xid(self, number: int, *, gpu: int = 0, at: float = 0) -> Self:
        """Let an XID happen; whoever registered before hears of it once."""
        return self.at(at, gpu, "xid", number)

    def text(self) -> str:
        """Return the scenario file's text."""
        head = [f"gpus {self.gpus}", f"driver {self.driver}"]
        if self.start_s is not None:
            head.append(f"start {self.start_s:.9f}")
        if self.global_lock:
            head.append("global_lock 1")
        if self.enumerate_at_init:
            head.append("enumerate init")
        return "\n".join([*head, *self._lines, ""])

    def write(self, path: Path) -> Path:
        """Write the file in one step, so that a running process reads the old one or the new one."""
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        part.write_text(self.text())
        return part.replace(path)

    def _span(self, key: str, value: float, gpu: int | str, at: float, until: float | None) -> Self:
        self.at(at, gpu, key, value)
        return self if until is None else self.at(until, gpu, key, 0)


def functions() -> tuple[str, ...]:
    """Name every function that reads, for sweeps over all of them."""
    return tuple(re.findall(r"X\((nvml\w+)\)", (Path(__file__).parent / "functions.h").read_text()))


def counts(path: Path) -> dict[tuple[str, int | None], int]:
    """Read the file named by GPUWISE_STANDIN_CALLS: calls by function and GPU (None: no GPU named)."""
    found: Iterable[tuple[str, str, str]] = re.findall(
        r"^(\w+) (\d+|-) (\d+)$", path.read_text(), re.MULTILINE
    )
    return {(function, None if gpu == "-" else int(gpu)): int(times) for function, gpu, times in found}
