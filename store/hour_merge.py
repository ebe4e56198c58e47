"""Two parts of one hour made one, when the samples of the first were purged before the second part came. Pure.

Sums add, means weigh by their seconds, histograms merge. Parts that overlap cannot be told apart any more: then the
part that covers more stands, and the loss is counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Generic, NamedTuple, TypeVar

from core.hour_merge import (
    WEAKEST_LAST,
    known_sum,
    merged_engine_hours,
    merged_gpu_hours,
    merged_host_hours,
    weighted,
)
from core.hours import EngineHour, GpuHour, HostHour
from core.quarters import Quarters
from core.samples import EngineSample, GpuSample, HostSample
from core.units import HOUR_MS

CLEARLY_LESS: Final = 0.98
"""An hour that covers less than this share of the stored one is not news: its raw samples were purged."""
H = TypeVar("H", GpuHour, EngineHour, HostHour)
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
    """An hour, the span of the samples it was folded from, and its quarters where it keeps them."""

    hour: H
    span: Span
    quarters: Quarters | None = None


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
    return merged_gpu_hours((first, second), second.hour_ms)


def merged_engine_hour(first: EngineHour, second: EngineHour) -> EngineHour:
    """Both parts of an engine's hour."""
    return merged_engine_hours((first, second), second.hour_ms)


def merged_usage(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Both parts of one line of usage, as columns of ``usage_hour``."""
    weakest = max(first["share_method"], second["share_method"], key=WEAKEST_LAST.index)
    return {
        **second,
        **{name: known_sum((first[name], second[name])) for name in _USAGE_SUMS},
        **{
            name: weighted((first[name], second[name]), (first["allocated_s"], second["allocated_s"]))
            for name in _USAGE_MEANS
        },
        "share_method": weakest,
    }


def merged_host_hour(first: HostHour, second: HostHour) -> HostHour:
    """Both parts of a host's hour."""
    return merged_host_hours((first, second), second.hour_ms)
