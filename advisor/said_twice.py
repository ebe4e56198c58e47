"""What two rules say of the same replicas is said once, by the rule that judged all of them together.

``small-batch`` looks at one engine, and where too few requests come it advises fewer replicas; ``too-many-replicas``
counts how many the busiest time of the whole group takes. Where that speaks, the other's sentence would be a second
card with the same GPU-hours (advisor-rules R07, R08).
"""

from collections.abc import Collection, Sequence
from typing import Final

from advisor.batch import Cause
from core.finding import Finding

OF_ONE: Final = "small-batch"
OF_ALL: Final = "too-many-replicas"


def said_once(findings: Sequence[Finding], followed: Collection[str] = ()) -> list[Finding]:
    """The findings without what the rule of the group says better; ``followed``: somebody took a step on those, they stay."""
    told = {
        replica
        for finding in findings
        if finding.rule_id == OF_ALL
        for replica in finding.evidence.get("replicas", ())
    }
    return [
        finding
        for finding in findings
        if not (
            finding.rule_id == OF_ONE
            and finding.cause == Cause.DEMAND
            and finding.subject.id in told
            and finding.fingerprint not in followed
        )
    ]
