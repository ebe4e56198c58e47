"""More replicas of one model run than its busiest time needs.

What it finds
    Engines that can take each other's requests, of which fewer would carry the p99 load of two weeks at 70 % of the rate
    each reaches at its latency promise: n = ceil(λ_p99/(0.7·X(B_SLO))) is below what runs. It also tells how often
    ENOVA's own test (KV use ≤ 10 % and running ≤ a tenth of the batch limit) asks for half of them.

Why it costs
    Every replica holds its GPUs all month, full or not. A replica that no peak needs is paid in full, and the others
    decode with small batches meanwhile, so that each token costs more than it must.

When it is wrong
    Replicas that stand by for a failure or a launch, replicas in other regions behind one name, a load that is about to
    grow, or a promise for the time to the first token that is tighter than the one for the time between tokens.

What to do
    Take away one replica at a time, small batches first, and watch time between tokens and the queue through a
    busy hour before the next. Where only quiet hours have too many, scale by the hour instead.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Field

from advisor.confidence import graded
from advisor.engine_time import engine_coverage, engine_span_h, engine_subject
from advisor.estimators.replicas import UTILIZATION, dropped
from advisor.facts import as_facts, price_facts, rounded, time_chart, window_facts
from advisor.model import Limits, Rule, Source, Verdict
from advisor.quiet_hours import outlines_of, quiet_ratio
from advisor.replica_group import Fall, Outcome, peak_running, peak_tokens_per_s
from advisor.serving import Serving
from advisor.serving_checks import (
    STEP_GRADE,
    Refusal,
    model_name,
    no_engines,
    publishes,
    quality,
    refusal,
    replica_groups,
    shared_gpu,
    short_of_peaks,
    slo_batch,
)
from core.evidence import Evidence
from core.finding import Action, Effort, Finding, Grade, NotEvaluated, Range, Risk, Saving
from core.percent import percent
from core.units import HOUR_MS

RULE_ID: Final = "too-many-replicas"


class TooManyReplicasLimits(Limits):
    """Thresholds of ``too-many-replicas``."""

    utilization: Annotated[float, Field(gt=0, le=1)] = UTILIZATION
    """Share of its rate at the SLO batch that a replica may be planned for (R08)."""
    min_replicas: Annotated[int, Field(ge=1)] = 1
    """Replicas that must stay whatever the load: 2 where the service has to survive the loss of one."""
    itl_limit_s: Annotated[float | None, Field(gt=0)] = None
    """Your promise for the time between tokens. None: the knee t(B) ≤ 5·t(1), as the BSC advisor sets it [S4]."""
    knee_factor: Annotated[float, Field(gt=1)] = 5.0
    """Step time over that of a single sequence up to which a batch may grow when no promise is given."""
    max_waiting: Annotated[float, Field(ge=0)] = 1.0
    """Waiting requests (p95) from which the load seen is not all of the demand, and nobody can be spared."""
    min_quiet_ratio: Annotated[float, Field(gt=0, le=1)] = 0.25
    """Share of hours in which ENOVA's test asks for half of the replicas before scaling by the hour is worth a word."""
    min_busy_s: Annotated[float, Field(ge=60)] = 300.0
    """Busy time of a replica below which start and end of a load weigh too much."""
    min_coverage_ratio: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Samples received over samples due."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a group needs.

    Attributes:
        load_tokens_per_s: λ_p99, the p99 rates of all replicas added up. replica_tokens_per_s: X(B_SLO) of the weakest.
        batch: its B_SLO. gone: replicas that fall away at the low, middle and high end of X.
        quiet_ratio: share of hours in which ENOVA's test asks for fewer; None: a batch limit is not published.
    """

    load_tokens_per_s: float
    replica_tokens_per_s: Range
    batch: float
    gone: tuple[int, int, int]
    quiet_ratio: float | None


def evaluate(evidence: Evidence, limits: TooManyReplicasLimits) -> Iterator[Verdict]:
    """Every group of replicas; a single replica cannot become fewer."""
    if not evidence.engines:
        yield no_engines(RULE_ID)
        return
    for group in replica_groups(evidence):
        if len(group) < 2:
            continue
        reason = _refusal(evidence, group, limits)
        if reason is not None:
            yield NotEvaluated(RULE_ID, engine_subject(group[-1]), *reason)
            continue
        if any(
            (each.engine.waiting.quantile(0.95) or 0.0) >= max(limits.max_waiting, 1e-9) for each in group
        ):
            continue  # requests wait: nobody can be spared as things are
        yield from _judged(evidence, group, limits)


def _refusal(evidence: Evidence, group: Sequence[Serving], limits: TooManyReplicasLimits) -> Refusal | None:
    """The first thing that keeps the group from being judged, with the replica it is about."""
    for each in group:
        own = (
            refusal(
                evidence,
                each.engine,
                min_busy_s=limits.min_busy_s,
                min_coverage_ratio=limits.min_coverage_ratio,
            )
            or shared_gpu(each)
            or _blind(each)
            or short_of_peaks(each.engine)
        )
        if own is not None:
            missing, why = own
            about = f"Of {len(group)} replicas, {each.label}: "
            return missing, about + why
    return None


def _blind(serving: Serving) -> Refusal | None:
    """Without name, step time, GPUs or the queue nothing says what it could carry, and for whom."""
    if serving.engine.identity.model is None:
        return (
            "the model's name",
        ), "Engines without a name may serve different models: who stands in for whom is not known."
    if not serving.gpus:
        return ("the engine's GPUs",), "Which GPUs it runs on is not known, so neither is what falls free."
    if serving.model is None or serving.running is None or serving.step_s is None:
        missing = serving.missing or ("step-time model",)
        return missing, "Neither formula nor fit says how many tokens it could make."
    if not publishes(serving.engine.hours, "waiting"):
        return (
            "waiting_requests",
        ), "Without the queue nobody knows whether the load seen is all of the demand."
    return None


def _judged(evidence: Evidence, group: Sequence[Serving], limits: TooManyReplicasLimits) -> Iterator[Finding]:
    need = _need(evidence, group, limits)
    if need.gone[1] > 0:
        yield _fewer(evidence, group, need, limits)
    elif need.quiet_ratio is not None and need.quiet_ratio >= limits.min_quiet_ratio:
        yield _by_the_hour(evidence, group, need, limits)


def _need(evidence: Evidence, group: Sequence[Serving], limits: TooManyReplicasLimits) -> Need:
    peaks = [peak_tokens_per_s(each) for each in group]
    load = sum(peaks)
    rates = [_slo_rate(each, peak, limits) for each, peak in zip(group, peaks, strict=True)]
    weakest = Range(
        min(rate.p10 for rate, _ in rates), min(rate.p50 for rate, _ in rates), min(rate.p90 for rate, _ in rates)
    )  # fmt: skip
    spare = max(0, len(group) - limits.min_replicas)
    low, middle, high = dropped(len(group), load, weakest.scaled(limits.utilization))
    return Need(
        load_tokens_per_s=load,
        replica_tokens_per_s=weakest,
        batch=min(batch for _, batch in rates),
        gone=(min(low, spare), min(middle, spare), min(high, spare)),
        quiet_ratio=quiet_ratio(evidence, group),
    )


def _slo_rate(serving: Serving, rate: float, limits: TooManyReplicasLimits) -> tuple[Range, float]:
    """X(B_SLO) from the rate of its busiest time, and B_SLO; a batch already beyond the promise has no more to give."""
    model = serving.model
    assert model is not None
    batch = slo_batch(serving, itl_limit_s=limits.itl_limit_s, knee_factor=limits.knee_factor)
    assert batch is not None
    peak = max(1.0, peak_running(serving))
    if batch <= peak:
        within = rate * model.tokens_per_s(batch) / model.tokens_per_s(peak)
        return Range(within, within, within), batch
    return model.gain(peak, batch).scaled(rate), batch


def _fewer(
    evidence: Evidence, group: Sequence[Serving], need: Need, limits: TooManyReplicasLimits
) -> Finding:
    grade, confidence = _grade(group)
    fall = Fall.of(evidence, group, need.gone, first=_is_small)
    going = [each for each in group if fall.rank_from_end[each.engine.identity.engine] <= need.gone[1]]
    results: list[Outcome] = [fall.outcome(each, grade) for each in going]
    saving = Saving.total(result.saving for result in results)
    then = len(group) - need.gone[1]
    names = " and ".join(each.engine.identity.engine.removesuffix("/0") for each in going)
    return _finding(
        evidence,
        group,
        need,
        limits,
        grade=grade,
        confidence=confidence,
        cause="replicas",
        state="more replicas than the peak needs",
        title=f"Serve {model_name(group[0])} with {then} of {len(group)} replicas: stop {names}",
        because=(
            f"Their busiest time (p99) makes {need.load_tokens_per_s:.0f} tokens/s; one replica can plan for"
            f" {limits.utilization * need.replica_tokens_per_s.p50:.0f} at a batch of {need.batch:.0f},"
            f" so that {then} carr{'ies' if then == 1 else 'y'} what {len(group)} do."
        ),
        saving=saving,
        no_figure=results[0].no_figure if saving.cash_usd_month is None else None,
        then=then,
        actions=(
            Action(
                f"Take {going[-1].label} out of the load balancer for a busy hour and watch time between tokens and"
                " the queue; then stop it"
            ),
            Action(
                "Change the number of replicas in what starts them",
                f"kubectl scale deployment/NAME --replicas={then}",
            ),
        ),
        gpu_uuids=tuple(gpu.gpu_uuid for each in going for gpu in each.gpus),
    )


def _by_the_hour(
    evidence: Evidence, group: Sequence[Serving], need: Need, limits: TooManyReplicasLimits
) -> Finding:
    grade, confidence = _grade(group)
    count = len(group)
    return _finding(
        evidence,
        group,
        need,
        limits,
        grade=grade,
        confidence=confidence,
        cause="quiet-hours",
        state="too many in quiet hours, needed in busy ones",
        title=f"Scale {model_name(group[0])} with the hour: its {count} replicas are needed only at times",
        because=(
            f"In {percent(need.quiet_ratio or 0.0)} of the hours KV use is at most 10 % and the batch at most a tenth of its"
            f" limit, but the busiest time (p99, {need.load_tokens_per_s:.0f} tokens/s) takes all {count}."
        ),
        saving=Saving(),
        no_figure=f"No figure: {count} replicas stay {count} at the peak. What quiet hours are worth depends on cold starts (see off-hours).",
        then=count,
        actions=(
            Action(
                "Let an autoscaler halve the replicas after 15 quiet minutes and add them back within three busy ones;"
                " measure a cold start first"
            ),
        ),
        gpu_uuids=tuple(gpu.gpu_uuid for each in group for gpu in each.gpus),
    )


def _is_small(serving: Serving) -> bool:
    """Its batch is small most of the time: such replicas go first, as ``small-batch`` has it, so that no GPU counts twice."""
    median = serving.engine.running.quantile(0.5) or 0.0
    return serving.model is not None and serving.model.saturation(median) < 0.5


def _grade(group: Sequence[Serving]) -> tuple[Grade, str]:
    """By the weakest step-time model and the shortest data of the group."""
    models = [each.model for each in group if each.model is not None]
    bases = {model.basis for model in models}
    grade, text = graded(
        max(STEP_GRADE[basis] for basis in bases),
        "Step time "
        + ("fitted on these engines" if bases == {"fit"} else "partly from the calibrated formula")
        + "; peaks of all replicas are added as if they came together",
        span_h=min(engine_span_h(each.engine) for each in group),
        covered_h=min(each.engine.covered_s for each in group) / 3600,
    )
    return grade, text + quality(group[0])


def _finding(
    evidence: Evidence,
    group: Sequence[Serving],
    need: Need,
    limits: TooManyReplicasLimits,
    *,
    grade: Grade,
    confidence: str,
    cause: str,
    state: str,
    title: str,
    because: str,
    saving: Saving,
    no_figure: str | None,
    then: int,
    actions: tuple[Action, ...],
    gpu_uuids: tuple[str, ...],
) -> Finding:
    facts: dict[str, Any] = {
        **window_facts(evidence, min(engine_coverage(each.engine) for each in group)),
        **price_facts(group[-1].gpus[0].price),
        "replicas_now": len(group),
        "replicas_then": then,
        "load_tokens_per_s_p99": need.load_tokens_per_s,
        **as_facts("replica_tokens_per_s_at_slo", need.replica_tokens_per_s),
        "replica_batch_at_slo": need.batch,
        "planned_utilization_ratio": limits.utilization,
        "running_p99_all_replicas": sum(peak_running(each) for each in group),
        "enova_fewer_hours_ratio": need.quiet_ratio,
        "itl_limit_s": limits.itl_limit_s,
        "replicas": [each.engine.identity.engine for each in group],
    }
    return Finding(
        rule_id=RULE_ID,
        subject=engine_subject(group[-1]),
        cause=cause,
        title=title,
        because=because,
        state=state,
        confidence=confidence,
        grade=grade,
        effort=Effort.LOW,
        risk=Risk.MEDIUM,
        saving=saving,
        no_figure=no_figure,
        evidence=rounded(facts),
        actions=actions,
        wrong_when="A replica stands by for a failure or a launch, serves another region, or the load is about to grow.",
        not_claimed="Replicas without any request in the window (see parked-model), cold starts, and a faster first token.",
        gpu_uuids=gpu_uuids,
        stage="consolidate",
        chart=_chart(group, need, limits),
    )


def _chart(group: Sequence[Serving], need: Need, limits: TooManyReplicasLimits) -> Mapping[str, Any]:
    """Tokens per second of all replicas by hour, against what one of them can plan for."""
    rates: dict[int, float] = {}
    for each in group:
        for day in outlines_of(each.engine):
            for at, tokens in enumerate(day.generated_tokens):
                if tokens is not None:
                    hour_ms = day.day_ms + at * HOUR_MS
                    rates[hour_ms] = rates.get(hour_ms, 0.0) + tokens / 3600
    threshold = limits.utilization * need.replica_tokens_per_s.p50
    return time_chart(sorted(rates.items()), "tokens/s", threshold)


RULE: Final = Rule(
    id=RULE_ID,
    code="R08",
    title="Run as many replicas as the peak needs",
    needs=frozenset({"running_requests", "waiting_requests", "kv_used_ratio", "generated_tokens"}),
    limits=TooManyReplicasLimits(),
    effort=Effort.LOW,
    risk=Risk.MEDIUM,
    sources=(
        Source("ENOVA: autoscaling towards cost-effective LLM serving", "https://arxiv.org/abs/2407.09486"),
        Source("Recasens et al., Mind the Memory Gap", "https://arxiv.org/abs/2503.08311"),
    ),
    evaluate=evaluate,
    scope="fleet",
)
