"""The host beside its GPUs, and what the agent itself costs there.

Plain ``/proc`` and ``/sys``, not psutil: that costs 4 MiB of the agent's 45, and reads ``/proc/stat`` twice for what is
needed here. Everything is a mean since the last call, so that nothing between two calls is missed.
"""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from core.host_metrics import (
    AGENT_CPU_RATIO,
    AGENT_MEMORY_BYTES,
    CPU_BUSIEST_RATIO,
    CPU_BUSY_RATIO,
    HOST_MEMORY_TOTAL_BYTES,
    HOST_MEMORY_USED_BYTES,
    HOST_POWER_W,
    IOWAIT_RATIO,
)
from core.readings import HostIdentity
from core.samples import HostSample

ALL: Final = b"cpu"
"""The line of all processors together."""
_RAPL: Final = "class/powercap"
_MOST_DOMAIN_W: Final = 1_000.0
"""No processor package draws more: a counter that may have gone round more often than once says nothing."""
_KIB: Final = 1024

Times = tuple[int, int, int]
"""Ticks of one processor: used, idle, idle while a disk was waited for."""


class HostCollector:
    """Readings of this host.

    Args:
        host: its name in the store. version: of the agent.
        proc, sys: mounted procfs and sysfs.
        monotonic: seconds of a clock that never steps.
    """

    def __init__(
        self,
        host: str,
        *,
        version: str | None = None,
        proc: Path = Path("/proc"),
        sys: Path = Path("/sys"),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._host, self._version = host, version
        self._proc = proc
        self._rapl = Rapl(sys / _RAPL, monotonic=monotonic)
        self._times: dict[bytes, Times] = {}

    def identity(self) -> HostIdentity:
        """What the host is."""
        times = cpu_times(_read(self._proc / "stat"))
        total = memory(_read(self._proc / "meminfo")).get(HOST_MEMORY_TOTAL_BYTES.name)
        cpu_count = len(times.keys() - {ALL}) or None
        return HostIdentity(self._host, cpu_count, None if total is None else int(total), self._version)

    def sample(self, ts_ms: int, span_ms: int, own: Mapping[str, float]) -> HostSample | None:
        """The host since the last call; None when nothing is known.

        Args:
            ts_ms, span_ms: the interval that the sample stands for.
            own: what the agent says of itself, by metric name.
        """
        before, self._times = self._times, cpu_times(_read(self._proc / "stat"))
        values = cpu_shares(before, self._times)
        values |= memory(_read(self._proc / "meminfo"))
        power_w = self._rapl.power_w()
        if power_w is not None:
            values[HOST_POWER_W.name] = power_w
        values |= own
        return HostSample(self._host, ts_ms, span_ms, values) if values else None


class Rapl:
    """Energy counters of processor packages and their memory.

    Left out: ``psys`` (holds the packages again), ``core`` and ``uncore`` (parts of a package), ``intel-rapl-mmio``
    (the same packages by another way). AMD's processors are under Intel's name as well.
    """

    def __init__(self, folder: Path, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._domains = tuple(sorted(_domains(folder)))
        self._ranges = {domain: _number(domain / "max_energy_range_uj") for domain in self._domains}
        self._before: dict[Path, int] | None = None
        self._before_s = 0.0

    def power_w(self) -> float | None:
        """Mean power since the last call; None the first time, and where any of the counters cannot be read."""
        if not self._domains:
            return None
        now_s, now = self._monotonic(), {}
        for domain in self._domains:
            energy = _number(domain / "energy_uj")
            if energy is None:
                self._before = None
                return None
            now[domain] = energy
        before, elapsed_s = self._before, now_s - self._before_s
        self._before, self._before_s = now, now_s
        if before is None or elapsed_s <= 0:
            return None
        total_uj = 0
        for domain, energy in now.items():
            used, most = energy - before[domain], self._ranges[domain]
            if most is not None and elapsed_s * _MOST_DOMAIN_W * 1e6 >= most:
                return None
            if used < 0:
                if most is None:
                    return None
                used += most + 1
            total_uj += used
        return total_uj / 1e6 / elapsed_s


class OwnCost:
    """CPU and memory of the agent: this process and the ones it started.

    Processes are read by their CPU clock (one system call, nanoseconds): ticks of ``/proc/PID/stat`` are as coarse as a
    tenth of a percent over ten seconds, and the agent's whole budget is half a percent.
    """

    def __init__(
        self, *, proc: Path = Path("/proc"), monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._proc = proc
        self._monotonic = monotonic
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")
        self._before: dict[int, float] | None = None
        self._before_s = 0.0

    def values(self, children: Iterable[int] = ()) -> dict[str, float]:
        """By metric name; CPU is absent the first time, and both are where a process cannot be read.

        Args:
            children: PIDs of the processes that the agent runs now. What one used between the last call and its end is
                not counted.
        """
        now_s = self._monotonic()
        now = {os.getpid(): time.process_time()}
        resident = _resident(self._proc / "self", self._page_bytes)
        for pid in children:
            used_s = _cpu_s(pid)
            if used_s is None:
                continue  # it has ended
            now[pid] = used_s
            pages = _resident(self._proc / str(pid), self._page_bytes)
            resident = None if resident is None or pages is None else resident + pages
        before, elapsed_s = self._before, now_s - self._before_s
        self._before, self._before_s = now, now_s
        values = {}
        if resident is not None:
            values[AGENT_MEMORY_BYTES.name] = float(resident)
        if before is not None and elapsed_s > 0:
            used = 0.0
            for pid, cpu_s in now.items():
                was_s = before.get(pid, 0.0)
                used += cpu_s - was_s if cpu_s >= was_s else cpu_s  # a PID that is used again
            values[AGENT_CPU_RATIO.name] = used / elapsed_s
        return values


def cpu_times(stat: bytes | None) -> dict[bytes, Times]:
    """Ticks by processor from the text of ``/proc/stat``, the sum of all under ``cpu``.

    Time that guests used is in user time already (``proc(5)``), so it is not added again. Stolen time was never this
    host's and is left out: a processor that is stolen half the time and works the other half is fully used.
    """
    times: dict[bytes, Times] = {}
    for line in (stat or b"").partition(b"\nintr ")[0].split(b"\n"):
        if not line.startswith(b"cpu"):
            break
        words = line.split(None, 8)
        if len(words) > 7:
            name, user, nice, system, idle, iowait, irq, softirq = words[:8]
            used = int(user) + int(nice) + int(system) + int(irq) + int(softirq)
            times[name] = (used, int(idle), int(iowait))
    return times


def cpu_shares(before: Mapping[bytes, Times], now: Mapping[bytes, Times]) -> dict[str, float]:
    """Shares of CPU time between two readings, by metric name; nothing without an earlier one.

    Counters may step back a little (idle time of a sleeping processor is an estimate); that is no time.
    """
    values: dict[str, float] = {}
    busiest = -1.0
    for name, here in now.items():
        was = before.get(name)
        if was is None:
            continue
        used, idle, iowait = here[0] - was[0], here[1] - was[1], here[2] - was[2]
        if used < 0 or idle < 0 or iowait < 0:
            used, idle, iowait = max(0, used), max(0, idle), max(0, iowait)
        had = used + idle + iowait
        if not had:
            continue
        share = used / had
        if name == ALL:
            values[CPU_BUSY_RATIO.name] = share
            values[IOWAIT_RATIO.name] = iowait / had
        elif share > busiest:
            busiest = share
    if busiest >= 0:
        values[CPU_BUSIEST_RATIO.name] = busiest
    return values


def memory(meminfo: bytes | None) -> dict[str, float]:
    """Memory in use and in all, by metric name, from the text of ``/proc/meminfo``."""
    found = {}
    for line in (meminfo or b"").split(b"\n", 8)[:8]:
        words = line.split()
        if len(words) >= 2 and words[0] in {b"MemTotal:", b"MemAvailable:"}:
            found[words[0]] = int(words[1]) * _KIB
    total, available = found.get(b"MemTotal:"), found.get(b"MemAvailable:")
    values = {}
    if total is not None:
        values[HOST_MEMORY_TOTAL_BYTES.name] = float(total)
        if available is not None:
            values[HOST_MEMORY_USED_BYTES.name] = float(max(0, total - available))
    return values


def _domains(folder: Path) -> list[Path]:
    """Packages and the memory below them."""
    found = []
    try:
        entries = [entry for entry in folder.iterdir() if entry.name.startswith("intel-rapl:")]
    except OSError:
        return []
    for entry in entries:
        name = (_read(entry / "name") or b"").strip()
        is_part = entry.name.count(":") > 1
        if name == b"dram" if is_part else name.startswith(b"package"):
            found.append(entry)
    return found


def _number(path: Path) -> int | None:
    text = (_read(path) or b"").strip()
    return int(text) if text.isdigit() else None


def _cpu_s(pid: int) -> float | None:
    """CPU time of another process, all threads; its clock has the number ``clock_getcpuclockid(3)`` gives."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return None


def _resident(folder: Path, page_bytes: int) -> int | None:
    words = (_read(folder / "statm") or b"").split()
    return int(words[1]) * page_bytes if len(words) > 1 and words[1].isdigit() else None


def _read(path: Path) -> bytes | None:
    """A whole file; None when it is not there or may not be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        blocks = []
        while block := os.read(descriptor, 1 << 16):
            blocks.append(block)
        return b"".join(blocks)
    except OSError:
        return None
    finally:
        os.close(descriptor)
