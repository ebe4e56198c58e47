"""The ``/proc`` of one process: the only module that reads it. What vanished or may not be read is None.

Files are read by bare system calls: they are small, and the same ones are read every few seconds.
"""
# ruff: noqa: PTH115, PTH208 - a Path per descriptor costs more than the call

import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HOST_PID_NAMESPACE: Final = 4026531836
"""Inode of the first PID namespace of every Linux kernel (``PROC_PID_INIT_INO``, include/linux/proc_ns.h)."""
ENVIRON_KEYS: Final = (
    "SLURM_JOB_ID",
    "SLURM_ARRAY_JOB_ID",
    "SLURM_ARRAY_TASK_ID",
    "SLURM_JOB_USER",
    "SLURM_JOB_ACCOUNT",
    "SLURM_JOB_NAME",
    "APPTAINER_CONTAINER",
    "SINGULARITY_CONTAINER",
)
"""The only names that attribution takes from an environment; the rest of it is dropped unread."""
_MOST_BYTES: Final = 4 << 20
_BLOCK_BYTES: Final = 64 << 10
_STATUS_LINE: Final = re.compile(rb"^(Uid|NSpid):\t?([^\n]*)", re.MULTILINE)
_NAMESPACE: Final = re.compile(r"pid:\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Stat:
    """``/proc/PID/stat``.

    Attributes:
        comm: name of the main thread, at most 15 characters; the process may choose it.
        ppid: parent, 0 for none.
        cpu_ticks: user and system time of all threads, those that ended too.
        threads: how many it has.
        start_ticks: start since boot (field 22); with the PID it is the identity of a process.
    """

    comm: str
    ppid: int
    cpu_ticks: int
    threads: int
    start_ticks: int


@dataclass(frozen=True, slots=True)
class Status:
    """``/proc/PID/status``: real user id, and the PID in each namespace from the outermost that is seen to its own."""

    uid: int | None
    ns_pids: tuple[int, ...]


class Proc:
    """Reads processes below one root.

    Args:
        root: a mounted procfs; a folder of files in tests.
    """

    def __init__(self, root: Path = Path("/proc")) -> None:
        self._root = os.fspath(root)
        self.ticks_per_s: int = os.sysconf("SC_CLK_TCK")
        self._boot_ms: int | None = None

    def boot_ms(self) -> int:
        """When the host booted, in epoch milliseconds; read once, so that a corrected clock renames no process.

        0 where it cannot be read: start times are then counted from boot, and still tell processes apart.
        """
        if self._boot_ms is None:
            found = re.search(rb"^btime (\d+)", self._read("stat") or b"", re.MULTILINE)
            self._boot_ms = int(found[1]) * 1000 if found else 0
        return self._boot_ms

    def start_ms(self, stat: Stat) -> int:
        """When a process started, in epoch milliseconds."""
        return self.boot_ms() + stat.start_ticks * 1000 // self.ticks_per_s

    def stat(self, pid: int) -> Stat | None:
        """Identity and CPU time of a process; None when it is gone or hidden."""
        return _parse_stat(self._read(f"{pid}/stat"))

    def status(self, pid: int) -> Status | None:
        """Real user and PIDs of a process; None when it is gone or hidden."""
        text = self._read(f"{pid}/status")
        if text is None:
            return None
        lines = dict(_STATUS_LINE.findall(text))
        uids = lines.get(b"Uid", b"").split()
        pids = lines.get(b"NSpid", b"").split()
        return Status(
            int(uids[0]) if uids and uids[0].isdigit() else None,
            tuple(int(word) for word in pids if word.isdigit()),
        )

    def cgroup(self, pid: int) -> str | None:
        """Text of its cgroup file."""
        return _text(self._read(f"{pid}/cgroup"))

    def executable(self, pid: int) -> str | None:
        """File name of the program that runs; None where only root may see it."""
        try:
            path = os.readlink(f"{self._root}/{pid}/exe")
        except OSError:
            return None
        return path.removesuffix(" (deleted)").rsplit("/", 1)[-1] or None

    def words(self, pid: int) -> list[str]:
        """Its command line. For the flag parser only: it may hold secrets, so nothing else may keep or print it."""
        text = _text(self._read(f"{pid}/cmdline")) or ""
        return text.rstrip("\0").split("\0") if text else []

    def environ(self, pid: int, keys: Collection[str] = ENVIRON_KEYS) -> dict[str, str]:
        """Named keys of the environment it was started with; empty where that may not be read."""
        wanted = {key.encode() for key in keys}
        found: dict[str, str] = {}
        for pair in (self._read(f"{pid}/environ") or b"").split(b"\0"):
            key, equals, value = pair.partition(b"=")
            if equals and key in wanted:
                found.setdefault(key.decode(), value.decode(errors="replace"))
        return found

    def threads(self, pid: int) -> list[int]:
        """Ids of its threads; empty when it is gone."""
        try:
            return [int(name) for name in os.listdir(f"{self._root}/{pid}/task") if name.isdigit()]
        except OSError:
            return []

    def thread_ticks(self, pid: int, thread: int) -> int | None:
        """CPU time of one thread."""
        stat = _parse_stat(self._read(f"{pid}/task/{thread}/stat"))
        return None if stat is None else stat.cpu_ticks

    def opens_gpu(self, pid: int) -> bool:
        """Whether it has a descriptor or a mapping of a ``/dev/nvidia…`` device; False where that may not be read."""
        folder = f"{self._root}/{pid}/fd"
        try:
            descriptors = os.listdir(folder)
        except OSError:
            descriptors = []
        for name in descriptors:
            try:
                if os.readlink(f"{folder}/{name}").startswith("/dev/nvidia"):
                    return True
            except OSError:
                continue
        return b" /dev/nvidia" in (self._read(f"{pid}/maps") or b"")

    def sees_host_pids(self) -> bool:
        """Whether PIDs here are the host's: only then are they surely those that the driver means."""
        try:
            link = os.readlink(f"{self._root}/self/ns/pid")
        except OSError:
            return False
        found = _NAMESPACE.fullmatch(link)
        return found is not None and int(found[1]) == HOST_PID_NAMESPACE

    def _read(self, name: str) -> bytes | None:
        """A whole file; None when it is not there, may not be read, or its process ends meanwhile."""
        try:
            descriptor = os.open(f"{self._root}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            block = os.read(descriptor, _BLOCK_BYTES)
            if len(block) < 1024:
                return block
            blocks = [block]
            size = len(block)
            while block and size < _MOST_BYTES:
                block = os.read(descriptor, _BLOCK_BYTES)
                blocks.append(block)
                size += len(block)
            return b"".join(blocks)
        except OSError:
            return None
        finally:
            os.close(descriptor)


def sees_host_pids(root: Path = Path("/proc")) -> bool:
    """Whether PIDs below that procfs are the host's."""
    return Proc(root).sees_host_pids()


def _parse_stat(text: bytes | None) -> Stat | None:
    """Fields after the last parenthesis are numbers; the name before it may hold spaces and parentheses."""
    if text is None:
        return None
    opened, closed = text.find(b"("), text.rfind(b")")
    fields = text[closed + 1 :].split(None, 20)
    if opened < 0 or closed < opened or len(fields) < 20:
        return None
    try:
        return Stat(
            text[opened + 1 : closed].decode(errors="replace"),
            int(fields[1]),
            int(fields[11]) + int(fields[12]),
            int(fields[17]),
            int(fields[19]),
        )
    except ValueError:
        return None


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode(errors="replace")
