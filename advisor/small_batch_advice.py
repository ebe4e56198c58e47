"""Findings of ``small-batch``, one builder per cause: what to change, what it gives, and what it does not."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from advisor import flags
from advisor.batch import Diagnosis, Pressure
from advisor.confidence import graded
from advisor.engine_time import engine_coverage, engine_span_h, engine_subject
from advisor.estimators import kv_pool
from advisor.estimators.replicas import dropped, for_demand
from advisor.facts import as_facts, profile_chart, rounded, time_chart, window_facts
from advisor.replica_group import Fall, Outcome, peak_running, peak_tokens_per_s, without_saving
from advisor.serving import Serving, profile_of
from core.evidence import Evidence
from core.finding import Action, Effort, Finding, Grade, Range, Risk
from core.percent import percent

RULE_ID: Final = "small-batch"
GRADE: Final = {"fit": Grade.B, "formula": Grade.C, "anchored": Grade.C}
BASIS: Final = {
    "fit": "Step time t = a + b·B fitted on this engine's own batch sizes",
    "formula": "Step time from the calibrated formula (weights, KV cache, bandwidth)",
    "anchored": "Slope of the step time from the formula, through the measured step (weight bytes unknown)",
}
WRONG_WHEN: Final = (
    "A latency promise forbids larger batches, contexts are about to get much longer, each request decodes"
    " speculatively, or one name hides several data-parallel cores."
)
HEADROOM: Final = (0.5, 0.7, 0.9)
"""Share of a replica's batch that the demand may fill: low, middle and high end of what falls away (R08: 0.7)."""


@dataclass(frozen=True, slots=True)
class Case:
    """One engine with a small batch, what pushes on it, and what it could carry instead.

    Attributes:
        target: batch to aim at; None where the cause is not the batch limit, or it cannot be told.
    """

    evidence: Evidence
    serving: Serving
    seen: Pressure
    diagnosis: Diagnosis
    target: int | None = None

    @property
    def kind(self) -> str:
        """Engine software."""
        return self.serving.engine.identity.kind

    @property
    def now(self) -> float:
        """The batch of today, at least one sequence."""
        return max(1.0, self.seen.running_p50)

    @property
    def gain(self) -> Range:
        """Throughput at the target over today's."""
        assert self.serving.model is not None
        assert self.target is not None
        return self.serving.model.gain(self.now, max(self.now, float(self.target)))

    @property
    def peak_rate_then(self) -> Range:
        """Tokens per second at the target, from the rate of its busiest time: it may be far above today's batch."""
        assert self.serving.model is not None
        assert self.target is not None
        peak = max(1.0, peak_running(self.serving))
        gain = self.serving.model.gain(peak, max(peak, float(self.target)))
        return gain.scaled(peak_tokens_per_s(self.serving))

    @property
    def fills_at_times(self) -> bool:
        """Its busiest time does fill the batch to half of the reachable rate."""
        assert self.serving.model is not None
        return self.serving.model.saturation(peak_running(self.serving)) >= 0.5

    def grade(self) -> tuple[Grade, str]:
        """By the basis of the step time and the length of the data."""
        model, engine = self.serving.model, self.serving.engine
        assert model is not None
        return graded(
            GRADE[model.basis],
            BASIS[model.basis],
            span_h=engine_span_h(engine),
            covered_h=engine.covered_s / 3600,
        )


def kv_batch(serving: Serving, seen: Pressure) -> int | None:
    """Most sequences the KV cache holds without preemption to speak of; None when that cannot be told."""
    pool, context, ratio = serving.pool_tokens, serving.context_tokens, serving.prompt_per_generated
    if pool is None or context is None or ratio is None or seen.kv_p95 is None:
        return None
    return kv_pool.batch_limit(
        pool=pool,
        context_tokens=context,
        prompt_per_generated=ratio,
        running=seen.running_p95,
        kv_used_p95_ratio=seen.kv_p95,
    )


@dataclass(frozen=True, slots=True)
class Group:
    """Replicas of one model whose batch is small for the same reason, and how many of them are needed.

    Attributes:
        fall: which fall away, counted for the busiest time of all of them. facts: what that rests on.
    """

    fall: Fall
    facts: Mapping[str, float]


def configuration_group(cases: Sequence[Case], beside: Sequence[Serving]) -> Group:
    """Each replica at its target; what each can carry is that of the weakest, so as not to flatter.

    Args:
        cases: the replicas that may fall away. beside: others of the same model; they stay and keep their load.
    """
    load = sum(peak_tokens_per_s(each.serving) for each in cases)
    rates = [each.peak_rate_then for each in cases]
    each_then = Range(min(r.p10 for r in rates), min(r.p50 for r in rates), min(r.p90 for r in rates))
    gone = dropped(len(cases), load, each_then)
    need = f"Their busiest time (p99) makes {load:.0f} tokens/s, and that takes all of them."
    fall = Fall.of(cases[0].evidence, [each.serving for each in cases], gone, beside=len(beside), need=need)
    return Group(fall, {"tokens_per_s_p99_all_replicas": load})


def demand_group(cases: Sequence[Case], latency_batches: Sequence[float], beside: Sequence[Serving]) -> Group:
    """The p99 of all replicas' requests over all busy hours, added up, over the batch that one may reach.

    A replica falls away only when both the cases among themselves and all replicas together have room for its load.

    Args:
        cases: the replicas that may fall away. latency_batches: largest batch the latency of each allows.
        beside: others of the same model, whose batch is not small or small for another reason.
    """
    reach: list[float] = [*latency_batches]
    for each in cases:
        room, ceiling = kv_batch(each.serving, each.seen), each.serving.batch_ceiling
        reach += [float(value) for value in (room, ceiling) if value is not None]
    batch = max(1.0, min(reach))
    own = sum(peak_running(each.serving) for each in cases)
    total = own + sum(peak_running(each) for each in beside)
    spare = [
        min(
            len(cases) - for_demand(own, batch, headroom),
            len(cases) + len(beside) - for_demand(total, batch, headroom),
        )
        for headroom in HEADROOM
    ]
    low, middle, high = (max(0, count) for count in spare)
    need = (
        f"Their busiest time (p99) has {total:.0f} requests at once, and one replica may reach {batch:.0f}."
    )
    fall = Fall.of(
        cases[0].evidence,
        [each.serving for each in cases],
        (low, middle, high),
        beside=len(beside),
        need=need,
    )
    return Group(fall, {"replica_batch": batch, "running_p99_all_replicas": total})


def configuration(case: Case, group: Group, min_gain: float) -> Iterator[Finding]:
    """The batch limit is what stops it: raise it to the target. Nothing when that gains less than ``min_gain``."""
    serving, seen, target = case.serving, case.seen, case.target
    model, ceiling = serving.model, seen.ceiling
    assert model is not None
    assert ceiling is not None
    assert target is not None
    gain = case.gain
    if target <= ceiling or gain.p50 < min_gain:
        return  # the latency promise already holds the batch where it is
    grade, confidence = case.grade()
    flag, identity = flags.batch_flag(case.kind), serving.engine.identity
    about = "about " if seen.inferred else ""
    yield _finding(
        case,
        group.fall.outcome(serving, grade),
        grade,
        title=f"Raise {flag} of {serving.label} from {about}{ceiling:.0f} to {target}",
        because=(
            f"The batch stands at its limit of {about}{ceiling:.0f} while {seen.waiting_p95:.0f} requests wait (p95) and"
            f" {percent(seen.kv_p95 or 0.0)} of the KV cache is in use; half of the reachable rate takes {model.half_batch:.0f}."
        ),
        state="configuration-limited",
        confidence=confidence,
        facts={
            **group.facts,
            "target_batch": target,
            **as_facts("gain", gain),
            **_then(case, gain, model.latency_factor(case.now, max(case.now, float(target)))),
        },
        actions=(
            Action(
                f"Restart with {flag} {target}, then compare time between tokens and preemptions before and after",
                flags.batch_command(case.kind, identity.model, target),
            ),
        ),
        not_claimed="A shorter queue and fewer replicas at once: what falls away carries today's tokens, not the requests"
        " that wait. No other GPU is advised: memory in use is the engine's own reservation.",
        effort=Effort.LOW,
    )


def demand(case: Case, group: Group) -> Finding:
    """Too few requests: raising the limit does nothing; fewer replicas would carry them."""
    serving, seen, model = case.serving, case.seen, case.serving.model
    assert model is not None
    grade, confidence = case.grade()
    result = group.fall.outcome(serving, grade)
    fewer = result.replicas_then < result.replicas_now
    small_s = sum(hour.busy_s for hour in seen.hours)
    when = (
        f"For {percent(small_s / serving.engine.busy_s)} of busy time the" if case.fills_at_times else "The"
    )
    return _finding(
        case,
        result,
        grade,
        title=(
            f"Serve {serving.label} with {result.replicas_then} of {result.replicas_now} replicas"
            if fewer
            else f"Scale {serving.label} with the hour: requests fill its batch only at times"
            if case.fills_at_times
            else f"Share the GPUs of {serving.label}: requests are too few to fill them"
        ),
        because=(
            f"{when} batch is {seen.running_p50:g} (median) and no request waits: half of the reachable rate takes"
            f" {model.half_batch:.0f}. Raising {flags.batch_flag(case.kind)} does nothing."
        ),
        state="demand-limited",
        confidence=confidence,
        facts=dict(group.facts),
        actions=(
            Action("Route the requests to fewer replicas, and watch time between tokens while you do")
            if fewer
            else Action(
                "In quiet hours serve it from fewer replicas or smaller GPUs, by schedule or autoscaler, and scale up before busy ones"
            )
            if case.fills_at_times
            else Action("Put other work beside it, or serve it from fewer or smaller GPUs"),
        ),
        not_claimed="Any effect of a higher batch limit: there is none without requests.",
        effort=Effort.MEDIUM,
    )


def kv(case: Case, replicas: int) -> Finding:
    """The KV cache is full: neither the limit nor demand is what stops the batch."""
    serving, seen, model = case.serving, case.seen, case.serving.model
    assert model is not None
    grade, confidence = case.grade()
    why = "No figure: what it gives depends on how much of the cache is freed and on how answers hold up in your own evaluation."
    return _finding(
        case,
        without_saving(serving, why, replicas),
        grade,
        title=f"Make room in the KV cache of {serving.label}",
        because=(
            f"The batch is {seen.running_p50:g} (median) of {model.half_batch:.0f} for half of the reachable rate, while"
            f" {percent(seen.kv_p95 or 0.0)} of the KV cache is in use (p95) and {seen.waiting_p95:.0f} requests wait."
        ),
        state="kv-limited",
        confidence=confidence,
        facts={},
        actions=(
            Action(
                "Try an 8-bit KV cache on one replica: twice the tokens in the same memory. Validate on your own evaluation set",
                flags.kv_precision_command(case.kind, serving.engine.identity.model),
            ),
            Action(
                "Quantise the weights (see quantization-candidate), or lower the longest context you accept"
            ),
        ),
        not_claimed=f"Raising {flags.batch_flag(case.kind)}: it would only preempt more. No other GPU is advised for memory in use.",
        effort=Effort.MEDIUM,
    )


def _finding(
    case: Case,
    result: Outcome,
    grade: Grade,
    *,
    title: str,
    because: str,
    state: str,
    confidence: str,
    facts: dict[str, Any],
    actions: tuple[Action, ...],
    not_claimed: str,
    effort: Effort,
) -> Finding:
    serving, diagnosis = case.serving, case.diagnosis
    assert diagnosis.cause is not None
    note = f" {diagnosis.note}" if diagnosis.note else ""
    quality = "".join(f" {text[0].upper()}{text[1:]}." for text in serving.data_quality)
    return Finding(
        rule_id=RULE_ID,
        subject=engine_subject(serving),
        cause=diagnosis.cause.value,
        title=title,
        because=because + note,
        state=state,
        confidence=confidence + quality,
        grade=grade,
        effort=effort,
        risk=Risk.MEDIUM,
        saving=result.saving,
        no_figure=result.no_figure,
        evidence=rounded({**_facts(case, result), **facts}),
        actions=actions,
        wrong_when=WRONG_WHEN,
        not_claimed=not_claimed,
        gpu_uuids=result.gpu_uuids,
        stage="workload",
        chart=_chart(case),
    )


def _facts(case: Case, result: Outcome) -> dict[str, Any]:
    serving, seen, model = case.serving, case.seen, case.serving.model
    assert model is not None
    facts: dict[str, Any] = {
        **window_facts(case.evidence, engine_coverage(serving.engine)),
        "running_p50": seen.running_p50,
        "running_p95": seen.running_p95,
        "waiting_p95": seen.waiting_p95,
        "kv_used_p95_ratio": seen.kv_p95,
        "batch_limit": seen.ceiling,
        "batch_limit_basis": _limit_basis(seen),
        "half_batch": model.half_batch,
        "saturation_ratio": model.saturation(seen.running_p50),
        "small_ratio": sum(hour.busy_s for hour in seen.hours) / serving.engine.busy_s,
        "busy_h": serving.engine.busy_s / 3600,
        "tokens_per_s_now": serving.tokens_per_s,
        "itl_s_now": serving.step_s,
        "step_basis": model.basis,
        "replicas_now": result.replicas_now,
        "replicas_then": result.replicas_then,
    }
    if serving.context_tokens is not None:
        facts["context_tokens"] = serving.context_tokens
    if serving.precision is not None:
        facts["weight_precision"] = f"{serving.precision.bits}-bit ({serving.precision.basis})"
    usd = usd_per_million(serving, 1.0)
    if usd is not None:
        facts["usd_per_million_tokens_now"] = usd
    return facts


def _limit_basis(seen: Pressure) -> str | None:
    if seen.ceiling is None:
        return None
    return "seen: the batch stays there while requests wait" if seen.inferred else "published by the engine"


def _then(case: Case, gain: Range, slower: Range) -> dict[str, Any]:
    """Rate, time between tokens and dollars per million tokens after the change."""
    serving = case.serving
    facts: dict[str, Any] = {}
    if serving.tokens_per_s is not None:
        facts |= as_facts("tokens_per_s_then", gain.scaled(serving.tokens_per_s))
    if serving.step_s is not None:
        facts |= as_facts("itl_s_then", slower.scaled(serving.step_s))
    best, middle, worst = (usd_per_million(serving, g) for g in (gain.p90, gain.p50, gain.p10))
    if best is not None and middle is not None and worst is not None:
        facts |= as_facts("usd_per_million_tokens_then", Range(best, middle, worst))
    return facts


def usd_per_million(serving: Serving, gain: float) -> float | None:
    """Dollars per million generated tokens at ``gain`` times today's rate, over busy time; None when unpriced."""
    if serving.usd_per_hour is None or not serving.tokens_per_s:
        return None
    return 1e6 * serving.usd_per_hour / (3600 * serving.tokens_per_s * gain)


def _chart(case: Case) -> Mapping[str, Any]:
    """Batch by hour against B_half; for a short capture the rate by batch against half of the reachable rate."""
    engine, model = case.serving.engine, case.serving.model
    assert model is not None
    if len(engine.hours) >= 3:
        return time_chart(
            ((h.hour_ms, h.running.quantile(0.5)) for h in engine.hours), "requests", model.half_batch
        )
    points = (
        (batch, point.generated_tokens / point.seconds)
        for batch, point in sorted(profile_of(engine).items())
        if point.seconds > 0
    )
    return profile_chart(points, "tokens/s", "requests", 0.5 / model.sequence_s)
