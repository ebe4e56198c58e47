"""A folder that looks like ``/proc``: processes are made, changed and ended by tests."""

from collections.abc import Mapping, Sequence
from pathlib import Path

HOST_NAMESPACE = "pid:[4026531836]"
OTHER_NAMESPACE = "pid:[4026532817]"
BOOT_S = 1_791_000_000


class FakeProc:
    """Files of a procfs below ``root``; start times count in ticks of 10 ms from ``BOOT_S``."""

    def __init__(self, root: Path, *, namespace: str = HOST_NAMESPACE) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        (root / "stat").write_text(f"cpu  1 2 3 4\nintr 5\nbtime {BOOT_S}\nprocesses 9\n")
        (root / "self" / "ns").mkdir(parents=True)
        (root / "self" / "ns" / "pid").symlink_to(namespace)

    def add(
        self,
        pid: int,
        *,
        comm: str = "python3",
        start_ticks: int = 100_000,
        ppid: int = 1,
        uid: int | None = 1000,
        ns_pids: Sequence[int] = (),
        cgroup: str | None = "0::/user.slice/user-1000.slice/session-3.scope\n",
        words: Sequence[str] = (),
        environ: Mapping[str, str] | None = None,
        exe: str | None = None,
        descriptors: Sequence[str] = (),
        maps: str = "",
        ticks: int = 0,
        threads: Mapping[int, int] | None = None,
    ) -> Path:
        """Make a process, or make it anew."""
        folder = self.root / str(pid)
        (folder / "fd").mkdir(parents=True, exist_ok=True)
        self.run(pid, comm=comm, start_ticks=start_ticks, ppid=ppid, ticks=ticks, threads=threads)
        pids = "\t".join(map(str, ns_pids or (pid,)))
        user = "" if uid is None else f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n"
        (folder / "status").write_text(f"Name:\t{comm}\nPPid:\t{ppid}\n{user}NSpid:\t{pids}\n")
        for name, text in (("cgroup", cgroup), ("maps", maps)):
            (folder / name).unlink(missing_ok=True)
            if text is not None:
                (folder / name).write_text(text)
        (folder / "cmdline").write_bytes("".join(f"{word}\0" for word in words).encode())
        (folder / "environ").unlink(missing_ok=True)
        if environ is not None:
            pairs = "".join(f"{key}={value}\0" for key, value in environ.items())
            (folder / "environ").write_bytes(pairs.encode())
        (folder / "exe").unlink(missing_ok=True)
        if exe is not None:
            (folder / "exe").symlink_to(exe)
        for old in (folder / "fd").iterdir():
            old.unlink()
        for number, target in enumerate(descriptors):
            (folder / "fd" / str(number)).symlink_to(target)
        return folder

    def run(
        self,
        pid: int,
        *,
        comm: str = "python3",
        start_ticks: int = 100_000,
        ppid: int = 1,
        ticks: int = 0,
        threads: Mapping[int, int] | None = None,
    ) -> None:
        """Write CPU time of a process and of its threads; threads that are not named have ended."""
        folder = self.root / str(pid)
        each = {pid: ticks} if threads is None else threads
        (folder / "stat").write_text(stat_line(pid, comm, ppid, ticks, len(each), start_ticks))
        for old in folder.glob("task/*"):
            if int(old.name) not in each:
                (old / "stat").unlink()
                old.rmdir()
        for thread, used in each.items():
            (folder / "task" / str(thread)).mkdir(parents=True, exist_ok=True)
            line = stat_line(thread, comm, ppid, used, len(each), start_ticks)
            (folder / "task" / str(thread) / "stat").write_text(line)


def stat_line(  # noqa: PLR0917 - the order of the fields
    pid: int, comm: str, ppid: int, ticks: int, threads: int, start_ticks: int
) -> str:
    """A line of ``/proc/PID/stat`` (proc_pid_stat(5)): CPU time in fields 14 and 15, threads 20, start 22."""
    user = ticks - ticks // 3
    return (
        f"{pid} ({comm}) S {ppid} {pid} {pid} 0 -1 4194304 100 0 0 0 {user} {ticks // 3} 7 7 20 0"
        f" {threads} 0 {start_ticks} 1000000 200 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0\n"
    )
