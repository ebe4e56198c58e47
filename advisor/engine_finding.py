"""What the findings on one engine's execution have in common: who may be judged, and the shape of what is said."""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field

from advisor.confidence import graded
from advisor.engine_time import engine_coverage, engine_span_h, engine_subject
from advisor.facts import rounded, window_facts
from advisor.model import Limits, Verdict
from advisor.serving import Serving, servings
from advisor.serving_checks import no_engines, quality, refusal, shared_gpu
from core.evidence import Evidence
from core.finding import Action, Effort, Finding, Grade, NotEvaluated, Risk, Saving


class EngineLimits(Limits):
    """Thresholds that rules on an engine's execution share."""

    min_busy_s: Annotated[float, Field(ge=60)] = 600.0
    """Busy time below which start and end of a load weigh too much (R06: 10 minutes)."""
    min_coverage_ratio: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Samples received over samples due. A gap must never read as anything."""


def of_each_engine(
    evidence: Evidence,
    rule_id: str,
    limits: EngineLimits,
    judge: Callable[[Serving], Iterator[Verdict]],
    *,
    concerns: Callable[[Serving], bool] = lambda _: True,
) -> Iterator[Verdict]:
    """``judge`` for every engine with enough work of its own, seen up to now; a refusal for the others.

    Engines that the rule does not concern, by their settings alone, need no data to be passed over.
    """
    if not evidence.engines:
        yield no_engines(rule_id)
        return
    for serving in filter(concerns, servings(evidence)):
        why = refusal(
            evidence,
            serving.engine,
            min_busy_s=limits.min_busy_s,
            min_coverage_ratio=limits.min_coverage_ratio,
        ) or shared_gpu(serving)
        if why is not None:
            yield NotEvaluated(rule_id, engine_subject(serving), *why)
        else:
            yield from judge(serving)


def unjudged(rule_id: str, serving: Serving, missing: tuple[str, ...], why: str) -> NotEvaluated:
    """A refusal on one engine."""
    return NotEvaluated(rule_id, engine_subject(serving), missing, why)


def engine_finding(
    evidence: Evidence,
    serving: Serving,
    *,
    rule_id: str,
    cause: str,
    title: str,
    because: str,
    state: str,
    grade: Grade,
    basis: str,
    facts: Mapping[str, Any],
    actions: tuple[Action, ...],
    wrong_when: str,
    not_claimed: str,
    no_figure: str | None,
    chart: Mapping[str, Any],
    saving: Saving | None = None,
    stage: str = "workload",
    effort: Effort = Effort.LOW,
    risk: Risk = Risk.LOW,
) -> Finding:
    """A finding on one engine, graded down where its data are short.

    Args:
        grade: by method; ``basis``: where the figures come from, a clause without a full stop.
        facts: numbers with units in their names; unknown ones are left out, window and coverage are added.
    """
    engine = serving.engine
    lower, confidence = graded(grade, basis, span_h=engine_span_h(engine), covered_h=engine.covered_s / 3600)
    return Finding(
        rule_id=rule_id,
        subject=engine_subject(serving),
        cause=cause,
        title=title,
        because=because,
        state=state,
        confidence=confidence + quality(serving),
        grade=lower,
        effort=effort,
        risk=risk,
        saving=saving or Saving(),
        no_figure=no_figure,
        evidence=rounded({**window_facts(evidence, engine_coverage(engine)), **facts}),
        actions=actions,
        wrong_when=wrong_when,
        not_claimed=not_claimed,
        gpu_uuids=tuple(gpu.gpu_uuid for gpu in serving.gpus),
        stage=stage,
        chart=chart,
    )
