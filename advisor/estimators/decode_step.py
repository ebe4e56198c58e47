"""Time of one decode step as a function of the batch: the half-saturation law t(B) = T_fix + B·τ.

Formula (advisor-rules 2.2, coefficients fitted on 107 public vLLM points):

    T_fix = 1.08·k·W/(TP·BW) + 2.0 ms + 40 µs·L·[TP>1] + 45 µs·L·log₂TP·[mixture]
    τ     = ctx·kv/(TP·BW) + 42 µs + 1.35·2·P_act·(1 + n_in/n_out)/(TP·F) + 11 µs·log₂TP·[mixture]
    tok/s = B/t(B),  B_half = T_fix/τ

Two terms are not in 2.2, which holds for dense models of 16 bits:

- k, what kernels for narrow weights take over the bytes they read: the likely one of R10 (1.3 for 8 bits, 1.2 for 4).
- [mixture]: experts are spread over the ranks. Each layer waits for the rank with the most tokens and hands them there
  and back; both grow with the ranks, and the second with the batch. Fitted on 73 chat runs of four mixtures on 1 to 8
  H100 with expert parallelism (ML.ENERGY leaderboard v3), each model with the same weight; `python -m bench.advice`
  repeats the fit. On one GPU both are 0, and measured steps are the formula's within 20 %.

Better, where the site's own data allow it: a and b of t = a + b·B fitted on the engine's batch profile.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import log2
from typing import Final

from core.finding import Range
from core.hours import BatchPoint

WEIGHT_EFFICIENCY: Final = 1.08
STEP_OVERHEAD_S: Final = 2.0e-3
SEQUENCE_OVERHEAD_S: Final = 42e-6
TP_LAYER_OVERHEAD_S: Final = 40e-6
FLOP_EFFICIENCY: Final = 1.35

MIXTURE_LAYER_S: Final = 45e-6
MIXTURE_SEQUENCE_S: Final = 11e-6
"""A mixture's layer and sequence, per doubling of ranks."""
KERNEL: Final[Mapping[int, float]] = {8: 1.3, 4: 1.2}
"""Time of kernels over that of 16-bit ones for the same bytes, by bits of a weight: the likely k of R10."""

HALF_WIDTH_FIT: Final = 0.05
"""Relative half-width of a site fit, at least: what steady public engines do at a batch that the fit has not seen.

7.3 has 0.10 as a default, for every fit. Here it is the fit's own residuals that widen it (``FIT_QUANTILE``).
"""
FIT_QUANTILE: Final = 1.6
"""Half-width of an 80 % interval over the standard deviation of the residuals: Student's t at 3 degrees of freedom."""
HALF_WIDTH_DENSE_HOPPER: Final = 0.085
"""Of the formula for dense 16-bit models on Hopper: holds 80 % of the public rows, with all rows of a model left out too.

7.3 has 0.20 as a default. Measured over ten models (`bench.advice_held_out`), a *new model* being what is predicted.
"""
HALF_WIDTH_HOPPER: Final = 0.23
"""The same for mixtures, 8-bit weights and sliding windows on Hopper, over seven models."""
HALF_WIDTH_ELSEWHERE: Final = 0.50
"""Where no public row says anything: other GPUs, latent attention, 4-bit weights (7.3)."""
HALF_WIDTH_UNTRIED: Final = 0.20
"""At least, of what public rows do not judge: a site fit beyond its reach, and one term of a step (7.3)."""
GAIN_WIDTH: Final = 1.1
"""Half-width of a gain to a far larger batch over that of a step: two steps are compared, and their errors are alike."""

FIT_MIN_BATCHES: Final = 3
FIT_MIN_TOTAL_S: Final = 2000.0
"""200 windows (2.2) of one 10 s sample."""
FIT_MIN_BATCH_S: Final = 60.0
"""Time at one batch size before it counts: shorter is a ramp."""
FIT_MIN_SPREAD: Final = 2.0
"""Largest over smallest batch: without leverage a slope is noise."""
FIT_MAX_ERROR: Final = 0.15
"""Weighted relative RMS residual above which the line is not the law."""
FIT_REACH: Final = 2.0
"""A fit is trusted up to this many times its largest batch; beyond it ``HALF_WIDTH_UNTRIED`` counts."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Bytes of weights one step reads, over all ranks.

    Attributes:
        shared_bytes: read at every step.
        expert_bytes: all routed experts of a mixture; 0 for dense models.
        expert_share: share of the experts one token uses, k/E; unused when there are none.
        kernel: time of the kernels over that of 16-bit ones for the same bytes (``KERNEL``).
    """

    shared_bytes: float
    expert_bytes: float = 0.0
    expert_share: float = 0.0
    kernel: float = 1.0

    @property
    def total_bytes(self) -> float:
        """All weights held."""
        return self.shared_bytes + self.expert_bytes

    def read_bytes(self, batch: float) -> float:
        """W(B) = W_shared + W_experts·(1 − (1 − k/E)^B): a large batch touches every expert."""
        if self.expert_bytes == 0:
            return self.shared_bytes
        touched: float = 1 - pow(1 - self.expert_share, batch)
        return self.shared_bytes + self.expert_bytes * touched


@dataclass(frozen=True, slots=True)
class DecodeStep:
    """The law with its parameters, and how far to trust it.

    Attributes:
        fixed_s: time that does not grow with the batch (of a mixture: without the experts).
        sequence_s: time each running sequence adds.
        basis: ``fit`` (this site's profile), ``formula``, or ``anchored`` (formula slope through the measured step).
        half_width: relative half-width of what is derived from it.
        experts_s, expert_share: time to read all experts; share one token uses.
        flop_s: the compute part of ``sequence_s``.
        reach: largest batch the basis vouches for; None: no such bound.
    """

    fixed_s: float
    sequence_s: float
    basis: str
    half_width: float
    experts_s: float = 0.0
    expert_share: float = 0.0
    flop_s: float = 0.0
    reach: float | None = None

    def step_s(self, batch: float) -> float:
        """t(B), seconds."""
        touched: float = 1 - pow(1 - self.expert_share, batch) if self.experts_s else 0.0
        return self.fixed_s + self.experts_s * touched + batch * self.sequence_s

    def tokens_per_s(self, batch: float) -> float:
        """B/t(B)."""
        return batch / self.step_s(batch)

    @property
    def half_batch(self) -> float:
        """Batch at which throughput is half of its limit 1/τ: T_fix/τ; for a mixture the B with T_fix(B) = B·τ."""
        if self.experts_s == 0:
            return self.fixed_s / self.sequence_s
        low, high = 0.0, (self.fixed_s + self.experts_s) / self.sequence_s
        for _ in range(60):
            middle = (low + high) / 2
            if self.step_s(middle) > 2 * middle * self.sequence_s:
                low = middle
            else:
                high = middle
        return (low + high) / 2

    def saturation(self, batch: float) -> float:
        """φ = B/(B + B_half): share of the reachable rate."""
        return batch / (batch + self.half_batch)

    def width_at(self, batch: float) -> float:
        """Half-width for a prediction at ``batch``: wider where a fit is stretched beyond its data."""
        if self.reach is not None and batch > self.reach:
            return max(self.half_width, HALF_WIDTH_UNTRIED)
        return self.half_width

    def gain(self, now: float, then: float) -> Range:
        """Throughput at batch ``then`` over that at ``now`` ≤ ``then``.

        Never below 1 (a larger batch does not generate less) and never above then/now (a step does not get faster).
        What is wrong at both batches alike cancels: no change has no error, and the width grows with 1 − now/then.
        """
        middle = self.tokens_per_s(then) / self.tokens_per_s(now)
        width = self._change_width(now, then)
        return Range(
            max(1.0, middle * (1 - width)), middle, max(middle, min(then / now, middle * (1 + width)))
        )

    def latency_factor(self, now: float, then: float) -> Range:
        """Inter-token latency at batch ``then`` over that at ``now`` ≤ ``then``; never below 1."""
        middle = self.step_s(then) / self.step_s(now)
        width = self._change_width(now, then)
        return Range(max(1.0, middle * (1 - width)), middle, middle * (1 + width))

    def _change_width(self, now: float, then: float) -> float:
        """Half-width of what changes between two batches."""
        return GAIN_WIDTH * self.width_at(then) * max(0.0, 1 - now / then)

    def largest_batch_within(self, step_s: float) -> float:
        """Largest batch whose step lasts at most ``step_s``; 0 when not even one sequence does."""
        if self.step_s(1) > step_s:
            return 0.0
        return (
            (step_s - self.fixed_s - self.experts_s) / self.sequence_s
            if self.experts_s == 0
            else self._search(step_s)
        )

    def _search(self, step_s: float) -> float:
        low, high = 1.0, step_s / self.sequence_s
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self.step_s(middle) <= step_s else (low, middle)
        return low


def formula(
    *,
    weights: Weights,
    layers: int,
    active_parameters: float,
    kv_bytes_per_token: float,
    context_tokens: float,
    prompt_per_generated: float,
    tensor_parallel: int,
    bandwidth_bytes_per_s: float,
    flops: float,
    half_width: float,
) -> DecodeStep:
    """The prior of 2.2, with what mixtures and narrow weights add.

    Args:
        weights: bytes read per step, all ranks.
        layers: L, for the cost of all-reduce between ranks.
        active_parameters: P_act, parameters one token uses.
        kv_bytes_per_token: all layers, all ranks together.
        context_tokens: mean tokens in cache per sequence.
        prompt_per_generated: n_in/n_out: prefill rides on the same steps.
        tensor_parallel: TP.
        bandwidth_bytes_per_s, flops: peak memory bandwidth and dense 16-bit rate of one GPU.
        half_width: relative half-width of the claim (``HALF_WIDTH_…``).
    """
    bandwidth = tensor_parallel * bandwidth_bytes_per_s
    flop_s = FLOP_EFFICIENCY * 2 * active_parameters * (1 + prompt_per_generated) / (tensor_parallel * flops)
    between_ranks = TP_LAYER_OVERHEAD_S * layers if tensor_parallel > 1 else 0.0
    doublings = log2(tensor_parallel) if weights.expert_bytes > 0 else 0.0
    read_s_per_byte = WEIGHT_EFFICIENCY * weights.kernel / bandwidth
    return DecodeStep(
        fixed_s=read_s_per_byte * weights.shared_bytes
        + STEP_OVERHEAD_S
        + between_ranks
        + MIXTURE_LAYER_S * layers * doublings,
        sequence_s=context_tokens * kv_bytes_per_token / bandwidth
        + SEQUENCE_OVERHEAD_S
        + flop_s
        + MIXTURE_SEQUENCE_S * doublings,
        basis="formula",
        half_width=half_width,
        experts_s=read_s_per_byte * weights.expert_bytes,
        expert_share=weights.expert_share,
        flop_s=flop_s,
    )


def with_compute_term(fitted: DecodeStep, prior: DecodeStep) -> DecodeStep:
    """A fit that also knows how much of its slope is arithmetic: the formula's term, at most the slope itself."""
    return replace(fitted, flop_s=min(prior.flop_s, fitted.sequence_s))


def anchored(prior: DecodeStep, *, batch: float, step_s: float) -> DecodeStep | None:
    """The formula's slope through one measured step: for engines whose weight bytes are not known.

    None when the slope alone would explain more than the measured step.
    """
    fixed_s = step_s - batch * prior.sequence_s
    if fixed_s <= 0:
        return None
    return replace(
        prior,
        fixed_s=fixed_s,
        experts_s=0.0,
        expert_share=0.0,
        basis="anchored",
        half_width=max(prior.half_width, 0.30),
    )


def fit(profile: Mapping[float, BatchPoint], prior: DecodeStep | None = None) -> DecodeStep | None:
    """Fit a and b of t = a + b·B from an engine's batch profile; None when the data do not allow it.

    Least squares on relative residuals, weighted by time. Conditions: at least ``FIT_MIN_BATCHES`` batch sizes
    with ``FIT_MIN_BATCH_S`` each, ``FIT_MIN_TOTAL_S`` in all, a spread of ``FIT_MIN_SPREAD``, both coefficients
    positive, residuals within ``FIT_MAX_ERROR``. The half-width is that of the residuals, and ``HALF_WIDTH_FIT`` at least.

    A mixture's step is no line: the more sequences, the more experts are read. With the formula as ``prior`` its time
    for the experts is taken as known, and the line is what remains.
    """
    experts_s, expert_share = (0.0, 0.0) if prior is None else (prior.experts_s, prior.expert_share)
    found = _fit(profile, experts_s, expert_share)
    return _fit(profile, 0.0, 0.0) if found is None and experts_s else found


def _fit(profile: Mapping[float, BatchPoint], experts_s: float, expert_share: float) -> DecodeStep | None:
    points = [
        (batch, batch * point.seconds / point.generated_tokens, point.seconds)
        for batch, point in sorted(profile.items())
        if batch >= 1 and point.seconds >= FIT_MIN_BATCH_S and point.generated_tokens > 0
    ]
    if len(points) < FIT_MIN_BATCHES or sum(seconds for _, _, seconds in points) < FIT_MIN_TOTAL_S:
        return None
    if points[-1][0] < FIT_MIN_SPREAD * points[0][0]:
        return None
    experts = DecodeStep(0.0, 0.0, "fit", 0.0, experts_s, expert_share)
    found = _line([(batch, step - experts.step_s(batch), s / step**2) for batch, step, s in points])
    if found is None:
        return None
    a, b = found
    law = replace(experts, fixed_s=a, sequence_s=b, reach=FIT_REACH * points[-1][0])
    total = sum(seconds for _, _, seconds in points)
    error = (sum(s * (law.step_s(batch) / step - 1) ** 2 for batch, step, s in points) / total) ** 0.5
    if a <= 0 or b <= 0 or error > FIT_MAX_ERROR:
        return None
    deviation = error * (len(points) / (len(points) - 2)) ** 0.5
    return replace(law, half_width=max(HALF_WIDTH_FIT, FIT_QUANTILE * deviation))


def _line(points: list[tuple[float, float, float]]) -> tuple[float, float] | None:
    """Least squares of (batch, time, weight); weights of seconds/step² make residuals relative to the step."""
    total = sum(weight for _, _, weight in points)
    mean_b = sum(w * batch for batch, _, w in points) / total
    mean_t = sum(w * time for _, time, w in points) / total
    spread = sum(w * (batch - mean_b) ** 2 for batch, _, w in points)
    if spread <= 0:
        return None
    slope = sum(w * (batch - mean_b) * (time - mean_t) for batch, time, w in points) / spread
    return mean_t - slope * mean_b, slope
