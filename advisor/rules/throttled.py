"""A GPU at work is slowed down by heat, by the server's power brake, or by a power limit below its own.

What it finds
    GPUs that heat or a power brake held back for more than 5 % of their working time, by the driver's own counters or
    event bits. Slowing at the power cap is normal at full load: it is reported only where somebody has set the limit
    below the card's default.

Why it costs
    Arithmetic runs at the clock's speed: a tenth less clock is a tenth more GPU-hours for the same work. Work that
    waits for memory loses a few percent at most, because the memory clock is not touched.

When it is wrong
    A limit set on purpose to save energy, a short heat wave, or work whose clock falls because it draws more power
    than other work on the same card. Hours of other work are the reference, so a change of program looks like a loss.

What to do
    Heat: look at fans, filters, air flow and inlet temperature. Power brake: ask the power supply and the rack's
    budget. Limit: put the default back, or keep it and know what it costs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Field

from advisor.confidence import duration, graded
from advisor.digest import digest
from advisor.estimators.throttle_loss import throttle_loss
from advisor.facts import price_facts, rounded, time_chart, window_facts
from advisor.fleet import gpu_subject, label
from advisor.gpu_work import (
    WorkLimits,
    freed,
    hours_of,
    is_dark,
    mean,
    means,
    memory_bound,
    recent,
    unfit,
    unread,
    whole_hours,
)
from advisor.model import Rule, Source, Verdict
from core.evidence import Evidence, GpuEvidence
from core.finding import Action, Effort, Finding, Grade, NotEvaluated, Range, Risk, Saving
from core.hour_columns import rows_of
from core.hours import GpuHour
from core.percent import percent

RULE_ID: Final = "throttled"
NORMAL_LIMIT_RATIO: Final = 0.98
"""A limit this near the default is the default."""


class ThrottledLimits(WorkLimits):
    """Thresholds of ``throttled``."""

    max_slowed_ratio: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """Share of working time held back before it is worth a word (R24)."""
    free_slowed_ratio: Annotated[float, Field(ge=0, lt=1)] = 0.01
    """An hour held back for less is a reference for the clock that nothing holds back."""


@dataclass(frozen=True, slots=True)
class Slowing:
    """What held the clocks back: ``heat`` or ``limit``, in the hours at work, by this share of their time."""

    cause: str
    share: float


def evaluate(evidence: Evidence, limits: ThrottledLimits) -> Iterator[Verdict]:
    """Every GPU at work."""
    blind: list[GpuEvidence] = []
    for gpu in evidence.gpus:
        lately = recent(evidence, gpu).whole
        if not lately:
            blind += [gpu] if is_dark(evidence, gpu) else []
            continue
        if all(hour.throttled_s is None and hour.slowed_thermal_s is None for hour in lately):
            blind.append(gpu)
            continue
        now = _slowing(gpu, lately, limits)
        if now is None:
            continue
        refusal = unfit(evidence, gpu, limits)
        if refusal is not None:
            yield NotEvaluated(RULE_ID, gpu_subject(gpu), *refusal)
            continue
        yield _finding(evidence, gpu, now, limits)
    why = "whether heat or a power brake slows them is not known."
    yield from unread(RULE_ID, blind, ("throttled_s", "slowed_thermal_s"), why)


def _slowing(gpu: GpuEvidence, hours: Sequence[GpuHour], limits: ThrottledLimits) -> Slowing | None:
    heat = _share(hours, "heat")
    if heat is not None and heat > limits.max_slowed_ratio:
        return Slowing("heat", heat)
    power = _share(hours, "limit")
    if power is not None and power > limits.max_slowed_ratio and _is_lowered(gpu, hours):
        return Slowing("limit", power)
    return None


_COUNTERS: Final = {
    "limit": ("slowed_power_s", "slowed_power_s"),
    "heat": ("slowed_thermal_s", "throttled_s"),
}
"""Seconds held back by each cause, and what tells them where those are not known."""


def _held_s(hour: GpuHour, cause: str) -> float | None:
    """Seconds held back: the driver's counters where it has them, else the event bits seen at work."""
    known = (held_s for name in _COUNTERS[cause] if (held_s := getattr(hour, name)) is not None)
    held_s = next(known, None)
    return None if held_s is None else min(held_s, hour.covered_s)


def _share(hours: Sequence[GpuHour], cause: str) -> float | None:
    known = [
        (min(held_s, covered_s), covered_s)
        for covered_s, one_s, other_s in rows_of(hours, "covered_s", *_COUNTERS[cause])
        if (held_s := other_s if one_s is None else one_s) is not None
    ]
    covered_s = sum([seconds for _, seconds in known])
    return sum([held for held, _ in known]) / covered_s if covered_s > 0 else None


def _is_lowered(gpu: GpuEvidence, hours: Sequence[GpuHour]) -> bool:
    """The limit in force is below the card's default; unknown is not lowered."""
    limit, default = mean(hours, "power_limit_w"), gpu.identity.power_limit_default_w
    return limit is not None and default is not None and limit < NORMAL_LIMIT_RATIO * default


def _is_held(hour: GpuHour, cause: str, least: float) -> bool | None:
    held_s = _held_s(hour, cause)
    return None if held_s is None else held_s > least * hour.covered_s


def _finding(evidence: Evidence, gpu: GpuEvidence, now: Slowing, limits: ThrottledLimits) -> Finding:
    work = whole_hours(gpu.hours)
    held = [hour for hour in work if _is_held(hour, now.cause, limits.max_slowed_ratio)]
    free = [hour for hour in work if _is_held(hour, now.cause, limits.free_slowed_ratio) is False]
    bound = memory_bound(held)
    loss = _loss(held, free, bound)
    capacity = None if loss is None else _capacity(evidence, gpu, hours_of(held), loss)
    basis = (
        "The time held back is the driver's own count; the loss follows the clock of this card's free hours"
        if loss is not None
        else "The time held back is the driver's own count"
    )
    seen = digest(evidence, gpu)
    grade, confidence = graded(
        Grade.A if loss is None else Grade.C, basis, span_h=seen.observed_h, covered_h=seen.covered_h
    )
    return Finding(
        rule_id=RULE_ID,
        subject=gpu_subject(gpu),
        cause=now.cause,
        title=f"{'Cool' if now.cause == 'heat' else 'Raise the power limit of'} {label(gpu)}",
        because=_because(gpu, now, held, loss, bound),
        state="slowed by heat or power brake" if now.cause == "heat" else "slowed by a lowered power limit",
        confidence=confidence,
        grade=grade,
        effort=Effort.MEDIUM if now.cause == "heat" else Effort.LOW,
        risk=Risk.LOW,
        saving=Saving(capacity_gpu_h_month=capacity),
        no_figure=None if capacity is not None else _no_figure(loss),
        evidence=_facts(evidence, gpu, now, held, free),
        actions=_actions(gpu, now.cause),
        wrong_when=(
            "The limit was set on purpose, the heat was a single event, or the hours that nothing held back ran"
            " other work."
        ),
        not_claimed="Money: faster work lowers a bill only where a whole GPU or node falls away. Shorter life from heat.",
        gpu_uuids=(gpu.gpu_uuid,),
        stage="clocks",
        chart=time_chart(
            ((h.hour_ms, None if h.sm_clock_hz is None else h.sm_clock_hz / 1e6) for h in work[-24 * 14 :]),
            "MHz",
            None if (clock := mean(free, "sm_clock_hz")) is None else clock / 1e6,
        ),
    )


def _loss(held: Sequence[GpuHour], free: Sequence[GpuHour], bound: bool | None) -> Range | None:
    """Share of speed lost in the held hours against this card's own free hours; None without a reference."""
    clock, reference = mean(held, "sm_clock_hz"), mean(free, "sm_clock_hz")
    if clock is None or reference is None:
        return None
    return throttle_loss(clock_hz=clock, reference_hz=reference, memory_bound=bound)


def _capacity(evidence: Evidence, gpu: GpuEvidence, held_h: float, loss: Range) -> Range | None:
    """The same work in fewer hours; None where the clocks do not show a loss."""
    if loss.p50 <= 0:
        return None
    whole = freed(evidence, [gpu], held_h, Grade.A)
    return Range(whole.p10 * loss.p10, whole.p50 * loss.p50, whole.p90 * loss.p90)


def _no_figure(loss: Range | None) -> str:
    if loss is None:
        return "No figure: there are no hours of work that nothing held back, so the clock it should have is not known."
    return "No figure: the clock was no lower than in hours that nothing held back."


def _because(
    gpu: GpuEvidence, now: Slowing, held: Sequence[GpuHour], loss: Range | None, bound: bool | None
) -> str:
    what = "Heat or the power brake" if now.cause == "heat" else "A power limit below the card's default"
    said = f"{what} held the clocks back for {percent(now.share)} of its last day of work"
    said += f", in {duration(hours_of(held))} of the window." if held else "."
    if now.cause == "limit" and gpu.identity.power_limit_default_w is not None:
        said += f" The default is {gpu.identity.power_limit_default_w:.0f} W."
    if loss is not None and bound:
        said += " The work waits for memory, whose clock is not touched: the loss is small."
    return said


def _facts(
    evidence: Evidence,
    gpu: GpuEvidence,
    now: Slowing,
    held: Sequence[GpuHour],
    free: Sequence[GpuHour],
) -> dict[str, Any]:
    hot = [hour.temperature_max_c for hour in held if hour.temperature_max_c is not None]
    return {
        **window_facts(evidence, digest(evidence, gpu).coverage),
        **price_facts(gpu.price),
        **means(held, "power_w", "power_limit_w", "busy_ratio", "sm_active_ratio"),
        **rounded(
            {
                "slowed_ratio": now.share,
                "slowed_h": hours_of(held),
                "sm_clock_hz": mean(held, "sm_clock_hz"),
                "reference_clock_hz": mean(free, "sm_clock_hz"),
                "temperature_max_c": max(hot) if hot else None,
                "power_limit_default_w": gpu.identity.power_limit_default_w,
            }
        ),
    }


def _actions(gpu: GpuEvidence, cause: str) -> tuple[Action, ...]:
    look = Action(
        "See what holds the clocks back", f"nvidia-smi -q -d PERFORMANCE,TEMPERATURE -i {gpu.gpu_uuid}"
    )
    if cause == "heat":
        return (
            look,
            Action("Check fans, filters, blanking panels and the inlet temperature of its server."),
            Action("For the power brake, check the power supplies and the power budget of the rack."),
        )
    default = gpu.identity.power_limit_default_w
    return look, Action(
        "Put the default limit back where power and cooling allow it",
        None if default is None else f"nvidia-smi -i {gpu.gpu_uuid} -pl {default:.0f}",
    )


RULE: Final = Rule(
    id=RULE_ID,
    code="R24",
    title="Stop heat and power brakes from slowing GPUs",
    needs=frozenset({"event_reasons_flags", "sm_clock_hz"}),
    limits=ThrottledLimits(),
    effort=Effort.MEDIUM,
    risk=Risk.LOW,
    sources=(
        Source(
            "NVML: clocks event reasons",
            "https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html",
        ),
    ),
    evaluate=evaluate,
)
