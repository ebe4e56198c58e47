"""What one GPU tells, group by group, and why it does not tell the rest. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from agent.doctor.checks import BAD, NOTE, OK, Check

PART: Final = "gpu"
"""Followed by the NVML index."""
HOPPER: Final = 9
XID: Final = 0x8
NO_PERMISSION: Final = 4
GUEST: Final = 2
"""nvmlDeviceGetVirtualizationMode of a vGPU guest."""
_WHY: Final = {
    2: "the driver refuses the question",
    3: "this card does not support it",
    4: "this user has no permission: run the agent as root or with CAP_SYS_ADMIN",
    13: "the driver is older than this call",
    25: "the driver is older than this call",
    26: "the driver has dropped this call",
}
_LOST: Final = {
    4: "this user may not open it: check the permissions of its file in /dev and the device rules of the unit or container",
    15: "it has fallen off the bus: see dmesg for its Xid; it needs a reset or a reboot",
    16: "it needs a reset: drain it, then nvidia-smi --gpu-reset",
    28: "it is not there any more: see dmesg",
    999: "unknown error; in a container its device rules may be lost: create it anew",
}


def checks(gpu: Mapping[str, Any]) -> list[Check]:
    """The table of one GPU, from the probe's line about it."""
    part = f"{PART} {gpu['index']}"
    if "lost" in gpu:
        code = gpu["lost"]
        return [
            Check(
                "card",
                BAD,
                f"does not answer (NVML {code}): {_LOST.get(code, 'see dmesg, then reset it')}",
                part,
            )
        ]
    return [Check(name, state, finding, part) for name, (state, finding) in _rows(gpu).items()]


def numbers(indices: Iterable[int]) -> str:
    """``0–3, 6`` for 0, 1, 2, 3, 6."""
    runs: list[list[int]] = []
    for index in sorted(indices):
        if runs and index == runs[-1][1] + 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ", ".join(f"{first}–{last}" if last > first else str(first) for first, last in runs)


def _rows(gpu: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    values: set[str] = set(gpu["values"])
    counters: set[str] = set(gpu["gpm"]["names"] or ())
    absent: Mapping[str, int] = gpu["absent"]
    facts: Mapping[str, Any] = gpu["facts"]
    mig = gpu["instances"] > 0
    return {
        "card": _card(gpu["identity"], gpu.get("virtualization")),
        "utilization": _utilization(values, absent, mig=mig),
        "memory": _memory(values, absent),
        "power": _power(values, absent, gpu["identity"]),
        "energy counter": _energy(values, absent, facts),
        "clocks": _all(
            values,
            ("sm_clock_hz", "memory_clock_hz"),
            "SM and memory clock",
            absent,
            "nvmlDeviceGetClockInfo",
        ),
        "temperatures": _temperatures(values, absent),
        "slowdowns": _slowdowns(values, absent),
        "video blocks": _video(values, absent, mig=mig),
        "PCIe traffic": _pcie(values, counters, absent),
        "NVLink traffic": _nvlink(values, counters),
        "SM counters": _gpm(gpu),
        "processes": _processes(gpu["processes"], absent),
        "process shares": _shares(gpu["processes"], absent, mig=mig),
        "ECC": _fact(facts, "ecc_mode", "error counts are told", "no ECC on this card, or not told"),
        "row remapping": _remap(facts, mig=mig),
        "recovery": _recovery(facts),
        "events": _events(gpu.get("events"), absent),
        "MIG": _mig(facts, gpu["instances"]),
        "persistence": _persistence(facts),
    }


def _card(identity: Mapping[str, Any], virtualization: int | None) -> tuple[str, str]:
    total = identity.get("memory_total_bytes")
    memory = f", {total / 1e9:,.0f} GB" if total else ""
    capability = identity.get("compute_capability")
    words = f"{identity.get('model') or 'unknown model'}{memory}" + (
        f", compute capability {capability}" if capability else ""
    )
    if virtualization == GUEST:
        return NOTE, f"{words}, a vGPU guest: the hypervisor keeps power, energy and most counters to itself"
    return OK, words


def _why(absent: Mapping[str, int], *calls: str) -> str:
    code = next((code for call in calls for name, code in absent.items() if _names(name, call)), None)
    return "the driver does not tell it" if code is None else _WHY.get(code, f"NVML says {code}")


def _names(refused: str, call: str) -> bool:
    """Refused calls stand there by name, and with their arguments where another argument may be answered."""
    return refused == call or refused.startswith(f"{call}(")


def _all(
    values: set[str], names: Sequence[str], what: str, absent: Mapping[str, int], *calls: str
) -> tuple[str, str]:
    missing = [name for name in names if name not in values]
    if not missing:
        return OK, what
    if len(missing) < len(names):
        return NOTE, f"{what}, without {_list(missing)}"
    return NOTE, f"unknown: {_why(absent, *calls)}"


def _list(names: Iterable[str]) -> str:
    return ", ".join(name.rpartition("_")[0].replace("_", " ") for name in names)


def _utilization(values: set[str], absent: Mapping[str, int], *, mig: bool) -> tuple[str, str]:
    if "busy_ratio" in values:
        return OK, "share of time with a kernel, and with memory traffic"
    if mig:
        return NOTE, "unknown: the driver tells it for no card with MIG on; SM counters stand in for it"
    return (
        NOTE,
        f"unknown: {_why(absent, 'nvmlDeviceGetUtilizationRates')}; activity can be told from SM counters only",
    )


def _memory(values: set[str], absent: Mapping[str, int]) -> tuple[str, str]:
    if "memory_used_bytes" not in values:
        return NOTE, f"unknown: {_why(absent, 'nvmlDeviceGetMemoryInfo')}; unified memory is the host's"
    if "memory_reserved_bytes" not in values:
        return NOTE, "used, with the driver's own reserve in it: drivers before R510 do not tell them apart"
    return OK, "used by processes and reserved by the driver, apart"


def _power(values: set[str], absent: Mapping[str, int], identity: Mapping[str, Any]) -> tuple[str, str]:
    if "power_w" not in values:
        return NOTE, f"unknown: {_why(absent, 'nvmlDeviceGetPowerUsage')}"
    seconds = identity.get("power_averaging_s")
    if seconds is None:
        return OK, "told; over which time this card averages is not known"
    return OK, f"averaged by the card over {seconds:g} s" if seconds else "instantaneous on this card"


def _energy(values: set[str], absent: Mapping[str, int], facts: Mapping[str, Any]) -> tuple[str, str]:
    if "energy_j" not in values:
        why = _why(absent, "nvmlDeviceGetTotalEnergyConsumption")
        return NOTE, f"none ({why}): energy is integrated from power readings, and rows say so"
    if _is_off(facts.get("persistence_mode")):
        return NOTE, "there, but it starts anew when the last client leaves: enable persistence mode"
    return OK, "joules are the counter's difference, right at any sampling distance"


def _temperatures(values: set[str], absent: Mapping[str, int]) -> tuple[str, str]:
    if "temperature_c" not in values:
        return NOTE, f"unknown: {_why(absent, 'nvmlDeviceGetTemperatureV', 'nvmlDeviceGetTemperature')}"
    more = [
        word
        for name, word in (
            ("memory_temperature_c", "memory"),
            ("temperature_margin_c", "distance to the limit"),
        )
        if name in values
    ]
    return OK, "GPU" + "".join(f", {word}" for word in more)


def _slowdowns(values: set[str], absent: Mapping[str, int]) -> tuple[str, str]:
    if "event_reasons_flags" not in values:
        why = _why(
            absent, "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"
        )
        return NOTE, f"unknown: {why}"
    times = sum(name.startswith("slowed_") for name in values)
    if not times:
        return NOTE, "reasons of the moment only: this driver does not tell how long each lasted"
    return OK, f"reasons of the moment, and how long {times} of 8 lasted"


def _video(values: set[str], absent: Mapping[str, int], *, mig: bool) -> tuple[str, str]:
    names = {
        "encoder_busy_ratio": "encoder",
        "decoder_busy_ratio": "decoder",
        "jpeg_busy_ratio": "JPEG",
        "ofa_busy_ratio": "optical flow",
    }
    told = [word for name, word in names.items() if name in values]
    if told:
        return OK, ", ".join(told)
    if mig:
        return NOTE, "unknown: the driver tells them for no card with MIG on"
    return (
        NOTE,
        f"unknown: {_why(absent, 'nvmlDeviceGetEncoderUtilization', 'nvmlDeviceGetDecoderUtilization')}",
    )


def _pcie(values: set[str], counters: set[str], absent: Mapping[str, int]) -> tuple[str, str]:
    if "pcie_rx_bytes_per_s" in counters:
        return OK, "from the profiling counters, over the whole interval"
    if any(name.startswith("pcie_rx") for name in values):
        return OK, "one window of 20 ms every 5 s, for want of profiling counters of the whole card"
    return NOTE, f"unknown: {_why(absent, 'nvmlDeviceGetPcieThroughput')}"


def _nvlink(values: set[str], counters: set[str]) -> tuple[str, str]:
    if "nvlink_rx_bytes_per_s" in counters:
        return OK, "from the profiling counters"
    if any(name.startswith("nvlink_rx") for name in values):
        return OK, "from the links' byte counters"
    return OK, "none told: this card has no NVLink, or none that is in use"


def _gpm(gpu: Mapping[str, Any]) -> tuple[str, str]:
    gpm, absent = gpu["gpm"], gpu["absent"]
    if gpm["names"]:
        where = " for a MIG instance" if gpu["instances"] else ""
        return OK, f"{len(gpm['names'])} metrics answered a live probe (GPM){where}"
    if NO_PERMISSION in {gpm["code"], absent.get("nvmlGpmQueryDeviceSupport")}:
        return NOTE, (
            "no permission (GPM): set NVreg_RestrictProfilingToAdminUsers=0 or give the agent CAP_SYS_ADMIN; "
            "without them only utilization is known, not how much of the GPU worked"
        )
    if gpu.get("virtualization") == GUEST:
        return NOTE, "not for this vGPU: GPM needs a MIG-backed one that has all memory of its instance"
    major = str(gpu["identity"].get("compute_capability") or "").partition(".")[0]
    if major.isdecimal() and int(major) < HOPPER:
        return (
            NOTE,
            "none (GPM begins with Hopper): a dcgm-exporter on this host would give them, see docs/agent.md",
        )
    if gpm["offered"]:
        code = f"NVML says {gpm['code']}" if gpm["code"] else "a pair of samples had no values"
        return NOTE, f"the driver offers them (GPM) but a live probe failed ({code}): they stay unknown"
    return NOTE, f"none (GPM): {_why(absent, 'nvmlGpmQueryDeviceSupport')}"


def _processes(processes: Mapping[str, Any] | None, absent: Mapping[str, int]) -> tuple[str, str]:
    if processes is None:
        why = _why(absent, "nvmlDeviceGetComputeRunningProcesses_v3")
        return NOTE, f"unknown: {why}; whether a GPU is held is then told from its memory only"
    return OK, "compute, graphics and MPS, merged by PID"


def _shares(processes: Mapping[str, Any] | None, absent: Mapping[str, int], *, mig: bool) -> tuple[str, str]:
    if mig:
        return NOTE, "not attributable with MIG on: the driver has no utilization per process there"
    calls = ("nvmlDeviceGetProcessUtilization", "nvmlDeviceGetProcessesUtilizationInfo")
    if processes is not None and processes["busy"]:
        return OK, "each process has its share of the time"
    if processes is not None and processes["busy"] is None and not all(call in absent for call in calls):
        return OK, "each process has its share of the time"
    return NOTE, f"unknown: {_why(absent, *calls)}; a shared GPU is then split by memory"


def _fact(facts: Mapping[str, Any], name: str, told: str, untold: str) -> tuple[str, str]:
    value = facts.get(name)
    if value is None:
        return OK, untold
    return (
        (NOTE, f"{name.replace('_', ' ')} is off: memory errors go unseen") if _is_off(value) else (OK, told)
    )


def _remap(facts: Mapping[str, Any], *, mig: bool) -> tuple[str, str]:
    if facts.get("row_remap_failed"):
        return BAD, "a row could not be remapped: the memory has no spare left, have the card replaced"
    if facts.get("row_remap_pending"):
        return BAD, "a row waits to be remapped: drain the GPU and reset it (nvidia-smi --gpu-reset)"
    if "row_remap_pending" in facts or "row_remap_failed" in facts:
        return OK, "told, none pending"
    if facts.get("retired_pages_pending"):
        return BAD, "pages wait to be retired: drain the GPU and reset it (nvidia-smi --gpu-reset)"
    if mig:
        return OK, "not told with MIG on"
    return OK, "not on this card" + ("; retired pages are told" if "retired_page_count" in facts else "")


def _recovery(facts: Mapping[str, Any]) -> tuple[str, str]:
    action = facts.get("recovery_action")
    if action is None:
        return OK, "this driver does not tell which action it wants"
    if action == "none":
        return OK, "the driver wants no action"
    return BAD, f"the driver wants this done: {str(action).replace('_', ' ')}"


def _events(mask: object, absent: Mapping[str, int]) -> tuple[str, str]:
    if isinstance(mask, int) and mask & XID:
        return OK, "Xid errors are heard at once"
    if mask is None:
        return (
            NOTE,
            f"Xid errors are not heard ({_why(absent, 'nvmlDeviceGetSupportedEventTypes')}): see dmesg",
        )
    return NOTE, "Xid errors are not among the events of this card: see dmesg"


def _mig(facts: Mapping[str, Any], instances: int) -> tuple[str, str]:
    if instances:
        many = "1 instance" if instances == 1 else f"{instances} instances"
        return OK, f"on, {many}: memory and processes are told for each, power for the card only"
    mode = facts.get("mig_mode")
    if mode is None:
        return OK, "not on this card"
    if _is_off(mode):
        return OK, "off"
    return NOTE, "on, and no instance is made (or none may be seen): make one, or switch it off"


def _persistence(facts: Mapping[str, Any]) -> tuple[str, str]:
    mode = facts.get("persistence_mode")
    if mode is None:
        return OK, "not told"
    if _is_off(mode):
        return (
            NOTE,
            "off: run nvidia-persistenced, or counters start anew and every first client waits for seconds",
        )
    return OK, "on"


def _is_off(value: object) -> bool:
    return value in {0, "0", "off", "disabled"}
