"""An owner's advice: recommendations about GPUs that it paid most of, with nobody else's figure or name in them.

A finding is about GPUs as wholes, and others may have paid for a part of them. So each saving is taken down to the
owner's share of what its GPUs cost in the window that the rules looked at. Where another owner paid for any of them, or
a sentence names what only others have (a host, a GPU, a team, a user, a program), the rule's own words take the place
of the finding's. A finding about more than GPUs of which the owner paid most is told to the fleet alone.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from advisor.rules import RULES
from advisor.waterfall import Spend
from api.resources.gpu_bills import GpuBills, covers
from api.resources.report_parts import Need, parts
from api.resources.scope import Scope
from core.finding import Action, Finding, Range, Saving, Totals
from core.ownership import Owner
from core.readings import GpuIdentity
from store.known import known_gpus
from store.queries.recommendations import Recommendation

WHOLE: Final = 0.995
"""A share that is not worth a word."""
NAMED: Final = 2
"""GPUs that a title names one by one; of more it says the number."""
LONGEST_NAME: Final = 200
"""No rule writes a longer name of others into a sentence whole: its beginning gives it away."""
TITLES: Final = {rule.id: rule.title for rule in RULES}


@dataclass(frozen=True, slots=True)
class OwnAdvice:
    """What an owner may be told.

    Attributes:
        recommendations: with the owner's part of each saving. totals: of them, after overlap.
        parts: share of the GPUs' cost by id of the recommendation, where it is not all of it.
        veiled: ids of those in the rule's words, because the GPUs are shared or somebody else is named.
    """

    recommendations: tuple[Recommendation, ...]
    totals: Totals
    parts: Mapping[int, float]
    veiled: frozenset[int]


@dataclass(frozen=True, slots=True)
class Others:
    """Names of what belongs to others alone."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, names: Iterable[str]) -> "Others":
        """Names of any length; of a very long one its beginning."""
        return cls(tuple(sorted({name[:LONGEST_NAME] for name in names if name.strip()})))

    def in_any(self, texts: Iterable[str | None]) -> bool:
        """One of them stands in one of the texts, as whole words."""
        text = "\n".join(one for one in texts if one)
        # Looking for the letters first is a hundred times as quick as one expression of all names.
        return any(
            name in text and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) for name in self.names
        )


def others_of(scope: Scope, bills: GpuBills, audience: Owner) -> Others:
    """Owners, hosts, GPUs, users and programs in the window of the bills that are none of the audience's."""
    own_gpus = bills.paid_by(audience)
    gpus = [gpu.identity for gpu in known_gpus(scope.session.connection())]
    own, other = _hosts(gpu for gpu in gpus if gpu.gpu_uuid in own_gpus), set[str]()
    for gpu in gpus:
        if gpu.gpu_uuid not in own_gpus:
            other |= {gpu.gpu_uuid} | _hosts([gpu])
    own |= {audience.team, audience.project}
    for owner in bills.owners:
        (own if covers(audience, owner) else other).update((owner.team, owner.project))
    over = replace(scope, window=bills.window)
    for part, _ in parts(over, Need(frozenset({"workload", "owner"}), ("known_ms",))):
        workload = part.workload
        if workload is None:
            continue
        names = {workload.name, workload.user or "", workload.key}
        if covers(audience, part.owner):
            own |= names
        elif part.owner is not None:
            other |= names
    return Others.of(other - own)


def _hosts(gpus: Iterable[GpuIdentity]) -> set[str]:
    return {gpu.host for gpu in gpus if gpu.host}


def own_advice(
    found: Sequence[Recommendation],
    bills: GpuBills,
    audience: Owner,
    *,
    others: Others,
    label_of: Mapping[str, str],
) -> OwnAdvice:
    """What of these an owner is told, in the same order; pure. ``label_of``: a GPU for people, by UUID."""
    told: list[Recommendation] = []
    shares: dict[int, float] = {}
    veiled: set[int] = set()
    for item in found:
        finding = item.finding
        if finding.subject.kind == "fleet" or not bills.has_most(finding.gpu_uuids, audience):
            continue
        share = bills.share(finding.gpu_uuids, audience)
        mine = part_of(finding, share) if share < WHOLE else finding
        if share < WHOLE:
            shares[item.id] = share
        if bills.is_shared(finding.gpu_uuids, audience) or others.in_any(texts_of(finding)):
            veiled.add(item.id)
            mine = veil(mine, label_of)
        told.append(replace(item, finding=mine, note=None, acted_finding=None))
    totals = totals_of([item.finding for item in told], bills, audience)
    return OwnAdvice(tuple(told), totals, shares, frozenset(veiled))


def texts_of(finding: Finding) -> list[str | None]:
    """Everything of a finding that a mail prints."""
    actions = [text for action in finding.actions for text in (action.text, action.command)]
    return [finding.title, finding.because, finding.no_figure, finding.subject.label, *actions]


def part_of(finding: Finding, share: float) -> Finding:
    """The finding with an owner's share of its figures."""
    stake = None if finding.at_stake is None else finding.at_stake.scaled(share)
    return replace(finding, saving=scaled(finding.saving, share), at_stake=stake)


def scaled(saving: Saving, share: float) -> Saving:
    """A part of a saving."""

    def part(figure: Range | None) -> Range | None:
        return None if figure is None else figure.scaled(share)

    return Saving(
        part(saving.cash_usd_month), part(saving.capacity_gpu_h_month), part(saving.energy_kwh_month)
    )


def veil(finding: Finding, label_of: Mapping[str, str]) -> Finding:
    """The finding in the rule's own words, with the GPUs that the owner paid most of and nothing else."""
    labels = [label_of.get(uuid, uuid) for uuid in finding.gpu_uuids]
    where = " and ".join(labels) if len(labels) <= NAMED else f"{len(labels)} GPUs"
    return replace(
        finding,
        title=f"{TITLES.get(finding.rule_id, finding.rule_id)}: {where}",
        because="It touches what others use, so this mail says no more of it.",
        actions=(Action("Open it in gpuwise, and agree on it with those it touches."),),
        no_figure=None,
        evidence={},
        chart={},
    )


def totals_of(findings: Sequence[Finding], bills: GpuBills, audience: Owner | None) -> Totals:
    """Findings after overlap, against what the audience (None: anybody) paid for each GPU."""
    spend = Spend()
    for uuid in bills.gpu_uuids if audience is None else bills.paid_by(audience):
        bill = bills.whole(uuid) if audience is None else bills.of(uuid, audience)
        base, spent = bill.month(bills.window)
        spend.know(uuid, base, spent)
    return spend.totals(findings)
