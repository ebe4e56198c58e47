"""A GPU holds no process and no memory for a day or longer.

What it finds
    GPUs that were empty without interruption up to now: no compute process, under 2 % of memory in use, no kernel.
    At least 24 h where capacity is rented, at least 7 days where it is owned. Gaps in the data do not count as empty.

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
from typing import Annotated, Any, Final

from pydantic import Field

from advisor.confidence import duration, graded, widened
from advisor.digest import digest
from advisor.facts import price_facts, time_chart, window_facts
from advisor.fleet import CASH_BILLING, Release, billing, gpu_subject, label, month_h, releases
from advisor.model import Limits, Rule, Source, Verdict
from core.activity import Activity
from core.evidence import Evidence, GpuEvidence
from core.finding import Action, Effort, Finding, Grade, NotEvaluated, Range, Risk, Saving
from core.hours import GpuHour
from core.units import HOUR_MS, HOURS_PER_MONTH, J_PER_KWH

RULE_ID: Final = "empty-gpu"


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
    """Hours in which a GPU was empty, unbroken up to its last sample."""

    hours: Sequence[GpuHour]
    empty_h: float
    span_h: float

    @property
    def energy_j(self) -> float | None:
        """Energy drawn meanwhile; None when not known for the whole of it."""
        known = [hour.joules.get(Activity.EMPTY) for hour in self.hours]
        return None if not known or None in known else sum(j for j in known if j is not None)


def evaluate(evidence: Evidence, limits: EmptyGpuLimits) -> Iterator[Verdict]:
    """Every GPU of the fleet."""
    empty: list[tuple[GpuEvidence, Streak]] = []
    for gpu in evidence.gpus:
        streak = _streak(gpu, limits)
        refusal = _refusal(evidence, gpu, streak, limits)
        if refusal is not None:
            yield NotEvaluated(RULE_ID, gpu_subject(gpu), *refusal)
        elif streak.empty_h >= _needed_h(evidence, gpu, limits):
            empty.append((gpu, streak))
    release = releases(evidence, [gpu.gpu_uuid for gpu, _ in empty])
    for gpu, streak in empty:
        yield _finding(evidence, gpu, streak, release[gpu.gpu_uuid])


def _streak(gpu: GpuEvidence, limits: EmptyGpuLimits) -> Streak:
    hours: list[GpuHour] = []
    for hour in reversed(gpu.hours):
        empty_s = hour.seconds.get(Activity.EMPTY, 0.0)
        if hour.covered_s <= 0 or empty_s < (1 - limits.max_other_ratio) * hour.covered_s:
            break
        hours.append(hour)
    hours.reverse()
    if not hours:
        return Streak((), 0.0, 0.0)
    begin = max(hours[0].hour_ms, gpu.first_sample_ms)
    span_h = (min(hours[-1].hour_ms + HOUR_MS, max(gpu.last_sample_ms, begin)) - begin) / HOUR_MS
    return Streak(hours, sum(h.seconds.get(Activity.EMPTY, 0.0) for h in hours) / 3600, span_h)


def _needed_h(evidence: Evidence, gpu: GpuEvidence, limits: EmptyGpuLimits) -> float:
    rented = billing(gpu.price, evidence.site) in CASH_BILLING
    return limits.min_rented_h if rented else limits.min_owned_h


def _refusal(
    evidence: Evidence, gpu: GpuEvidence, streak: Streak, limits: EmptyGpuLimits
) -> tuple[tuple[str, ...], str] | None:
    """What is missing and why that matters; None when the GPU can be judged."""
    silence_h = (evidence.window.to_ms - gpu.last_sample_ms) / HOUR_MS
    seen = digest(evidence, gpu)
    if seen.unknown_h > 0.5 * seen.covered_h:
        return (
            "busy_ratio",
            "memory_used_bytes",
        ), "Utilization or memory was not read, so empty cannot be told from busy."
    if not streak.hours:
        return None
    if silence_h > limits.max_silence_h:
        return (
            "recent samples",
        ), f"The last sample is {duration(silence_h)} old: what the GPU does now is not known."
    if streak.span_h > 0 and streak.empty_h < limits.min_coverage_ratio * streak.span_h:
        share = streak.empty_h / streak.span_h
        return (
            "samples",
        ), f"Samples cover {share:.0%} of the time it seems empty; a gap is unknown, not idle."
    needed_h = _needed_h(evidence, gpu, limits)
    if streak.empty_h < needed_h and len(streak.hours) == len(gpu.hours):
        return (
            "time",
        ), f"Empty in all {duration(seen.covered_h)} of its data, but {duration(needed_h)} are needed."
    return None


def _finding(evidence: Evidence, gpu: GpuEvidence, streak: Streak, release: Release) -> Finding:
    seen = digest(evidence, gpu)
    grade, confidence = graded(
        Grade.A, "Empty time is measured, not modelled", span_h=seen.observed_h, covered_h=seen.covered_h
    )
    month = month_h(evidence, streak.empty_h)
    capacity = widened(month, grade, most=HOURS_PER_MONTH)
    cash, no_figure = _cash(gpu, capacity, release)
    energy = _energy(evidence, streak, grade)
    facts: dict[str, Any] = {
        **window_facts(evidence, digest(evidence, gpu).coverage),
        **price_facts(gpu.price),
        "empty_h": round(streak.empty_h, 3),
        "data_h": round(seen.covered_h, 3),
        "billing": billing(gpu.price, evidence.site),
    }
    power_w = _power_w(streak)
    if power_w is not None:
        facts["idle_power_w"] = round(power_w, 2)
    return Finding(
        rule_id=RULE_ID,
        subject=gpu_subject(gpu),
        cause="empty",
        title=f"Release {label(gpu)}: it is empty",
        because=f"No process and no memory in use for the last {duration(streak.empty_h)} of samples.",
        state="empty",
        confidence=confidence,
        grade=grade,
        effort=Effort.LOW,
        risk=Risk.LOW,
        saving=Saving(cash, capacity, energy),
        no_figure=no_figure,
        evidence=facts,
        actions=_actions(gpu, release),
        wrong_when="It is a hot spare, drained for maintenance, or kept for a known peak.",
        not_claimed="What the freed hours are worth to others, and any saving after a change of demand.",
        gpu_uuids=(gpu.gpu_uuid,),
        stage="stop",
        chart=time_chart(
            ((hour.hour_ms, _busy_share(hour)) for hour in gpu.hours[-24 * 14 :]),
            "share of the hour not empty",
            None,
        ),
    )


def _busy_share(hour: GpuHour) -> float | None:
    return 1 - hour.seconds.get(Activity.EMPTY, 0.0) / hour.covered_s if hour.covered_s > 0 else None


def _cash(gpu: GpuEvidence, capacity: Range, release: Release) -> tuple[Range | None, str | None]:
    if not release.cash or gpu.price is None:
        return None, f"No cash figure: {release.why_not}."
    return capacity.scaled(float(gpu.price.usd_per_gpu_hour)), None


def _power_w(streak: Streak) -> float | None:
    energy_j = streak.energy_j
    return None if energy_j is None or streak.empty_h <= 0 else energy_j / (streak.empty_h * 3600)


def _energy(evidence: Evidence, streak: Streak, grade: Grade) -> Range | None:
    """Only where the site pays its power: inside a rented price there is nothing to save."""
    if not evidence.site.pays_for_power or streak.energy_j is None:
        return None
    kwh = streak.energy_j / J_PER_KWH / evidence.window.hours * HOURS_PER_MONTH
    return widened(kwh, grade)


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
)
