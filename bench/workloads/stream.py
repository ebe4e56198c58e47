"""Load: a[i] = b[i] + s·c[i] over arrays far larger than the cache (the triad of STREAM). Counts bytes moved."""

import torch

from bench.workloads import pace


def main() -> None:
    parser = pace.parser(__doc__ or "")
    parser.add_argument("--mib", type=int, default=4096, help="size of each of the three arrays")
    words = parser.parse_args()
    count = (1 if words.tiny else words.mib) * (1 << 20) // 4
    a, b, c = (torch.rand(count, device=words.device) for _ in range(3))

    def step() -> float:
        torch.add(b, c, alpha=1.5, out=a)
        return 3.0 * 4.0 * count

    pace.run(step, words, ahead=4, note=f"3 × {count * 4 >> 20} MiB")


if __name__ == "__main__":
    main()
