"""Load: prompts of 4,096 tokens through the whole model, again and again. Counts tokens."""

import torch

from bench.workloads import pace
from bench.workloads.llama import SHAPES, Llama


def main() -> None:
    parser = pace.parser(__doc__ or "")
    parser.add_argument("--shape", choices=sorted(SHAPES), default="8b")
    parser.add_argument("--tokens", type=int, default=4096)
    words = parser.parse_args()
    shape, length = (SHAPES["tiny"], 16) if words.tiny else (SHAPES[words.shape], words.tokens)
    with torch.inference_mode():
        model = Llama(shape, 1, 0, words.device)
        tokens = torch.randint(shape.vocabulary, (1, length), device=words.device)

        def step() -> float:
            model.prefill(tokens)
            return float(length)

        pace.run(step, words, note=f"prompts of {length} tokens")


if __name__ == "__main__":
    main()
