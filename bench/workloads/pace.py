"""What every load has in common: its flags, its warm-up, and the lines by which the runner follows it.

On standard output, one JSON object a line: ``{"ready": ms}`` after the warm-up, ``{"at": ms, "units": n}`` about once a
second, ``{"done": ms, "units": n, "note": …}`` at the end. Times are epoch milliseconds.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any, Final

from core.clock import now_ms

WARM_UP_S: Final = 5.0
TICK_S: Final = 1.0


def parser(about: str) -> argparse.ArgumentParser:
    """Flags that every load knows."""
    made = argparse.ArgumentParser(description=about)
    made.add_argument("--seconds", type=float, default=70.0)
    made.add_argument("--device", default="cuda:0")
    made.add_argument("--tiny", action="store_true", help="shapes for a smoke test on the CPU")
    return made


def synchronize(device: str) -> None:
    """Wait until the card has done what it was given."""
    import torch

    if device.startswith("cuda"):
        torch.cuda.synchronize(device)


def run(step: Callable[[], float], words: argparse.Namespace, *, note: str = "", ahead: int = 1) -> None:
    """Warm up, then repeat ``step`` for ``words.seconds``.

    Args:
        step: gives work to the card and returns how many units that is.
        note: goes into the last line.
        ahead: steps between two waits for the card, so that the queue is never empty and never long.
    """
    warm_up_s = 0.2 if words.tiny else WARM_UP_S
    _repeat(step, words.device, warm_up_s, ahead, lambda _units: None)
    say(ready=now_ms())
    units = _repeat(step, words.device, words.seconds, ahead, lambda units: say(at=now_ms(), units=units))
    say(done=now_ms(), units=units, note=note)


def _repeat(
    step: Callable[[], float], device: str, seconds: float, ahead: int, tick: Callable[[float], None]
) -> float:
    start = due = time.monotonic()
    units = 0.0
    while time.monotonic() - start < seconds:
        for _ in range(ahead):
            units += step()
        synchronize(device)
        if time.monotonic() >= due:
            due += TICK_S
            tick(units)
    return units


def say(**line: Any) -> None:
    """One line for the runner."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()
