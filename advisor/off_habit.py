"""The weekly habit of a GPU, or why its weeks cannot be judged: one answer for the rules on off hours and on empty GPUs."""

from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import Field

from advisor.confidence import duration
from advisor.digest import digest
from advisor.engines_on import engines_on
from advisor.estimators.off_hours import WEEK_H, Schedule, schedule_of
from advisor.idle_hours import silence_h
from advisor.memo import OncePerEvidence
from advisor.model import Limits
from advisor.off_schedule import Habit, active_hours, idle_h, parked_power_w, tested_on_last_week
from core.evidence import EngineEvidence, Evidence, GpuEvidence
from core.percent import percent

HABIT: Final = ("a habit that repeats",)
"""What is missing where the last week does not bear the schedule out: no lack of data, but what they say."""
Refusal = tuple[tuple[str, ...], str]


class OffHoursLimits(Limits):
    """Thresholds of ``off-hours``."""

    max_active_ratio: Annotated[float, Field(ge=0, le=0.5)] = 0.1
    """Share of an hour that may be active and still be off: p90 of activity below 5 % (R04)."""
    weeks_ratio: Annotated[float, Field(ge=0.5, le=1)] = 0.75
    """Of four or more weeks, those in which the hour must be off (R04: 3 of 4)."""
    min_weeks: Annotated[int, Field(ge=2, le=52)] = 2
    """Weeks that an hour of the week must have been seen; below four the finding is tentative (R04)."""
    min_block_h: Annotated[int, Field(ge=2, le=48)] = 2
    """Shorter stretches are not worth a start (R04)."""
    min_off_h_week: Annotated[float, Field(ge=2, le=168)] = 10.0
    """Fewer off hours a week are not worth a schedule."""
    max_wrongly_off_min: Annotated[float, Field(ge=0, le=1440)] = 60.0
    """Minutes of work that the schedule would have cut off in the last week; more, and the habit does not hold."""
    min_hour_coverage_ratio: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Coverage below which an hour is not judged. A gap must never read as idleness."""
    min_coverage_ratio: Annotated[float, Field(ge=0, le=1)] = 0.8
    """The same for the whole of the GPU's data, and for the week of the back-test."""
    max_silence_h: Annotated[float, Field(gt=0, le=168)] = 24.0
    """Without samples for longer, nobody knows what the GPU is doing now; a night off is not silence."""
    cold_start_s: Annotated[float | None, Field(gt=0, le=86_400)] = None
    """Seconds of a start as measured on this site; None: the vendor's figures by model size (R04)."""
    start_penalty_usd: Annotated[float, Field(ge=0, le=1_000_000)] = 0.0
    """What late answers cost per start, taken off the cash figure (R04: SLO penalty)."""


def _no_habits(_evidence: Evidence) -> dict[tuple[str, OffHoursLimits], Habit | Refusal | None]:
    """What was asked for so far."""
    return {}


_habits = OncePerEvidence(_no_habits)


def habit_of(evidence: Evidence, gpu: GpuEvidence, limits: OffHoursLimits) -> Habit | Refusal | None:
    """The GPU's habit; why it cannot be judged; None when it has none."""
    kept, key = _habits(evidence), (gpu.gpu_uuid, limits)
    if key not in kept:
        kept[key] = _judged(evidence, gpu, engines_on(evidence).get(gpu.gpu_uuid, ()), limits)
    return kept[key]


def _judged(
    evidence: Evidence, gpu: GpuEvidence, engines: Sequence[EngineEvidence], limits: OffHoursLimits
) -> Habit | Refusal | None:
    """The GPU's habit; why it cannot be judged; None when it has none."""
    seen = digest(evidence, gpu)
    if seen.covered_h > 0 and seen.unknown_h > 0.5 * seen.covered_h:
        return (
            "busy_ratio",
            "memory_used_bytes",
        ), "Utilization or memory was not read, so off hours cannot be told from work."
    idle = idle_h(evidence, gpu)
    if seen.observed_h <= 0 or idle < limits.min_off_h_week / WEEK_H * seen.observed_h:
        return None
    refusal = _thin(evidence, gpu, limits)
    if refusal is not None:
        return refusal
    hours = active_hours(gpu, engines, limits.min_hour_coverage_ratio)
    schedule = schedule_of(
        hours,
        min_weeks=limits.min_weeks,
        max_active=limits.max_active_ratio,
        weeks_ratio=limits.weeks_ratio,
        min_block_h=limits.min_block_h,
    )
    if schedule is None or not limits.min_off_h_week <= schedule.off_h < WEEK_H:
        return None
    tested = tested_on_last_week(
        hours,
        max_active=limits.max_active_ratio,
        weeks_ratio=limits.weeks_ratio,
        min_block_h=limits.min_block_h,
    )
    habit = Habit(schedule, tested, hours, parked_power_w(gpu))
    return _unrepeated(habit, schedule, limits) or habit


def _thin(evidence: Evidence, gpu: GpuEvidence, limits: OffHoursLimits) -> Refusal | None:
    """Too little data for a weekly habit; None when there is enough."""
    seen = digest(evidence, gpu)
    silent_h = silence_h(evidence, gpu)
    if silent_h > limits.max_silence_h:
        return (
            "recent samples",
        ), f"The last sample is {duration(silent_h)} old: what the GPU does now is not known."
    due_h = limits.min_weeks * WEEK_H
    if seen.observed_h < 0.99 * due_h:
        return ("time",), (
            f"Idle for {duration(idle_h(evidence, gpu))} of {duration(seen.observed_h)} of data:"
            f" {limits.min_weeks} weeks tell a weekly habit from chance, four are wanted."
        )
    if seen.coverage < limits.min_coverage_ratio:
        why = f"Samples cover {percent(seen.coverage)} of the time; a gap is unknown, not idle."
        return ("samples",), why
    return None


def _unrepeated(habit: Habit, schedule: Schedule, limits: OffHoursLimits) -> Refusal | None:
    """Why the last week does not bear the habit out; None when it does."""
    tested = habit.tested
    if tested is None:
        return HABIT, (
            f"{schedule.off_h} hours of the week look idle, but the weeks before the last alone do not show them."
        )
    if tested.seen_h < limits.min_coverage_ratio * WEEK_H:
        return ("samples",), f"Only {tested.seen_h:.0f} hours of the last week can test a schedule."
    if tested.wrongly_off_min > limits.max_wrongly_off_min:
        return HABIT, (
            f"A schedule from the earlier weeks would have cut off {tested.wrongly_off_min:.0f} minutes of work in the"
            f" last week; {limits.max_wrongly_off_min:.0f} are allowed."
        )
    return None
