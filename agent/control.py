"""Pause, resume and status of a running agent, through two small files beside its spool and two signals.

The agent keeps ``agent.json`` up to date (``State``). ``pause`` writes ``agent.control`` and sends SIGUSR1,
``resume`` SIGUSR2; both wait until ``agent.json`` says that it happened. A bare signal does the same. A pause lets
go of the driver, because any open client of it blocks a GPU reset and a change of MIG mode (nvml.md 2, "Availability
mid-run"); it always has an end, so that a forgotten one does not blind the fleet.
"""

import json
import os
import re
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from core.clock import iso, now_ms
from core.errors import GpuwiseError, UsageError

STATE: Final = "agent.json"
CONTROL: Final = "agent.control"
SYSTEM_STATE: Final = Path("/var/lib/gpuwise")
"""Where the packaged systemd unit keeps its state; looked at when the user's own folder has no agent."""
PAUSE_S: Final = 3_600.0
"""How long a pause lasts when nobody says: long enough for a reset or a MIG change, short enough to be forgotten."""
LONGEST_PAUSE_S: Final = 7 * 86_400.0
ANSWER_S: Final = 5.0
_FRESH_MS: Final = 30_000
_LOOK_S: Final = 0.05
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)")


class State:
    """The agent's own account of itself, written whole or not at all.

    Args:
        path: file ``agent.json`` in the state folder; the folder is made when it is not there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fields: dict[str, Any] = {
            "pid": os.getpid(),
            "started": started(os.getpid()),
            "boot_id": _boot_id(),
            "paused": False,
            "paused_until_ms": None,
            "driver_pid": None,
        }
        path.parent.mkdir(parents=True, exist_ok=True)

    def write(self, **fields: Any) -> None:
        """Change the given fields and write them all.

        A full disk is not the agent's end: the old account then stays, with its old ``at_ms``.

        Args:
            fields: ``version``, ``paused``, ``paused_until_ms``, ``driver_pid`` (None: the driver is let go of),
                ``sink`` (for people), ``waiting`` (deliveries in the spool), ``last_error``.
        """
        self._fields.update(fields, at_ms=now_ms())
        with suppress(OSError):
            _write(self._path, self._fields)

    def remove(self) -> None:
        """The agent ends in order."""
        with suppress(OSError):
            self._path.unlink()


def left_paused(state_dir: Path, at_ms: int) -> int | None:
    """Until when the agent before this one was paused, or None: a restart amid a GPU reset must not take the driver.

    A pause of before the last boot is over.
    """
    fields = _load(state_dir / STATE)
    until_ms = fields.get("paused_until_ms")
    same_boot = fields.get("boot_id") is not None and fields["boot_id"] == _boot_id()
    if not fields.get("paused") or not isinstance(until_ms, int) or until_ms <= at_ms or not same_boot:
        return None
    return min(until_ms, at_ms + int(LONGEST_PAUSE_S * 1000))


def pause_asked(state_dir: Path, at_ms: int) -> int:
    """For the agent, after SIGUSR1: until when to pause. Takes the request away, so that it counts once.

    A bare signal, or a request that is older than the signal can be, pauses for ``PAUSE_S``.
    """
    path = state_dir / CONTROL
    asked = {} if path.is_symlink() else _load(path)
    with suppress(OSError):
        path.unlink()
    until_ms, asked_ms = asked.get("until_ms"), asked.get("at_ms")
    fresh = isinstance(asked_ms, int) and abs(at_ms - asked_ms) <= _FRESH_MS
    if asked.get("paused") is True and fresh and isinstance(until_ms, int) and until_ms > at_ms:
        return min(until_ms, at_ms + int(LONGEST_PAUSE_S * 1000))
    return at_ms + int(PAUSE_S * 1000)


def pause(state_dir: Path, for_s: float | None = None) -> str:
    """Make the agent let go of the driver and wait until it has; a line for people.

    Args:
        state_dir: folder of the agent's spool; ``SYSTEM_STATE`` is tried after it.
        for_s: length of the pause in seconds; None: ``PAUSE_S``. A later pause replaces an earlier one.

    Raises:
        GpuwiseError: no agent runs here, it may not be signalled, or it does not follow.
    """
    folder, state = _running(state_dir)
    at_ms = now_ms()
    until_ms = at_ms + int((PAUSE_S if for_s is None else for_s) * 1000)
    _ask(folder, state, signal.SIGUSR1, {"paused": True, "until_ms": until_ms, "at_ms": at_ms})
    _wait(folder, "let go of the driver", lambda now: _released(now, until_ms))
    return (
        "The driver is released: GPU reset and MIG changes can happen. "
        f"Resume: gpuwise agent resume (by itself at {_shown(until_ms)})"
    )


def resume(state_dir: Path) -> str:
    """End a pause and wait until the agent has taken the driver up again; a line for people.

    Raises:
        GpuwiseError: no agent runs here, it may not be signalled, or it does not follow.
    """
    folder, state = _running(state_dir)
    if not state.get("paused"):
        return "The agent is not paused: it samples."
    _ask(folder, state, signal.SIGUSR2, {"paused": False, "until_ms": None, "at_ms": now_ms()})
    _wait(folder, "resume", lambda now: now.get("paused") is False)
    return "The agent samples again."


def status(state_dir: Path) -> dict[str, Any]:
    """What ``agent.json`` says, and ``running``: whether that very process lives.

    Raises:
        GpuwiseError: there is no such file, or this user may not read it.
    """
    folder, fields = _find(state_dir)
    return {"running": _alive(fields), "state_dir": str(folder), **fields}


def status_text(fields: dict[str, Any]) -> str:
    """``status`` as one line for people."""
    if not fields.get("running"):
        return f"No agent runs: the last one (pid {fields.get('pid')}) ended without saying so."
    parts = [f"The agent runs (pid {fields.get('pid')}, version {fields.get('version') or 'unknown'})"]
    if fields.get("paused"):
        until_ms = fields.get("paused_until_ms")
        parts.append("paused" if until_ms is None else f"paused until {_shown(until_ms)}")
    elif fields.get("driver_pid") is None:
        parts.append("without the driver")
    else:
        parts.append("sampling")
    if fields.get("sink"):
        parts.append(f"sink {fields['sink']}")
    if fields.get("waiting") is not None:
        parts.append(f"{fields['waiting']} deliveries wait")
    if fields.get("last_error"):
        parts.append(f"last error: {fields['last_error']}")
    return ", ".join(parts)


def read_state(path: Path) -> dict[str, Any] | None:
    """The account of a running agent; None where the file is missing, broken, or of a process that is gone.

    A process id alone proves nothing, because it is used again: the start time must be the same too.
    """
    fields = _load(path)
    return fields if _alive(fields) else None


def parse_duration(text: str) -> float:
    """Seconds in ``90``, ``90s``, ``15m``, ``2h`` or ``1d``.

    Raises:
        UsageError: not a duration, or not from 1 second to 7 days.
    """
    match = _DURATION.fullmatch(text.strip().lower())
    seconds = 0.0 if match is None else float(match[1]) * _SECONDS[match[2] or "s"]
    if not 1 <= seconds <= LONGEST_PAUSE_S:
        raise UsageError(f"{text!r} is no length of a pause: give 90s, 15m, 2h or 1d, at most 7 days")
    return seconds


def started(pid: int) -> int | None:
    """Start of a process in clock ticks since boot (field 22 of ``/proc/PID/stat``); None when it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    after = text.rpartition(")")[2].split()  # the name before it may hold spaces and parentheses
    return None if after[0] in "ZX" else int(after[19])


def _alive(fields: dict[str, Any]) -> bool:
    pid, since = fields.get("pid"), fields.get("started")
    return isinstance(pid, int) and pid > 0 and isinstance(since, int) and started(pid) == since


def _released(fields: dict[str, Any], until_ms: int) -> bool:
    driver_pid = fields.get("driver_pid")
    gone = driver_pid is None or started(driver_pid) is None
    return fields.get("paused") is True and fields.get("paused_until_ms") == until_ms and gone


def _running(state_dir: Path) -> tuple[Path, dict[str, Any]]:
    folder, fields = _find(state_dir)
    if not _alive(fields):
        raise GpuwiseError(
            f"no agent runs here: {folder / STATE} is of a process that ended; start one with gpuwise agent"
        )
    return folder, fields


def _find(state_dir: Path) -> tuple[Path, dict[str, Any]]:
    """The folder of a running agent: the given one, else the service's; else the first that has an account at all."""
    held: list[tuple[Path, dict[str, Any]]] = []
    closed: Path | None = None
    for folder in (state_dir, SYSTEM_STATE):
        try:
            text = (folder / STATE).read_text(encoding="utf-8")
        except FileNotFoundError:
            continue
        except OSError:
            closed = closed or folder / STATE
            continue
        fields = _parse(text)
        if _alive(fields):
            return folder, fields
        held.append((folder, fields))
    if closed is not None:
        raise GpuwiseError(f"{closed} may not be read by this user: use sudo")
    if not held:
        raise GpuwiseError(
            f"no agent runs here: neither {state_dir} nor {SYSTEM_STATE} has a file {STATE}; "
            "start one with gpuwise agent, or name the folder of its spool (spool_path)"
        )
    return held[0]


def _ask(folder: Path, state: dict[str, Any], number: signal.Signals, request: dict[str, Any]) -> None:
    pid = state["pid"]
    try:
        os.kill(pid, 0)  # before anything is written: may this user signal it at all?
        _write(folder / CONTROL, request)
        os.kill(pid, number)
    except ProcessLookupError as error:
        raise GpuwiseError(f"no agent runs here: process {pid} has just ended") from error
    except PermissionError as error:
        raise GpuwiseError(f"this user may not control the agent (process {pid}): use sudo") from error
    except OSError as error:
        raise GpuwiseError(
            f"{folder / CONTROL} cannot be written ({error.strerror}): make room there, or send the signal {number.name} to process {pid}"
        ) from error


def _wait(folder: Path, what: str, done: Callable[[dict[str, Any]], bool]) -> None:
    deadline = time.monotonic() + ANSWER_S
    while time.monotonic() < deadline:
        fields = _load(folder / STATE)
        if done(fields):
            return
        if fields and not _alive(fields):
            raise GpuwiseError(f"the agent ended before it could {what}: see its log")
        time.sleep(_LOOK_S)
    raise GpuwiseError(
        f"the agent did not {what} within {ANSWER_S:.0f} s: the driver may hang; see its log, then try again"
    )


def _write(path: Path, fields: dict[str, Any]) -> None:
    draft = path.with_name(path.name + ".new")
    with suppress(FileNotFoundError):
        draft.unlink()  # never write through a link that somebody left there
    # Readable for all: a person asks for the status, and the agent reads what root wrote. Nothing in it is secret.
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        os.fchmod(handle, 0o644)  # whatever the umask of the one who asks
        json.dump(fields, file)
    draft.replace(path)


def _load(path: Path) -> dict[str, Any]:
    try:
        return _parse(path.read_text(encoding="utf-8"))
    except OSError:
        return {}


def _parse(text: str) -> dict[str, Any]:
    try:
        fields = json.loads(text)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}


def _boot_id() -> str | None:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None


def _shown(ts_ms: int) -> str:
    return (iso(ts_ms) or "")[:16].replace("T", " ") + " UTC"
