"""What stands beside the spool's file: its lock, room kept for a full disk, and damaged files set aside."""

import errno
import fcntl
import os
from pathlib import Path
from typing import Final

from core.errors import GpuwiseError

RESERVE_BYTES: Final = 2 << 20
"""Held beside the spool and given up when the disk is full: a checkpoint of the log then has room, and deletes pass again."""
SET_ASIDE_KEPT: Final = 2
"""Damaged files that are kept; a disk that damages each one must not be filled by them."""


class SpoolError(GpuwiseError):
    """The spool cannot be used; says why and what to do."""


class SpoolFullError(SpoolError):
    """Nothing can be written now: the disk is full, or the file may not grow. The spool works again when there is room."""


class SpoolLock:
    """One agent at a time, held by ``flock`` on ``<spool>.lock``: the kernel lets go of it however the agent ends.

    Raises:
        SpoolError: another agent has it (its pid is named), or the folder cannot be written.
    """

    def __init__(self, spool: Path) -> None:
        path = spool.with_name(f"{spool.name}.lock")
        try:
            spool.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise SpoolError(
                f"spool {spool} cannot be opened ({error.strerror}): correct the permissions or set spool_path"
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            pid = os.read(self._file, 32).decode(errors="replace").strip() or "unknown"
            os.close(self._file)
            if error.errno not in {errno.EWOULDBLOCK, errno.EACCES}:
                raise SpoolError(
                    f"spool {spool} cannot be locked ({error.strerror}): set spool_path to a local disk"
                ) from error
            raise SpoolError(
                f"spool {spool} is used by another agent (pid {pid}): stop that one, or set another spool_path"
            ) from error
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let another agent in."""
        os.close(self._file)


class Reserve:
    """Disk space that the spool can give back to itself."""

    def __init__(self, spool: Path) -> None:
        self._path = spool.with_name(f"{spool.name}.reserve")

    def hold(self) -> None:
        """Take the space again, if there is any."""
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return
        try:
            if os.fstat(file).st_size < RESERVE_BYTES:
                os.posix_fallocate(file, 0, RESERVE_BYTES)
        except OSError:
            self._path.unlink(missing_ok=True)
        finally:
            os.close(file)

    def give_up(self) -> bool:
        """Free the space; whether there was any."""
        try:
            self._path.unlink()
        except OSError:
            return False
        return True


def set_aside(path: Path, now_ms: int) -> Path:
    """Rename a damaged spool and its log, so that a fresh one can begin; where it is now."""
    target = path.with_name(f"{path.name}.corrupt-{now_ms}")
    for suffix in ("-wal", "-shm", ""):
        source = path.with_name(path.name + suffix)
        if source.exists():
            source.rename(target.with_name(target.name + suffix))
    kept = sorted(
        other
        for other in path.parent.glob(f"{path.name}.corrupt-*")
        if other.name.removeprefix(f"{path.name}.corrupt-").isdecimal()
    )
    for old in kept[:-SET_ASIDE_KEPT]:
        for suffix in ("-wal", "-shm", ""):
            old.with_name(old.name + suffix).unlink(missing_ok=True)
    return target
