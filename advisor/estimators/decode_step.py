"""Time of one decode step as a function of the batch: the half-saturation law t(B) = T_fix + B·τ.

Formula (advisor-rules 2.2, coefficients fitted on 107 public vLLM points):

    T_fix = 1.08·W/(TP·BW) + 2.0 ms + 40 µs·L·[TP>1]
    τ     = ctx·kv/(TP·BW) + 42 µs + 1.35·2·P_act·(1 + n_in/n_out)/(TP·F)
    tok/s = B/t(B),  B_half = T_fix/τ

Better, where the site's own data allow it: a and b of t = a + b·B fitted on the engine's batch profile.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from core.finding import Range
from core.hours import BatchPoint

WEIGHT_EFFICIENCY: Final = 1.08
STEP_OVERHEAD_S: Final = 2.0e-3
SEQUENCE_OVERHEAD_S: Final = 42e-6
TP_LAYER_OVERHEAD_S: Final = 40e-6
FLOP_EFFICIENCY: Final = 1.35

HALF_WIDTH_FIT: Final = 0.10
HALF_WIDTH_DENSE_HOPPER: Final = 0.20
HALF_WIDTH_ELSEWHERE: Final = 0.50
"""Relative half-widths of 7.3: site fit, formula on Hopper dense, formula elsewhere."""

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
"""A fit is trusted up to this many times its largest batch; beyond it the formula's half-width counts."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Bytes of weights one step reads, over all ranks.

    Attributes:
        shared_bytes: read at every step.
        expert_bytes: all routed experts of a mixture; 0 for dense models.
        expert_share: share of the experts one token uses, k/E; unused when there are none.
    """

    shared_bytes: float
    expert_bytes: float = 0.0
    expert_share: float = 0.0

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
            return max(self.half_width, HALF_WIDTH_DENSE_HOPPER)
        return self.half_width

    def gain(self, now: float, then: float) -> Range:
        """Throughput at batch ``then`` over that at ``now`` ≤ ``then``.

        Never below 1 (a larger batch does not generate less) and never above then/now (a step does not get faster).
        """
        middle = self.tokens_per_s(then) / self.tokens_per_s(now)
        width = self.width_at(then)
        return Range(
            max(1.0, middle * (1 - width)), middle, max(middle, min(then / now, middle * (1 + width)))
        )

    def latency_factor(self, now: float, then: float) -> Range:
        """Inter-token latency at batch ``then`` over that at ``now`` ≤ ``then``; never below 1."""
        middle = self.step_s(then) / self.step_s(now)
        width = self.width_at(then)
        return Range(max(1.0, middle * (1 - width)), middle, middle * (1 + width))

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
    """The prior of 2.2.

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
    return DecodeStep(
        fixed_s=WEIGHT_EFFICIENCY * weights.shared_bytes / bandwidth + STEP_OVERHEAD_S + between_ranks,
        sequence_s=context_tokens * kv_bytes_per_token / bandwidth + SEQUENCE_OVERHEAD_S + flop_s,
        basis="formula",
        half_width=half_width,
        experts_s=WEIGHT_EFFICIENCY * weights.expert_bytes / bandwidth,
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


def fit(profile: Mapping[float, BatchPoint]) -> DecodeStep | None:
    """Fit a and b of t = a + b·B from an engine's batch profile; None when the data do not allow it.

    Least squares on relative residuals, weighted by time. Conditions: at least ``FIT_MIN_BATCHES`` batch sizes
    with ``FIT_MIN_BATCH_S`` each, ``FIT_MIN_TOTAL_S`` in all, a spread of ``FIT_MIN_SPREAD``, both coefficients
    positive, residuals within ``FIT_MAX_ERROR``.
    """
    points = [
        (batch, batch * point.seconds / point.generated_tokens, point.seconds)
        for batch, point in sorted(profile.items())
        if batch >= 1 and point.seconds >= FIT_MIN_BATCH_S and point.generated_tokens > 0
    ]
    if len(points) < FIT_MIN_BATCHES or sum(seconds for _, _, seconds in points) < FIT_MIN_TOTAL_S:
        return None
    if points[-1][0] < FIT_MIN_SPREAD * points[0][0]:
        return None
    found = _line(points)
    if found is None:
        return None
    a, b = found
    total = sum(seconds for _, _, seconds in points)
    error = (sum(s * ((a + b * batch) / step - 1) ** 2 for batch, step, s in points) / total) ** 0.5
    if a <= 0 or b <= 0 or error > FIT_MAX_ERROR:
        return None
    return DecodeStep(a, b, "fit", HALF_WIDTH_FIT, reach=FIT_REACH * points[-1][0])


def _line(points: list[tuple[float, float, float]]) -> tuple[float, float] | None:
    """Weighted least squares of (batch, step, seconds); weights seconds/step² make residuals relative."""
    weights = [seconds / step**2 for _, step, seconds in points]
    total = sum(weights)
    mean_b = sum(w * batch for w, (batch, _, _) in zip(weights, points, strict=True)) / total
    mean_t = sum(w * step for w, (_, step, _) in zip(weights, points, strict=True)) / total
    spread = sum(w * (batch - mean_b) ** 2 for w, (batch, _, _) in zip(weights, points, strict=True))
    if spread <= 0:
        return None
    slope = (
        sum(
            w * (batch - mean_b) * (step - mean_t)
            for w, (batch, step, _) in zip(weights, points, strict=True)
        )
        / spread
    )
    return mean_t - slope * mean_b, slope
