"""A run of the rules as a site wants it: thresholds of parts of the fleet, exclusions, the least saving worth a word.

A rule with thresholds for a part of the fleet runs once more with them over everything; of its verdicts those about
subjects of that part are taken. What is left out is said as not evaluated, with why and until when: never silence.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from fnmatch import fnmatchcase

from advisor.engine import AdviceRun
from advisor.limits_book import LimitsBook
from advisor.model import Rule
from advisor.rules import RULES
from core.evidence import EngineEvidence, Evidence, GpuEvidence
from core.finding import Advice, Finding, NotEvaluated, Subject, Totals
from core.rule_settings import Exclusion, Selector


@dataclass(slots=True)
class _Part:
    """The subjects that selectors choose, gathered chunk by chunk."""

    selectors: tuple[Selector, ...]
    subjects: set[tuple[str, str]] = field(default_factory=set)

    def add(self, chunk: Evidence) -> None:
        engines_on: dict[str, list[EngineEvidence]] = {}
        for engine in chunk.engines:
            for uuid in engine.gpu_uuids:
                engines_on.setdefault(uuid, []).append(engine)
        chosen = {
            gpu.gpu_uuid
            for gpu in chunk.gpus
            if all(_fits(one, gpu, engines_on.get(gpu.gpu_uuid, ())) for one in self.selectors)
        }
        self.subjects |= {("gpu", uuid) for uuid in chosen}
        for engine in chunk.engines:
            on_chosen = bool(engine.gpu_uuids) and set(engine.gpu_uuids) <= chosen
            by_name = all(
                one.kind == "engine" and fnmatchcase(engine.identity.engine, one.pattern)
                for one in self.selectors
            )
            if on_chosen or by_name:
                self.subjects.add(("engine", engine.identity.engine))
        if all(one.kind == "host" for one in self.selectors):
            hosts = {gpu.identity.host for gpu in chunk.gpus if gpu.gpu_uuid in chosen}
            self.subjects |= {("host", host) for host in hosts if host is not None}

    def holds(self, subject: Subject, gpu_uuids: Sequence[str] = ()) -> bool:
        """The subject is in it, or all GPUs that a claim acts on are."""
        if (subject.kind, subject.id) in self.subjects:
            return True
        return bool(gpu_uuids) and all(("gpu", uuid) in self.subjects for uuid in gpu_uuids)


def _fits(selector: Selector, gpu: GpuEvidence, engines: Iterable[EngineEvidence]) -> bool:
    if selector.kind == "host":
        return gpu.identity.host is not None and fnmatchcase(gpu.identity.host, selector.pattern)
    if selector.kind == "gpu":
        return fnmatchcase(gpu.gpu_uuid, selector.pattern)
    if selector.kind == "engine":
        return any(fnmatchcase(engine.identity.engine, selector.pattern) for engine in engines)
    if selector.kind == "owner":
        return any(
            use.workload.user is not None and fnmatchcase(use.workload.user, selector.pattern)
            for use in gpu.uses
        )
    return any(
        fnmatchcase(f"{name}={value}", selector.pattern)
        for use in gpu.uses
        for name, value in use.workload.attributes
    )


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A finding that an exclusion keeps back."""

    finding: Finding
    exclusion: Exclusion


class SiteRun:
    """As ``AdviceRun``, with what a site says about rules."""

    def __init__(
        self,
        book: LimitsBook,
        *,
        now: datetime,
        min_saving_usd_month: float = 0.0,
        rules: Sequence[Rule] = RULES,
    ) -> None:
        """Begin; ``now`` decides which exclusions still hold."""
        self._main = AdviceRun(rules, book.fleet)
        self._scoped = [
            (one.rule.id, _Part(one.selectors), AdviceRun([one.rule], {one.rule.id: one.limits}))
            for one in book.scopes
        ]
        self._excluded = [(one, _Part(one.selectors)) for one in book.exclusions if one.until > now]
        self._least = min_saving_usd_month
        self.left_out: tuple[LeftOut, ...] = ()

    def feed(self, chunk: Evidence) -> None:
        """Judge what can be judged of one chunk alone."""
        self._main.feed(chunk)
        for _, part, run in self._scoped:
            part.add(chunk)
            run.feed(chunk)
        for _, part in self._excluded:
            part.add(chunk)

    def advice(self) -> Advice:
        """Everything that was found, with what was left out said as such."""
        made = self._main.advice()
        findings, silent = list(made.findings), list(made.not_evaluated)
        for rule_id, part, run in self._scoped:
            own = run.advice()
            findings = [f for f in findings if not (f.rule_id == rule_id and _of(part, f))]
            silent = [n for n in silent if not (n.rule_id == rule_id and part.holds(n.subject))]
            findings += [f for f in own.findings if _of(part, f)]
            silent += [n for n in own.not_evaluated if part.holds(n.subject)]
        kept: list[Finding] = []
        left_out: list[LeftOut] = []
        for finding in findings:
            exclusion = next(
                (
                    one
                    for one, part in self._excluded
                    if one.rule_id in {None, finding.rule_id} and _of(part, finding)
                ),
                None,
            )
            if exclusion is not None:
                left_out.append(LeftOut(finding, exclusion))
                silent.append(NotEvaluated(finding.rule_id, finding.subject, (), exclusion.sentence))
            elif (small := self._too_small(finding)) is not None:
                silent.append(small)
            else:
                kept.append(finding)
        self.left_out = tuple(left_out)
        if len(kept) == len(made.findings) and not self._scoped:
            return made
        return replace(
            made, findings=tuple(kept), not_evaluated=tuple(silent), totals=self._main.totals(kept)
        )

    def totals(self, findings: Sequence[Finding]) -> Totals:
        """Totals after overlap of some of the findings."""
        return self._main.totals(findings)

    @property
    def subjects(self) -> set[tuple[str, str]]:
        """Kind and id of every GPU and engine that was seen."""
        return self._main.subjects

    def _too_small(self, finding: Finding) -> NotEvaluated | None:
        """Said instead of a claim of less cash than is worth a word; capacity and energy have no price of their own."""
        cash = finding.saving.cash_usd_month
        if cash is None or cash.p50 >= self._least or finding.saving.capacity_gpu_h_month is not None:
            return None
        return NotEvaluated(
            finding.rule_id,
            finding.subject,
            (),
            f"It would save ${cash.p50:.2f} a month, less than minimum_saving_usd_month (${self._least:.2f}).",
        )


def _of(part: _Part, finding: Finding) -> bool:
    return part.holds(finding.subject, finding.gpu_uuids)
