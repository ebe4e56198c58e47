"""How a rule's claims came true so far, and what that makes of its next ones (advisor-rules 7.3).

Verified ÷ predicted of a rule is taken as log-normal. Its centre has a log-normal prior with median 0.7 (7.3): claims
of advisors come out smaller than they were made. Each verified case moves it, by the precision of its own figure:

    log r_i ~ N(m, τ² + s_i²),  m ~ N(log 0.7, 0.5²),  next r ~ N(m_n, v_n + τ²)

with s_i the standard error of the verified figure over the claim. τ (0.35) is how much cases of one rule differ, the
prior's width 0.5 (a factor of 1.6): both ours (E). A saving that could not be told from none counts too, at no less
than ``LEAST_RATIO``: a record of successes alone would flatter every rule.

The next claim is multiplied by that ratio: its middle by the median, its ends by p10 and p90 together with the claim's
own width in quadrature. It shrinks where cases fell short, and narrows as they agree.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, hypot, log, sqrt
from typing import Final

from advisor.claims import proven
from core.finding import Finding, Range, Saving
from core.percent import percent
from core.verification import Ledger, Verification

PRIOR_MEDIAN: Final = 0.7
PRIOR_LOG_SD: Final = 0.5
CASE_LOG_SD: Final = 0.35
LEAST_RATIO: Final = 0.1
MOST_RATIO: Final = 3.0
Z80: Final = 1.2816


@dataclass(frozen=True, slots=True)
class TrackRecord:
    """What a rule's next claim may expect: verified over predicted; ``cases`` is how many it rests on."""

    cases: int
    ratio: Range
    log_sd: float

    @property
    def sentence(self) -> str:
        """For people."""
        if self.cases == 0:
            return (
                f"No saving of this rule has been verified here yet; elsewhere about {percent(PRIOR_MEDIAN)} of a claim"
                " comes true. Claims are shown as computed."
            )
        many = "case" if self.cases == 1 else "cases"
        return (
            f"{self.cases} verified {many}: about {percent(self.ratio.p50)} of a claim comes true"
            f" ({percent(self.ratio.p10)} to {percent(self.ratio.p90)}); claims are scaled by it."
        )


def track_record(cases: Iterable[Verification]) -> TrackRecord:
    """Of one rule's verifications; those without a figure say nothing."""
    mean, precision, count = log(PRIOR_MEDIAN), 1 / PRIOR_LOG_SD**2, 0
    for case in cases:
        ratio = case.realised_ratio
        if ratio is None or case.saving is None or not case.predicted_p50 or case.predicted_p50 < 0:
            continue
        held = min(MOST_RATIO, max(LEAST_RATIO, ratio))
        error = (case.saving.p90 - case.saving.p10) / (2 * Z80) / case.predicted_p50 / held
        weight = 1 / (CASE_LOG_SD**2 + min(1.0, error) ** 2)
        mean = (mean * precision + log(held) * weight) / (precision + weight)
        precision += weight
        count += 1
    log_sd = sqrt(1 / precision + CASE_LOG_SD**2)
    spread = exp(Z80 * log_sd)
    return TrackRecord(count, Range(exp(mean) / spread, exp(mean), exp(mean) * spread), log_sd)


def scaled(finding: Finding, record: TrackRecord) -> Finding:
    """A finding whose claims are scaled by its rule's record, less those that may then be nothing; unchanged while the rule has none."""
    if record.cases == 0 or finding.saving.is_empty:
        return finding
    figures = {
        one.field: None if claim is None else _scaled(claim, record)
        for one in Ledger
        for claim in [getattr(finding.saving, one.field)]
    }
    return proven(
        replace(
            finding, saving=Saving(**figures), confidence=f"{finding.confidence} {record.sentence}".strip()
        )
    )


def _scaled(claim: Range, record: TrackRecord) -> Range:
    if claim.p50 <= 0:
        return claim
    middle = claim.p50 * record.ratio.p50
    down = hypot((claim.p50 - claim.p10) / claim.p50, 1 - record.ratio.p10 / record.ratio.p50)
    up = hypot((claim.p90 - claim.p50) / claim.p50, record.ratio.p90 / record.ratio.p50 - 1)
    return Range(max(min(0.0, claim.p10), middle * (1 - down)), middle, middle * (1 + up))


def scaled_all(findings: Sequence[Finding], records: Mapping[str, TrackRecord]) -> tuple[Finding, ...]:
    """Findings with each rule's record applied."""
    return tuple(
        scaled(finding, records[finding.rule_id]) if finding.rule_id in records else finding
        for finding in findings
    )
