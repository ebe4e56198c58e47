"""Whether there are GPUs to sample here, asked in a process of its own: a wedged driver must not hang the one who asks."""

import logging
import time
from typing import Final

from agent.reader import Reader

PATIENCE_S: Final = 20.0


def driver_problem(*, patience_s: float = PATIENCE_S) -> str | None:
    """None when a driver shows at least one GPU; else the reason in one clause without a full stop.

    Args:
        patience_s: how long the driver may take; attaching cards without persistence mode takes seconds each.
    """
    reader = Reader(interval_s=1.0)
    until = time.monotonic() + patience_s
    said = logging.getLogger("agent.reader")
    level = said.level
    said.setLevel(logging.CRITICAL)  # the answer is returned; nobody wants it as a log line too
    try:
        while time.monotonic() < until:
            for frame in reader.poll(0.2):
                if frame[0] == "gpus":
                    return None if frame[1] or frame[2] else "the NVIDIA driver is there but shows no GPU"
                if frame[0] == "down":
                    return str(frame[2])
                if frame[0] == "stuck":
                    return "the NVIDIA driver does not answer: a call hangs"
    finally:
        said.setLevel(level)
        reader.close()
    return f"the NVIDIA driver does not answer within {patience_s:.0f} s"
