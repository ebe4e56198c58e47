"""Runs the probe with a time limit and says what came of it."""

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from agent.doctor import gpus, kernel
from agent.doctor.checks import BAD, NOTE, OK, Check

PROBE_S: Final = 60.0
"""For the whole probe: nvmlInit alone may take 20 s on a healthy machine without persistence mode."""
SLOW_INIT_S: Final = 3.0
ROOT: Final = Path(__file__).resolve().parents[2]
_NO_LIBRARY: Final = 12
_MISMATCH: Final = 18


def checks(*, must: bool, root: Path = Path("/"), limit_s: float = PROBE_S) -> list[Check]:
    """Looks at the driver and at each GPU.

    Args:
        must: this machine has nothing but the agent, so a missing driver is a fault and not just a fact.
        root: for tests.
        limit_s: for the whole probe.
    """
    found = kernel.checks(root)
    lines = ask(limit_s)
    found.append(Check("nvml", *_nvml(lines, must=must, root=root, limit_s=limit_s), kernel.PART))
    driver = next((line["driver"] for line in lines if "driver" in line), None)
    if driver is not None:
        found.append(Check("versions", *_versions(driver, kernel.module_version(root)), kernel.PART))
    for line in lines:
        if "gpu" in line:
            found.extend(gpus.checks(line["gpu"]))
    return found


def ask(limit_s: float) -> list[dict[str, Any]]:
    """Lines of the probe; the last is ``{"hung": what}`` or ``{"died": code, …}`` when it did not end by itself."""
    path = os.environ.get("PYTHONPATH")
    environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{path}" if path else str(ROOT)}
    # Its own session: Ctrl-C ends the doctor, and the probe with it below.
    child = subprocess.Popen(
        [sys.executable, "-m", "agent.doctor.probe"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
        text=True,
    )
    lines: list[dict[str, Any]] = []
    errors: list[str] = []
    assert child.stdout is not None
    assert child.stderr is not None
    out = threading.Thread(target=_gather, args=(child.stdout, lines), daemon=True)
    err = threading.Thread(target=errors.extend, args=(child.stderr,), daemon=True)
    out.start()
    err.start()
    try:
        out.join(limit_s)
        hung = out.is_alive()
    finally:
        child.kill()
        # A process in an uninterruptible call does not even die: it is left behind.
        with suppress(subprocess.TimeoutExpired):
            child.wait(1.0)
    asked = next((line["asking"] for line in reversed(lines) if "asking" in line), "its own start")
    if hung:
        return [*lines, {"hung": asked}]
    err.join(1.0)
    if not any("end" in line or "failed" in line for line in lines):
        last = errors[-1].strip() if errors else f"exit code {child.returncode}"
        return [*lines, {"died": last, "asked": asked}]
    return lines


def _gather(stream: Any, lines: list[dict[str, Any]]) -> None:
    with suppress(ValueError, OSError):  # the stream may be closed under a probe that is left behind
        for text in stream:
            with suppress(json.JSONDecodeError):
                lines.append(json.loads(text))


def _nvml(lines: list[dict[str, Any]], *, must: bool, root: Path, limit_s: float) -> tuple[str, str]:
    last = lines[-1]
    if "hung" in last:
        return BAD, (
            f"the driver gave no answer within {limit_s:.0f} s when asked for {last['hung']}: it hangs; "
            "see dmesg for NVRM and Xid lines, then reset the GPU or reboot (gpuwise agent goes on without it)"
        )
    if "died" in last:
        return BAD, f"the probe of the driver died when it asked for {last['asked']} ({last['died']})"
    for line in lines:
        if "failed" in line:
            return _failed(line["failed"], must=must, root=root)
        if "driver" in line:
            return _opened(line["driver"])
    return BAD, "the probe of the driver said nothing"


def _failed(failed: dict[str, Any], *, must: bool, root: Path) -> tuple[str, str]:
    there = kernel.card_count(root) or kernel.module_version(root) is not None
    if failed["code"] == _NO_LIBRARY and not there:
        if must:
            return BAD, f"{failed['sentence']}: install the driver, the agent has nothing to sample"
        return NOTE, f"{failed['sentence']}: no live GPUs here, imports and the demo work"
    if failed["code"] == _MISMATCH:
        library = _bare(failed.get("library")) or "of another version"
        return BAD, (
            f"the library is {library} and the loaded module {kernel.module_version(root) or 'not the same'}: the driver was upgraded "
            "while it ran; reload the module (all GPU programs must end) or reboot"
        )
    return BAD, str(failed["sentence"])


def _opened(driver: dict[str, Any]) -> tuple[str, str]:
    words = f"answers, started in {driver['init_s']:.1f} s, shows {driver['count']} GPU{'' if driver['count'] == 1 else 's'}"
    if driver["asleep"]:
        words += f"; GPU {gpus.numbers(driver['asleep'])} sleeps and was not asked"
    if driver["count"] == 0:
        return BAD, f"{words}: give this container or user a GPU"
    if driver["init_s"] > SLOW_INIT_S:
        return (
            NOTE,
            f"{words}: such a slow start means that cards are initialised anew; enable persistence mode",
        )
    return OK, words


def _versions(driver: dict[str, Any], module: str | None) -> tuple[str, str]:
    library, version = _bare(driver["library"]), driver["version"]
    cuda = driver.get("cuda")
    words = f"driver {version}" + (f", CUDA {cuda}" if cuda else "")
    loaded = module or version
    if library and loaded and library != loaded:
        return BAD, (
            f"{words}, but the library is {library} and the loaded module {loaded}: the driver was upgraded while it ran; "
            "reload the module (all GPU programs must end) or reboot"
        )
    return OK, f"{words}; library and kernel module agree" if module else f"{words} and its library agree"


def _bare(version: str | None) -> str | None:
    """``12.570.148.08`` is NVML's 12 before the driver's 570.148.08."""
    if not version:
        return None
    first, _, rest = version.partition(".")
    return rest if rest.count(".") >= 1 and len(first) <= 2 else version
