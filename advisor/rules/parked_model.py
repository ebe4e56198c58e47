"""A process holds GPU memory while the GPU does next to no work.

What it finds
    GPUs with at least 1 GiB in use, now too, through whole hours in which they were under 5 % busy and no engine had
    requests running: on three of the last seven days, or through 95 % of the data. Less than 1 GiB is a small context,
    of which ``empty-gpu`` speaks.

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

from collections.abc import Iterator, Sequence
from typing import Any, Final

from advisor.confidence import duration, graded, seen_share, widened
from advisor.digest import digest
from advisor.facts import price_facts, time_chart, window_facts
from advisor.fleet import Release, billing, gpu_subject, label, month_h, releases
from advisor.idle import idle_gpus
from advisor.idle_hours import busy_words, may_serve, mean_busy_ratio, silence_h
from advisor.model import Rule, Source, Verdict
from advisor.parking import ParkedModelLimits, Parking, parking_of
from advisor.waterfall import base_of
from core.evidence import Evidence, GpuEvidence
from core.finding import Action, Effort, Finding, Grade, NotEvaluated, Range, Risk, Saving
from core.parked_hours import parked_hours
from core.percent import percent
from core.units import GIB

RULE_ID: Final = "parked-model"


def evaluate(evidence: Evidence, limits: ParkedModelLimits) -> Iterator[Verdict]:
    """Every GPU of the fleet."""
    found: list[tuple[GpuEvidence, Parking]] = []
    for gpu in evidence.gpus:
        parking = parking_of(evidence, gpu, limits)
        refusal = _refusal(evidence, gpu, parking, limits)
        if refusal is not None:
            yield NotEvaluated(RULE_ID, gpu_subject(gpu), *refusal)
        elif parking.held_now and (parking.throughout or parking.days >= limits.min_days):
            found.append((gpu, parking))
    own = {
        gpu.gpu_uuid
        for gpu, parking in found
        if parking.throughout and digest(evidence, gpu).covered_h >= limits.min_cash_h
    }
    release = releases(evidence, idle_gpus(evidence) | own)
    for gpu, parking in found:
        yield _finding(evidence, gpu, parking, release.get(gpu.gpu_uuid), limits)


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
    if parked_h > 0 and all(part.memory_used_bytes is None for part in gpu.parts):
        return (
            "memory_used_bytes",
        ), "Memory in use was not read: a held GPU cannot be told from a small context."
    silent_h = silence_h(evidence, gpu)
    if silent_h > limits.max_silence_h:
        return (
            "recent samples",
        ), f"The last sample is {duration(silent_h)} old: what the GPU does now is not known."
    share = digest(evidence, gpu).coverage
    if share < limits.min_coverage_ratio:
        return ("samples",), f"Samples cover {percent(share)} of the time; a gap is unknown, not idle."
    if covered_h < limits.min_data_h:
        return (
            ("time",),
            f"Parked in {duration(parked_h)} of {duration(covered_h)} of data; {duration(limits.min_data_h)} are needed.",
        )
    if not parking.throughout and digest(evidence, gpu).observed_h < limits.min_days * 24 and parking.hours:
        return (
            ("time",),
            f"Parked in {percent(parking.share)} of {duration(covered_h)} of data: {limits.min_days} days tell a habit from a pause.",
        )
    return None


def _graded(evidence: Evidence, gpu: GpuEvidence, busy_ratio: float | None) -> tuple[Grade, str]:
    seen = digest(evidence, gpu)
    if may_serve(evidence, gpu, busy_ratio):
        basis = f"Parked time is measured, but the GPU was {busy_words(busy_ratio)} and no engine says whether it served"
        return graded(Grade.B, basis, span_h=seen.observed_h, covered_h=seen.covered_h)
    basis = "Parked time is measured, not modelled"
    return graded(Grade.A, basis, span_h=seen.observed_h, covered_h=seen.covered_h)


def _because(evidence: Evidence, gpu: GpuEvidence, parking: Parking, busy_ratio: float | None) -> str:
    when = (
        f"for {percent(parking.share)} of {duration(digest(evidence, gpu).covered_h)} of samples"
        if parking.throughout
        else f"through {duration(parking.parked_h)}, on {parking.days} of the last 7 days"
    )
    return f"{(parking.memory_bytes or 0.0) / GIB:.1f} GiB held, {busy_words(busy_ratio)}, {when}."


def _finding(
    evidence: Evidence, gpu: GpuEvidence, parking: Parking, release: Release | None, limits: ParkedModelLimits
) -> Finding:
    hours = parking.hours
    busy_ratio = mean_busy_ratio(hours.busy_ratio, hours.sm_active_ratio, hours.covered_s)
    grade, confidence = _graded(evidence, gpu, busy_ratio)
    base = base_of(gpu, digest(evidence, gpu), evidence.window.hours)
    shown = seen_share(evidence.window.hours)
    capacity = widened(month_h(evidence, parking.parked_h), grade, most=base.capacity, seen=shown)
    cash, no_figure = _cash(gpu, parking, capacity, release)
    if digest(evidence, gpu).covered_h < limits.min_cash_h:
        cash, no_figure = None, _too_short(evidence, gpu, limits)
    tax_w = _tax_w(gpu, parking)
    kwh = _energy_kwh_month(evidence, parking, tax_w)
    return Finding(
        rule_id=RULE_ID,
        subject=gpu_subject(gpu),
        cause="parked",
        title=f"Unload the idle model from {label(gpu)}",
        because=_because(evidence, gpu, parking, busy_ratio),
        state="parked throughout" if parking.throughout else "parked for hours on most days",
        confidence=confidence,
        grade=grade,
        effort=Effort.LOW,
        risk=Risk.MEDIUM,
        saving=Saving(
            cash, capacity, None if kwh is None else widened(kwh, grade, most=base.energy, seen=shown)
        ),
        no_figure=no_figure,
        evidence=_facts(evidence, gpu, parking, tax_w, busy_ratio),
        actions=_actions(evidence, gpu),
        wrong_when="It is a standby kept warm for a latency promise, a debugger, an MPS parent or a licence server.",
        not_claimed="The cost of cold starts after unloading, and what the freed hours are worth to others.",
        gpu_uuids=(gpu.gpu_uuid,),
        stage="stop",
        chart=time_chart(_watts(gpu)[-24 * 14 :], "W", gpu.bare_idle_w),
    )


def _watts(gpu: GpuEvidence) -> Sequence[tuple[int, float | None]]:
    """Power of each hour while parked, or over all of it where nothing tells that."""
    hours = parked_hours(gpu.hours)
    watts = zip(hours.hour_ms, hours.parked_power_w, hours.power_w, strict=True)
    return [(hour_ms, power_w if parked_w is None else parked_w) for hour_ms, parked_w, power_w in watts]


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


def _too_short(evidence: Evidence, gpu: GpuEvidence, limits: ParkedModelLimits) -> str:
    seen, due = duration(digest(evidence, gpu).covered_h), duration(limits.min_cash_h)
    return f"No cash figure: {seen} of data are no month; {due} are needed."


def _tax_w(gpu: GpuEvidence, parking: Parking) -> float | None:
    """What the loaded context draws above this card's own bare idle."""
    if parking.power_w is None or gpu.bare_idle_w is None:
        return None
    return max(0.0, parking.power_w - gpu.bare_idle_w)


def _energy_kwh_month(evidence: Evidence, parking: Parking, tax_w: float | None) -> float | None:
    """Unloading takes the card down to bare idle; counted only where the site pays its power."""
    if not evidence.site.pays_for_power or tax_w is None:
        return None
    return tax_w * month_h(evidence, parking.parked_h) / 1000


def _facts(
    evidence: Evidence, gpu: GpuEvidence, parking: Parking, tax_w: float | None, busy_ratio: float | None
) -> dict[str, Any]:
    optional = {
        "memory_held_bytes": parking.memory_bytes,
        "parked_power_w": parking.power_w,
        "bare_idle_w": gpu.bare_idle_w,
        "parking_tax_w": tax_w,
        "busy_ratio": None if busy_ratio is None else round(busy_ratio, 4),
    }
    return {
        **window_facts(evidence, digest(evidence, gpu).coverage),
        **price_facts(gpu.price),
        "parked_h": round(parking.parked_h, 3),
        "parked_ratio": round(parking.share, 4),
        "days_of_last_7": parking.days,
        "data_h": round(digest(evidence, gpu).covered_h, 3),
        "billing": billing(gpu.price, evidence.site),
        **{name: round(value, 4) for name, value in optional.items() if value is not None},
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
