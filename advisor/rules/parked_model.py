"""A process holds GPU memory while the GPU does no work.

What it finds
    GPUs with at least 1 GiB in use through whole hours in which no kernel ran and no engine generated a token: on
    three of the last seven days, or through 95 % of the data.

Why it costs
    The card is billed and nothing else can be scheduled on it. The context alone keeps the clocks up: a loaded GPU draws
    26–66 W more than an empty one, whatever it holds. That tax is small money; the held hours are not.

When it is wrong
    A standby kept warm for a latency promise, a debugger, the parent of an MPS daemon, a licence server. Raise the
    limits for that pool, or exclude it.

What to do
    Stop the process when its users are gone, unload the model between bursts (sleep mode), or move it to a shared GPU
    or a MIG slice. A start that takes minutes is the price: weigh it against how often the model is wanted.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Field

from advisor.confidence import duration, graded, widened
from advisor.digest import digest
from advisor.facts import price_facts, time_chart, window_facts
from advisor.fleet import Release, billing, gpu_subject, label, month_h, releases
from advisor.model import Limits, Rule, Source, Verdict
from core.activity import HELD_MEMORY_BYTES, Activity
from core.evidence import Evidence, GpuEvidence
from core.finding import Action, Effort, Finding, Grade, NotEvaluated, Range, Risk, Saving
from core.hours import GpuHour
from core.units import DAY_MS, GIB, HOUR_MS, HOURS_PER_MONTH

RULE_ID: Final = "parked-model"
WEEK_DAYS: Final = 7


class ParkedModelLimits(Limits):
    """Thresholds of ``parked-model``."""

    min_days: Annotated[int, Field(ge=1, le=7)] = 3
    """Days of the last seven with at least one whole parked hour (R02)."""
    min_parked_ratio: Annotated[float, Field(gt=0, le=1)] = 0.95
    """Share of the data that makes a GPU parked throughout (R02: 95 % of 14 d)."""
    min_data_h: Annotated[float, Field(gt=0, le=336)] = 1.0
    """Less data than one hour is a pause, not a parked model."""
    whole_hour_ratio: Annotated[float, Field(gt=0.5, le=1)] = 0.95
    """Share of an hour that must be parked for it to count whole: pauses between requests are not parking."""
    min_hour_coverage_ratio: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Coverage below which an hour is not judged. A gap must never read as idleness."""
    min_coverage_ratio: Annotated[float, Field(ge=0, le=1)] = 0.8
    """The same for the whole of the GPU's data."""
    max_silence_h: Annotated[float, Field(gt=0, le=168)] = 3.0
    """Without samples for longer, nobody knows what the GPU is doing now."""


@dataclass(frozen=True, slots=True)
class Parking:
    """When a GPU was parked."""

    hours: Sequence[GpuHour]
    parked_h: float
    share: float
    days: int
    throughout: bool

    @property
    def memory_bytes(self) -> float | None:
        """Typical memory held."""
        known = sorted(h.memory_used_bytes for h in self.hours if h.memory_used_bytes is not None)
        return known[len(known) // 2] if known else None

    @property
    def power_w(self) -> float | None:
        """Mean power while parked, weighted by time."""
        known = [
            (h.parked_power_w, h.seconds[Activity.PARKED]) for h in self.hours if h.parked_power_w is not None
        ]
        total = sum(seconds for _, seconds in known)
        return sum(watts * seconds for watts, seconds in known) / total if total > 0 else None


def evaluate(evidence: Evidence, limits: ParkedModelLimits) -> Iterator[Verdict]:
    """Every GPU of the fleet."""
    serving = _serving_hours(evidence)
    found: list[tuple[GpuEvidence, Parking]] = []
    for gpu in evidence.gpus:
        parking = _parking(evidence, gpu, serving.get(gpu.gpu_uuid, frozenset()), limits)
        refusal = _refusal(evidence, gpu, parking, limits)
        if refusal is not None:
            yield NotEvaluated(RULE_ID, gpu_subject(gpu), *refusal)
        elif parking.throughout or parking.days >= limits.min_days:
            found.append((gpu, parking))
    idle = {gpu.gpu_uuid for gpu, parking in found if parking.throughout} | _empty_throughout(evidence)
    release = releases(evidence, idle)
    for gpu, parking in found:
        yield _finding(evidence, gpu, parking, release.get(gpu.gpu_uuid))


def _serving_hours(evidence: Evidence) -> Mapping[str, frozenset[int]]:
    """Hours in which an engine of the GPU had requests running."""
    busy: dict[str, set[int]] = {}
    for engine in evidence.engines:
        hours = {hour.hour_ms for hour in engine.hours if hour.busy_s > 0}
        for uuid in engine.gpu_uuids:
            busy.setdefault(uuid, set()).update(hours)
    return {uuid: frozenset(hours) for uuid, hours in busy.items()}


def _empty_throughout(evidence: Evidence) -> set[str]:
    return {
        gpu.gpu_uuid
        for gpu in evidence.gpus
        if (seen := digest(evidence, gpu)).covered_h > 0 and seen.empty_h >= 0.99 * seen.covered_h
    }


def _parking(
    evidence: Evidence, gpu: GpuEvidence, serving: frozenset[int], limits: ParkedModelLimits
) -> Parking:
    any_parked = digest(evidence, gpu).parked_h > 0
    hours = [
        hour
        for hour in gpu.hours
        if any_parked and hour.hour_ms not in serving and _is_parked(gpu, hour, limits)
    ]
    parked_h = sum(hour.seconds[Activity.PARKED] for hour in hours) / 3600
    covered_h = digest(evidence, gpu).covered_h
    share = parked_h / covered_h if covered_h > 0 else 0.0
    ages = (
        (evidence.window.to_ms - hour.hour_ms - HOUR_MS) // DAY_MS
        for hour in hours
        if _is_whole(hour, limits)
    )
    days = len({age for age in ages if age < WEEK_DAYS})
    throughout = share >= limits.min_parked_ratio and covered_h >= limits.min_data_h
    return Parking(hours, parked_h, share, days, throughout)


def _is_parked(gpu: GpuEvidence, hour: GpuHour, limits: ParkedModelLimits) -> bool:
    """Parked nearly all the time it was seen, with a model's worth of memory, and well covered.

    The first and the last hour of the data are covered in part; they count for what they are.
    """
    if (
        hour.seconds.get(Activity.PARKED, 0.0) < limits.whole_hour_ratio * hour.covered_s
        or hour.covered_s <= 0
    ):
        return False
    if hour.memory_used_bytes is None or hour.memory_used_bytes < HELD_MEMORY_BYTES:
        return False
    begin, end = max(hour.hour_ms, gpu.first_sample_ms), min(hour.hour_ms + HOUR_MS, gpu.last_sample_ms)
    due_s = (end - begin) / 1000
    return due_s <= 0 or hour.covered_s >= limits.min_hour_coverage_ratio * due_s


def _is_whole(hour: GpuHour, limits: ParkedModelLimits) -> bool:
    return hour.covered_s >= limits.min_hour_coverage_ratio * 3600


def _refusal(
    evidence: Evidence, gpu: GpuEvidence, parking: Parking, limits: ParkedModelLimits
) -> tuple[tuple[str, ...], str] | None:
    """What is missing and why that matters; None when the GPU can be judged."""
    seen = digest(evidence, gpu)
    covered_h, parked_h = seen.covered_h, seen.parked_h
    if covered_h > 0 and seen.unknown_h > 0.5 * covered_h:
        return (
            "busy_ratio",
            "memory_used_bytes",
        ), "Utilization or memory was not read, so parked cannot be told from busy."
    if parked_h < 0.5 * covered_h and parking.days == 0:
        return None
    if parked_h > 0 and all(hour.memory_used_bytes is None for hour in gpu.hours):
        return (
            "memory_used_bytes",
        ), "Memory in use was not read: a held GPU cannot be told from a small context."
    silence_h = (evidence.window.to_ms - gpu.last_sample_ms) / HOUR_MS
    if silence_h > limits.max_silence_h:
        return (
            "recent samples",
        ), f"The last sample is {duration(silence_h)} old: what the GPU does now is not known."
    share = digest(evidence, gpu).coverage
    if share < limits.min_coverage_ratio:
        return ("samples",), f"Samples cover {share:.0%} of the time; a gap is unknown, not idle."
    if covered_h < limits.min_data_h:
        return (
            ("time",),
            f"Parked in {duration(parked_h)} of {duration(covered_h)} of data; {duration(limits.min_data_h)} are needed.",
        )
    if not parking.throughout and digest(evidence, gpu).observed_h < limits.min_days * 24 and parking.hours:
        return (
            ("time",),
            f"Parked in {parking.share:.0%} of {duration(covered_h)} of data: {limits.min_days} days tell a habit from a pause.",
        )
    return None


def _finding(evidence: Evidence, gpu: GpuEvidence, parking: Parking, release: Release | None) -> Finding:
    grade, confidence = graded(
        Grade.A,
        "Parked time is measured, not modelled",
        span_h=digest(evidence, gpu).observed_h,
        covered_h=digest(evidence, gpu).covered_h,
    )
    capacity = widened(month_h(evidence, parking.parked_h), grade, most=HOURS_PER_MONTH)
    cash, no_figure = _cash(gpu, parking, capacity, release)
    tax_w = _tax_w(gpu, parking)
    memory = parking.memory_bytes or 0.0
    held = f"{memory / GIB:.1f} GiB held and no work"
    seen = (
        f"for {parking.share:.0%} of {duration(digest(evidence, gpu).covered_h)} of samples"
        if parking.throughout
        else f"through {duration(parking.parked_h)}, on {parking.days} of the last 7 days"
    )
    return Finding(
        rule_id=RULE_ID,
        subject=gpu_subject(gpu),
        cause="throughout" if parking.throughout else "recurring",
        title=f"Unload the idle model from {label(gpu)}",
        because=f"{held} {seen}.",
        state="parked throughout" if parking.throughout else "parked for hours on most days",
        confidence=confidence,
        grade=grade,
        effort=Effort.LOW,
        risk=Risk.MEDIUM,
        saving=Saving(cash, capacity, _energy(evidence, parking, tax_w, grade)),
        no_figure=no_figure,
        evidence=_facts(evidence, gpu, parking, tax_w),
        actions=_actions(evidence, gpu),
        wrong_when="It is a standby kept warm for a latency promise, a debugger, an MPS parent or a licence server.",
        not_claimed="The cost of cold starts after unloading, and what the freed hours are worth to others.",
        gpu_uuids=(gpu.gpu_uuid,),
        stage="stop",
        chart=time_chart(
            (
                (hour.hour_ms, hour.parked_power_w if hour.parked_power_w is not None else hour.power_w)
                for hour in gpu.hours[-24 * 14 :]
            ),
            "W",
            gpu.bare_idle_w,
        ),
    )


def _cash(
    gpu: GpuEvidence, parking: Parking, capacity: Range, release: Release | None
) -> tuple[Range | None, str | None]:
    if not parking.throughout:
        return (
            None,
            "No cash figure: the GPU works in between, so its unit cannot be handed back. The hours can be used.",
        )
    if release is None or not release.cash or gpu.price is None:
        return None, f"No cash figure: {release.why_not if release else 'its billing unit is not free'}."
    return capacity.scaled(float(gpu.price.usd_per_gpu_hour)), None


def _tax_w(gpu: GpuEvidence, parking: Parking) -> float | None:
    """What the loaded context draws above this card's own bare idle."""
    if parking.power_w is None or gpu.bare_idle_w is None:
        return None
    return max(0.0, parking.power_w - gpu.bare_idle_w)


def _energy(evidence: Evidence, parking: Parking, tax_w: float | None, grade: Grade) -> Range | None:
    """Unloading takes the card down to bare idle; counted only where the site pays its power."""
    if not evidence.site.pays_for_power or tax_w is None:
        return None
    return widened(tax_w * month_h(evidence, parking.parked_h) / 1000, grade)


def _facts(evidence: Evidence, gpu: GpuEvidence, parking: Parking, tax_w: float | None) -> dict[str, Any]:
    optional = {
        "memory_held_bytes": parking.memory_bytes,
        "parked_power_w": parking.power_w,
        "bare_idle_w": gpu.bare_idle_w,
        "parking_tax_w": tax_w,
    }
    return {
        **window_facts(evidence, digest(evidence, gpu).coverage),
        **price_facts(gpu.price),
        "parked_h": round(parking.parked_h, 3),
        "parked_ratio": round(parking.share, 4),
        "days_of_last_7": parking.days,
        "data_h": round(digest(evidence, gpu).covered_h, 3),
        "billing": billing(gpu.price, evidence.site),
        **{name: round(value, 2) for name, value in optional.items() if value is not None},
    }


def _actions(evidence: Evidence, gpu: GpuEvidence) -> tuple[Action, ...]:
    who = Action(
        "See what holds it",
        f"nvidia-smi -i {gpu.gpu_uuid} --query-compute-apps=pid,name,used_memory --format=csv",
    )
    kinds = {engine.identity.kind for engine in evidence.engines if gpu.gpu_uuid in engine.gpu_uuids}
    if "vllm" in kinds:
        return who, Action(
            "Put the model to sleep between bursts, or stop the server (start it with --enable-sleep-mode first)",
            "curl -X POST http://localhost:8000/sleep?level=1",
        )
    return who, Action(
        "Ask its owner, then stop the process; start it on demand or share a GPU when it is wanted."
    )


RULE: Final = Rule(
    id=RULE_ID,
    code="R02",
    title="Unload models that do nothing",
    needs=frozenset({"busy_ratio", "memory_used_bytes"}),
    limits=ParkedModelLimits(),
    effort=Effort.LOW,
    risk=Risk.MEDIUM,
    sources=(
        Source("Vadari, The Model Parking Tax", "https://arxiv.org/abs/2605.23918"),
        Source("Lei et al., Execution-Idle", "https://arxiv.org/abs/2604.04745"),
    ),
    evaluate=evaluate,
)
