"""Filters of a page: what the address asks for, what there is to choose, and a link that takes each one away again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from api.pages.view import Address
from api.resources.report_filters import Filters

TITLES: Final = {
    "owner": "Team",
    "project": "Project",
    "user": "User",
    "namespace": "Namespace",
    "host": "Host",
    "model": "GPU model",
    "gpu": "GPU",
    "workload": "Workload",
    "engine": "Engine",
    "activity": "Activity",
    "label": "Label",
    "rule": "Rule",
    "kind": "Kind",
    "grade": "Grade",
    "effort": "Effort",
    "saves": "Saves",
    "assignee": "Who has it",
    "name": "Job",
    "serves": "Model",
    "q": "With the words",
}
"""Names for people of what a page can be filtered by; the key is the parameter."""
OF_REPORTS: Final = ("gpu", "host", "model", "owner", "namespace", "workload")
"""Filters that every report of the ledger takes."""
OF_WORKLOADS: Final = (*OF_REPORTS, "user", "project", "kind", "name", "q")
"""The same with those of pages about workloads."""


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter in force, and the address without it."""

    name: str
    value: str
    href: str


@dataclass(frozen=True, slots=True)
class Field:
    """One filter: its parameter, its name for people, values to choose from, the one in force."""

    parameter: str
    name: str
    values: tuple[tuple[str, str], ...]
    chosen: str = ""


@dataclass(frozen=True, slots=True)
class FilterBar:
    """All filters of a page.

    Attributes:
        action, hidden: where the form goes and what it sends along. clear: the address without any filter.
    """

    action: str
    hidden: tuple[tuple[str, str], ...]
    fields: tuple[Field, ...]
    chips: tuple[Chip, ...]
    clear: str


def filter_bar(
    address: Address, choices: Mapping[str, Sequence[str | tuple[str, str]]], *, also: Sequence[str] = ()
) -> FilterBar:
    """The bar over some filters.

    Args:
        choices: parameter → values, each a text or (value, text for people); none to choose from: no field.
        also: filters that have no field but may be in the address (a drill-down's), shown as chips.
    """
    names = (*choices, *also)
    fields = []
    for parameter, values in choices.items():
        pairs = tuple((one, one) if isinstance(one, str) else one for one in values)
        chosen = next(iter(address.every(parameter)), "")
        if pairs or chosen:
            fields.append(Field(parameter, TITLES.get(parameter, parameter), pairs, chosen))
    words = {(field.parameter, value): text for field in fields for value, text in field.values}
    chips = tuple(
        Chip(
            TITLES.get(name, name),
            words.get((name, value), value),
            address.href(**{name: tuple(v for v in address.every(name) if v != value), "page": None}),
        )
        for name in names
        for value in address.every(name)
    )
    return FilterBar(
        action=address.path,
        hidden=address.hidden(*choices, "page"),
        fields=tuple(fields),
        chips=chips,
        clear=address.without(*names, "page"),
    )


def report_filters(address: Address, names: Sequence[str] = OF_REPORTS) -> Filters:
    """The filters of the address that a report of the ledger takes."""
    return Filters(**{name: address.every(name) for name in names})
