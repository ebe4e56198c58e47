"""Which recommendations are asked for, over REST as on the page: by rule, place, payer, what they save, words."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from sqlalchemy.orm import Session

from api.resources import advise
from core.finding import Finding
from core.readings import GpuIdentity
from store.known import known_gpus
from store.queries import owners, recommendations
from store.queries.gpu_payers import main_payers, payers
from store.queries.recommendations import Recommendation

FIELDS: Final = ("rule", "host", "owner", "model", "saves", "grade", "effort", "assignee")
"""Filters with a field on the page, in their order."""
ALSO: Final = ("gpu", "engine", "q")
"""Filters that other pages link to, or that have a field of their own."""
Asked = Mapping[str, Sequence[str]]
"""Values of each filter, which are alternatives; of ``q`` words that must all be there."""


@dataclass(frozen=True, slots=True)
class Known:
    """What the filters look things up in.

    Attributes:
        gpus: by UUID. payers: team that pays for most of each GPU; read only when an owner is asked for.
        assignees: who has each one that is claimed. teams: to choose from.
    """

    gpus: Mapping[str, GpuIdentity]
    payers: Callable[[], Mapping[str, str]]
    assignees: Mapping[int, str]
    teams: Sequence[str]

    def hosts(self, finding: Finding) -> set[str]:
        """Hosts that it is about."""
        found = {self.gpus[uuid].host for uuid in finding.gpu_uuids if uuid in self.gpus}
        own = {finding.subject.id} if finding.subject.kind == "host" else set()
        return own | {host for host in found if host is not None}

    def models(self, finding: Finding) -> set[str]:
        """Models of its GPUs."""
        found = {self.gpus[uuid].model for uuid in finding.gpu_uuids if uuid in self.gpus}
        return {model for model in found if model is not None}

    def owner(self, finding: Finding) -> str | None:
        """The team that pays for most of its GPUs."""
        payers = self.payers()
        teams = [payers.get(uuid) for uuid in finding.gpu_uuids]
        for team in {team for team in teams if team is not None}:
            if 2 * teams.count(team) > len(teams):
                return team
        return None


def known_of(session: Session, last: advise.LastSpend | None) -> Known:
    """What the filters look things up in; ``last``: the run whose window says who pays."""

    @cache
    def whose() -> Mapping[str, str]:
        return {} if last is None else main_payers(payers(session, last.window))

    gpus = {gpu.identity.gpu_uuid: gpu.identity for gpu in known_gpus(session.connection())}
    teams = sorted({rule.owner.team for rule in owners.listing(session)})
    return Known(gpus, whose, recommendations.claimants(session), teams)


def fitting(asked: Asked, found: Sequence[Recommendation], known: Known) -> list[Recommendation]:
    """Those that every filter lets through, in their order; pure."""
    tests: list[Callable[[Recommendation], bool]] = []
    for name, values_of in _readers(known).items():
        wanted = {value for value in asked.get(name, ()) if value}
        if wanted:
            tests.append(lambda rec, wanted=wanted, read=values_of: bool(wanted & read(rec)))  # type: ignore[misc]
    words = " ".join(asked.get("q", ())).casefold().split()
    if words:
        tests.append(lambda rec: all(word in _text(rec, known) for word in words))
    return [rec for rec in found if all(test(rec) for test in tests)]


def _readers(known: Known) -> Mapping[str, Callable[[Recommendation], set[str]]]:
    """What a recommendation has of each filter."""
    return {
        "rule": lambda rec: {rec.finding.rule_id},
        "host": lambda rec: known.hosts(rec.finding),
        "owner": lambda rec: {known.owner(rec.finding) or ""},
        "model": lambda rec: known.models(rec.finding),
        "saves": lambda rec: saves(rec.finding),
        "grade": lambda rec: {rec.finding.grade.value},
        "effort": lambda rec: {rec.finding.effort.value},
        "assignee": lambda rec: {known.assignees.get(rec.id, "")},
        "gpu": lambda rec: {rec.finding.subject.id, *rec.finding.gpu_uuids},
        "engine": lambda rec: {rec.finding.subject.id} if rec.finding.subject.kind == "engine" else set(),
    }


def saves(finding: Finding) -> set[str]:
    """Kinds of what it claims; ``none`` when it claims nothing."""
    found = {
        name
        for name, claim in (
            ("cash", finding.saving.cash_usd_month),
            ("capacity", finding.saving.capacity_gpu_h_month),
            ("energy", finding.saving.energy_kwh_month),
        )
        if claim is not None
    }
    return found or {"none"}


def _text(rec: Recommendation, known: Known) -> str:
    """All that free text is looked for in."""
    finding = rec.finding
    parts = [
        str(rec.id),
        finding.rule_id,
        finding.title,
        finding.because,
        finding.subject.id,
        finding.subject.label,
        rec.note or "",
        *known.hosts(finding),
        *(finding.gpu_uuids if len(finding.gpu_uuids) < 64 else ()),
    ]
    return "\n".join(parts).casefold()
