"""A compute-bound GPU of the site's own draws its full power for the last percents of speed.

What it finds
    GPUs whose work is compute-bound by their counters, that draw their power without a cap below the default, on
    hardware where time is sunk (owned) or where the money test comes out in favour, and where the site pays the power.

Why it costs
    The last tenth of speed takes the most watts per step: at 0.85 of the uncapped mean power published training jobs
    took 6.7 % longer (3.5–11 %) and 17 % less energy (11–25 %).

When it is wrong
    Whenever somebody waits for the result: at rental prices the longer time costs about ten times the energy it saves.
    On some boards a cap below 0.8 costs energy. It says nothing about work that waits for memory.

What to do
    Set the cap, take the time of a hundred steps before and after, and keep it only where the time is slack, or where
    power or cooling is what limits the site. It is gone after a reboot unless it is set at start.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Field

from advisor.confidence import graded, seen_share
from advisor.digest import digest
from advisor.estimators.power_cap import LEAST_RATIO, CapEffect, MoneyTest, money_test, power_cap
from advisor.facts import as_facts, price_facts, rounded, time_chart, window_facts
from advisor.fleet import billing, gpu_subject, label, month_h
from advisor.gpu_jobs import served
from advisor.gpu_work import (
    WorkLimits,
    hours_of,
    is_dark,
    mean,
    means,
    recent,
    share,
    unfit,
    unread,
    whole_hours,
)
from advisor.model import Rule, Source, Verdict
from advisor.waterfall import base_of
from core.activity import Activity
from core.evidence import Evidence, GpuEvidence
from core.finding import Action, Effort, Finding, Grade, NotEvaluated, Range, Risk, Saving
from core.hours import GpuHour
from core.percent import percent
from core.units import J_PER_KWH

RULE_ID: Final = "power-cap"
SUNK: Final = frozenset({"owned"})
"""Billing under which an hour of the GPU costs nothing more when it is used longer."""
NORMAL_LIMIT_RATIO: Final = 0.98
"""A limit this near the default is the default; a cap this near the draw does nothing."""


class PowerCapLimits(WorkLimits):
    """Thresholds of ``power-cap``."""

    min_compute_ratio: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Share of working time that is compute-bound by the counters: the curve is of such work only."""
    cap_ratio: Annotated[float, Field(ge=LEAST_RATIO, le=1)] = 0.85
    """Cap over uncapped mean power. Never below 0.7, where some boards use more energy (R22); 0.85 is on the safe side."""
    time_value_ratio: Annotated[float, Field(ge=0, le=1)] = 1.0
    """What an hour of the GPU is worth of its price; 0 where nothing waits for it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A cap for one GPU, what it does, and whether it pays. ``hours`` are the compute-bound ones of the window."""

    gpu: GpuEvidence
    hours: Sequence[GpuHour]
    uncapped_w: float
    cap_w: float
    effect: CapEffect
    energy_j_month: float
    money: MoneyTest | None


def evaluate(evidence: Evidence, limits: PowerCapLimits) -> Iterator[Verdict]:
    """Every GPU with compute-bound work."""
    engines = served(evidence)
    blind: list[GpuEvidence] = []
    candidates: list[GpuEvidence] = []
    for gpu in evidence.gpus:
        lately = recent(evidence, gpu).whole
        if not lately or gpu.gpu_uuid in engines:
            blind += [gpu] if not lately and is_dark(evidence, gpu) else []
            continue
        if share(lately, Activity.BUSY, Activity.UNKNOWN) > 0.5:
            blind.append(gpu)
        elif share(lately, Activity.COMPUTE_BOUND) >= limits.min_compute_ratio:
            candidates.append(gpu)
    why = "whether their work is compute-bound is not known."
    yield from unread(RULE_ID, blind, ("sm_active_ratio", "tensor_active_ratio"), why)
    if not evidence.site.pays_for_power:
        why = "power is in their price, and a cap would only make their compute-bound work slower."
        yield from unread(RULE_ID, candidates, ("pays_for_power",), why)
    elif evidence.site.tariff_usd_per_kwh is None:
        why = "the longer time of their compute-bound work cannot be weighed against the energy."
        yield from unread(RULE_ID, candidates, ("tariff_usd_per_kwh",), why)
    else:
        for gpu in candidates:
            yield _judge(evidence, gpu, limits)


def _judge(evidence: Evidence, gpu: GpuEvidence, limits: PowerCapLimits) -> Verdict:
    refusal = unfit(evidence, gpu, limits)
    plan = None
    if refusal is None:
        found = _plan(evidence, gpu, limits)
        plan, refusal = (found, None) if isinstance(found, Plan) else (None, found)
    if refusal is None and plan is not None:
        refusal = _lost_time(evidence, plan)
    if refusal is not None or plan is None:
        return NotEvaluated(RULE_ID, gpu_subject(gpu), *(refusal or ((), "")))
    return _finding(evidence, plan)


def _plan(evidence: Evidence, gpu: GpuEvidence, limits: PowerCapLimits) -> Plan | tuple[tuple[str, ...], str]:
    """The cap and its effect, or what is missing for it."""
    hours = [
        hour
        for hour in whole_hours(gpu.hours)
        if share([hour], Activity.COMPUTE_BOUND) >= limits.min_compute_ratio
    ]
    uncapped_w, limit_w = mean(hours, "power_w"), mean(hours, "power_limit_w")
    default_w, energy_j = gpu.identity.power_limit_default_w, _energy_j(hours)
    if uncapped_w is None or limit_w is None or default_w is None or energy_j is None:
        known = {
            "power_w": uncapped_w,
            "power_limit_w": limit_w,
            "power_limit_default_w": default_w,
            "energy_j": energy_j,
        }
        missing = tuple(name for name, value in known.items() if value is None)
        return missing, "What it draws, and whether a cap is in force already, is not known."
    if limit_w < NORMAL_LIMIT_RATIO * default_w:
        why = f"A limit of {limit_w:.0f} W is in force (default {default_w:.0f} W): what it would draw without one is not known."
        return ("power without the cap",), why
    least_w = gpu.health.get("power_limit_min_w")
    cap_w = limits.cap_ratio * uncapped_w
    if isinstance(least_w, int | float):
        cap_w = max(cap_w, float(least_w))
    effect = power_cap(cap_w=cap_w, uncapped_mean_w=uncapped_w)
    if effect is None or cap_w >= NORMAL_LIMIT_RATIO * uncapped_w:
        why = f"The card takes no limit below {cap_w:.0f} W and draws {uncapped_w:.0f} W: a cap would do nothing."
        return ("a limit below its draw",), why
    energy_j_month = month_h(evidence, energy_j)
    return Plan(
        gpu,
        hours,
        uncapped_w,
        cap_w,
        effect,
        energy_j_month,
        _money(evidence, gpu, hours, effect, energy_j_month=energy_j_month, limits=limits),
    )


def _energy_j(hours: Sequence[GpuHour]) -> float | None:
    """Energy of the hours; None when it is not known for nearly all of their time."""
    covered_s = sum(hour.covered_s for hour in hours)
    known_s = sum(hour.energy_covered_s for hour in hours if hour.energy_j is not None)
    if covered_s <= 0 or known_s < 0.9 * covered_s:
        return None
    return sum(hour.energy_j for hour in hours if hour.energy_j is not None)


def _money(
    evidence: Evidence,
    gpu: GpuEvidence,
    hours: Sequence[GpuHour],
    effect: CapEffect,
    *,
    energy_j_month: float,
    limits: PowerCapLimits,
) -> MoneyTest | None:
    """None for a GPU without a price."""
    tariff = evidence.site.tariff_usd_per_kwh
    if gpu.price is None or tariff is None:
        return None
    return money_test(
        effect,
        energy_j_month=energy_j_month,
        busy_h_month=month_h(evidence, hours_of(hours)),
        usd_per_kwh=tariff,
        pue=evidence.site.pue,
        usd_per_gpu_hour=float(gpu.price.usd_per_gpu_hour) * limits.time_value_ratio,
    )


def _is_sunk(evidence: Evidence, gpu: GpuEvidence) -> bool:
    return billing(gpu.price, evidence.site) in SUNK


def _lost_time(evidence: Evidence, plan: Plan) -> tuple[tuple[str, ...], str] | None:
    """Why the cap is not advised on hardware whose hours cost money."""
    if _is_sunk(evidence, plan.gpu):
        return None
    if plan.money is None:
        return (
            "price",
        ), "Without a price of its hours the longer time cannot be weighed against the energy."
    if plan.money.net_usd_month > 0:
        return None
    return ("time to spare",), (
        f"A cap of {plan.cap_w:.0f} W would save about {plan.money.energy_usd_month:.2f} USD of energy a month and cost"
        f" {plan.money.time_usd_month:.2f} USD of GPU time: only where time is slack."
    )


def _finding(evidence: Evidence, plan: Plan) -> Finding:
    gpu, effect = plan.gpu, plan.effect
    seen = digest(evidence, gpu)
    grade, confidence = graded(
        Grade.D,
        "Power and nature of the work are measured; what a cap does is a published curve of other cards",
        span_h=seen.observed_h,
        covered_h=seen.covered_h,
    )
    pays = plan.money is not None and plan.money.net_usd_month > 0
    return Finding(
        rule_id=RULE_ID,
        subject=gpu_subject(gpu),
        cause="compute-bound",
        title=f"Cap the power of {label(gpu)} at {plan.cap_w:.0f} W where its time is slack",
        because=(
            f"Its compute-bound work draws {plan.uncapped_w:.0f} W. At {percent(effect.cap_ratio)} of that, published jobs"
            f" took {percent(effect.time_ratio.p50)} longer and {percent(-effect.energy_ratio.p50)} less energy."
            + ("" if pays else " Were its hours for sale, the time would cost more than the energy saves.")
        ),
        state="pays by itself" if pays else "worth it where time is slack",
        confidence=confidence,
        grade=grade,
        effort=Effort.LOW,
        risk=Risk.MEDIUM,
        saving=Saving(energy_kwh_month=_saved_kwh(evidence, plan)),
        evidence=_facts(evidence, plan),
        actions=_actions(plan),
        wrong_when="Somebody waits for the result, the work changes its nature, or the hours could be rented out.",
        not_claimed="Cash beyond the energy itself, cooling, and a longer life of the card.",
        gpu_uuids=(gpu.gpu_uuid,),
        stage="clocks",
        chart=time_chart(((h.hour_ms, h.power_w) for h in gpu.hours[-24 * 14 :]), "W", plan.cap_w),
    )


def _saved_kwh(evidence: Evidence, plan: Plan) -> Range:
    """Energy saved a month; the low end no more than the window has shown."""
    kwh = plan.energy_j_month / J_PER_KWH
    base = base_of(plan.gpu, digest(evidence, plan.gpu), evidence.window.hours).energy
    most = kwh if base is None else min(kwh, base)
    saved = plan.effect.energy_ratio
    low = max(0.0, -saved.p90) * kwh * seen_share(evidence.window.hours)
    return Range(low, min(most, max(low, -saved.p50 * kwh)), min(most, max(low, -saved.p10 * kwh)))


def _facts(evidence: Evidence, plan: Plan) -> dict[str, Any]:
    money = plan.money
    return {
        **window_facts(evidence, digest(evidence, plan.gpu).coverage),
        **price_facts(plan.gpu.price),
        **means(plan.hours, "tensor_active_ratio", "sm_active_ratio", "power_limit_w"),
        **rounded(
            {
                "uncapped_mean_power_w": plan.uncapped_w,
                "cap_w": plan.cap_w,
                "cap_ratio": plan.effect.cap_ratio,
                "compute_bound_h": hours_of(plan.hours),
                **as_facts("added_time_ratio", plan.effect.time_ratio),
                **as_facts("energy_change_ratio", plan.effect.energy_ratio),
                "tariff_usd_per_kwh": evidence.site.tariff_usd_per_kwh,
                "pue": evidence.site.pue,
                "energy_saved_usd_month": None if money is None else money.energy_usd_month,
                "time_lost_usd_month": None if money is None else money.time_usd_month,
                "net_usd_month": None if money is None else money.net_usd_month,
            }
        ),
        "billing": billing(plan.gpu.price, evidence.site),
    }


def _actions(plan: Plan) -> tuple[Action, ...]:
    uuid, default = plan.gpu.gpu_uuid, plan.gpu.identity.power_limit_default_w
    return (
        Action("Set the cap", f"nvidia-smi -i {uuid} -pl {plan.cap_w:.0f}"),
        Action(
            "Take the time of a hundred steps before and after; keep it only where the longer time does not hurt."
        ),
        Action("Take it away", None if default is None else f"nvidia-smi -i {uuid} -pl {default:.0f}"),
    )


RULE: Final = Rule(
    id=RULE_ID,
    code="R22",
    title="Cap the power of compute-bound GPUs whose time is slack",
    needs=frozenset({"power_w", "power_limit_w", "energy_j", "sm_active_ratio", "tensor_active_ratio"}),
    limits=PowerCapLimits(),
    effort=Effort.LOW,
    risk=Risk.MEDIUM,
    sources=(
        Source("Zeus power traces (NSDI 2023)", "https://github.com/ml-energy/zeus"),
        Source("McDonald et al., Great Power, Great Responsibility", "https://arxiv.org/abs/2205.09646"),
    ),
    evaluate=evaluate,
)
