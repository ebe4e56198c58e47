"""Who a process is: executable and user, by psutil. Command lines are never read: they may hold secrets."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import psutil

from core.readings import WorkloadKey

SAME_START_S: Final = 2.0
"""Start times are counted from boot; a corrected clock moves them a little, a reused PID by more."""


@dataclass(frozen=True, slots=True)
class _Known:
    started_s: float
    key: WorkloadKey


class Attribution:
    """Names processes and remembers them while they live."""

    def __init__(self, host: str | None, *, processes: Any = psutil) -> None:
        self._host = host
        self._psutil = processes
        self._known: dict[int, _Known] = {}

    def workload(self, pid: int) -> WorkloadKey:
        """The workload of a process; one that cannot be seen from here (another PID namespace) is named by its number."""
        try:
            process = self._psutil.Process(pid)
            started_s = process.create_time()
            known = self._known.get(pid)
            if known is not None and abs(known.started_s - started_s) < SAME_START_S:
                return known.key
            key = WorkloadKey(
                "process",
                f"{pid}:{round(started_s) * 1000}",
                process.name() or f"pid {pid}",
                user=self._user(process),
                host=self._host,
            )
        except self._psutil.Error:
            return WorkloadKey("process", f"{pid}:0", f"pid {pid}", host=self._host)
        self._known[pid] = _Known(started_s, key)
        return key

    def forget_all_but(self, pids: Iterable[int]) -> None:
        """Drop processes that hold no GPU any more."""
        kept = set(pids)
        self._known = {pid: known for pid, known in self._known.items() if pid in kept}

    def _user(self, process: Any) -> str | None:
        try:
            name = process.username()
        except (self._psutil.Error, KeyError):
            return None
        return str(name) if name else None
