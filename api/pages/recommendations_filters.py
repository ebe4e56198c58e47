"""Which recommendations a list shows: what the address asks for, and what there is to choose from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from api.pages.filters import FilterBar, filter_bar
from api.pages.view import Address
from core.finding import Effort, Finding, Grade
from core.readings import GpuIdentity
from store.queries.recommendations import Recommendation

FIELDS: Final = ("rule", "host", "owner", "model", "saves", "grade", "effort", "assignee")
"""Filters with a field, in their order."""
ALSO: Final = ("gpu", "engine", "q")
"""Filters that other pages link to, or that have a field of their own."""
SAVES: Final = {
    "cash": "cash",
    "capacity": "GPU-hours",
    "energy": "energy",
    "none": "no figure",
}
"""What a finding claims, for people."""


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


def is_filtered(address: Address) -> bool:
    """Whether the address leaves anything out."""
    return any(address.every(name) for name in (*FIELDS, *ALSO))


def fitting(address: Address, found: Sequence[Recommendation], known: Known) -> list[Recommendation]:
    """Those that every filter of the address lets through; values of one filter are alternatives."""
    tests: list[Callable[[Recommendation], bool]] = []
    for name, values_of in _readers(known).items():
        asked = set(address.every(name))
        if asked:
            tests.append(lambda rec, asked=asked, read=values_of: bool(asked & read(rec)))  # type: ignore[misc]
    words = " ".join(address.every("q")).casefold().split()
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


def bar_of(address: Address, found: Sequence[Recommendation], known: Known) -> FilterBar:
    """The fields with what there is to choose among ``found``."""
    rules: set[str] = set()
    hosts: set[str] = set()
    models: set[str] = set()
    kinds: set[str] = set()
    grades: set[Grade] = set()
    efforts: set[Effort] = set()
    for rec in found:
        rules.add(rec.finding.rule_id)
        hosts |= known.hosts(rec.finding)
        models |= known.models(rec.finding)
        kinds |= saves(rec.finding)
        grades.add(rec.finding.grade)
        efforts.add(rec.finding.effort)
    return filter_bar(
        address,
        {
            "rule": sorted(rules),
            "host": sorted(hosts),
            "owner": tuple(known.teams),
            "model": sorted(models),
            "saves": [(key, text) for key, text in SAVES.items() if key in kinds],
            "grade": sorted(grade.value for grade in grades),
            "effort": [effort.value for effort in Effort if effort in efforts],
            "assignee": sorted(set(known.assignees.values())),
        },
        also=ALSO,
    )
