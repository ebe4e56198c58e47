"""Runs the rules over one piece of evidence: a rule that fails is one failure, and nothing is passed over in silence."""

import logging
from collections.abc import Iterator, Mapping, Sequence

from advisor.model import Limits, Rule, Verdict
from advisor.rules import RULES
from advisor.waterfall import totals
from core.evidence import Evidence
from core.finding import Advice, Finding, NotEvaluated, Range, Subject

log = logging.getLogger(__name__)

FLEET = Subject("fleet", "fleet", "the fleet")


def advise(
    evidence: Evidence, rules: Sequence[Rule] = RULES, limits: Mapping[str, Limits] | None = None
) -> Advice:
    """Findings, what could not be judged, and totals after overlap.

    Args:
        evidence: the fleet over one window.
        rules: rules to run.
        limits: thresholds by rule id in place of a rule's own; must be of the rule's own class.

    Raises:
        TypeError: limits of another rule's class.
    """
    chosen = limits or {}
    findings: list[Finding] = []
    not_evaluated: list[NotEvaluated] = []
    for rule in rules:
        for verdict in _verdicts(rule, evidence, _limits(rule, chosen.get(rule.id))):
            if isinstance(verdict, Finding):
                findings.append(verdict)
            else:
                not_evaluated.append(verdict)
    findings.sort(key=_rank)
    return Advice(tuple(findings), tuple(not_evaluated), totals(evidence, findings))


def _limits(rule: Rule, own: Limits | None) -> Limits:
    if own is None:
        return rule.limits
    if not isinstance(own, type(rule.limits)):
        raise TypeError(f"limits of {rule.id} must be {type(rule.limits).__name__}, not {type(own).__name__}")
    return own


def _verdicts(rule: Rule, evidence: Evidence, limits: Limits) -> Iterator[Verdict]:
    judged: set[Subject] = set()
    if not evidence.gpus and not evidence.engines:
        yield NotEvaluated(rule.id, FLEET, tuple(sorted(rule.needs)), "There is no data in this window.")
        return
    try:
        for verdict in rule.evaluate(evidence, limits):
            key = Subject(verdict.subject.kind, verdict.subject.id)
            if key in judged:
                log.error("rule judged a subject twice", extra={"rule_id": rule.id, "subject": key.id})
                continue
            judged.add(key)
            yield verdict
    except Exception as error:
        log.exception("rule failed", extra={"rule_id": rule.id})
        subject = (
            FLEET if Subject(FLEET.kind, FLEET.id) not in judged else Subject("fleet", f"rule:{rule.id}")
        )
        yield NotEvaluated(
            rule.id,
            subject,
            (),
            f"The rule failed ({type(error).__name__}: {error}); what it had not judged by then is not judged."
            " Please report this.",
        )


def _rank(finding: Finding) -> tuple[float, float, float, str, str, str]:
    """Most money first, then capacity, then energy; names keep the order stable."""

    def amount(figure: Range | None) -> float:
        return 0.0 if figure is None else -figure.p50

    saving = finding.saving
    return (
        amount(saving.cash_usd_month),
        amount(saving.capacity_gpu_h_month),
        amount(saving.energy_kwh_month),
        finding.rule_id,
        finding.subject.kind,
        finding.subject.id,
    )
