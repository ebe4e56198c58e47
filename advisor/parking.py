"""When a GPU held a model and did nothing, and whether it still does."""

from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Final

from pydantic import Field

from advisor.digest import digest
from advisor.idle_hours import ROUNDING_S, serving_hours, silence_h, typical_memory_bytes, weighted_mean
from advisor.memo import OncePerEvidence
from advisor.model import Limits
from core.activity import HELD_MEMORY_BYTES
from core.evidence import Evidence, GpuEvidence
from core.parked_hours import NO_HOURS, ParkedHours, parked_hours
from core.series import HourSeries
from core.units import DAY_MS, HOUR_MS

WEEK_DAYS: Final = 7
WEEK_H: Final = 24 * WEEK_DAYS


class ParkedModelLimits(Limits):
    """Thresholds of ``parked-model``."""

    min_days: Annotated[int, Field(ge=1, le=7)] = 3
    """Days of the last seven with at least one whole parked hour (R02)."""
    min_parked_ratio: Annotated[float, Field(gt=0, le=1)] = 0.95
    """Share of the data that makes a GPU parked throughout (R02: 95 % of 14 d)."""
    min_data_h: Annotated[float, Field(gt=0, le=336)] = 1.0
    """Less data than one hour is a pause, not a parked model."""
    min_cash_h: Annotated[float, Field(gt=0, le=336)] = 24.0
    """Less data than a day is no month's money: the hours are told, the cash is not."""
    whole_hour_ratio: Annotated[float, Field(gt=0.5, le=1)] = 0.95
    """Share of an hour that must be parked for it to count whole: pauses between requests are not parking."""
    min_hour_coverage_ratio: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Coverage below which an hour is not judged. A gap must never read as idleness."""
    min_coverage_ratio: Annotated[float, Field(ge=0, le=1)] = 0.8
    """The same for the whole of the GPU's data."""
    newest_h: Annotated[float, Field(gt=0, le=48)] = 3.0
    """Hours before the last sample that are the present: a model that is not held there has been unloaded."""
    max_silence_h: Annotated[float, Field(gt=0, le=168)] = 3.0
    """Without samples for longer, nobody knows what the GPU is doing now."""


@dataclass(frozen=True)
class Parking:
    """When a GPU was parked; figures of its hours are worked out once."""

    hours: ParkedHours
    parked_h: float
    share: float
    days: int
    throughout: bool
    held_now: bool

    @cached_property
    def memory_bytes(self) -> float | None:
        """Typical memory held."""
        return typical_memory_bytes(self.hours.memory_used_bytes)

    @cached_property
    def power_w(self) -> float | None:
        """Mean power while parked, weighted by time."""
        return weighted_mean(self.hours.parked_power_w, self.hours.parked_s)


NEVER_PARKED: Final = Parking(NO_HOURS, 0.0, 0.0, 0, throughout=False, held_now=False)


def _parkings(_evidence: Evidence) -> dict[tuple[str, ParkedModelLimits], Parking]:
    """What was asked for so far."""
    return {}


parkings = OncePerEvidence(_parkings)


def parking_of(evidence: Evidence, gpu: GpuEvidence, limits: ParkedModelLimits) -> Parking:
    """When the GPU held a model and did nothing, and whether it still does."""
    kept, key = parkings(evidence), (gpu.gpu_uuid, limits)
    if key not in kept:
        kept[key] = _parking_of(evidence, gpu, limits)
    return kept[key]


def _parking_of(evidence: Evidence, gpu: GpuEvidence, limits: ParkedModelLimits) -> Parking:
    seen = digest(evidence, gpu)
    if not may_park(evidence, gpu, limits.whole_hour_ratio):
        return NEVER_PARKED
    all_hours = parked_hours(gpu.hours)
    hours = all_hours.where(_are_parked(gpu, all_hours, serving_hours(evidence, gpu), limits))
    if not hours:
        return NEVER_PARKED
    parked_h = sum(hours.parked_s) / 3600
    share = parked_h / seen.covered_h if seen.covered_h > 0 else 0.0
    newest_ms = gpu.last_sample_ms - round(limits.newest_h * HOUR_MS) - HOUR_MS
    throughout = (
        share >= limits.min_parked_ratio
        and seen.covered_h >= limits.min_data_h
        and hours.hour_ms[-1] > newest_ms
    )
    lately = all_hours.memory_used_bytes[bisect_right(all_hours.hour_ms, newest_ms) :]
    held = any((memory_bytes or 0.0) >= HELD_MEMORY_BYTES for memory_bytes in lately)
    return Parking(hours, parked_h, share, _days(evidence, hours, limits), throughout, held)


def _no_answers(_evidence: Evidence) -> dict[tuple[str, float], bool]:
    """What was asked for so far."""
    return {}


_answers = OncePerEvidence(_no_answers)


def may_park(evidence: Evidence, gpu: GpuEvidence, share: float) -> bool:
    """Whether some hour could be parked nearly throughout with a model's memory; of stored ones told by the days."""
    kept, key = _answers(evidence), (gpu.gpu_uuid, share)
    found = kept.get(key)
    if found is None:
        found = kept[key] = digest(evidence, gpu).parked_h > 0 and _has_parked_hour(gpu, share)
    return found


def _has_parked_hour(gpu: GpuEvidence, share: float) -> bool:
    if not isinstance(gpu.hours, HourSeries):
        return True
    for day in gpu.days:
        parked_s, covered_s = day.parked_s, day.covered_s
        if max(parked_s) + ROUNDING_S >= share * min(covered_s) and any(
            seconds + ROUNDING_S >= share * covered
            for seconds, covered in zip(parked_s, covered_s, strict=True)
            if seconds
        ):
            return True
    return False


def _days(evidence: Evidence, hours: ParkedHours, limits: ParkedModelLimits) -> int:
    """Of the last seven, those with a whole parked hour."""
    end_ms, least_s = evidence.window.to_ms - HOUR_MS, limits.min_hour_coverage_ratio * 3600
    last_week = zip(hours.hour_ms[-WEEK_H:], hours.covered_s[-WEEK_H:], strict=True)
    days = {(end_ms - hour_ms) // DAY_MS for hour_ms, covered_s in last_week if covered_s >= least_s}
    return len([day for day in days if day < WEEK_DAYS])


def _are_parked(
    gpu: GpuEvidence, hours: ParkedHours, serving: Collection[int], limits: ParkedModelLimits
) -> list[bool]:
    """Which of them were parked nearly all the time they were seen, with a model's worth of memory, well covered, nothing served.

    The first and the last hour of the data are covered in part; they count for what they are.
    """
    share, least = limits.whole_hour_ratio, limits.min_hour_coverage_ratio
    first_ms, last_ms = gpu.first_sample_ms, gpu.last_sample_ms
    whole_s, last_whole_ms = least * 3600.0, last_ms - HOUR_MS

    def is_covered(hour_ms: int, covered_s: float) -> bool:
        begin, end = max(hour_ms, first_ms), min(hour_ms + HOUR_MS, last_ms)
        due_s = (end - begin) / 1000
        return due_s <= 0 or covered_s >= least * due_s

    return [
        parked_s >= share * covered_s > 0
        and (memory_bytes or 0.0) >= HELD_MEMORY_BYTES
        and (covered_s >= whole_s if first_ms <= hour_ms <= last_whole_ms else is_covered(hour_ms, covered_s))
        and hour_ms not in serving
        for hour_ms, covered_s, parked_s, memory_bytes in zip(
            hours.hour_ms, hours.covered_s, hours.parked_s, hours.memory_used_bytes, strict=True
        )
    ]


def stands_parked(evidence: Evidence, gpu: GpuEvidence, limits: ParkedModelLimits) -> bool:
    """Whether it was parked throughout, and seen to be for long enough."""
    seen = digest(evidence, gpu)
    return (
        silence_h(evidence, gpu) <= limits.max_silence_h
        and seen.coverage >= limits.min_coverage_ratio
        and seen.covered_h >= limits.min_cash_h
        and parking_of(evidence, gpu, limits).throughout
    )
