"""A run of the rules as a site wants it: thresholds of parts of the fleet, exclusions, the least saving worth a word.

A rule with thresholds for a part of the fleet runs once more with them over everything; of its verdicts those about
subjects of that part are taken. What is left out is said as not evaluated, with why and until when: never silence.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from fnmatch import fnmatchcase
from typing import TypeAlias

from advisor.claims import amount_words
from advisor.engine import AdviceRun, Judged
from advisor.engines_on import engines_on
from advisor.limits_book import LimitsBook
from advisor.model import Rule
from advisor.roster import Roster
from advisor.rules import RULES
from advisor.said_twice import said_once
from advisor.track_record import TrackRecord, scaled_all
from advisor.waterfall import Spend
from advisor.whole_hosts import merged
from core.evidence import EngineEvidence, Evidence, GpuEvidence
from core.finding import Advice, Finding, NotEvaluated, Range, Subject, Totals
from core.ownership import Owner
from core.readings import WorkloadKey
from core.rule_settings import FILE, Exclusion, Selector
from core.verification import Ledger

OwnerOf: TypeAlias = Callable[[WorkloadKey | None, str | None, int], Owner | None]
"""Who pays for a workload (None: the GPU's own time) on a host at a time; None: nobody."""


def _unowned(_workload: WorkloadKey | None, _host: str | None, _at_ms: int) -> None:
    return None


@dataclass(slots=True)
class Part:
    """The subjects that selectors choose, gathered chunk by chunk. Of a chunk it reads names and uses alone, no hour."""

    selectors: tuple[Selector, ...]
    owner_of: OwnerOf = _unowned
    subjects: set[tuple[str, str]] = field(default_factory=set)

    def add(self, chunk: Evidence) -> None:
        """Gather those of one chunk."""
        by_gpu = engines_on(chunk)
        chosen = {
            gpu.gpu_uuid
            for gpu in chunk.gpus
            if all(
                self._owned(one, gpu, chunk.window.to_ms - 1)
                if one.kind == "owner"
                else _fits(one, gpu, by_gpu.get(gpu.gpu_uuid, ()))
                for one in self.selectors
            )
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

    def _owned(self, selector: Selector, gpu: GpuEvidence, at_ms: int) -> bool:
        workloads = [None, *(use.workload for use in gpu.uses)]
        owners = {self.owner_of(workload, gpu.identity.host, at_ms) for workload in workloads}
        return any(
            fnmatchcase(name, selector.pattern)
            for owner in owners
            if owner is not None
            for name in (owner.team, owner.name)
        )

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
    if selector.kind == "user":
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
    """A finding that is kept back: why, and until when (None: until it is worth more), and who said so."""

    finding: Finding
    why: str
    until: datetime | None = None
    who: str | None = FILE


class SiteRun:
    """As ``AdviceRun``, with what a site says about rules."""

    def __init__(
        self,
        book: LimitsBook,
        *,
        now: datetime,
        min_saving_usd_month: float = 0.0,
        rules: Sequence[Rule] = RULES,
        records: Mapping[str, TrackRecord] | None = None,
        followed: Collection[str] = (),
        covered: Mapping[tuple[str, str, str], str] | None = None,
        owner_of: OwnerOf = _unowned,
    ) -> None:
        """Begin.

        Args:
            book: thresholds and exclusions.
            now: decides which exclusions still hold.
            min_saving_usd_month: what is worth less is said as left out.
            rules: rules to run.
            records: how claims of rules came true so far, by rule: they scale the next ones.
            followed: fingerprints of findings on which people took a step: those are not merged into one of their host.
            covered: by rule, cause and GPU, why nothing is said of that GPU alone: somebody is on it, or set it aside, with
                its host.
            owner_of: who pays, for selectors that name an owner.
        """
        self._rules = rules
        self._records = records or {}
        self._followed = followed
        self._covered = covered or {}
        self._roster = Roster()
        self._main = AdviceRun(rules, book.fleet)
        self._scoped = [
            (one.rule.id, Part(one.selectors, owner_of), AdviceRun([one.rule], {one.rule.id: one.limits}))
            for one in book.scopes
        ]
        self._excluded = [
            (one, Part(one.selectors, owner_of)) for one in book.exclusions if one.holds_at(now)
        ]
        self._least = min_saving_usd_month
        self.left_out: tuple[LeftOut, ...] = ()

    def feed(self, chunk: Evidence) -> None:
        """Judge what can be judged of one chunk alone, and keep that."""
        self.take(self.judge(chunk))

    def judge(self, chunk: Evidence) -> Sequence[Judged]:
        """Judge what can be judged of one chunk alone; nothing is kept, so that any run of the same book can."""
        return [run.judge(chunk) for run in (self._main, *(run for _, _, run in self._scoped))]

    def take(self, judged: Sequence[Judged]) -> None:
        """Keep what was said of a chunk; chunks come in the fleet's order."""
        main, *scoped = judged
        self._main.take(main)
        self._roster.add(main.chunk)
        for (_, part, run), own in zip(self._scoped, scoped, strict=True):
            part.add(main.chunk)
            run.take(own)
        for _, part in self._excluded:
            part.add(main.chunk)

    def advice(self) -> Advice:
        """Everything that was found, with what was left out said as such.

        Claims are scaled by their rule's record, then what is excluded is left out, then findings on all GPUs of a host
        become one, what two rules say of the same replicas is said once, and last what is worth too little is left out:
        a node's worth, not a GPU's.
        """
        made = self._main.advice()
        findings, silent = list(made.findings), list(made.not_evaluated)
        for rule_id, part, run in self._scoped:
            own = run.advice()
            findings = [f for f in findings if not (f.rule_id == rule_id and _of(part, f))]
            silent = [n for n in silent if not (n.rule_id == rule_id and part.holds(n.subject))]
            findings += [f for f in own.findings if _of(part, f)]
            silent += [n for n in own.not_evaluated if part.holds(n.subject)]
        asked: list[Finding] = []
        excluded: dict[Exclusion, list[Finding]] = {}
        for finding in scaled_all(findings, self._records):
            exclusion = self._exclusion_of(finding)
            (asked if exclusion is None else excluded.setdefault(exclusion, [])).append(finding)
        left_out = [
            LeftOut(finding, one.sentence, one.until, one.who)
            for one, those in excluded.items()
            for finding in self._merged(those)
        ]
        kept: list[Finding] = []
        for finding in said_once(self._merged(asked), self._followed):
            why = self._covered.get((finding.rule_id, finding.cause, finding.subject.id))
            why = why or self._too_small(finding)
            if why is None:
                kept.append(finding)
            else:
                left_out.append(LeftOut(finding, why))
        self.left_out = tuple(left_out)
        silent += (NotEvaluated(one.finding.rule_id, one.finding.subject, (), one.why) for one in left_out)
        if tuple(kept) == made.findings and tuple(silent) == made.not_evaluated:
            return made
        return replace(
            made, findings=tuple(kept), not_evaluated=tuple(silent), totals=self._main.totals(kept)
        )

    def totals(self, findings: Sequence[Finding]) -> Totals:
        """Totals after overlap of some of the findings."""
        return self._main.totals(findings)

    @property
    def spend(self) -> Spend:
        """What totals are made of, of every GPU that was seen."""
        return self._main.spend

    @property
    def subjects(self) -> set[tuple[str, str]]:
        """Kind and id of every GPU and engine that was seen."""
        return self._main.subjects

    def _merged(self, findings: Sequence[Finding]) -> list[Finding]:
        return merged(findings, self._roster, self._rules, self._followed)

    def _exclusion_of(self, finding: Finding) -> Exclusion | None:
        """The first that holds for it."""
        return next(
            (
                one
                for one, part in self._excluded
                if one.rule_id in {None, finding.rule_id} and _of(part, finding)
            ),
            None,
        )

    def _too_small(self, finding: Finding) -> str | None:
        """Said instead of a claim that is worth less than ``minimum_saving_usd_month``; None: it is worth a word.

        Without a figure a finding is a warning, and stays.
        """
        worth = self._roster.worth(finding)
        if worth is None or worth.usd_month >= self._least:
            return None
        claim: Range = getattr(finding.saving, worth.ledger.field)
        amount = amount_words(worth.ledger, claim.p50)
        priced = {
            Ledger.CASH: "",
            Ledger.CAPACITY: f", worth ${worth.usd_month:.2f} at the price of its GPUs",
            Ledger.ENERGY: f", worth ${worth.usd_month:.2f} at the site's tariff",
        }[worth.ledger]
        return f"It would save {amount} a month{priced}: less than minimum_saving_usd_month (${self._least:.2f})."


def _of(part: Part, finding: Finding) -> bool:
    return part.holds(finding.subject, finding.gpu_uuids)
