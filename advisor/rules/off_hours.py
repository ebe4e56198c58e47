"""A GPU does nothing in the same hours of every week.

What it finds
    GPUs with hours of the week (168 bins, in UTC) in which they were idle for at least 90 % of the hour in three of
    four weeks, at least two such hours in a row. With less than four weeks every week must agree, and the finding is
    tentative. A schedule made without the last week is run over the last week: what it would have saved and which
    minutes of work it would have cut off are told, and where they are many there is no finding. A host whose GPUs all
    have off hours, most of them in common, is one finding.

Why it costs
    The card is billed by night and at the weekend as by day. The bill falls only when the whole billing unit can be
    off at the same time; for a node that is the hours in which all of its GPUs are off. Every start costs time as
    well: weights are loaded, graphs captured, images pulled, and that is taken off.

When it is wrong
    A standby that must answer at once, a month's end or a season that the window does not show, hours that follow
    local time across a change of the clocks: the site's time zone is not known here, all times are UTC.

What to do
    Stop the work and hand the unit back in these hours, by the scheduler or autoscaler that starts it. Where hours are
    less regular than this, unload after as many idle seconds as a start takes: that never costs more than twice what
    perfect foresight would.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Final

from pydantic import Field

from advisor.confidence import duration
from advisor.digest import digest
from advisor.estimators.off_hours import WEEK_H, Schedule, schedule_of
from advisor.fleet import gpu_subject
from advisor.idle import idle_gpus
from advisor.idle_hours import silence_h
from advisor.model import Limits, Rule, Source, Verdict
from advisor.off_hours_advice import Case, finding_of
from advisor.off_schedule import (
    Habit,
    active_hours,
    host_schedules,
    idle_h,
    paid_schedules,
    parked_power_w,
    tested_on_last_week,
)
from core.evidence import EngineEvidence, Evidence, GpuEvidence
from core.finding import Effort, Finding, NotEvaluated, Risk
from core.percent import percent

RULE_ID: Final = "off-hours"
MOSTLY_IN_COMMON_RATIO: Final = 0.8
"""Of the longest off hours of its GPUs, those that all have: with fewer a host has no schedule of its own (ours)."""
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


def evaluate(evidence: Evidence, limits: OffHoursLimits) -> Iterator[Verdict]:
    """Every GPU with regular idle hours that does not stand idle altogether: of those the stop rules speak."""
    engines: dict[str, list[EngineEvidence]] = {}
    for engine in evidence.engines:
        for uuid in engine.gpu_uuids:
            engines.setdefault(uuid, []).append(engine)
    standing = idle_gpus(evidence)
    habits: dict[str, Habit] = {}
    for gpu in evidence.gpus:
        if gpu.gpu_uuid in standing:
            continue
        judged = _judged(evidence, gpu, engines.get(gpu.gpu_uuid, []), limits)
        if isinstance(judged, Habit):
            habits[gpu.gpu_uuid] = judged
        elif judged is not None:
            yield NotEvaluated(RULE_ID, gpu_subject(gpu), *judged, denies=judged[0] == HABIT)
    if habits:
        yield from _findings(evidence, habits, engines, standing, limits)


def _findings(
    evidence: Evidence,
    habits: Mapping[str, Habit],
    engines: Mapping[str, list[EngineEvidence]],
    standing: Collection[str],
    limits: OffHoursLimits,
) -> Iterator[Verdict]:
    on_host = host_schedules(evidence, habits, standing, limits.min_block_h)
    paid = paid_schedules(evidence, habits, standing, on_host)
    for gpu in evidence.gpus:
        habit = habits.get(gpu.gpu_uuid)
        if habit is None:
            continue
        unit, release = paid[gpu.gpu_uuid]
        case = Case(
            gpu=gpu,
            habit=habit,
            host=on_host.get(gpu.identity.host) if gpu.host_gpu_count > 1 else None,
            unit=unit,
            release=release,
            engines=tuple(engines.get(gpu.gpu_uuid, ())),
            measured_start_s=limits.cold_start_s,
            start_penalty_usd=limits.start_penalty_usd,
            max_active_ratio=limits.max_active_ratio,
        )
        yield finding_of(evidence, case)


def _judged(
    evidence: Evidence, gpu: GpuEvidence, engines: list[EngineEvidence], limits: OffHoursLimits
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


def of_host(host: str, parts: Sequence[Finding]) -> tuple[str, str] | None:
    """Of a host whose GPUs all have off hours, most of them in common; else each GPU is another matter."""
    together = parts[0].evidence.get("host_off_h_week")
    hours = sorted({part.evidence["off_h_week"] for part in parts})
    if together is None or together < MOSTLY_IN_COMMON_RATIO * hours[-1]:
        return None
    weeks = min(part.evidence["weeks_seen"] for part in parts)
    words = parts[0].evidence["host_off_schedule_utc"]
    return (
        f"Switch {host} with its {len(parts)} GPUs off in {together} of 168 hours a week",
        f"All {len(parts)} GPUs are idle together in {together} of 168 hours, the same in {weeks} weeks (UTC: {words}).",
    )


RULE: Final = Rule(
    id=RULE_ID,
    code="R04",
    title="Switch GPUs off in the hours nobody uses them",
    needs=frozenset({"busy_ratio", "memory_used_bytes"}),
    limits=OffHoursLimits(),
    effort=Effort.MEDIUM,
    risk=Risk.MEDIUM,
    sources=(
        Source("Vadari, The Model Parking Tax", "https://arxiv.org/abs/2605.23918"),
        Source(
            "AWS Compute Optimizer: metric requirements",
            "https://docs.aws.amazon.com/compute-optimizer/latest/ug/requirements.html",
        ),
        Source(
            "Karlin et al., Competitive randomized algorithms for nonuniform problems (the keep-warm bound)",
            "https://doi.org/10.1007/BF01189993",
        ),
    ),
    evaluate=evaluate,
    of_host=of_host,
)
