"""Since when a GPU holds nothing: the unbroken hours up to its last sample."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field

from advisor.estimators.off_hours import Schedule, bin_of
from advisor.fleet import CASH_BILLING, billing
from advisor.idle_hours import ROUNDING_S, serving_hours, silence_h, typical_memory_bytes, weighted_mean
from advisor.memo import OncePerEvidence
from advisor.model import Limits
from advisor.off_habit import OffHoursLimits, habit_of
from advisor.off_schedule import Habit
from core.activity import HELD_MEMORY_BYTES, Activity
from core.days import GpuDay, seen_hours
from core.evidence import Evidence, GpuEvidence
from core.hours import GpuHour
from core.series import HourSeries
from core.units import HOUR_MS

MIN_ENERGY_RATIO: Final = 0.95
"""Energy known for less of the time than this is no figure for the whole of it."""

WEEKLY: Final = OffHoursLimits()
"""What makes a weekly habit, for every rule alike."""


class EmptyGpuLimits(Limits):
    """Thresholds of ``empty-gpu``."""

    min_rented_h: Annotated[float, Field(gt=0, le=8760)] = 24.0
    """Hours a rented GPU must have been empty up to now (R01)."""
    min_owned_h: Annotated[float, Field(gt=0, le=8760)] = 168.0
    """The same for owned or reserved GPUs, where a spare week is normal (R01)."""
    min_coverage_ratio: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Samples received over samples due. A gap must never read as idleness."""
    max_other_ratio: Annotated[float, Field(ge=0, le=0.5)] = 0.01
    """Share of an hour that may be something else and still count as empty: a probe is not work."""
    max_silence_h: Annotated[float, Field(gt=0, le=168)] = 3.0
    """Without samples for longer, nobody knows what the GPU is doing now."""


@dataclass(frozen=True, slots=True)
class Streak:
    """Hours in which a GPU held nothing, or no more than a small context, unbroken up to its last sample.

    Attributes:
        hours: those hours; a day that was empty throughout stands for its own. starts: of each of them, newest first.
        idle_h, span_h: idle time, and time from their start to the last sample.
    """

    hours: Sequence[GpuHour]
    starts: Sequence[int]
    idle_h: float
    span_h: float

    @property
    def energy_j(self) -> float | None:
        """Energy drawn meanwhile; None when not known for nearly the whole of it."""
        covered_s = sum(hour.covered_s for hour in self.hours)
        known_s = sum(min(hour.energy_covered_s, hour.covered_s) for hour in self.hours)
        if covered_s <= 0 or known_s < MIN_ENERGY_RATIO * covered_s:
            return None
        kinds = (Activity.EMPTY, Activity.PARKED)
        return sum(hour.joules.get(kind, 0.0) for hour in self.hours for kind in kinds)

    @property
    def power_w(self) -> float | None:
        """Mean power while idle, weighted by time."""
        return weighted_mean(
            [watts for hour in self.hours for watts in (hour.empty_power_w, hour.parked_power_w)],
            [
                hour.seconds.get(kind, 0.0)
                for hour in self.hours
                for kind in (Activity.EMPTY, Activity.PARKED)
            ],
        )

    @property
    def context_hours(self) -> Sequence[GpuHour]:
        """Its hours in which a process held a small context."""
        return [hour for hour in self.hours if hour.seconds.get(Activity.PARKED, 0.0) > 0]

    @property
    def memory_bytes(self) -> float | None:
        """Typical memory of the small context; None without one."""
        return typical_memory_bytes(hour.memory_used_bytes for hour in self.context_hours)


NO_STREAK: Final = Streak((), (), 0.0, 0.0)


def streak_of(evidence: Evidence, gpu: GpuEvidence, limits: EmptyGpuLimits) -> Streak:
    """The unbroken hours up to the last sample in which the GPU did nothing and held next to nothing."""
    kept, key = streaks(evidence), (gpu.gpu_uuid, limits)
    if key not in kept:
        kept[key] = _streak_of(evidence, gpu, limits)
    return kept[key]


def _streaks(_evidence: Evidence) -> dict[tuple[str, EmptyGpuLimits], Streak]:
    """What was asked for so far."""
    return {}


streaks = OncePerEvidence(_streaks)


def _streak_of(evidence: Evidence, gpu: GpuEvidence, limits: EmptyGpuLimits) -> Streak:
    if isinstance(gpu.hours, HourSeries) and _ended_at_work(gpu.days[-1], limits):
        return NO_STREAK
    serving = serving_hours(evidence, gpu)
    hours: list[GpuHour] = []
    starts: list[int] = []
    for part, begun in _newest_first(gpu):
        idle_s = _unheld_s(part, serving)
        if part.covered_s <= 0 or idle_s < (1 - limits.max_other_ratio) * part.covered_s:
            break
        hours.append(part)
        starts += reversed(begun)
    hours.reverse()
    if not hours:
        return NO_STREAK
    begin = max(starts[-1], gpu.first_sample_ms)
    span_h = (min(starts[0] + HOUR_MS, max(gpu.last_sample_ms, begin)) - begin) / HOUR_MS
    return Streak(hours, starts, sum(_unheld_s(hour, serving) for hour in hours) / 3600, span_h)


def _newest_first(gpu: GpuEvidence) -> Iterator[tuple[GpuHour, Sequence[int]]]:
    """Hours of a GPU, a day that was empty throughout as one, with the starts of the hours that each stands for."""
    hours = gpu.hours
    if not isinstance(hours, HourSeries):
        yield from ((hour, (hour.hour_ms,)) for hour in reversed(hours))
        return
    days_read = 0
    for day in reversed(gpu.days):
        if was_empty(day):
            yield day.whole, seen_hours(day.day_ms, day.seen)
            continue
        if days_read == 1:
            hours.all()  # who looks past two days mostly goes far back: one query then
        days_read += 1
        for hour in reversed(hours.of_day(day.day_ms)):
            yield hour, (hour.hour_ms,)


def was_empty(day: GpuDay) -> bool:
    """Whether nothing held the GPU in any of the day's hours, and all were seen in some part."""
    whole, seen = day.whole, day.seen.bit_count()
    return whole.seconds.get(Activity.EMPTY, 0.0) == whole.covered_s and sum(map(bool, day.covered_s)) == seen


def _ended_at_work(day: GpuDay, limits: EmptyGpuLimits) -> bool:
    """Whether the day's last hour was surely no part of a streak: its idle seconds, with a margin, are too few."""
    last = day.seen.bit_length() - 1
    idle_s = day.covered_s[last] - day.active_s[last] - day.parked_s[last] + ROUNDING_S
    return idle_s < (1 - limits.max_other_ratio) * day.covered_s[last]


def _unheld_s(hour: GpuHour, serving: frozenset[int]) -> float:
    """Seconds empty, and those parked with less than a model's memory where no engine served."""
    empty_s = hour.seconds.get(Activity.EMPTY, 0.0)
    memory = hour.memory_used_bytes
    small = memory is not None and memory < HELD_MEMORY_BYTES and hour.hour_ms not in serving
    return empty_s + hour.seconds.get(Activity.PARKED, 0.0) if small else empty_s


def needed_h(evidence: Evidence, gpu: GpuEvidence, limits: EmptyGpuLimits) -> float:
    """Hours a GPU paid like this must have been empty."""
    rented = billing(gpu.price, evidence.site) in CASH_BILLING
    return limits.min_rented_h if rented else limits.min_owned_h


def usual_pause(
    evidence: Evidence, gpu: GpuEvidence, streak: Streak, limits: EmptyGpuLimits
) -> Schedule | None:
    """The GPU's weekly off hours, where a streak hardly reaches beyond them: a weekend is no reason to release a card.

    None where it has no such habit, or was empty for as long in the hours in which it works as a rented GPU must be.
    """
    if len(streak.starts) == len(gpu.hours):
        return None  # never seen at work: an hour without data is no hour in which it works
    habit = habit_of(evidence, gpu, WEEKLY)
    if not isinstance(habit, Habit):
        return None
    off = habit.schedule.bins
    unusual_h = sum(bin_of(hour_ms) not in off for hour_ms in streak.starts)
    return habit.schedule if unusual_h < limits.min_rented_h else None


def stands_empty(evidence: Evidence, gpu: GpuEvidence, limits: EmptyGpuLimits) -> bool:
    """Whether it has been empty for long enough to be released, was seen to be, and is not so every week."""
    streak = streak_of(evidence, gpu, limits)
    return (
        silence_h(evidence, gpu) <= limits.max_silence_h
        and streak.idle_h >= needed_h(evidence, gpu, limits)
        and streak.idle_h >= limits.min_coverage_ratio * streak.span_h
        and usual_pause(evidence, gpu, streak, limits) is None
    )
