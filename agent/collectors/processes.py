"""Which processes hold a GPU, each with its memory and share of time: three lists merged by PID.

Under MIG the driver attributes no time to processes: that stays unknown, never the card's own figure.
"""

from __future__ import annotations

import time

from agent.collectors.rows import Table, UseTable
from agent.driver.library import NOT_FOUND, STABLE, STATE, GpuLost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from agent.collectors.rows import Use
    from agent.driver.device import Device

    Merged: TypeAlias = "tuple[int | None, int, int | None]"
    Listed: TypeAlias = "tuple[int, int | None, bool, bool, bool, int | None, float | None]"

KINDS = ("Compute", "Graphics", "MPSCompute")
COMPUTES, GRAPHICS, MPS = 1 | 4, 2, 4
"""Bits of the lists; an MPS client computes."""
FIRST_LOOK_US = 5_000_000
"""How far back the first question goes: 0 would average the driver's whole buffer and show the long idle."""
FARTHEST_LOOK_US = 15_000_000
HIGHEST_PERCENT = 100
PID_MAX_FILE = "/proc/sys/kernel/pid_max"
FALLBACK_PID_MAX = 4_194_304


class Processes:
    """The slow side of one GPU or MIG instance; belongs to one thread.

    Args:
        device: whose.
        wall_us: wall clock in microseconds, which is what the driver stamps samples with.
    """

    __slots__ = ("_calls", "_device", "_lists", "_since_us", "_uses", "_wall_us")

    def __init__(self, device: Device, wall_us: Callable[[], int] = lambda: time.time_ns() // 1000) -> None:
        self._device = device
        self._wall_us = wall_us
        library = device.library
        lists = library.shared.get("process lists")
        if lists is None:
            highest = pid_max()
            names = (f"nvmlDeviceGet{kind}RunningProcesses" for kind in KINDS)
            lists = [Table(library, (f"{name}_v3", f"{name}_v2"), highest) for name in names]
            library.shared["process lists"] = lists
            library.shared["process uses"] = UseTable(library)
        self._lists: list[Table] = lists
        self._uses: UseTable = library.shared["process uses"]
        self._since_us: int | None = None

    def read(self) -> list[Listed] | None:
        """PID, bytes, computes, graphics, MPS client, GPU instance, share of time; one entry per PID.

        None when the driver does not tell. Bytes are None where it does not attribute memory; a process on several
        instances has their sum and no instance. The share is None under MIG, where the call is missing, and where
        PIDs of the two tables are not of one namespace; a process listed there without a sample did nothing: 0.

        Raises:
            GpuLost: the card stopped answering.
        """
        device = self._device
        found: dict[tuple[int, int | None], list[int | None]] = {}
        for bit, (kind, table) in enumerate(zip(KINDS, self._lists, strict=True)):
            name = f"nvmlDeviceGet{kind}RunningProcesses"
            refused = device.absent.get(name)
            code, rows = table.ask(device.handle) if refused is None else (refused, None)
            if code in STABLE and kind != "Compute":
                device.absent[name] = code
                continue
            if rows is None:  # a list in part would say of some processes that they are not there
                return None
            for pid, memory, instance in rows:
                held = found.setdefault((pid, instance), [memory, 0])
                held[1] = (held[1] or 0) | 1 << bit
                if memory is not None:  # the lists repeat the same memory
                    held[0] = memory if held[0] is None else max(held[0], memory)
        merged = _by_pid(found)
        shares = self._shares(merged)
        return [
            (
                pid,
                memory,
                kinds & COMPUTES != 0,
                kinds & GRAPHICS != 0,
                kinds & MPS != 0,
                instance,
                None if shares is None else shares.get(pid, 0.0),
            )
            for pid, (memory, kinds, instance) in merged.items()
        ]

    def _shares(self, listed: dict[int, Merged]) -> dict[int, float] | None:
        """Newest share by PID; None where it cannot be told."""
        device = self._device
        if device.is_mig or device.mig_enabled or not listed:
            return None
        now_us = self._wall_us()
        since_us = max(self._since_us or 0, now_us - FARTHEST_LOOK_US)
        if self._since_us is None or self._since_us > now_us:  # the clock was set back
            since_us = now_us - FIRST_LOOK_US
        rows = self._asked(since_us)
        if rows is None:
            return None
        newest: dict[int, tuple[int, int]] = {}
        strangers = False
        last_us = since_us
        for pid, stamp_us, percent in rows:
            # Rows are announced that were never filled, or keep an old stamp (nvtop 110, DCGM 83).
            if not since_us < stamp_us <= now_us + FIRST_LOOK_US or percent > HIGHEST_PERCENT:
                continue
            last_us = max(last_us, stamp_us)
            if pid not in listed:
                strangers = strangers or percent > 0
            elif pid not in newest or newest[pid][0] <= stamp_us:
                newest[pid] = stamp_us, percent
        if rows:
            self._since_us = last_us
        if strangers and not newest:
            return None  # lists are told in the caller's PID namespace, samples in the host's
        return {pid: percent * 0.01 for pid, (_stamp, percent) in newest.items()}

    def _asked(self, since_us: int) -> list[Use] | None:
        """Rows of the first table this driver has; none is a time without work, None is not known."""
        device = self._device
        for name, ask in (
            ("nvmlDeviceGetProcessesUtilizationInfo", self._uses.info),
            ("nvmlDeviceGetProcessUtilization", self._uses.samples),
        ):
            if name in device.absent:
                continue
            code, rows = ask(device.handle, since_us)
            if code in (0, NOT_FOUND):
                return rows
            if code in STATE:
                raise GpuLost(code)
            if code not in STABLE:
                return None
            device.absent[name] = code
        return None


def _by_pid(found: dict[tuple[int, int | None], list[int | None]]) -> dict[int, Merged]:
    merged: dict[int, Merged] = {}
    for (pid, instance), (memory, kinds) in found.items():
        before = merged.get(pid)
        if before is not None:
            memory = None if memory is None or before[0] is None else memory + before[0]  # noqa: PLW2901
            instance = None  # noqa: PLW2901
        merged[pid] = memory, (kinds or 0) | (before[1] if before else 0), instance
    return merged


def pid_max() -> int:
    """The highest process number of this kernel."""
    try:
        with open(PID_MAX_FILE, "rb") as file:  # noqa: PTH123 - pathlib is not loaded here
            return int(file.read())
    except (OSError, ValueError):
        return FALLBACK_PID_MAX
