"""What became of a saving after somebody acted: in a form that advisor, store, pages and command line share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from core.finding import Range


class Verdict(StrEnum):
    """How a verification ended."""

    SAVED = "saved"
    """The saving is there, at equal load, and began with the action."""
    NO_SAVING = "no_saving"
    """At equal load it costs as much as before, or more."""
    NOISE = "noise"
    """Less than two standard errors: not distinguishable from noise."""
    TOO_EARLY = "too_early"
    """Two full weeks have not passed since the action."""
    TOO_LITTLE = "too_little"
    """Less than two weeks of hours that telemetry vouches for, before or after."""
    NO_BASELINE = "no_baseline"
    """The time before cannot be described well enough to compare with."""
    TRAFFIC_CHANGED = "traffic_changed"
    """The load is not comparable."""
    CONFOUNDED = "confounded"
    """Something else changed at the same time."""
    NOT_ATTRIBUTABLE = "not_attributable"
    """No change within a day of the action."""
    PLACEBO = "placebo"
    """A date on which nothing was done shows a saving too."""
    NOT_MEASURABLE = "not_measurable"
    """Telemetry has no figure of what was to fall."""

    @property
    def is_measured(self) -> bool:
        """It has a figure, and so counts in the rule's track record."""
        return self in {Verdict.SAVED, Verdict.NO_SAVING, Verdict.NOISE}


class Ledger(StrEnum):
    """What was to fall, with its unit a month."""

    CASH = "cash"
    CAPACITY = "capacity"
    ENERGY = "energy"

    @property
    def field(self) -> str:
        """The field of ``core.finding.Saving``, which is also name and unit of the figure."""
        return {
            Ledger.CASH: "cash_usd_month",
            Ledger.CAPACITY: "capacity_gpu_h_month",
            Ledger.ENERGY: "energy_kwh_month",
        }[self]


@dataclass(frozen=True, slots=True)
class TraceDay:
    """One day before or after an action, in the ledger's unit a day.

    Attributes:
        day_ms: its start, UTC. measured: what was measured.
        expected: what its load would have been before the action; None: there is no baseline. low, high: p10 and p90 of
            how days before the action lay around it. peers: untreated neighbours, scaled to the size of the treated.
    """

    day_ms: int
    measured: float
    expected: float | None = None
    low: float | None = None
    high: float | None = None
    peers: float | None = None


@dataclass(frozen=True, slots=True)
class Verification:
    """One comparison of before and after.

    Attributes:
        verdict: how it ended. sentence: the same for people, with the numbers.
        ledger: what was to fall; None when the recommendation claims nothing.
        saving: of that ledger a month; negative means more than before. None without a figure.
        predicted_p50: what the finding had claimed, of the same ledger.
        facts: numbers with units in their names, for whoever checks it.
        slo_regressions: sentences about latency that got worse. days: to draw it; empty: nothing was measured.
    """

    verdict: Verdict
    sentence: str
    ledger: Ledger | None = None
    saving: Range | None = None
    predicted_p50: float | None = None
    facts: Mapping[str, float | str | None] = field(default_factory=dict)
    slo_regressions: tuple[str, ...] = ()
    days: tuple[TraceDay, ...] = ()

    @property
    def realised_ratio(self) -> float | None:
        """Verified ÷ predicted; None without both."""
        if self.saving is None or not self.verdict.is_measured or not self.predicted_p50:
            return None
        return self.saving.p50 / self.predicted_p50
