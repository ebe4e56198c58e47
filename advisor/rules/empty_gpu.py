"""A GPU holds no process and no memory for a day or longer.

What it finds
    GPUs that were empty without interruption up to now: under 5 % busy, no compute process, under 2 % of memory in
    use; or a process that holds less than 1 GiB, too little for a model, which is said ("small context held"). At
    least 24 h where capacity is rented, at least 7 days where it is owned. Gaps in the data do not count as empty, nor
    do hours in which the GPU rests every week (off-hours): of those, 24 h must lie outside. A host whose GPUs are all
    empty is one finding.

Why it costs
    The card is billed, or has been bought, and does nothing. The bill falls only when a whole billing unit can be
    handed back: one empty GPU of an eight-GPU node frees capacity for somebody, and saves no money until the other
    seven are free as well. Reserved and owned capacity costs the same used or not.

When it is wrong
    A hot spare, a GPU drained for maintenance, or capacity kept for a known peak. Exclude it until that ends.

What to do
    Hand the unit back, or give the GPU to the queue: what it frees is GPU-hours, and energy where you pay the power.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final

from advisor.confidence import duration, graded, seen_share, widened
from advisor.cron import in_words
from advisor.digest import digest
from advisor.empty_streak import EmptyGpuLimits, Streak, needed_h, streak_of, usual_pause, was_empty
from advisor.facts import price_facts, time_chart, window_facts
from advisor.fleet import Release, billing, gpu_subject, label, month_h, releases
from advisor.idle import idle_gpus
from advisor.idle_hours import busy_words, may_serve, mean_busy_ratio, silence_h
from advisor.model import Rule, Source, Verdict
from advisor.waterfall import base_of
from core.activity import EMPTY_MEMORY_RATIO, Activity
from core.days import seen_hours
from core.evidence import Evidence, GpuEvidence
from core.finding import Action, Effort, Finding, Grade, NotEvaluated, Range, Risk, Saving
from core.hours import GpuHour
from core.percent import percent
from core.series import HourSeries
from core.units import HOURS_PER_MONTH, J_PER_KWH, MIB

RULE_ID: Final = "empty-gpu"
LONGER: Final = ("a pause longer than those of every week",)
"""What is missing where a GPU rests as it does every week: no lack of data, but what they say."""


def evaluate(evidence: Evidence, limits: EmptyGpuLimits) -> Iterator[Verdict]:
    """Every GPU of the fleet."""
    empty: list[tuple[GpuEvidence, Streak]] = []
    for gpu in evidence.gpus:
        streak = streak_of(evidence, gpu, limits)
        refusal = _refusal(evidence, gpu, streak, limits)
        if refusal is not None:
            yield NotEvaluated(RULE_ID, gpu_subject(gpu), *refusal, denies=refusal[0] == LONGER)
        elif streak.idle_h >= needed_h(evidence, gpu, limits):
            empty.append((gpu, streak))
    release = releases(evidence, idle_gpus(evidence) | {gpu.gpu_uuid for gpu, _ in empty})
    for gpu, streak in empty:
        yield _finding(evidence, gpu, streak, release[gpu.gpu_uuid])


def _refusal(
    evidence: Evidence, gpu: GpuEvidence, streak: Streak, limits: EmptyGpuLimits
) -> tuple[tuple[str, ...], str] | None:
    """What is missing and why that matters; None when the GPU can be judged."""
    silent_h = silence_h(evidence, gpu)
    seen = digest(evidence, gpu)
    if seen.unknown_h > 0.5 * seen.covered_h:
        return (
            "busy_ratio",
            "memory_used_bytes",
        ), "Utilization or memory was not read, so empty cannot be told from busy."
    if not streak.hours:
        return None
    if silent_h > limits.max_silence_h:
        return (
            "recent samples",
        ), f"The last sample is {duration(silent_h)} old: what the GPU does now is not known."
    if streak.span_h > 0 and streak.idle_h < limits.min_coverage_ratio * streak.span_h:
        share = streak.idle_h / streak.span_h
        why = f"Samples cover {percent(share)} of the time it seems empty; a gap is unknown, not idle."
        return ("samples",), why
    due_h = needed_h(evidence, gpu, limits)
    if streak.idle_h >= due_h and (pause := usual_pause(evidence, gpu, streak, limits)) is not None:
        return LONGER, (
            f"Empty for {duration(streak.idle_h)}, as in every week: it rests in {pause.off_h} hours of each"
            f" (UTC: {in_words(pause)}) and then works again. The rule off-hours speaks of those."
        )
    if streak.idle_h < due_h and len(streak.starts) == len(gpu.hours):
        return (
            "time",
        ), f"Empty in all {duration(seen.covered_h)} of its data, but {duration(due_h)} are needed."
    return None


@dataclass(frozen=True, slots=True)
class Words:
    """What a finding says of an empty GPU, or of one that holds a small context."""

    grade: Grade
    basis: str
    title: str
    because: str
    state: str


def _words(evidence: Evidence, gpu: GpuEvidence, streak: Streak) -> Words:
    held = streak.context_hours
    memory = streak.memory_bytes if held and held[-1] is streak.hours[-1] else None
    if memory is None:
        basis = "Empty time is measured, not modelled"
        because = "No model and no work" if held else "No process and no memory in use"
        return Words(Grade.A, basis, f"Release {label(gpu)}: it is empty", because, "empty")
    context = f"a small context of {memory / MIB:.0f} MiB is held"
    busy = mean_busy_ratio(
        [hour.busy_ratio for hour in held],
        [hour.sm_active_ratio for hour in held],
        [hour.covered_s for hour in held],
    )
    total = gpu.identity.memory_total_bytes
    negligible = total is not None and memory < EMPTY_MEMORY_RATIO * total
    return Words(
        Grade.A if negligible and not may_serve(evidence, gpu, busy) else Grade.B,
        "Idle time is measured; what the small context is for is not known",
        f"Release {label(gpu)}: only {context}",
        f"{context[0].upper()}{context[1:]}, {busy_words(busy)}",
        "small context held",
    )


def _finding(evidence: Evidence, gpu: GpuEvidence, streak: Streak, release: Release) -> Finding:
    seen = digest(evidence, gpu)
    words = _words(evidence, gpu, streak)
    grade, confidence = graded(words.grade, words.basis, span_h=seen.observed_h, covered_h=seen.covered_h)
    base = base_of(gpu, seen, evidence.window.hours)
    shown = seen_share(evidence.window.hours)
    capacity = widened(month_h(evidence, streak.idle_h), grade, most=base.capacity, seen=shown)
    cash, no_figure = _cash(gpu, capacity, release)
    kwh = _energy_kwh_month(evidence, streak)
    return Finding(
        rule_id=RULE_ID,
        subject=gpu_subject(gpu),
        cause="empty",
        title=words.title,
        because=f"{words.because} for the last {duration(streak.idle_h)} of samples.",
        state=words.state,
        confidence=confidence,
        grade=grade,
        effort=Effort.LOW,
        risk=Risk.LOW,
        saving=Saving(
            cash, capacity, None if kwh is None else widened(kwh, grade, most=base.energy, seen=shown)
        ),
        no_figure=no_figure,
        evidence=_facts(evidence, gpu, streak),
        actions=_actions(gpu, release),
        wrong_when="It is a hot spare, drained for maintenance, or kept for a known peak.",
        not_claimed="What the freed hours are worth to others, and any saving after a change of demand.",
        gpu_uuids=(gpu.gpu_uuid,),
        stage="stop",
        chart=time_chart(
            _busy_shares(gpu)[-24 * 14 :],
            "share of the hour not empty",
            None,
        ),
    )


def _facts(evidence: Evidence, gpu: GpuEvidence, streak: Streak) -> dict[str, Any]:
    optional = {
        "idle_power_w": streak.power_w,
        "memory_held_bytes": streak.memory_bytes,
    }
    return {
        **window_facts(evidence, digest(evidence, gpu).coverage),
        **price_facts(gpu.price),
        "empty_h": round(streak.idle_h, 3),
        "data_h": round(digest(evidence, gpu).covered_h, 3),
        "billing": billing(gpu.price, evidence.site),
        **{name: round(value, 2) for name, value in optional.items() if value is not None},
    }


def _busy_shares(gpu: GpuEvidence) -> list[tuple[int, float | None]]:
    """By hour; of stored ones those of days that were empty throughout are not read."""
    hours = gpu.hours
    if not isinstance(hours, HourSeries):
        return [(hour.hour_ms, _busy_share(hour)) for hour in hours]
    shares: list[tuple[int, float | None]] = []
    for day in gpu.days:
        if was_empty(day):
            shares += zip(seen_hours(day.day_ms, day.seen), repeat(0.0), strict=False)
        else:
            shares += ((hour.hour_ms, _busy_share(hour)) for hour in hours.of_day(day.day_ms))
    return shares


def _busy_share(hour: GpuHour) -> float | None:
    return 1 - hour.seconds.get(Activity.EMPTY, 0.0) / hour.covered_s if hour.covered_s > 0 else None


def _cash(gpu: GpuEvidence, capacity: Range, release: Release) -> tuple[Range | None, str | None]:
    if not release.cash or gpu.price is None:
        return None, f"No cash figure: {release.why_not}."
    return capacity.scaled(float(gpu.price.usd_per_gpu_hour)), None


def _energy_kwh_month(evidence: Evidence, streak: Streak) -> float | None:
    """Only where the site pays its power: inside a rented price there is nothing to save."""
    if not evidence.site.pays_for_power or streak.energy_j is None:
        return None
    return streak.energy_j / J_PER_KWH / evidence.window.hours * HOURS_PER_MONTH


def _actions(gpu: GpuEvidence, release: Release) -> tuple[Action, ...]:
    check = Action(
        "Look once more that nothing holds it",
        f"nvidia-smi -i {gpu.gpu_uuid} --query-compute-apps=pid,name,used_memory --format=csv",
    )
    if release.cash:
        return check, Action("Hand the unit back to the provider, or let the autoscaler remove it.")
    return check, Action(
        "Offer the GPU to the queue, or pack other work onto this host so that a whole unit becomes free."
    )


def of_host(host: str, parts: Sequence[Finding]) -> tuple[str, str]:
    """Of a host whose GPUs are all empty."""
    idle_h = min(part.evidence["empty_h"] for part in parts)
    held = sum("memory_held_bytes" in part.evidence for part in parts)
    context = f"; a small context is or was held on {held} of them" if held else ""
    return (
        f"Release {host}: all of its {len(parts)} GPUs are empty",
        f"No model and no work on any of {len(parts)} GPUs for the last {duration(idle_h)} of samples{context}.",
    )


RULE: Final = Rule(
    id=RULE_ID,
    code="R01",
    title="Release GPUs that are empty",
    needs=frozenset({"busy_ratio", "memory_used_bytes"}),
    limits=EmptyGpuLimits(),
    effort=Effort.LOW,
    risk=Risk.LOW,
    sources=(
        Source(
            "AWS Compute Optimizer: metric requirements",
            "https://docs.aws.amazon.com/compute-optimizer/latest/ug/requirements.html",
        ),
    ),
    evaluate=evaluate,
    of_host=of_host,
)
