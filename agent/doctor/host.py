"""The host around the GPUs: name spaces, cgroups, pod names, processor power, the clock."""

import ctypes
import os
import re
import socket
import sys
from pathlib import Path
from typing import Final

from agent.attribution import Attribution
from agent.attribution.cgroups import parse
from agent.doctor.checks import NOTE, OK, Check, looks

PART: Final = "host"
_TIMEX_BYTES: Final = 208
_TIMEX_STATUS: Final = 40
"""Offset of ``status`` in ``struct timex`` on 64-bit Linux (adjtimex(2))."""
_STA_UNSYNC: Final = 0x0040
_TIME_ERROR: Final = 5
_HOST_PID_NAMESPACE: Final = "pid:[4026531836]"
"""PROC_PID_INIT_INO: the name space that the kernel starts with."""


def checks(root: Path = Path("/")) -> list[Check]:
    """All looks at the host; ``root`` for tests."""
    return looks(
        PART,
        {
            "python": _python,
            "pid namespace": lambda: pid_namespace(root),
            "hidepid": lambda: hidepid(root),
            "cgroups": lambda: cgroups(root),
            "pod names": lambda: pod_names(root),
            "host power": lambda: host_power(root),
            "clock": clock,
            "engines": lambda: engines(root),
        },
    )


def _python() -> tuple[str, str]:
    return OK, f"Python {sys.version.split()[0]} on {os.uname().machine}, host {socket.gethostname()}"


def pid_namespace(root: Path) -> tuple[str, str]:
    """Whether the PIDs that the driver gives mean something here (nvml.md 2, "PID namespaces")."""
    try:
        inside = str((root / "proc/self/ns/pid").readlink())
    except OSError:
        return NOTE, "the PID namespace cannot be told: processes may stay without a name"
    if inside == _HOST_PID_NAMESPACE:
        return OK, "the host's own: every process on a GPU can be named"
    return NOTE, (
        "a container's: processes of other containers on the GPUs cannot be named; "
        "run the agent on the host, or with hostPID: true (docker: --pid=host)"
    )


def hidepid(root: Path) -> tuple[str, str]:
    """Whether this user may look at the processes of others."""
    for line in _text(root / "proc/self/mounts").splitlines():
        words = line.split()
        if len(words) < 4 or words[1] != "/proc" or words[2] != "proc":
            continue
        found = re.search(r"hidepid=(\w+)", words[3])
        if found and found[1] not in {"0", "off"} and os.geteuid() != 0:
            return NOTE, (
                f"/proc is mounted with hidepid={found[1]}: other users' processes have no name here; "
                "add this user to the group that its gid= option names, or run as root"
            )
    return OK, "processes of other users can be seen"


def cgroups(root: Path) -> tuple[str, str]:
    """Which cgroup version names containers, pods, jobs and units."""
    folder = root / "sys/fs/cgroup"
    if (folder / "cgroup.controllers").is_file():
        kind = "version 2"
    elif (folder / "unified").is_dir():
        kind = "version 1 and 2 (hybrid)"
    elif folder.is_dir() and any(folder.iterdir()):
        kind = "version 1"
    else:
        return NOTE, "no cgroups are mounted: containers, pods, jobs and units cannot be told apart"
    place = parse(_text(root / "proc/self/cgroup"))
    inside = "" if place.container_id is None else "; this is itself a container"
    return OK, f"{kind}: containers, pods, Slurm jobs and units can be told apart{inside}"


def pod_names(root: Path) -> tuple[str, str]:
    """Whether pods can be given their names; the folder's entries are ``namespace_pod_uid``."""
    folder = root / "var/log/pods"
    try:
        count = len(os.listdir(folder))  # noqa: PTH208 - a count of names, no paths
    except FileNotFoundError:
        if "KUBERNETES_SERVICE_HOST" not in os.environ and not (root / "var/lib/kubelet").exists():
            return OK, "no Kubernetes here"
        return NOTE, (
            "/var/log/pods is not there: pods are shown by their UID; mount it read-only (hostPath) into the agent's pod"
        )
    except OSError:
        return NOTE, "/var/log/pods may not be read: pods are shown by their UID; run as root or in its group"
    return OK, f"/var/log/pods names {count} pods"


def host_power(root: Path) -> tuple[str, str]:
    """Whether the power of processors and their memory can be read (RAPL)."""
    zones = sorted((root / "sys/class/powercap").glob("intel-rapl:*/energy_uj"))
    if not zones:
        return NOTE, (
            "no RAPL here (a virtual machine, or the module intel_rapl_common is not loaded): host power stays unknown"
        )
    if any(os.access(zone, os.R_OK) for zone in zones):
        return OK, f"RAPL counters of {len(zones)} zones can be read"
    return NOTE, (
        "RAPL counters may be read by root only (a guard against a side channel): host power stays unknown; "
        "grant it by a udev rule or a group on /sys/class/powercap/*/energy_uj if you want it"
    )


def clock() -> tuple[str, str]:
    """Whether the kernel's clock is kept in step by NTP (adjtimex(2), which only reads here)."""
    if ctypes.sizeof(ctypes.c_long) != 8:
        return NOTE, "cannot be told on this processor: check timedatectl"
    buffer = ctypes.create_string_buffer(_TIMEX_BYTES)
    state = ctypes.CDLL(None, use_errno=True).adjtimex(buffer)
    if state < 0:
        return NOTE, "cannot be told here (adjtimex is refused): check timedatectl on the host"
    status = int.from_bytes(buffer.raw[_TIMEX_STATUS : _TIMEX_STATUS + 4], sys.byteorder)
    if state == _TIME_ERROR or status & _STA_UNSYNC:
        return NOTE, (
            "not kept in step by NTP: samples carry this clock, and a server refuses ones of the future; "
            "start chrony or systemd-timesyncd"
        )
    return OK, "kept in step by NTP"


def engines(root: Path) -> tuple[str, str]:
    """LLM servers among the processes, told by their command lines (which are not kept)."""
    attribution = Attribution("", proc=root / "proc", pods=root / "var/log/pods")
    found: dict[int, str] = {}
    for entry in os.listdir(root / "proc"):  # noqa: PTH208 - names, no paths
        served = attribution.serving(int(entry)) if entry.isdecimal() else None
        if served is not None:
            pid, flags = served
            where = "metrics are off" if flags.metrics_path is None else f"port {flags.port or 'unknown'}"
            found[pid] = f"{flags.kind} ({where})"
    if not found:
        return OK, "no LLM server runs here now; one that starts is found by itself"
    named = ", ".join(sorted(set(found.values())))
    if "metrics are off" in named:
        return NOTE, f"{named}: start it with its metrics on, or it is seen from outside only"
    return OK, named


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
