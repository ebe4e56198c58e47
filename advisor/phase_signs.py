"""Do prefill and decode get in each other's way: told from latencies by hour and from what ran at each batch size."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from advisor.estimators import utilization
from advisor.estimators.decode_step import DecodeStep
from advisor.serving import Serving
from core.hours import EngineHour

HIGH_MFU: Final = utilization.COMPUTE_BOUND_MFU
LOW_MFU: Final = 0.15
"""Above the first a sample was mostly prefill, below the second mostly decode (2.3)."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Means of one hour, seconds: time to the first token, time between tokens."""

    hour: EngineHour
    ttft_s: float
    itl_s: float


def latencies(hours: Sequence[EngineHour]) -> list[Latency]:
    """Of the hours that publish both."""
    return [
        Latency(hour, hour.ttft_sum_s / hour.ttft_count, hour.itl_sum_s / hour.itl_count)
        for hour in hours
        if hour.ttft_sum_s is not None and hour.ttft_count and hour.itl_sum_s is not None and hour.itl_count
    ]


@dataclass(frozen=True, slots=True)
class Phases:
    """What ran over some hours.

    Attributes:
        high_ratio, low_ratio: shares of time at a batch size where MFU was high, low; None: not known.
        itl_s: mean time between tokens. decode_s: what the step law says of decode alone at the mean batch.
        prefill_ratio: share of a step that prefill's arithmetic takes by the law; None: not known.
    """

    high_ratio: float | None
    low_ratio: float | None
    itl_s: float
    decode_s: float | None
    prefill_ratio: float | None

    def alternates(self, at_least: float) -> bool:
        """Both phases take a good share of the time at different moments."""
        return (self.high_ratio or 0.0) >= at_least and (self.low_ratio or 0.0) >= at_least

    def collides(self, factor: float, at_least: float) -> bool:
        """Tokens come later than decode alone explains, and prefill takes a good share of a step."""
        return (
            self.decode_s is not None
            and self.itl_s >= factor * self.decode_s
            and (self.prefill_ratio or 0.0) >= at_least
        )


def phases(serving: Serving, law: DecodeStep | None, breaches: Sequence[Latency]) -> Phases:
    """Over the hours in which both latencies break their promise.

    Args:
        law: the formula's step law, or a fit with its compute term. breaches: at least one.
    """
    hours = [each.hour for each in breaches]
    tokens = sum(hour.itl_count or 0.0 for hour in hours)
    itl_s = sum(hour.itl_sum_s or 0.0 for hour in hours) / tokens
    high, low = _shares(serving, hours)
    total_s = sum(hour.busy_s for hour in hours)
    batch = (
        sum((hour.running.mean() or 0.0) * hour.busy_s for hour in hours) / total_s if total_s > 0 else 0.0
    )
    ratio = serving.prompt_per_generated
    if law is None or ratio is None or batch <= 0:
        return Phases(high, low, itl_s, None, None)
    prefill_s = batch * law.flop_s * ratio / (1 + ratio)
    whole_s = law.step_s(batch)
    return Phases(high, low, itl_s, whole_s - prefill_s, prefill_s / whole_s)


def _shares(serving: Serving, hours: Sequence[EngineHour]) -> tuple[float | None, float | None]:
    """Shares of the time at high and at low MFU, over the batch sizes of each hour."""
    llm, spec, tp = serving.llm, serving.gpu_spec, serving.tensor_parallel
    if llm is None or spec is None or not spec.bf16_flops or tp is None:
        return None, None
    high_s = low_s = total_s = 0.0
    for hour in hours:
        if hour.prompt_tokens is None:
            continue
        computed = (
            1 - min(1.0, (hour.cached_prompt_tokens or 0.0) / hour.prompt_tokens)
            if hour.prompt_tokens
            else 1.0
        )
        for point in hour.profile.values():
            if point.seconds <= 0:
                continue
            mfu = utilization.mfu(
                active_parameters=llm.active_parameters,
                generated_tokens_per_s=point.generated_tokens / point.seconds,
                prompt_tokens_per_s=computed * point.prompt_tokens / point.seconds,
                tensor_parallel=tp,
                flops=spec.bf16_flops,
            )
            total_s += point.seconds
            high_s += point.seconds if mfu >= HIGH_MFU else 0.0
            low_s += point.seconds if mfu < LOW_MFU else 0.0
    return (high_s / total_s, low_s / total_s) if total_s > 0 else (None, None)
