"""Load: one large matrix product, in bf16 on tensor cores or in fp32 without TF32. Counts floating-point operations."""

import torch

from bench.workloads import pace


def main() -> None:
    parser = pace.parser(__doc__ or "")
    parser.add_argument("--dtype", choices=["bf16", "fp32"], default="bf16")
    parser.add_argument("--size", type=int, default=8192)
    words = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    size = 64 if words.tiny else words.size
    dtype = torch.bfloat16 if words.dtype == "bf16" else torch.float32
    left, right = (torch.randn(size, size, device=words.device, dtype=dtype) for _ in range(2))
    out = torch.empty_like(left)

    def step() -> float:
        torch.matmul(left, right, out=out)
        return 2.0 * size**3

    pace.run(step, words, ahead=4, note=f"{words.dtype}, {size} × {size}")


if __name__ == "__main__":
    main()
