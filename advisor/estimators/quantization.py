"""What weights of fewer bits would do to an engine: memory freed, step time, and the sign of the gain.

    t_q(B) = t(B) − 1.08·W/(TP·BW)·(1 − (b_q/2)·k) − [W8A8]·(0.3..0.5)·B·(FLOP term of τ)

b_q bytes per weight, k inefficiency of the kernel: 1.0–1.8 for FP8, 1.1–1.3 for INT4 (Marlin class, B ≤ 32). Beyond
B ≈ 64 an INT4 weight-only speed-up is 1.0 or below. Source: advisor-rules R10 and its S12.
"""

from dataclasses import dataclass
from typing import Final

from advisor.estimators.decode_step import KERNEL, WEIGHT_EFFICIENCY, DecodeStep, Weights
from core.finding import Range

INT4_BATCH: Final = 32
INT4_NEUTRAL_BATCH: Final = 64


@dataclass(frozen=True, slots=True)
class Scheme:
    """One way to quantise the weights.

    Attributes:
        key: ``fp8``, ``int8`` or ``int4``.
        title: for people.
        bytes_per_weight: b_q. freed_ratio: share of 16-bit weight memory freed (int4 keeps group scales).
        most_speedup: 16 bits over the bits in use (4.5 with group scales): a step cannot read less than that.
        kernel: k, best, likely and worst: the likely one sits where the published FP8 gains are (1.40–1.51× at B 1–8).
        eight_bit_math: activations are 8-bit too (W8A8), so the arithmetic gets faster.
    """

    key: str
    title: str
    bytes_per_weight: float
    freed_ratio: float
    most_speedup: float
    kernel: tuple[float, float, float]
    eight_bit_math: bool


EIGHT_BIT_KERNEL: Final = (1.0, KERNEL[8], 1.8)
FP8: Final = Scheme(
    "fp8", "FP8 weights and activations", 1.0, 0.5, 2.0, EIGHT_BIT_KERNEL, eight_bit_math=True
)
INT8: Final = Scheme(
    "int8", "INT8 weights and activations", 1.0, 0.5, 2.0, EIGHT_BIT_KERNEL, eight_bit_math=True
)
INT4: Final = Scheme("int4", "INT4 weights", 0.5, 0.73, 16 / 4.5, (1.1, KERNEL[4], 1.3), eight_bit_math=False)
MATH_SAVED: Final = (0.5, 0.4, 0.3)
"""Share of the arithmetic time that 8-bit math saves: best, likely, worst."""


def scheme_for(compute_capability: float | None, batch: float) -> Scheme | None:
    """The scheme a GPU runs in hardware; None: none known.

    FP8 from 8.9. INT4 weight-only (Marlin) from 8.0, for small batches only. INT8 W8A8 from 7.5 to 9.0.
    """
    if compute_capability is None:
        return None
    if compute_capability >= 8.9:
        return FP8
    if compute_capability >= 8.0 and batch <= INT4_BATCH:
        return INT4
    return INT8 if compute_capability >= 7.5 else None


def freed_bytes(weights: Weights, scheme: Scheme) -> float:
    """Memory of 16-bit weights that the scheme gives back."""
    return weights.total_bytes * scheme.freed_ratio


def speedup(
    *,
    step: DecodeStep,
    weights: Weights,
    scheme: Scheme,
    batch: float,
    tensor_parallel: int,
    bandwidth_bytes_per_s: float,
) -> Range:
    """Throughput with the scheme over throughput without, at the same batch; may be below 1.

    The range is the formula's own over k and the math saved, widened by the step's half-width. A mixture of
    experts gets a lower end below 1: on many GPUs FP8 was not always faster.
    """
    read_s = WEIGHT_EFFICIENCY * weights.read_bytes(batch) / (tensor_parallel * bandwidth_bytes_per_s)
    worst, likely, best = (_at(step, read_s, scheme, batch, case) for case in (2, 1, 0))
    if scheme is INT4 and batch > INT4_NEUTRAL_BATCH:
        worst, likely, best = min(worst, 0.85), min(likely, 0.95), 1.0
    width = step.half_width
    low = 1 + (worst - 1) * (1 - width) if worst >= 1 else worst
    high = 1 + (best - 1) * (1 + width) if best >= 1 else best
    if weights.expert_bytes > 0:
        low = min(low, 0.9)
    most = scheme.most_speedup
    return Range(min(low, likely, most), min(likely, most), min(max(high, likely), most))


def _at(step: DecodeStep, read_s: float, scheme: Scheme, batch: float, case: int) -> float:
    saved = read_s * (1 - scheme.bytes_per_weight / 2 * scheme.kernel[case])
    if scheme.eight_bit_math:
        saved += MATH_SAVED[case] * batch * step.flop_s
    before = step.step_s(batch)
    return before / max(before - saved, 0.25 * before)
