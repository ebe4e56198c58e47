"""Who a process is: the workload it belongs to, the LLM server it serves for, and the CPU it uses.

Everything is read from ``/proc`` and remembered under (PID, start time), because PIDs are used again. Command lines go
through the flag parser and nowhere else.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from agent.attribution import cgroups, flags
from agent.attribution.cpu import CpuMeter, CpuUse
from agent.attribution.flags import ServingFlags
from agent.attribution.pods import RESCAN_S, PodNames
from agent.attribution.proc import Proc, Stat, sees_host_pids
from agent.attribution.users import Users
from agent.attribution.workloads import Facts, Image, account_uid, workload_of
from core.readings import WorkloadKey

__all__ = ["Attribution", "CpuUse", "ServingFlags", "sees_host_pids"]

MOST_PARENTS: Final = 8
"""How far up a GPU worker's server is looked for."""
_IMAGE_KEYS: Final = ("APPTAINER_CONTAINER", "SINGULARITY_CONTAINER")


@dataclass(slots=True)
class _Known:
    """A process that was looked at; ``ask_again_s`` while its pod has no name."""

    start_ticks: int
    key: WorkloadKey
    ask_again_s: float | None = None


@dataclass(slots=True)
class _Served:
    start_ticks: int
    serving: tuple[int, ServingFlags] | None


class Attribution:
    """Names processes and remembers them while they hold a GPU.

    Args:
        host: name of this host in the store.
        proc: a mounted procfs.
        pods: the kubelet's log folder.
        monotonic: seconds of a clock that never steps.
        users: names of users.
    """

    def __init__(
        self,
        host: str | None,
        *,
        proc: Path = Path("/proc"),
        pods: Path = Path("/var/log/pods"),
        monotonic: Callable[[], float] = time.monotonic,
        users: Users | None = None,
    ) -> None:
        self._host = host
        self._proc = Proc(proc)
        self._pods = PodNames(pods, monotonic=monotonic)
        self._monotonic = monotonic
        self._users = users or Users()
        self._meter = CpuMeter(self._proc)
        self._host_pids = self._proc.sees_host_pids()
        self._known: dict[int, _Known] = {}
        self._believed: dict[tuple[int, int], bool] = {}
        self._served: dict[int, _Served] = {}
        self._workloads: dict[tuple[str, str], WorkloadKey] = {}

    def workload(self, pid: int) -> WorkloadKey:
        """The workload of a process; processes of one workload give the same one.

        A process that is gone, hidden, or that the driver may not mean (another PID namespace) is named by its number.
        """
        stat = self._proc.stat(pid)
        if not self._host_pids and (stat is None or not self._is_believed(pid, stat)):
            return self._numbered(pid, " (another PID namespace)")
        if stat is None:
            return self._numbered(pid)
        known = self._known.get(pid)
        if (
            known is not None
            and known.start_ticks == stat.start_ticks
            and (known.ask_again_s is None or self._monotonic() < known.ask_again_s)
        ):
            return known.key
        key, unnamed = self._look(pid, stat)
        now = self._proc.stat(pid)
        if now is None or now.start_ticks != stat.start_ticks:
            return self._numbered(pid)
        settled = self._workloads.get((key.kind, key.key))
        if settled is None or (not unnamed and _pod_of(key) != _pod_of(settled)):
            settled = self._workloads[key.kind, key.key] = key
        again = self._monotonic() + RESCAN_S if unnamed else None
        self._known[pid] = _Known(stat.start_ticks, settled, again)
        return settled

    def serving(self, pid: int) -> tuple[int, ServingFlags] | None:
        """The LLM server that a process belongs to: its PID and flags; None when there is none.

        A GPU worker is often a child that renamed itself, so its parents are asked, at most ``MOST_PARENTS`` of them.
        """
        stat = self._proc.stat(pid)
        if stat is None or not (self._host_pids or self._is_believed(pid, stat)):
            return None
        served = self._served.get(pid)
        if served is None or served.start_ticks != stat.start_ticks:
            served = self._served[pid] = _Served(stat.start_ticks, self._find_server(pid, stat))
        return served.serving

    def cpu(self, pid: int) -> CpuUse | None:
        """CPU of a process since the last call for it; None the first time and when it is gone or not ours to see."""
        stat = self._proc.stat(pid)
        if stat is None or not (self._host_pids or self._is_believed(pid, stat)):
            return None
        return self._meter.use(pid, stat, self._monotonic())

    def forget_all_but(self, pids: Iterable[int]) -> None:
        """Drop processes that hold no GPU any more."""
        kept = set(pids)
        self._known = {pid: known for pid, known in self._known.items() if pid in kept}
        self._served = {pid: served for pid, served in self._served.items() if pid in kept}
        self._believed = {who: believed for who, believed in self._believed.items() if who[0] in kept}
        self._meter.forget_all_but(kept)
        self._workloads = {(known.key.kind, known.key.key): known.key for known in self._known.values()}

    def _numbered(self, pid: int, why: str = "") -> WorkloadKey:
        """A process of which only the number is known."""
        return WorkloadKey("process", f"{pid}:0", f"pid {pid}{why}", host=self._host)

    def _is_believed(self, pid: int, stat: Stat) -> bool:
        """In a PID namespace of our own a number of the driver's may be another process here: one without a GPU."""
        who = (pid, stat.start_ticks)
        if who not in self._believed:
            self._believed[who] = self._proc.opens_gpu(pid)
        return self._believed[who]

    def _look(self, pid: int, stat: Stat) -> tuple[WorkloadKey, bool]:
        """Its workload read anew, and whether it is a pod that has no name yet."""
        status = self._proc.status(pid)
        place = cgroups.parse(self._proc.cgroup(pid) or "")
        environ = self._proc.environ(pid)
        pod = self._pods.find(place.pod_uid) if place.pod_uid else None
        path = next((environ[key] for key in _IMAGE_KEYS if environ.get(key)), None)
        facts = Facts(
            pid,
            self._proc.start_ms(stat),
            self._proc.executable(pid) or stat.comm or f"pid {pid}",
            uid=status.uid if status else None,
            place=place,
            environ=environ,
            image=self._image(path, pid, stat) if path else None,
            namespace=pod.namespace if pod else None,
            pod=pod.pod if pod else None,
        )
        key = workload_of(facts, user=self._user(facts), host=self._host)
        return key, bool(place.pod_uid) and pod is None

    def _user(self, facts: Facts) -> str | None:
        """Name of the user; Slurm's own word where this host has no name for the number."""
        uid, is_of_host = account_uid(facts)
        if uid is None:
            return None
        if not is_of_host:
            return str(uid)
        told = (facts.environ or {}).get("SLURM_JOB_USER") if facts.place.slurm_job else None
        return self._users.known_name(uid) or told or str(uid)

    def _image(self, path: str, pid: int, stat: Stat) -> Image:
        """The Apptainer run: its first process is the highest parent that carries the image's name."""
        first, first_stat = pid, stat
        for parent, parent_stat in self._parents(stat):
            environ = self._proc.environ(parent, _IMAGE_KEYS)
            if not any(environ.get(key) == path for key in _IMAGE_KEYS):
                break
            first, first_stat = parent, parent_stat
        return Image(path, first, self._proc.start_ms(first_stat))

    def _find_server(self, pid: int, stat: Stat) -> tuple[int, ServingFlags] | None:
        """The nearest process with a serving command line, or above it the one that it was forked or launched from."""
        found: tuple[int, ServingFlags] | None = None
        for candidate in (pid, *(parent for parent, _stat in self._parents(stat))):
            words = self._proc.words(candidate)
            wanted = flags.environ_keys(words)
            told = flags.parse(words, self._proc.environ(candidate, wanted) if wanted else None)
            if told is None:
                if found is not None:
                    break
            elif found is None:
                found = candidate, told
            elif told.kind == found[1].kind:
                found = candidate, _over(told, found[1])
            else:
                break
        return found

    def _parents(self, stat: Stat) -> Iterable[tuple[int, Stat]]:
        """Its parents from the nearest on."""
        for _step in range(MOST_PARENTS):
            if stat.ppid <= 0:
                return
            parent = self._proc.stat(stat.ppid)
            if parent is None:
                return
            yield stat.ppid, parent
            stat = parent


def _over(outer: ServingFlags, inner: ServingFlags) -> ServingFlags:
    """A launcher's flags, with what only the server that it started was told."""
    return replace(outer, model=outer.model or inner.model, settings={**inner.settings, **outer.settings})


def _pod_of(key: WorkloadKey) -> str | None:
    return next((value for name, value in key.attributes if name == "pod"), None)
