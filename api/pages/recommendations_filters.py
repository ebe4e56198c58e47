"""Fields of the list's filters: what the address asks for, and what there is to choose from."""

from collections.abc import Sequence
from typing import Final

from api.pages.filters import FilterBar, filter_bar
from api.pages.view import Address
from api.resources.recommendation_filters import ALSO, FIELDS, Asked, Known, saves
from core.finding import Effort, Grade
from store.queries.recommendations import Recommendation

SAVES: Final = {
    "cash": "cash",
    "capacity": "GPU-hours",
    "energy": "energy",
    "none": "no figure",
}
"""What a finding claims, for people."""


def asked_of(address: Address) -> Asked:
    """Values of the address's filters; empty: it leaves nothing out."""
    given = {name: address.every(name) for name in (*FIELDS, *ALSO)}
    return {name: values for name, values in given.items() if values}


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
