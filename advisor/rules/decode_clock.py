"""A memory-bound engine runs its SM clock at full height while every step waits for memory.

What it finds
    LLM engines of a known model whose decoding is memory-bound (MBU ≥ 0.6, MFU < 0.25), on GPUs well below their
    power limit, at their full SM clock, where the site pays the power.

Why it costs
    A step lasts as long as its bytes take, whatever the SM clock. Power falls with the clock: a clock 15 to 25 % lower
    is reported to take 10 to 25 % less energy for 0 to 6 % longer times between tokens.

When it is wrong
    Prefill computes: with long prompts the time to the first token grows with the lower clock. At larger batches
    decoding turns compute-bound. A power *cap* above the draw does nothing here, whatever it promises.

What to do
    Lock the SM clock on one replica, compare time to first token and between tokens for a day, then lock the others
    or take it away. The lock is gone after a reboot.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final

from pydantic import Field

from advisor.confidence import duration, graded, seen_share
from advisor.digest import digest
from advisor.engine_time import engine_coverage, engine_span_h, engine_subject
from advisor.estimators.clock_lock import LEAST_REDUCTION, MOST_REDUCTION, LockEffect, clock_lock
from advisor.facts import as_facts, price_facts, rounded, time_chart, window_facts
from advisor.fleet import month_h
from advisor.gpu_work import FLEET, mean, recent
from advisor.model import Limits, Rule, Source, Verdict
from advisor.recent import recent_hours, silence
from advisor.serving import Serving, hour_shares, servings
from advisor.waterfall import base_of
from core.evidence import Evidence
from core.finding import Action, Effort, Finding, Grade, NotEvaluated, Range, Risk, Saving
from core.hours import GpuHour
from core.percent import percent
from core.units import J_PER_KWH

RULE_ID: Final = "decode-clock"
CLOCK_STEP_HZ: Final = 15e6
"""Clocks of data-centre cards come in steps of 15 MHz."""


class DecodeClockLimits(Limits):
    """Thresholds of ``decode-clock``."""

    min_busy_h: Annotated[float, Field(gt=0, le=336)] = 1.0
    """Hours with requests below which start and end of a load weigh too much."""
    min_coverage_ratio: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Samples received over samples due."""
    max_power_ratio: Annotated[float, Field(gt=0, le=1)] = 0.9
    """p95 of the hours' power over the limit: nearer to it the power decides the clock, not the lock (R23)."""
    min_clock_ratio: Annotated[float, Field(gt=0, le=1)] = 0.9
    """Clock over the card's highest below which it is low already."""
    max_prompt_ratio: Annotated[float, Field(gt=0)] = 4.0
    """Computed prompt tokens per generated token above which prefill, and with it the time to the first token, leads."""
    reduction_ratio: Annotated[float, Field(ge=LEAST_REDUCTION, le=MOST_REDUCTION)] = 0.2
    """How far to lower the SM clock, within what was reported (R23: 15–25 %)."""


def evaluate(evidence: Evidence, limits: DecodeClockLimits) -> Iterator[Verdict]:
    """Every engine that decodes memory-bound."""
    if not evidence.engines:
        why = "No LLM engine is seen: scrape or import its /metrics."
        yield NotEvaluated(RULE_ID, FLEET, ("engine metrics",), why)
        return
    for serving in servings(evidence):
        if serving.engine.busy_s <= 0:
            continue
        if serving.mbu is None or serving.mfu is None:
            missing = serving.missing or ("generated_tokens",)
            why = "Whether its decoding is memory-bound is not known."
            yield NotEvaluated(RULE_ID, engine_subject(serving), missing, why)
            continue
        effect = clock_lock(reduction_ratio=limits.reduction_ratio, mbu=serving.mbu, mfu=serving.mfu)
        if effect is None or not _still_bound(serving, limits):
            continue
        if not evidence.site.pays_for_power:
            why = "Decoding is memory-bound, but power is in the price of the GPUs: a lower clock would save nothing here."
            yield NotEvaluated(RULE_ID, engine_subject(serving), ("pays_for_power",), why)
            continue
        hours = _hours(evidence, serving)
        refusal = _refusal(evidence, serving, hours, limits)
        if refusal is not None:
            yield NotEvaluated(RULE_ID, engine_subject(serving), *refusal)
        elif not _is_low(serving, hours, limits):
            yield _finding(evidence, serving, hours, effect, limits)


def _still_bound(serving: Serving, limits: DecodeClockLimits) -> bool:
    """Its last day of work says the same, weighted by time."""
    shares = [
        (hour.busy_s, mbu, mfu)
        for hour in recent_hours(serving.engine)
        for mbu, mfu in (hour_shares(serving, hour),)
        if mbu is not None and mfu is not None
    ]
    total_s = sum(seconds for seconds, _, _ in shares)
    if total_s <= 0:
        return False
    mbu = sum(seconds * value for seconds, value, _ in shares) / total_s
    mfu = sum(seconds * value for seconds, _, value in shares) / total_s
    return clock_lock(reduction_ratio=limits.reduction_ratio, mbu=mbu, mfu=mfu) is not None


def _hours(evidence: Evidence, serving: Serving) -> Sequence[GpuHour]:
    """The last hours in which its GPUs worked throughout."""
    return [hour for gpu in serving.gpus for hour in recent(evidence, gpu).whole]


def _refusal(
    evidence: Evidence, serving: Serving, hours: Sequence[GpuHour], limits: DecodeClockLimits
) -> tuple[tuple[str, ...], str] | None:
    """What is missing and why that matters; None when a lock can be judged."""
    engine = serving.engine
    if (silent := silence(engine, evidence.window)) is not None:
        return silent
    if engine_coverage(engine) < limits.min_coverage_ratio:
        why = f"Samples cover {percent(engine_coverage(engine))} of the time; a gap is unknown."
        return ("samples",), why
    if engine.busy_s < limits.min_busy_h * 3600:
        due = duration(limits.min_busy_h)
        return ("busy time",), f"Busy for {duration(engine.busy_s / 3600)}; {due} are needed."
    if "a GPU of its own" in serving.missing or not serving.gpus:
        return ("a GPU of its own",), "Its GPUs are shared or not known: a lock would slow others too."
    if serving.prompt_per_generated is None or serving.prompt_per_generated > limits.max_prompt_ratio:
        return (
            ("work that decodes more than it reads",),
            "Prompts lead here: a lower clock would delay the first token, which is computed.",
        )
    highest = _highest_hz(serving)
    limit_w = mean(hours, "power_limit_w") or serving.gpus[0].identity.power_limit_default_w
    known = {
        "max_sm_clock_hz": highest,
        "sm_clock_hz": mean(hours, "sm_clock_hz"),
        "power_w": mean(hours, "power_w"),
        "power_limit_w": limit_w,
    }
    missing = tuple(name for name, value in known.items() if value is None)
    if missing:
        return missing, "Whether there is a clock to lower, and whether power decides it, is not known."
    if limit_w is not None and _p95_w(hours) >= limits.max_power_ratio * limit_w:
        return (
            ("power below the limit",),
            f"It draws up to {_p95_w(hours):.0f} W of {limit_w:.0f} W: there the power limit decides the clock.",
        )
    return None


def _highest_hz(serving: Serving) -> float | None:
    return serving.gpus[0].identity.max_sm_clock_hz if serving.gpus else None


def _p95_w(hours: Sequence[GpuHour]) -> float:
    """95th percentile of the hours' mean power."""
    known = sorted(hour.power_w for hour in hours if hour.power_w is not None)
    return known[min(len(known) - 1, int(0.95 * len(known)))] if known else 0.0


def _is_low(serving: Serving, hours: Sequence[GpuHour], limits: DecodeClockLimits) -> bool:
    """Somebody has lowered the clock already, or it is low by itself."""
    clock, highest = mean(hours, "sm_clock_hz"), _highest_hz(serving)
    return clock is None or highest is None or clock < limits.min_clock_ratio * highest


def _energy_kwh_month(evidence: Evidence, serving: Serving) -> float | None:
    """Of its busy time: as the engine's hours have it, else of the hours in which its GPUs worked throughout."""
    energy_j = serving.engine.total("busy_energy_j")
    if energy_j is None:
        known = [
            hour.energy_j
            for gpu in serving.gpus
            for hour in gpu.hours
            if hour.energy_j is not None and hour.active_s >= 0.95 * hour.covered_s > 0
        ]
        energy_j = sum(known) if known else None
    return None if energy_j is None else month_h(evidence, energy_j) / J_PER_KWH


def _saved_kwh(evidence: Evidence, serving: Serving, effect: LockEffect) -> Range | None:
    kwh = _energy_kwh_month(evidence, serving)
    if kwh is None:
        return None
    window_h = evidence.window.hours
    bases = [base_of(gpu, digest(evidence, gpu), window_h).energy for gpu in serving.gpus]
    most = min(kwh, sum(base for base in bases if base is not None) or kwh)
    saved = effect.energy_ratio
    return Range(-saved.p90 * most * seen_share(window_h), -saved.p50 * most, -saved.p10 * most)


def _finding(
    evidence: Evidence,
    serving: Serving,
    hours: Sequence[GpuHour],
    effect: LockEffect,
    limits: DecodeClockLimits,
) -> Finding:
    engine = serving.engine
    kwh = _saved_kwh(evidence, serving, effect)
    target_hz = (1 - limits.reduction_ratio) * (_highest_hz(serving) or 0.0) // CLOCK_STEP_HZ * CLOCK_STEP_HZ
    grade, confidence = graded(
        Grade.D,
        "Memory-bound decoding is measured; what a lower clock does to it is reported for other engines",
        span_h=engine_span_h(engine),
        covered_h=engine.covered_s / 3600,
    )
    uuids = tuple(gpu.gpu_uuid for gpu in serving.gpus)
    names = ",".join(uuids)
    return Finding(
        rule_id=RULE_ID,
        subject=engine_subject(serving),
        cause="memory-bound",
        title=f"Try a lower SM clock for {serving.label}",
        because=(
            f"Decoding uses {percent(serving.mbu or 0.0)} of the memory bandwidth and {percent(serving.mfu or 0.0)} of"
            f" the arithmetic, at {(mean(hours, 'sm_clock_hz') or 0.0) / 1e6:.0f} MHz and"
            f" {mean(hours, 'power_w') or 0.0:.0f} W. It waits for memory, whose clock stays."
        ),
        state="memory-bound at full clock",
        confidence=confidence,
        grade=grade,
        effort=Effort.LOW,
        risk=Risk.MEDIUM,
        saving=Saving(energy_kwh_month=kwh),
        no_figure=None if kwh is not None else "No figure: the energy of its busy time is not known.",
        evidence=_facts(evidence, serving, hours, effect, target_hz),
        actions=(
            Action("Lock the clock of one replica", f"nvidia-smi -i {names} -lgc 0,{target_hz / 1e6:.0f}"),
            Action(
                "Compare time to first token and between tokens for a day at like load, with an untouched replica."
            ),
            Action("Take it away", f"nvidia-smi -i {names} -rgc"),
        ),
        wrong_when="Prompts grow, batches grow, or the promise on the time to the first token is tight.",
        not_claimed="Money beyond the energy, and that 6 % longer steps never need one more replica.",
        gpu_uuids=uuids,
        stage="clocks",
        chart=time_chart(
            ((h.hour_ms, None if h.sm_clock_hz is None else h.sm_clock_hz / 1e6) for h in hours[-24 * 14 :]),
            "MHz",
            target_hz / 1e6,
        ),
    )


def _facts(
    evidence: Evidence, serving: Serving, hours: Sequence[GpuHour], effect: LockEffect, target_hz: float
) -> dict[str, Any]:
    return {
        **window_facts(evidence, engine_coverage(serving.engine)),
        **price_facts(serving.gpus[0].price),
        **rounded(
            {
                "mbu_ratio": serving.mbu,
                "mfu_ratio": serving.mfu,
                "sm_clock_hz": mean(hours, "sm_clock_hz"),
                "max_sm_clock_hz": _highest_hz(serving),
                "target_clock_hz": target_hz,
                "power_w": mean(hours, "power_w"),
                "power_p95_w": _p95_w(hours),
                "itl_s": serving.itl_s,
                **as_facts("energy_change_ratio", effect.energy_ratio),
                **as_facts("added_itl_ratio", effect.itl_ratio),
                "prompt_per_generated": serving.prompt_per_generated,
            }
        ),
    }


RULE: Final = Rule(
    id=RULE_ID,
    code="R23",
    title="Lower the SM clock of memory-bound engines",
    needs=frozenset({"generated_tokens", "sm_clock_hz", "power_w", "power_limit_w"}),
    limits=DecodeClockLimits(),
    effort=Effort.LOW,
    risk=Risk.MEDIUM,
    sources=(Source("Ma et al., clocks and energy of LLM decoding", "https://arxiv.org/abs/2605.11999"),),
    evaluate=evaluate,
)
