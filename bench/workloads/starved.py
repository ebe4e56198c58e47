"""Load: a training step that waits for its loader, which prepares each batch on one busy core. Counts steps."""

import time

import torch
from torch import nn

from bench.workloads import pace


def main() -> None:
    parser = pace.parser(__doc__ or "")
    parser.add_argument("--loader-ms", type=float, default=250.0, help="CPU time that a batch takes")
    parser.add_argument("--width", type=int, default=4096)
    words = parser.parse_args()
    width = 32 if words.tiny else words.width
    loader_s = 0.02 if words.tiny else words.loader_ms / 1000
    on_card = words.device.startswith("cuda")
    model = nn.Sequential(*(layer for _ in range(8) for layer in (nn.Linear(width, width), nn.GELU())))
    model.to(words.device)
    optimizer = torch.optim.AdamW(model.parameters(), fused=on_card)
    batch = torch.randn(2048 if on_card else 8, width, pin_memory=on_card)

    def step() -> float:
        _prepare(loader_s)
        x = batch.to(words.device, non_blocking=on_card)
        loss = (model(x) - x).pow(2).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return 1.0

    pace.run(step, words, note=f"loader {loader_s * 1000:.0f} ms a batch")


def _prepare(seconds: float) -> int:
    """Burn CPU as decoding and augmenting would: a loader that sleeps would look idle and not slow."""
    until = time.perf_counter() + seconds
    turns = 0
    while time.perf_counter() < until:
        turns += sum(range(500))
    return turns


if __name__ == "__main__":
    main()
