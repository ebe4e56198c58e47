"""Load: a decode loop, as an LLM server's inner loop without the server. Counts tokens."""

from collections.abc import Callable

import torch

from bench.workloads import pace
from bench.workloads.llama import SHAPES, Llama


def main() -> None:
    parser = pace.parser(__doc__ or "")
    parser.add_argument("--shape", choices=sorted(SHAPES), default="1b")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--context", type=int, default=1024, help="tokens in the cache of each sequence")
    words = parser.parse_args()
    shape, context = (SHAPES["tiny"], 16) if words.tiny else (SHAPES[words.shape], words.context)
    with torch.inference_mode():
        model = Llama(shape, words.batch, context, words.device)
        once = captured(model.decode) if words.device.startswith("cuda") else model.decode

        def step() -> float:
            once()
            return float(words.batch)

        pace.run(step, words, ahead=1 if words.tiny else 16, note=f"context {context}")


def captured(call: Callable[[], None]) -> Callable[[], None]:
    """The call as one CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


if __name__ == "__main__":
    main()
