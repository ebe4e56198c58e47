"""Load: blocks that wait for a flag nobody sets, as a collective does whose partner is gone. Counts launches.

Bounded: each launch gives up by itself after about a second of the card's clock, whatever happens to this process.
"""

from collections.abc import Callable
from typing import Final

import torch

from bench.workloads import pace

MEGACYCLES: Final = 1_500
"""About a second at 1.5 GHz."""
BLOCKS, THREADS = 24, 32
"""What a collective over NVLink takes of the card's SMs, by order of magnitude."""
SOURCE: Final = r"""
extern "C" __global__ void wait_for_flag(const volatile int* flag, int* gave_up, int megacycles) {
    const long long start = clock64();
    const long long limit = (long long)megacycles * 1000000LL;
    while (*flag == 0) {
        if (clock64() - start > limit) {
            if (threadIdx.x == 0) { gave_up[blockIdx.x] = 1; }
            return;
        }
    }
}
"""


def main() -> None:
    words = pace.parser(__doc__ or "").parse_args()
    if not words.device.startswith("cuda"):
        pace.run(lambda: 1.0, words, note="no card: nothing spins")
        return
    launch, note = flag_kernel(words.device)

    def step() -> float:
        launch()
        return 1.0

    pace.run(step, words, note=note)


def flag_kernel(device: str) -> tuple[Callable[[], object], str]:
    """A launch of the kernel; where this torch cannot compile one, its own bounded spin on the clock."""
    compile_kernel = getattr(torch.cuda, "_compile_kernel", None)
    if compile_kernel is None:
        return lambda: torch.cuda._sleep(MEGACYCLES * 1_000_000), "spins on the clock, not on a flag"  # noqa: SLF001
    flag = torch.zeros(1, dtype=torch.int32, device=device)
    gave_up = torch.zeros(BLOCKS, dtype=torch.int32, device=device)
    try:
        kernel = compile_kernel(SOURCE, "wait_for_flag")
    except (RuntimeError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        return (
            lambda: torch.cuda._sleep(MEGACYCLES * 1_000_000),  # noqa: SLF001
            f"spins on the clock, not on a flag ({reason})",
        )

    def launch() -> None:
        kernel(grid=(BLOCKS, 1, 1), block=(THREADS, 1, 1), args=(flag, gave_up, MEGACYCLES))

    return launch, f"{BLOCKS} blocks of {THREADS} threads wait for a flag"


if __name__ == "__main__":
    main()
