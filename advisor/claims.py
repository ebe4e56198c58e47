"""What a finding may claim: a saving whose range reaches down to nothing is none (advisor-rules 7.3)."""

from dataclasses import replace
from typing import Final

from core.finding import Finding, Range, Saving
from core.verification import Ledger

UNITS: Final = {Ledger.CAPACITY: "GPU-h", Ledger.ENERGY: "kWh"}


def proven(finding: Finding) -> Finding:
    """The finding without its claims that may be nothing (p10 ≤ 0), each ledger on its own; it says which, and why."""
    kept: dict[str, Range | None] = {}
    said = [] if finding.no_figure is None else [finding.no_figure]
    for ledger in Ledger:
        claim: Range | None = getattr(finding.saving, ledger.field)
        if claim is not None and claim.p10 <= 0:
            said.append(_sentence(ledger, claim))
            claim = None
        kept[ledger.field] = claim
    saving = Saving(**kept)
    return finding if saving == finding.saving else replace(finding, saving=saving, no_figure=" ".join(said))


def _sentence(ledger: Ledger, claim: Range) -> str:
    low, high = amount_words(ledger, claim.p10), amount_words(ledger, claim.p90)
    return f"No {ledger} figure, because it may save nothing: {low} to {high} a month is what can be said (p10 to p90)."


def amount_words(ledger: Ledger, value: float) -> str:
    """A figure of a month with its unit: ``$1,234.00``, ``730.0 GPU-h``, ``12.5 kWh``."""
    sign = "−" if value < 0 else ""
    if ledger is Ledger.CASH:
        return f"{sign}${abs(value):,.2f}"
    return f"{sign}{abs(value):,.1f} {UNITS[ledger]}"
