"""What the whole portfolio saves: each saving acts on what the former ones left of a GPU's hours (advisor-rules 7.2).

Per ledger and per GPU the findings act in the order of their stage. A claim is a share of what the GPU costs,
offers or draws in a month; a later claim takes its share of what is left, so that the shares multiply and never
add up to more than the whole. Exceptions: claims of the stage ``stop`` are on different hours (empty, parked) and add
up; of claims that share one gain only the larger counts; and a GPU whose work goes elsewhere is not exchanged as well,
whatever ledgers the two claims are in.

The range of the total is not the sum of best cases: errors of one rule's claims go together (one estimator, one
bias), errors of different rules are taken as independent, so deviations add within a rule and in quadrature across
rules. The total is capped by the spend of the same window.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import fsum, hypot
from typing import Final

from advisor.digest import Digest, digest
from advisor.model import STAGES
from core.evidence import Evidence, GpuEvidence
from core.finding import Finding, Range, Saving, Totals
from core.units import HOURS_PER_MONTH, J_PER_KWH

EXCLUSIVE: Final = (
    # One throughput gain: room for a larger batch, by whatever of the three.
    frozenset({"small-batch", "quantization-candidate", "kv-cache-precision"}),
    frozenset({"power-cap", "decode-clock"}),
    frozenset({"oversized-gpu", "shareable-gpu"}),
    frozenset({"empty-gpu", "off-hours"}),  # the same idle hours: stopped for good, or by the clock
    frozenset({"parked-model", "off-hours"}),
)
"""Rules whose claims on the same hours are one or the other, whatever their stages (7.2)."""

EXCHANGES: Final = "oversized-gpu"
"""The rule that puts another GPU in the place of one, computed on the load that its engine has today (7.2, R20)."""
TAKES_AWAY: Final = frozenset(
    {
        "too-many-replicas",
        "small-batch",
        "quantization-candidate",
        "kv-cache-precision",
        "no-prefix-cache",
        "shareable-gpu",
    }
)
"""Rules whose claim on a GPU is that its work goes elsewhere and it falls free."""

LEDGERS: Final[tuple[tuple[str, Callable[[Saving], Range | None]], ...]] = (
    ("cash", lambda saving: saving.cash_usd_month),
    ("capacity", lambda saving: saving.capacity_gpu_h_month),
    ("energy", lambda saving: saving.energy_kwh_month),
)


@dataclass(frozen=True, slots=True)
class Base:
    """What one GPU costs, offers and draws in a month at the window's pace; None: unknown."""

    cash: float | None
    capacity: float
    energy: float | None

    def of(self, ledger: str) -> float | None:
        """By ledger name."""
        return {"cash": self.cash, "capacity": self.capacity, "energy": self.energy}[ledger]


@dataclass(frozen=True, slots=True)
class Claim:
    """What one finding wants of one GPU in one ledger."""

    rule_id: str
    stage: int
    figure: Range


def base_of(gpu: GpuEvidence, seen: Digest, window_h: float) -> Base:
    """The GPU's month: what samples vouch for in the window, scaled to 730 h. In a gap nothing can be saved."""
    covered_share = min(1.0, seen.covered_h / window_h) if window_h > 0 else 0.0
    capacity = covered_share * HOURS_PER_MONTH
    cash = None if gpu.price is None else float(gpu.price.usd_per_gpu_hour) * capacity
    energy_j = seen.energy_j
    energy = None if energy_j is None or window_h <= 0 else energy_j / J_PER_KWH / window_h * HOURS_PER_MONTH
    return Base(cash, capacity, energy)


class Spend:
    """What the GPUs of a fleet cost, offer and draw, gathered chunk by chunk: all that totals need of the evidence."""

    def __init__(self) -> None:
        self._bases: dict[str, Base] = {}
        self._spent: dict[str, float] = {}

    def add(self, evidence: Evidence) -> None:
        """Take in the GPUs of a chunk."""
        window_h = evidence.window.hours
        for gpu in evidence.gpus:
            seen = digest(evidence, gpu)
            self._bases[gpu.gpu_uuid] = base_of(gpu, seen, window_h)
            if gpu.price is not None and window_h > 0:
                # By the clock: a gap is not free (cost-model 1).
                clock_share = min(1.0, max(seen.observed_h, seen.covered_h) / window_h)
                rate = float(gpu.price.usd_per_gpu_hour)
                self._spent[gpu.gpu_uuid] = rate * clock_share * HOURS_PER_MONTH

    def know(self, gpu_uuid: str, base: Base, spent_usd_month: float | None) -> None:
        """Take in a GPU, or somebody's part of one, whose month was added up elsewhere (the ledger)."""
        self._bases[gpu_uuid] = base
        if spent_usd_month is not None:
            self._spent[gpu_uuid] = spent_usd_month

    def known(self) -> Iterator[tuple[str, Base, float | None]]:
        """Every GPU as ``know`` takes it in: to keep what totals need after the evidence is gone."""
        for uuid, base in self._bases.items():
            yield uuid, base, self._spent.get(uuid)

    def totals(self, findings: Sequence[Finding]) -> Totals:
        """Totals per ledger after overlap; a ledger without any claim is None, never 0.

        Args:
            findings: those that count; leave out snoozed and dismissed ones.
        """
        counting = _without_exchanged(findings)
        figures = {name: _ledger(name, read, self._bases, counting) for name, read in LEDGERS}
        # Exact, so that the sum is the same in whatever order the GPUs came.
        spent = fsum(self._spent.values()) if self._spent else None
        return Totals(figures["cash"], figures["capacity"], figures["energy"], spent)


def totals(evidence: Evidence, findings: Sequence[Finding]) -> Totals:
    """Totals of one piece of evidence, from which the findings were made; see ``Spend.totals``."""
    spend = Spend()
    spend.add(evidence)
    return spend.totals(findings)


def _without_exchanged(findings: Sequence[Finding]) -> list[Finding]:
    """Without exchanges of GPUs that fall free by another claim: they are not there any more."""
    free = {
        uuid
        for finding in findings
        if finding.rule_id in TAKES_AWAY and not finding.saving.is_empty
        for uuid in finding.gpu_uuids
    }
    return [
        finding for finding in findings if finding.rule_id != EXCHANGES or free.isdisjoint(finding.gpu_uuids)
    ]


def _ledger(
    name: str,
    read: Callable[[Saving], Range | None],
    bases: dict[str, Base],
    findings: Iterable[Finding],
) -> Range | None:
    claims: dict[str, list[Claim]] = defaultdict(list)
    for finding in findings:
        figure = read(finding.saving)
        if figure is None:
            continue
        known = [
            (uuid, base) for uuid in finding.gpu_uuids if (base := _amount(bases, uuid, name)) is not None
        ]
        whole = sum(base for _, base in known)
        for uuid, base in known:
            share = base / whole if whole > 0 else 0.0
            claims[uuid].append(Claim(finding.rule_id, STAGES.index(finding.stage), figure.scaled(share)))
    if not claims:
        return None
    by_rule: dict[str, list[Range]] = defaultdict(list)
    for uuid, wanted in claims.items():
        base = _amount(bases, uuid, name) or 0.0
        for rule_id, kept in _resolve(base, wanted):
            by_rule[rule_id].append(kept)
    ceiling = sum(_amount(bases, uuid, name) or 0.0 for uuid in claims)
    return _portfolio(by_rule.values(), ceiling)


def _amount(bases: dict[str, Base], uuid: str, ledger: str) -> float | None:
    base = bases.get(uuid)
    return None if base is None else base.of(ledger)


def _resolve(base: float, claims: Sequence[Claim]) -> list[tuple[str, Range]]:
    """What each claim keeps of one GPU after those before it."""
    if base <= 0:
        return []
    kept: list[tuple[str, Range]] = []
    left = 1.0
    winners = _without_losers(claims)
    for stage in range(len(STAGES)):
        present = [claim for claim in winners if claim.stage == stage]
        if STAGES[stage] == "stop":
            for claim in present:
                took = _clipped(claim.figure, base, room=left)
                kept.append((claim.rule_id, took.scaled(base)))
                left -= max(0.0, took.p50)
            continue
        for claim in present:
            share = _clipped(claim.figure, base, room=1.0)
            kept.append((claim.rule_id, share.scaled(base * left)))
            left *= 1 - max(0.0, share.p50)
    return kept


def _clipped(figure: Range, base: float, room: float) -> Range:
    """The claim as shares of the base, none above what is left."""
    return Range(*(min(room, value / base) for value in (figure.p10, figure.p50, figure.p90)))


def _without_losers(claims: Sequence[Claim]) -> list[Claim]:
    """Of mutually exclusive claims only the one with the larger median stays."""
    stay = sorted(claims, key=lambda claim: (claim.rule_id, -claim.figure.p50))
    for group in EXCLUSIVE:
        rivals = [claim for claim in stay if claim.rule_id in group]
        if len({claim.rule_id for claim in rivals}) < 2:
            continue
        best = max(rivals, key=lambda claim: claim.figure.p50)
        stay = [claim for claim in stay if claim.rule_id not in group or claim.rule_id == best.rule_id]
    return stay


def _portfolio(by_rule: Iterable[list[Range]], ceiling: float) -> Range:
    middle, down, up = 0.0, 0.0, 0.0
    for parts in by_rule:
        middle += sum(part.p50 for part in parts)
        down = hypot(down, sum(part.p50 - part.p10 for part in parts))
        up = hypot(up, sum(part.p90 - part.p50 for part in parts))
    middle = min(middle, ceiling)
    return Range(middle - down, middle, max(middle, min(middle + up, ceiling)))
