"""CPU of a process and of its busiest thread, between two calls; cheap even where a process has hundreds of threads.

The total is one file. Of many threads only the busiest few are read again: they settle the answer unless what the
others used together could be more. Then it is unknown, and all threads are read, in this call and the next, to find
the busiest anew.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from agent.attribution.proc import Proc, Stat

TRACKED: Final = 6
"""Threads of many that are read each time."""
FEW: Final = 16
"""So many threads are read each time without choosing."""
RESCAN_S: Final = 60.0
"""How often all threads of a process with many may be read again."""
WITHIN_RATIO: Final = 0.05
"""A busiest thread is told when no unread one can have used more by this share of a core."""
FULL_RATIO: Final = 0.97
"""A thread cannot use more than one core, so none hides above one that is this busy."""
SLACK_TICKS: Final = 3
"""Total and threads are read one after another; a tick is 10 ms."""


class CpuUse(NamedTuple):
    """Cores that a process used (may exceed 1), and the share of one core that its busiest thread used, if known."""

    cores: float
    busiest_thread_ratio: float | None


@dataclass(slots=True)
class _Before:
    """What the last call saw; ``threads`` are those to read next time, with their ticks."""

    start_ticks: int
    at_s: float
    total_ticks: int
    threads: dict[int, int] = field(default_factory=dict)
    scanned_s: float | None = None


class CpuMeter:
    """CPU of processes since the last call for each."""

    def __init__(self, proc: Proc) -> None:
        self._proc = proc
        self._before: dict[int, _Before] = {}

    def use(self, pid: int, stat: Stat, now_s: float) -> CpuUse | None:
        """CPU of a process since the last call; None the first time, and when no time has passed.

        Args:
            pid: the process.
            stat: just read.
            now_s: seconds of a clock that never steps.
        """
        before = self._before.get(pid)
        if before is None or before.start_ticks != stat.start_ticks:
            before = self._before[pid] = _Before(stat.start_ticks, now_s, stat.cpu_ticks)
            self._scan(pid, before, now_s)
            return None
        elapsed_ticks = (now_s - before.at_s) * self._proc.ticks_per_s
        if elapsed_ticks <= 0:
            return None
        total = max(0, stat.cpu_ticks - before.total_ticks)
        before.at_s, before.total_ticks = now_s, stat.cpu_ticks
        used = self._advance(pid, before)
        most = max(used.values(), default=0)
        unread = total - sum(used.values())
        slack = max(SLACK_TICKS, WITHIN_RATIO * elapsed_ticks)
        known = unread <= most + slack or most >= FULL_RATIO * elapsed_ticks
        if len(used) > FEW:
            busiest = sorted(used, key=used.__getitem__, reverse=True)[:TRACKED]
            before.threads = {thread: before.threads[thread] for thread in busiest}
        if not known and (stat.threads <= FEW or self._may_scan(before, now_s)):
            self._scan(pid, before, now_s)
        return CpuUse(total / elapsed_ticks, min(1.0, most / elapsed_ticks) if known else None)

    def forget_all_but(self, pids: set[int]) -> None:
        """Drop processes that hold no GPU any more."""
        self._before = {pid: before for pid, before in self._before.items() if pid in pids}

    def _may_scan(self, before: _Before, now_s: float) -> bool:
        return before.scanned_s is None or now_s - before.scanned_s >= RESCAN_S

    def _scan(self, pid: int, before: _Before, now_s: float) -> None:
        """Note the ticks of all threads; the next call reads them all again and keeps the busiest."""
        before.scanned_s = now_s
        ticks = ((thread, self._proc.thread_ticks(pid, thread)) for thread in self._proc.threads(pid))
        before.threads = {thread: used for thread, used in ticks if used is not None}

    def _advance(self, pid: int, before: _Before) -> dict[int, int]:
        """Ticks that each noted thread used since it was read last; an ended one is dropped."""
        used: dict[int, int] = {}
        for thread, had in list(before.threads.items()):
            ticks = self._proc.thread_ticks(pid, thread)
            if ticks is None:
                del before.threads[thread]
                continue
            used[thread] = max(0, ticks - had)
            before.threads[thread] = ticks
        return used
