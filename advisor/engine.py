"""Runs the rules over evidence: a rule that fails is one failure, and nothing is passed over in silence.

A fleet comes in chunks of whole hosts. Most rules judge each chunk as it passes; those that compare across hosts run
once at the end, over evidence whose GPUs and engines hold identities and sums, and read more only on demand.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from advisor import quiet_hours
from advisor.claims import proven
from advisor.clock_peers import Look, looks
from advisor.digest import Digest, digests
from advisor.gpu_work import recents
from advisor.idle import idle_gpus
from advisor.model import Counted, Limits, Rule, Verdict, counted
from advisor.quiet_hours import together
from advisor.rules import RULES
from advisor.serving import Serving, servings
from advisor.waterfall import Spend
from core.evidence import Evidence
from core.finding import Advice, Finding, NotEvaluated, Range, Subject, Totals

log = logging.getLogger(__name__)

FLEET = Subject("fleet", "fleet", "the fleet")
FLEET_KEY = Subject(FLEET.kind, FLEET.id)


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
    return advise_chunks([evidence], rules, limits)


def advise_chunks(
    chunks: Iterable[Evidence], rules: Sequence[Rule] = RULES, limits: Mapping[str, Limits] | None = None
) -> Advice:
    """The same of a fleet in chunks of whole hosts; however it is cut, the advice is the same.

    Raises:
        TypeError: limits of another rule's class.
    """
    run = AdviceRun(rules, limits)
    for chunk in chunks:
        run.feed(chunk)
    return run.advice()


@dataclass(slots=True)
class _Said:
    """What one rule said so far.

    Attributes:
        verdicts: by subject. chunks: how many it judged.
        of_fleet: what it could not judge of the fleet as a whole, with the number of chunks that said so: one
            chunk without an engine does not make a fleet without engines.
        failure: the first time it raised. counts: subjects by what they lack, for one sentence each.
    """

    verdicts: dict[Subject, Verdict] = field(default_factory=dict)
    chunks: int = 0
    of_fleet: dict[NotEvaluated, int] = field(default_factory=dict)
    failure: NotEvaluated | None = None
    counts: Counter[tuple[tuple[str, ...], str, str]] = field(default_factory=Counter)

    def add(self, later: "_Said", rule_id: str) -> None:
        """What the same rule said of another chunk."""
        for key, verdict in later.verdicts.items():
            if key in self.verdicts:
                log.error("rule judged a subject twice", extra={"rule_id": rule_id, "subject": key.id})
            else:
                self.verdicts[key] = verdict
        for missing, count in later.of_fleet.items():
            self.of_fleet[missing] = self.of_fleet.get(missing, 0) + count
        self.chunks += later.chunks
        self.failure = self.failure or later.failure
        self.counts.update(later.counts)


@dataclass(frozen=True, slots=True)
class Judged:
    """One chunk: what the rules that judge it alone said, and the figures of it that the others ask for.

    All that a run keeps of a chunk, so that another process can judge it.
    """

    chunk: Evidence
    said: Mapping[str, _Said]
    digests: Mapping[str, Digest]
    looks: Mapping[str, Look]
    idle: frozenset[str]
    servings: tuple[Serving, ...]
    together: quiet_hours.Groups


class AdviceRun:
    """One run of the rules over a fleet that comes in chunks."""

    def __init__(self, rules: Sequence[Rule] = RULES, limits: Mapping[str, Limits] | None = None) -> None:
        """Begin; arguments as of ``advise``.

        Raises:
            TypeError: limits of another rule's class.
        """
        chosen = limits or {}
        self._rules = [(rule, _limits(rule, chosen.get(rule.id))) for rule in rules]
        self._said = {rule.id: _Said() for rule in rules}
        self._chunks: list[Evidence] = []
        self._digests: dict[str, Digest] = {}
        self._looks: dict[str, Look] = {}
        self._idle: set[str] = set()
        self._servings: dict[str, Serving] = {}
        self._together: quiet_hours.Groups = {}
        self._spend = Spend()

    def feed(self, chunk: Evidence) -> None:
        """Judge what can be judged of one chunk alone, and keep that."""
        self.take(self.judge(chunk))

    def judge(self, chunk: Evidence) -> Judged:
        """Judge what can be judged of one chunk alone; nothing is kept, so that any run with the same limits can."""
        alone = (
            [each for each in self._rules if each[0].scope == "gpu"] if chunk.gpus or chunk.engines else []
        )
        figures = digests(chunk), looks(chunk), idle_gpus(chunk), servings(chunk), together(chunk)
        return Judged(chunk, {rule.id: _judge(rule, limits, chunk) for rule, limits in alone}, *figures)

    def take(self, judged: Judged) -> None:
        """Keep what was said of a chunk; chunks come in the fleet's order."""
        chunk = judged.chunk
        digests.put(chunk, judged.digests)
        self._chunks.append(chunk)
        self._digests.update(judged.digests)
        self._looks.update(judged.looks)
        self._idle |= judged.idle
        self._servings.update((each.engine.identity.engine, each) for each in judged.servings)
        quiet_hours.join(self._together, judged.together)
        self._spend.add(chunk)
        for rule_id, said in judged.said.items():
            self._said[rule_id].add(said, rule_id)

    def advice(self) -> Advice:
        """Judge what needs the whole fleet, and say everything."""
        fleet = self._chunks[0] if len(self._chunks) == 1 else None
        if fleet is None and self._chunks:
            fleet = Evidence.joined(self._chunks)
            digests.put(fleet, self._digests)
            looks.put(fleet, self._looks)
            idle_gpus.put(fleet, frozenset(self._idle))
            recents.put(fleet, {})
            together.put(fleet, self._together)
            servings.put(fleet, tuple(self._servings[each.identity.engine] for each in fleet.engines))
        if fleet is not None and (fleet.gpus or fleet.engines):
            for rule, limits in self._rules:
                if rule.scope == "fleet":
                    self._said[rule.id].add(_judge(rule, limits, fleet), rule.id)
        findings: list[Finding] = []
        not_evaluated: list[NotEvaluated] = []
        for rule, _ in self._rules:
            said = _everything(rule, self._said[rule.id])
            findings += (proven(verdict) for verdict in said if isinstance(verdict, Finding))
            not_evaluated += (verdict for verdict in said if isinstance(verdict, NotEvaluated))
        findings.sort(key=_rank)
        return Advice(tuple(findings), tuple(not_evaluated), self.totals(findings))

    def totals(self, findings: Sequence[Finding]) -> Totals:
        """Totals after overlap of some of the findings: of those that nobody set aside."""
        return self._spend.totals(findings)

    @property
    def spend(self) -> Spend:
        """What totals are made of, of every GPU that was seen."""
        return self._spend

    @property
    def subjects(self) -> set[tuple[str, str]]:
        """Kind and id of every GPU and engine that was seen: of others the run says nothing."""
        gpus = {("gpu", gpu.gpu_uuid) for chunk in self._chunks for gpu in chunk.gpus}
        return gpus | {("engine", e.identity.engine) for chunk in self._chunks for e in chunk.engines}


def _judge(rule: Rule, limits: Limits, evidence: Evidence) -> _Said:
    said = _Said(chunks=1)
    try:
        for verdict in rule.evaluate(evidence, limits):
            key = Subject(verdict.subject.kind, verdict.subject.id)
            if isinstance(verdict, Counted):
                said.counts[verdict.missing, verdict.one, verdict.many] += verdict.count
            elif isinstance(verdict, NotEvaluated) and (key == FLEET_KEY or _of_fleet(rule, key)):
                said.of_fleet[verdict] = said.of_fleet.get(verdict, 0) + 1
            elif key in said.verdicts:
                log.error("rule judged a subject twice", extra={"rule_id": rule.id, "subject": key.id})
            else:
                said.verdicts[key] = verdict
    except Exception as error:
        log.exception("rule failed", extra={"rule_id": rule.id})
        said.failure = NotEvaluated(
            rule.id,
            FLEET,
            (),
            f"The rule failed ({type(error).__name__}: {error}); what it had not judged by then is not"
            " judged. Please report this.",
        )
    return said


def _everything(rule: Rule, said: _Said) -> list[Verdict]:
    """All verdicts of one rule, each subject once, by subject; its failure last."""
    if said.chunks == 0:
        return [NotEvaluated(rule.id, FLEET, tuple(sorted(rule.needs)), "There is no data in this window.")]
    found = dict(said.verdicts)
    refusals = [verdict for verdict, count in said.of_fleet.items() if count >= said.chunks]
    refusals += (
        counted(rule.id, missing, count, one, many)
        for (missing, one, many), count in sorted(said.counts.items())
    )
    by_subject: dict[Subject, list[NotEvaluated]] = {}
    for refusal in refusals:
        by_subject.setdefault(Subject(refusal.subject.kind, refusal.subject.id), []).append(refusal)
    for key, about in by_subject.items():
        found.setdefault(key, _joined(rule.id, about))
    found = {key: found[key] for key in sorted(found, key=lambda key: (key.kind, key.id))}
    if said.failure is not None:
        taken = FLEET_KEY in found
        subject = Subject("fleet", f"rule:{rule.id}") if taken else FLEET
        failure = said.failure
        found[Subject(subject.kind, subject.id)] = NotEvaluated(rule.id, subject, (), failure.why)
    return list(found.values())


def _of_fleet(rule: Rule, key: Subject) -> bool:
    """Whether a rule that sees chunks speaks of the whole."""
    return rule.scope == "gpu" and key.kind == "fleet"


def _joined(rule_id: str, refusals: Sequence[NotEvaluated]) -> NotEvaluated:
    """What a rule could not judge of one subject for several reasons, as one: each that is missing and each sentence."""
    missing = dict.fromkeys(name for refusal in refusals for name in refusal.missing)
    sentences = dict.fromkeys(refusal.why for refusal in refusals)
    return NotEvaluated(rule_id, refusals[0].subject, tuple(missing), " ".join(sentences))


def _limits(rule: Rule, own: Limits | None) -> Limits:
    if own is None:
        return rule.limits
    if not isinstance(own, type(rule.limits)):
        raise TypeError(f"limits of {rule.id} must be {type(rule.limits).__name__}, not {type(own).__name__}")
    return own


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
