"""Two parts of one hour made one, when the samples of the first were purged before the second part came. Pure.

Sums add, means weigh by their seconds, histograms merge. Parts that overlap cannot be told apart any more: then the
part that covers more stands, and the loss is counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, Generic, NamedTuple, TypeVar

from core.activity import Activity
from core.histogram import Histogram
from core.hours import BatchPoint, EngineHour, GpuHour, HostHour
from core.samples import EnergyMethod, EngineSample, GpuSample, HostSample
from core.units import HOUR_MS
from store.fold_host import HOST_MEANS
from store.fold_hours import MEANS, MIN_ENERGY_SHARE
from store.fold_usage import WEAKEST_LAST

CLEARLY_LESS: Final = 0.98
"""An hour that covers less than this share of the stored one is not news: its raw samples were purged."""
H = TypeVar("H", GpuHour, EngineHour, HostHour)
_ENGINE_SUMS: Final = (
    "generated_tokens",
    "busy_generated_tokens",
    "prompt_tokens",
    "cached_prompt_tokens",
    "preemption_count",
    "finished_requests",
    "ttft_sum_s",
    "ttft_count",
    "itl_sum_s",
    "itl_count",
)
_HIGHEST: Final = ("memory_used_max_bytes", "power_max_w", "temperature_max_c")
_USAGE_SUMS: Final = ("allocated_s", "active_s", "effective_s", "memory_byte_s", "energy_j")
_USAGE_MEANS: Final = ("cpu_ratio", "cpu_thread_ratio")


class Span(NamedTuple):
    """From the first to the last instant that samples of an hour vouch for."""

    from_ms: int
    to_ms: int

    def joined(self, other: "Span") -> "Span":
        """From the first of both to the last of both."""
        return Span(min(self.from_ms, other.from_ms), max(self.to_ms, other.to_ms))


@dataclass(frozen=True, slots=True)
class Folded(Generic[H]):
    """An hour and the span of the samples it was folded from."""

    hour: H
    span: Span


@dataclass(frozen=True, slots=True)
class Stored:
    """What is known of an hour in the database; no span: written before spans were kept."""

    covered_s: float
    span: Span | None


class Verdict(StrEnum):
    """What becomes of a stored hour when its GPU's or engine's hour was folded again."""

    REPLACE = "replace"
    MERGE = "merge"
    KEEP = "keep"


def span_of(samples: Sequence[GpuSample] | Sequence[EngineSample]) -> Span:
    """Span of samples in order of time; the first is covered to its end, the last from its start (cut files)."""
    first, last = samples[0], samples[-1]
    if first is last:
        return Span(first.ts_ms, first.ts_ms + first.span_ms)
    return Span(first.ts_ms + first.span_ms - first.covered_ms, last.ts_ms + last.covered_ms)


def span_of_host(samples: Sequence[HostSample]) -> Span:
    """Span of samples in order of time; each vouches for the whole of its interval."""
    return Span(samples[0].ts_ms, samples[-1].ts_ms + samples[-1].span_ms)


def judge(new: Folded[Any], stored: Stored | None) -> Verdict:
    """A fold that misses all that was stored shows that those samples are gone: then both are parts of the hour."""
    if stored is None:
        return Verdict.REPLACE
    old = stored.span
    if old is not None and (new.span.from_ms >= old.to_ms or new.span.to_ms <= old.from_ms):
        return Verdict.MERGE
    return Verdict.REPLACE if new.hour.covered_s >= CLEARLY_LESS * stored.covered_s else Verdict.KEEP


def leaves_out(new: Folded[Any], stored: Stored) -> bool:
    """The new fold misses more than a little of what the stored hour was folded from."""
    if stored.span is None:
        return False
    missed_ms = max(0, new.span.from_ms - stored.span.from_ms) + max(0, stored.span.to_ms - new.span.to_ms)
    return missed_ms > (1 - CLEARLY_LESS) * HOUR_MS


def merged_gpu_hour(first: GpuHour, second: GpuHour) -> GpuHour:
    """Both parts of a GPU's hour, in order of time."""

    def mean(name: str, first_s: float, second_s: float) -> float | None:
        return _mean(getattr(first, name), first_s, getattr(second, name), second_s)

    covered = (first.covered_s, second.covered_s)
    empty = [hour.seconds.get(Activity.EMPTY, 0.0) for hour in (first, second)]
    parked = [hour.seconds.get(Activity.PARKED, 0.0) for hour in (first, second)]
    rest: dict[str, Any] = {
        name: mean(name, *covered) for name in (*MEANS, "pcie_bytes_per_s", "nvlink_bytes_per_s")
    }
    rest |= {name: _highest(getattr(first, name), getattr(second, name)) for name in _HIGHEST}
    return replace(
        second,
        covered_s=sum(covered),
        seconds=_added(first.seconds, second.seconds),
        joules=_added(first.joules, second.joules),
        energy_j=_sum(first.energy_j, second.energy_j),
        energy_method=_method(first.energy_method, second.energy_method),
        energy_covered_s=first.energy_covered_s + second.energy_covered_s,
        allocated_s=first.allocated_s + second.allocated_s,
        active_s=first.active_s + second.active_s,
        effective_s=first.effective_s + second.effective_s,
        effective_unknown_s=first.effective_unknown_s + second.effective_unknown_s,
        power_limit_w=first.power_limit_w if second.power_limit_w is None else second.power_limit_w,
        empty_power_w=mean("empty_power_w", *empty),
        parked_power_w=mean("parked_power_w", *parked),
        sm_clock_hz=mean("sm_clock_hz", first.active_s, second.active_s),
        throttled_s=_sum(first.throttled_s, second.throttled_s),
        slowed_power_s=_sum(first.slowed_power_s, second.slowed_power_s),
        slowed_thermal_s=_sum(first.slowed_thermal_s, second.slowed_thermal_s),
        temperature_margin_min_c=_lowest(first.temperature_margin_min_c, second.temperature_margin_min_c),
        **rest,
    )


def merged_engine_hour(first: EngineHour, second: EngineHour) -> EngineHour:
    """Both parts of an engine's hour."""
    profile = dict(first.profile)
    for batch, point in second.profile.items():
        old = profile.get(batch, BatchPoint(0.0, 0.0, 0.0))
        profile[batch] = BatchPoint(
            old.seconds + point.seconds,
            old.generated_tokens + point.generated_tokens,
            old.prompt_tokens + point.prompt_tokens,
        )
    sums: dict[str, Any] = {name: _sum(getattr(first, name), getattr(second, name)) for name in _ENGINE_SUMS}
    return replace(
        second,
        covered_s=first.covered_s + second.covered_s,
        busy_s=first.busy_s + second.busy_s,
        running=Histogram.merged((first.running, second.running)),
        waiting=Histogram.merged((first.waiting, second.waiting)),
        kv_used=Histogram.merged((first.kv_used, second.kv_used)),
        profile=profile,
        busy_energy_j=_busy_energy(first, second),
        **sums,
    )


def merged_usage(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Both parts of one line of usage, as columns of ``usage_hour``."""
    weakest = max(first["share_method"], second["share_method"], key=WEAKEST_LAST.index)
    return {
        **second,
        **{name: _sum(first[name], second[name]) for name in _USAGE_SUMS},
        **{
            name: _mean(first[name], first["allocated_s"], second[name], second["allocated_s"])
            for name in _USAGE_MEANS
        },
        "share_method": weakest,
    }


def merged_host_hour(first: HostHour, second: HostHour) -> HostHour:
    """Both parts of a host's hour."""
    means: dict[str, Any] = {
        name: _mean(getattr(first, name), first.covered_s, getattr(second, name), second.covered_s)
        for name in HOST_MEANS
    }
    return replace(second, covered_s=first.covered_s + second.covered_s, **means)


def _busy_energy(first: EngineHour, second: EngineHour) -> float | None:
    known = [hour for hour in (first, second) if hour.busy_energy_j is not None]
    measured_s = sum(hour.busy_s for hour in known)
    enough = bool(known) and measured_s >= MIN_ENERGY_SHARE * (first.busy_s + second.busy_s)
    return _sum(first.busy_energy_j, second.busy_energy_j) if enough else None


def _method(first: EnergyMethod | None, second: EnergyMethod | None) -> EnergyMethod | None:
    known = {method for method in (first, second) if method is not None}
    return EnergyMethod.MIXED if len(known) > 1 else next(iter(known), None)


def _added(first: Any, second: Any) -> dict[Activity, float]:
    return {
        activity: first.get(activity, 0.0) + second.get(activity, 0.0)
        for activity in Activity
        if activity in first or activity in second
    }


def _sum(first: float | None, second: float | None) -> float | None:
    return None if first is None and second is None else (first or 0.0) + (second or 0.0)


def _highest(first: float | None, second: float | None) -> float | None:
    return max((value for value in (first, second) if value is not None), default=None)


def _lowest(first: float | None, second: float | None) -> float | None:
    return min((value for value in (first, second) if value is not None), default=None)


def _mean(first: float | None, first_s: float, second: float | None, second_s: float) -> float | None:
    """Mean by seconds over what is known."""
    if first is None or second is None:
        return second if first is None else first
    whole_s = first_s + second_s
    return (first * first_s + second * second_s) / whole_s if whole_s > 0 else second
