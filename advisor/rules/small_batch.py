"""An LLM engine decodes with a batch far below what its GPU could carry.

What it finds
    Engines that spend a fifth of their busy time at less than half of the reachable token rate, φ = B/(B + B_half) < 0.5,
    and why: the batch limit is set too low (configuration), too few requests come (demand), or the KV cache is full (kv).

Why it costs
    Decoding reads all weights at every step, whether for one sequence or for eighty. A step with 8 sequences takes
    nearly as long as one with 64, so most of each GPU-hour is spent reading weights for too few tokens.

When it is wrong
    A latency promise that the larger batch would break, very long contexts still to come, per-request speculative
    decoding, or several data-parallel cores behind one name. Requests that wait in front of the engine look like no demand.

What to do
    Configuration: raise the batch limit to what the KV cache holds. Demand: raising it does nothing; serve the same
    requests with fewer replicas, or on a smaller GPU. KV: 8-bit KV cache, quantised weights, or shorter contexts.
    Throughput becomes money only when whole replicas fall away.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Final

from pydantic import Field

from advisor import small_batch_advice as advice
from advisor.batch import Cause, Diagnosis, Pressure, diagnose, pressure
from advisor.confidence import duration
from advisor.engine_time import engine_coverage, engine_subject
from advisor.estimators.decode_step import DecodeStep
from advisor.model import Limits, Rule, Source, Verdict
from advisor.recent import recent_hours, silence
from advisor.replica_group import replica_key
from advisor.serving import Serving, servings
from core.evidence import EngineEvidence, Evidence
from core.finding import Effort, NotEvaluated, Risk, Subject
from core.hours import EngineHour
from core.percent import percent
from core.series import HourSeries

RULE_ID: Final = "small-batch"


class SmallBatchLimits(Limits):
    """Thresholds of ``small-batch``."""

    max_saturation_ratio: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """φ below which a batch is small (R07)."""
    min_small_ratio: Annotated[float, Field(gt=0, le=1)] = 0.2
    """Share of busy time with a small batch before it is worth a word (R07)."""
    min_busy_s: Annotated[float, Field(ge=60)] = 300.0
    """Busy time below which start and end of a load weigh too much."""
    min_coverage_ratio: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Samples received over samples due."""
    min_gain: Annotated[float, Field(ge=1)] = 1.05
    """Throughput gain below which a new limit is not worth a restart."""
    itl_limit_s: Annotated[float | None, Field(gt=0)] = None
    """Your promise for the time between tokens. None: the knee t(B) ≤ 5·t(1), as the BSC advisor sets it [S4]."""
    knee_factor: Annotated[float, Field(gt=1)] = 5.0
    """Step time over that of a single sequence up to which a batch may grow when no promise is given."""


def evaluate(evidence: Evidence, limits: SmallBatchLimits) -> Iterator[Verdict]:
    """Every engine of the fleet."""
    if not evidence.engines:
        yield NotEvaluated(
            RULE_ID, Subject("fleet", "fleet", "the fleet"), ("engine metrics",),
            "No LLM engine is seen: scrape or import its /metrics.",
        )  # fmt: skip
        return
    cases: list[advice.Case] = []
    replicas: dict[object, list[Serving]] = {}
    for serving in servings(evidence):
        if serving.engine.busy_s > 0:
            replicas.setdefault(replica_key(serving), []).append(serving)
        refusal = _refusal(evidence, serving, limits)
        if refusal is not None:
            yield NotEvaluated(RULE_ID, engine_subject(serving), *refusal)
            continue
        seen = _small(serving, serving.engine.hours, limits)
        lately = None if seen is None else _small(serving, recent_hours(serving.engine), limits)
        if seen is None or lately is None:
            continue
        before, now = diagnose(seen), diagnose(lately)
        if before.cause is not None and now.cause is not before.cause:
            yield NotEvaluated(
                RULE_ID, engine_subject(serving), ("steady recent work",), _changed(before, now)
            )
        else:
            cases.append(_case(evidence, serving, seen, limits))
    cases.sort(key=lambda case: case.serving.engine.identity.engine)
    groups: dict[object, list[advice.Case]] = {}
    for case in cases:
        key = (replica_key(case.serving), case.diagnosis.cause, case.target is None)
        groups.setdefault(key, []).append(case)
    for group in groups.values():
        mine = {case.serving.engine.identity.engine for case in group}
        same = replicas[replica_key(group[0].serving)]
        beside = [each for each in same if each.engine.identity.engine not in mine]
        yield from _judged(group, beside, limits)


def _case(evidence: Evidence, serving: Serving, seen: Pressure, limits: SmallBatchLimits) -> advice.Case:
    """The cause, with a target where the batch limit is it and the KV cache has room for a worthwhile one."""
    verdict = diagnose(seen)
    room = advice.kv_batch(serving, seen)
    if verdict.cause is not Cause.CONFIGURATION or room is None:
        return advice.Case(evidence, serving, seen, verdict)
    latency = _latency_batch(serving, limits)
    case = advice.Case(evidence, serving, seen, verdict, int(min(room, latency)))
    if room <= latency and case.gain.p50 < limits.min_gain:
        note = f"The batch limit could rise to {room} at most before the KV cache is full."
        return advice.Case(evidence, serving, seen, Diagnosis(Cause.KV, note=note))
    return case


def _refusal(
    evidence: Evidence, serving: Serving, limits: SmallBatchLimits
) -> tuple[tuple[str, ...], str] | None:
    """What is missing and why that matters; None when the engine can be judged."""
    engine = serving.engine
    if engine.busy_s < limits.min_busy_s:
        return (
            "busy time",
        ), f"Busy for {duration(engine.busy_s / 3600)}; {duration(limits.min_busy_s / 3600)} are needed."
    silent = silence(engine, evidence.window)
    if silent is not None:
        return silent
    share = engine_coverage(engine)
    if share < limits.min_coverage_ratio:
        return ("samples",), f"Samples cover {percent(share)} of the time."
    if "a GPU of its own" in serving.missing:
        return ("a GPU of its own",), "It shares its GPU with another engine: its step time is not its own."
    if serving.model is None or serving.running is None or serving.step_s is None:
        return (
            serving.missing or ("step-time model",),
            "Neither the formula (model, GPU, contexts) nor a fit on this engine's own batch sizes is possible.",
        )
    return None


def _small(serving: Serving, hours: Sequence[EngineHour], limits: SmallBatchLimits) -> Pressure | None:
    """What pushes on the batch in those of ``hours`` where its median is small; None when they are too few."""
    model = serving.model
    assert model is not None
    if hours is serving.engine.hours and not _may_be_small(serving.engine, model, limits):
        return None
    small = [
        hour
        for hour in hours
        if hour.busy_s > 0
        and (median := hour.running.quantile(0.5)) is not None
        and model.saturation(median) < limits.max_saturation_ratio
    ]
    if sum(hour.busy_s for hour in small) < limits.min_small_ratio * sum(hour.busy_s for hour in hours):
        return None
    return pressure(small, serving.batch_ceiling)


def _may_be_small(engine: EngineEvidence, model: DecodeStep, limits: SmallBatchLimits) -> bool:
    """Whether enough of its hours can be small; of stored hours told by the medians that their days hold."""
    if not isinstance(engine.hours, HourSeries):
        return True
    if _small_s_at_most(engine, model, limits) < limits.min_small_ratio * engine.busy_s:
        return False
    small_s = busy_s = hours = 0
    for median, (count, seconds) in engine.hours.busy_by_median().items():
        hours += count
        busy_s += seconds
        if model.saturation(median) < limits.max_saturation_ratio:
            small_s += seconds
    return small_s + hours >= limits.min_small_ratio * busy_s  # a second an hour for rounding


def _small_s_at_most(engine: EngineEvidence, model: DecodeStep, limits: SmallBatchLimits) -> float:
    """More busy seconds than these no small hours can have: half of such an hour is at batches as small as its median."""
    levels = engine.running.seconds
    small_s = sum(s for batch, s in levels.items() if model.saturation(batch) < limits.max_saturation_ratio)
    unlisted_s = max(0.0, engine.busy_s - sum(levels.values()))
    return 2 * small_s + unlisted_s + len(engine.hours)  # a second an hour for rounding


def _changed(before: Diagnosis, now: Diagnosis) -> str:
    lately = "cannot be told" if now.cause is None else f"is {now.cause.value}"
    assert before.cause is not None
    return f"Over the window what keeps the batch small is {before.cause.value}, in its last busy hours it {lately}."


def _judged(cases: list[advice.Case], beside: list[Serving], limits: SmallBatchLimits) -> Iterator[Verdict]:
    """Verdicts on the replicas of one model that share a cause; ``beside`` are the others of that model."""
    cause = cases[0].diagnosis.cause
    if cause is Cause.DEMAND:
        group = advice.demand_group(cases, [_latency_batch(case.serving, limits) for case in cases], beside)
        yield from (advice.demand(case, group) for case in cases)
    elif cause is Cause.KV:
        yield from (advice.kv(case, len(cases) + len(beside)) for case in cases)
    elif cause is Cause.CONFIGURATION and cases[0].target is not None:
        group = advice.configuration_group(cases, beside)
        for case in cases:
            yield from advice.configuration(case, group, limits.min_gain)
    else:
        yield from (_refused(case) for case in cases)


def _refused(case: advice.Case) -> NotEvaluated:
    subject, verdict = engine_subject(case.serving), case.diagnosis
    if verdict.cause is None:
        return NotEvaluated(RULE_ID, subject, verdict.missing, verdict.why)
    why = "Requests wait at the batch limit, but how far it may rise is not known."
    return NotEvaluated(RULE_ID, subject, ("KV pool size", "kv_used_ratio"), why)


def _latency_batch(serving: Serving, limits: SmallBatchLimits) -> float:
    """Largest batch whose step time keeps the promise, or stays left of the knee."""
    model, step_s, running = serving.model, serving.step_s, serving.running
    assert model is not None and step_s is not None and running is not None  # noqa: PT018 - one state, seen by _refusal
    measured = step_s / model.step_s(running)  # the promise is about this engine, not about the model of it
    allowed = (
        limits.knee_factor * model.step_s(1) if limits.itl_limit_s is None else limits.itl_limit_s / measured
    )
    return model.largest_batch_within(allowed)


RULE: Final = Rule(
    id=RULE_ID,
    code="R07",
    title="Fill the batch of LLM engines",
    needs=frozenset(
        {"running_requests", "waiting_requests", "kv_used_ratio", "generated_tokens", "prompt_tokens"}
    ),
    limits=SmallBatchLimits(),
    effort=Effort.LOW,
    risk=Risk.MEDIUM,
    sources=(
        Source("Recasens et al., Mind the Memory Gap", "https://arxiv.org/abs/2503.08311"),
        Source(
            "vLLM: optimization and tuning", "https://docs.vllm.ai/en/latest/configuration/optimization.html"
        ),
    ),
    evaluate=evaluate,
    scope="fleet",
)
