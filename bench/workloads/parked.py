"""Load: a model is loaded, a kernel ran once, and nothing happens any more."""

import argparse
import time

import torch

from bench.workloads import pace
from core.clock import now_ms


def main() -> None:
    parser = pace.parser(__doc__ or "")
    parser.add_argument(
        "--gib", type=float, default=16.0, help="memory to hold: weights of an 8B model in bf16"
    )
    words = parser.parse_args()
    held = hold(words)
    pace.say(ready=now_ms())
    until = time.monotonic() + words.seconds
    while time.monotonic() < until:
        time.sleep(min(1.0, max(0.0, until - time.monotonic())))
    pace.say(done=now_ms(), units=0, note=f"{held.numel() >> 20} MiB held")


def hold(words: argparse.Namespace) -> "torch.Tensor":
    """A context, memory, and one kernel, so that everything is initialised."""
    size = 1 << 20 if words.tiny else int(words.gib * (1 << 30))
    held = torch.zeros(size, dtype=torch.uint8, device=words.device)
    pace.synchronize(words.device)
    return held


if __name__ == "__main__":
    main()
