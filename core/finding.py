"""What the advisor says, in a form that store, pages, mail and command line share."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final


class Grade(StrEnum):
    """How a figure was had (advisor-rules 7.3)."""

    A = "A"
    """Measured here."""
    B = "B"
    """A model fitted on this site's data."""
    C = "C"
    """A formula."""
    D = "D"
    """Literature only."""


GRADED_DOWN: Final = "Graded down"
"""How a confidence says that a grade is lower than the method earns."""


class Effort(StrEnum):
    """Work to act on it."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Risk(StrEnum):
    """What can go wrong."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Status(StrEnum):
    """A finding followed over time."""

    OPEN = "open"
    CLAIMED = "claimed"
    DONE = "done"
    VERIFIED = "verified"
    REOPENED = "reopened"
    SNOOZED = "snoozed"
    DISMISSED = "dismissed"
    GONE = "gone"
    """No longer found; nobody acted on it here."""


@dataclass(frozen=True, slots=True)
class Range:
    """A figure with its uncertainty: p10 ≤ p50 ≤ p90."""

    p10: float
    p50: float
    p90: float

    def __post_init__(self) -> None:
        """Refuse a range that is out of order."""
        if not self.p10 <= self.p50 <= self.p90:
            raise ValueError(f"range out of order: {self.p10}, {self.p50}, {self.p90}")

    @classmethod
    def around(cls, value: float, half_width: float) -> "Range":
        """``value`` ± a relative half-width, e.g. 0.1 for ±10 %."""
        low, high = sorted((value * (1 - half_width), value * (1 + half_width)))
        return cls(low, value, high)

    def scaled(self, factor: float) -> "Range":
        """All three times ``factor`` ≥ 0."""
        return Range(self.p10 * factor, self.p50 * factor, self.p90 * factor)

    @classmethod
    def total(cls, parts: Iterable["Range"]) -> "Range | None":
        """Ranges of one ledger added up, end by end (they move together); None without any."""
        known = list(parts)
        if not known:
            return None
        return cls(sum(r.p10 for r in known), sum(r.p50 for r in known), sum(r.p90 for r in known))


@dataclass(frozen=True, slots=True)
class Saving:
    """Three ledgers, never added together; None: no claim in that ledger."""

    cash_usd_month: Range | None = None
    capacity_gpu_h_month: Range | None = None
    energy_kwh_month: Range | None = None

    @classmethod
    def total(cls, parts: Iterable["Saving"]) -> "Saving":
        """Savings on different GPUs added up, each ledger on its own."""
        known = list(parts)
        return cls(
            Range.total(s.cash_usd_month for s in known if s.cash_usd_month is not None),
            Range.total(s.capacity_gpu_h_month for s in known if s.capacity_gpu_h_month is not None),
            Range.total(s.energy_kwh_month for s in known if s.energy_kwh_month is not None),
        )

    @property
    def is_empty(self) -> bool:
        """No claim in any ledger."""
        return (
            self.cash_usd_month is None
            and self.capacity_gpu_h_month is None
            and self.energy_kwh_month is None
        )


@dataclass(frozen=True, slots=True)
class Stake:
    """What GPUs that do no work now cost until somebody ends that: a fact, never a saving.

    Attributes:
        gpus: GPUs held, whole or a part of them. usd_per_hour: what they cost; None: one of them has no price.
    """

    gpus: float
    usd_per_hour: float | None

    @classmethod
    def total(cls, parts: Iterable["Stake | None"]) -> "Stake | None":
        """Stakes on different GPUs added up; None without any, and no money where one has none."""
        known = [stake for stake in parts if stake is not None]
        if not known:
            return None
        costs = [stake.usd_per_hour for stake in known if stake.usd_per_hour is not None]
        return cls(sum(s.gpus for s in known), sum(costs) if len(costs) == len(known) else None)

    def scaled(self, factor: float) -> "Stake":
        """A part of it."""
        usd = None if self.usd_per_hour is None else self.usd_per_hour * factor
        return Stake(self.gpus * factor, usd)


@dataclass(frozen=True, slots=True)
class Subject:
    """What a finding is about: ``kind`` is ``gpu``, ``host``, ``engine``, ``workload`` or ``fleet``."""

    kind: str
    id: str
    label: str = ""
    """For people: ``GPU 3 on node-07``, a model's name."""


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do, with the exact command or flag when there is one."""

    text: str
    command: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """What one rule says about one subject.

    Attributes:
        rule_id: kebab-case noun of the failing state (design section 6).
        cause: the branch of the rule (``configuration``, ``demand``, ``kv``…); part of the fingerprint.
        title: imperative, with the subject in it. because: one sentence with the numbers.
        state: the finding's state in the rule's own words (``configuration-limited``).
        confidence: in words, with the reason; says so when graded down for a short window.
        saving: per ledger, or empty with ``no_figure`` saying why.
        evidence: numbers with units in their names; ``window_from``, ``window_to`` (ISO 8601), ``coverage_ratio`` always.
        wrong_when: when this is wrong. not_claimed: what is deliberately not claimed.
        gpu_uuids: GPUs whose hours the saving acts on; the waterfall resolves overlap on them.
        at_stake: what its GPUs cost until somebody acts, where they do no work now; None: that is not so, or not known.
        stage: order of the waterfall (advisor-rules 7.2): ``stop``, ``schedule``, ``consolidate``, ``workload``, ``clocks``, ``price``.
        chart: points to draw: ``{"series": [[ts_ms, value], …], "unit": "requests", "threshold": 71.0}``; may be empty.
    """

    rule_id: str
    subject: Subject
    cause: str
    title: str
    because: str
    state: str
    confidence: str
    grade: Grade
    effort: Effort
    risk: Risk
    saving: Saving
    evidence: Mapping[str, Any]
    actions: tuple[Action, ...]
    wrong_when: str
    not_claimed: str = ""
    no_figure: str | None = None
    gpu_uuids: tuple[str, ...] = ()
    at_stake: Stake | None = None
    stage: str = "workload"
    chart: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_short_of_data(self) -> bool:
        """Graded down because there is less data than spending advice wants; its confidence says how much."""
        return GRADED_DOWN in self.confidence

    @property
    def fingerprint(self) -> str:
        """Same rule, subject and cause: the same finding, however often it is found."""
        text = f"{self.rule_id}\x1f{self.subject.kind}\x1f{self.subject.id}\x1f{self.cause}"
        return sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class NotEvaluated:
    """A rule that could not judge a subject: what is missing and why that matters. Never silence.

    ``denies``: the data were there and speak against it, so that what was found of the subject before is over.
    """

    rule_id: str
    subject: Subject
    missing: tuple[str, ...]
    why: str
    denies: bool = False


@dataclass(frozen=True, slots=True)
class Totals:
    """Portfolio after overlap: never more than the spend of the same window."""

    cash_usd_month: Range | None
    capacity_gpu_h_month: Range | None
    energy_kwh_month: Range | None
    spend_usd_month: float | None


@dataclass(frozen=True, slots=True)
class Advice:
    """One run of the rules."""

    findings: tuple[Finding, ...]
    not_evaluated: tuple[NotEvaluated, ...]
    totals: Totals
