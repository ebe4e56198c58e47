"""A job pauses and the card keeps drawing power.

What it finds
    GPUs that spend a tenth or more of their time within jobs below 5 % busy, at more than 25 W above their own bare idle
    power. Only hours that hold work too are looked at: whole idle hours are parked or off hours, and a job that waits
    for input while its links move is starved, not idle.

Why it costs
    Clocks stay up between kernels, so that a pause draws tens of watts for nothing; in the field a fifth of in-job time
    and a tenth of in-job energy. It is small money: 40 W for an hour cost half a cent, the GPU two dollars. Idle money is
    capacity, not energy, so this rule speaks of energy only.

When it is wrong
    The pauses are checkpoints or evaluation that must be, or a server between requests. A loaded context holds part of
    that power whatever the clocks do, and that part is not claimed.

What to do
    Overlap checkpoints, evaluation and logging with compute, pack short jobs onto fewer cards, and let the card lower
    its clocks between bursts: reset locked or application clocks.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Field

from advisor.confidence import duration, graded
from advisor.digest import Digest, digest
from advisor.facts import rounded, time_chart, window_facts
from advisor.fleet import gpu_subject, label, month_h
from advisor.idle_hours import has_seen_engine, silence_h
from advisor.model import Limits, Rule, Source, Verdict
from advisor.waterfall import base_of
from core.activity import Activity
from core.evidence import Evidence, GpuEvidence
from core.finding import Action, Effort, Finding, Grade, NotEvaluated, Range, Risk, Saving
from core.hours import GpuHour
from core.percent import percent
from core.series import HourSeries

RULE_ID: Final = "execution-idle"
CONTEXT_W: Final = Range(26.0, 46.0, 66.0)
"""What a loaded context draws above bare idle however low the clocks (4.1, literature): the middle is the span's."""
Refusal = tuple[tuple[str, ...], str]


class ExecutionIdleLimits(Limits):
    """Thresholds of ``execution-idle``."""

    min_gap_ratio: Annotated[float, Field(gt=0, le=1)] = 0.10
    """Share of in-job time that must be idle (the field study saw 0.197 on average)."""
    min_above_bare_w: Annotated[float, Field(gt=0, le=500)] = 25.0
    """Watts above bare idle from which a pause counts (R05)."""
    min_job_h: Annotated[float, Field(gt=0, le=720)] = 10.0
    """Hours with work below which a few pauses weigh too much."""
    min_active_ratio: Annotated[float, Field(gt=0, lt=1)] = 0.1
    """Share of an hour that must be work for its pauses to be within a job; below it is an off hour."""
    min_coverage_ratio: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Samples received over samples due. A gap in the data must never read as a pause."""
    max_silence_h: Annotated[float, Field(gt=0, le=168)] = 24.0
    """Without samples for longer, nobody knows what the GPU is doing now."""


@dataclass(frozen=True, slots=True)
class Gaps:
    """Pauses within jobs.

    Attributes:
        gap_h: idle time in hours that hold work. job_h: that and the work.
    """

    gap_h: float
    job_h: float

    @property
    def ratio(self) -> float:
        """Share of in-job time, 0–1."""
        return self.gap_h / self.job_h if self.job_h > 0 else 0.0


def evaluate(evidence: Evidence, limits: ExecutionIdleLimits) -> Iterator[Verdict]:
    """Every GPU that works and pauses."""
    for gpu in evidence.gpus:
        seen = digest(evidence, gpu)
        if seen.parked_h <= 0 or seen.active_h <= 0 or _most_ratio(gpu, seen, limits) < limits.min_gap_ratio:
            continue
        gaps = gaps_of(gpu, limits)
        if gaps.ratio < limits.min_gap_ratio:
            continue
        refusal = _refusal(evidence, gpu, gaps, limits)
        if refusal is not None:
            yield NotEvaluated(RULE_ID, gpu_subject(gpu), *refusal)
            continue
        gap_w = gap_power_w(gpu, limits)
        missing = tuple(
            name
            for name, value in (("parked_power_w", gap_w), ("bare_idle_w", gpu.bare_idle_w))
            if value is None
        )
        if gap_w is None or gpu.bare_idle_w is None:
            why = "The card pauses within jobs, but what it draws then above its own bare idle is not known."
            yield NotEvaluated(RULE_ID, gpu_subject(gpu), missing, why)
        elif gap_w > gpu.bare_idle_w + limits.min_above_bare_w:
            yield _finding(evidence, gpu, gaps, (gap_w, gpu.bare_idle_w), limits)


def _most_ratio(gpu: GpuEvidence, seen: Digest, limits: ExecutionIdleLimits) -> float:
    """No less than the ratio of ``gaps_of``: all parked time against work but for what hours without a job can hold."""
    rounding_h = len(gpu.hours) / 3600  # days tell hours in whole seconds
    gap_h = seen.parked_h + rounding_h
    job_h = seen.active_h - rounding_h - limits.min_active_ratio * (seen.covered_h + rounding_h)
    return gap_h / (gap_h + job_h) if job_h > 0 else 1.0


def gaps_of(gpu: GpuEvidence, limits: ExecutionIdleLimits) -> Gaps:
    """Idle and working time of the hours that hold work; of stored hours the days tell."""
    gap_s = job_s = 0.0
    for covered_s, active_s, parked_s in _times(gpu):
        if covered_s > 0 and active_s >= limits.min_active_ratio * covered_s:
            gap_s += parked_s
            job_s += parked_s + active_s
    return Gaps(gap_s / 3600, job_s / 3600)


def _times(gpu: GpuEvidence) -> Iterator[tuple[float, float, float]]:
    if isinstance(gpu.hours, HourSeries):
        for day in gpu.days:
            yield from zip(day.covered_s, day.active_s, day.parked_s, strict=True)
        return
    for hour in gpu.hours:
        yield hour.covered_s, hour.active_s, hour.seconds.get(Activity.PARKED, 0.0)


def gap_power_w(gpu: GpuEvidence, limits: ExecutionIdleLimits) -> float | None:
    """Mean power in the pauses, weighted by time; None when known for less than half of them."""
    known_j = known_s = total_s = 0.0
    for hour in _job_hours(gpu, limits):
        parked_s = hour.seconds.get(Activity.PARKED, 0.0)
        total_s += parked_s
        if hour.parked_power_w is not None:
            known_j += hour.parked_power_w * parked_s
            known_s += parked_s
    return known_j / known_s if known_s > 0 and known_s >= 0.5 * total_s else None


def _job_hours(gpu: GpuEvidence, limits: ExecutionIdleLimits) -> Sequence[GpuHour]:
    return [h for h in gpu.hours if h.covered_s > 0 and h.active_s >= limits.min_active_ratio * h.covered_s]


def _refusal(evidence: Evidence, gpu: GpuEvidence, gaps: Gaps, limits: ExecutionIdleLimits) -> Refusal | None:
    """What is missing and why that matters; None when the GPU can be judged."""
    seen = digest(evidence, gpu)
    silent_h = silence_h(evidence, gpu)
    if silent_h > limits.max_silence_h:
        return (
            "recent samples",
        ), f"The last sample is {duration(silent_h)} old: what the GPU does now is not known."
    if seen.coverage < limits.min_coverage_ratio:
        why = f"Samples cover {percent(seen.coverage)} of the time; a gap is unknown, not a pause."
        return ("samples",), why
    if gaps.job_h < limits.min_job_h:
        return (
            ("time",),
            f"{duration(gaps.job_h)} within jobs are seen; {duration(limits.min_job_h)} are needed.",
        )
    return None


def avoidable_w(gap_w: float, bare_idle_w: float) -> Range:
    """Watts of a pause that lower clocks could spare: what is above bare idle and the context's own draw."""
    above_w = gap_w - bare_idle_w
    return Range(
        *(max(0.0, above_w - context_w) for context_w in (CONTEXT_W.p90, CONTEXT_W.p50, CONTEXT_W.p10))
    )


def _saving(
    evidence: Evidence, gpu: GpuEvidence, gap_h_month: float, watts: Range, above_w: float
) -> tuple[Saving, str | None]:
    drawn = f"{above_w * gap_h_month / 1000:.1f} kWh a month are drawn above bare idle in pauses"
    if not evidence.site.pays_for_power:
        return Saving(), f"No figure, because power is inside the price of the GPU: {drawn}."
    if watts.p50 <= 0:
        return Saving(), f"No figure, because a loaded context alone draws as much: {drawn}."
    most = base_of(gpu, digest(evidence, gpu), evidence.window.hours).energy
    kwh = watts.scaled(gap_h_month / 1000)
    if most is not None:
        kwh = Range(min(kwh.p10, most), min(kwh.p50, most), min(kwh.p90, most))
    return Saving(energy_kwh_month=kwh), None


def _finding(
    evidence: Evidence, gpu: GpuEvidence, gaps: Gaps, watts: tuple[float, float], limits: ExecutionIdleLimits
) -> Finding:
    seen = digest(evidence, gpu)
    gap_w, bare_w = watts
    month = month_h(evidence, gaps.gap_h)
    spared_w = avoidable_w(gap_w, bare_w)
    saving, no_figure = _saving(evidence, gpu, month, spared_w, gap_w - bare_w)
    basis = "Pauses and their power are measured; what a context draws by itself is literature"
    grade, confidence = graded(Grade.D, basis, span_h=seen.observed_h, covered_h=seen.covered_h)
    serves = has_seen_engine(evidence, gpu)
    return Finding(
        rule_id=RULE_ID,
        subject=gpu_subject(gpu),
        cause="requests" if serves else "jobs",
        title=f"Lower the power of {label(gpu)} in the pauses of its work",
        because=(
            f"{percent(gaps.ratio)} of {duration(gaps.job_h)} within jobs are pauses, at {gap_w:.0f} W where bare idle is"
            f" {bare_w:.0f} W."
        ),
        state="idle between requests" if serves else "idle within jobs",
        confidence=confidence,
        grade=grade,
        effort=Effort.MEDIUM,
        risk=Risk.LOW,
        saving=saving,
        no_figure=no_figure,
        evidence=_facts(evidence, gpu, gaps, watts),
        actions=_actions(gpu, serves=serves),
        wrong_when="The pauses must be: checkpoints, evaluation, a person at a notebook, a server between requests.",
        not_claimed="The GPU-hours of the pauses, which are worth far more than their energy, and any speed-up.",
        gpu_uuids=(gpu.gpu_uuid,),
        stage="workload",
        chart=time_chart(
            ((hour.hour_ms, hour.parked_power_w) for hour in _job_hours(gpu, limits)[-24 * 14 :]),
            "W",
            bare_w + limits.min_above_bare_w,
        ),
    )


def _facts(evidence: Evidence, gpu: GpuEvidence, gaps: Gaps, watts: tuple[float, float]) -> dict[str, Any]:
    gap_w, bare_w = watts
    kwh = (gap_w - bare_w) * month_h(evidence, gaps.gap_h) / 1000
    tariff = evidence.site.tariff_usd_per_kwh
    return {
        **window_facts(evidence, digest(evidence, gpu).coverage),
        **rounded(
            {
                "gap_h": gaps.gap_h,
                "in_job_h": gaps.job_h,
                "gap_ratio": gaps.ratio,
                "gap_power_w": gap_w,
                "bare_idle_w": bare_w,
                "gap_energy_above_bare_kwh_month": kwh,
                "gap_energy_above_bare_usd_month": None if tariff is None else kwh * tariff,
                "context_w_p10": CONTEXT_W.p10,
                "context_w_p90": CONTEXT_W.p90,
            }
        ),
    }


def _actions(gpu: GpuEvidence, *, serves: bool) -> tuple[Action, ...]:
    first = (
        Action("Pack its requests onto fewer replicas, so that a server pauses less (too-many-replicas).")
        if serves
        else Action(
            "Write checkpoints asynchronously, and evaluate and log beside the training, not between its steps."
        )
    )
    return (
        first,
        Action(
            "Let clocks fall in pauses: undo locked clocks",
            f"sudo nvidia-smi -i {gpu.gpu_uuid} --reset-gpu-clocks",
        ),
        Action(
            "The same for application clocks",
            f"sudo nvidia-smi -i {gpu.gpu_uuid} --reset-applications-clocks",
        ),
    )


RULE: Final = Rule(
    id=RULE_ID,
    code="R05",
    title="Lower power in the pauses of jobs",
    needs=frozenset({"busy_ratio", "memory_used_bytes", "power_w", "bare_idle_w"}),
    limits=ExecutionIdleLimits(),
    effort=Effort.MEDIUM,
    risk=Risk.LOW,
    sources=(
        Source("Lei et al., Execution-Idle", "https://arxiv.org/abs/2604.04745"),
        Source("Vadari, The Model Parking Tax", "https://arxiv.org/abs/2605.23918"),
    ),
    evaluate=evaluate,
)
