"""Tables that sort by their header: the order is in the address (``sort=-cost``), the server sorts."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from api.pages.view import Address
from core.errors import UsageError

Row = TypeVar("Row")
Key = Callable[[Row], Any]


@dataclass(frozen=True, slots=True)
class SortLink:
    """A sortable header: its text, the address that sorts by it, and how the table is sorted by it now (``aria-sort``)."""

    name: str
    href: str
    order: str = "none"

    @property
    def arrow(self) -> str:
        """The sign beside the header that sorts now."""
        return {"ascending": "↑", "descending": "↓"}.get(self.order, "")


@dataclass(frozen=True, slots=True)
class Column:
    """A column: header, value to sort by (None sorts last either way), and whether the first click sorts downwards."""

    name: str
    key: Callable[[Any], Any]
    down: bool = True


def sort_rows(
    address: Address,
    rows: Iterable[Row],
    columns: Mapping[str, Column],
    default: str,
    *,
    parameter: str = "sort",
) -> tuple[list[Row], dict[str, SortLink]]:
    """Rows in the order that the address asks for, and the headers' links.

    Args:
        columns: by their key in the address. default: as in the address: ``-cost``, ``name``.
        parameter: of the address; a page with two tables has two.

    Raises:
        UsageError: a column that does not exist.
    """
    chosen = address.get(parameter) or default
    name, down = chosen.removeprefix("-"), chosen.startswith("-")
    if name not in columns:
        raise UsageError(
            f"{parameter} is {chosen!r}: use one of {', '.join(columns)}, with - before it for downwards"
        )
    key = columns[name].key
    known: list[Row] = []
    unknown: list[Row] = []
    for row in rows:
        (unknown if key(row) is None else known).append(row)
    known.sort(key=key, reverse=down)
    links = {}
    for column, what in columns.items():
        order = ("descending" if down else "ascending") if column == name else "none"
        turned = not down if column == name else what.down
        asked = f"-{column}" if turned else column
        links[column] = SortLink(
            what.name, address.href(**{parameter: None if asked == default else asked}), order
        )
    return known + unknown, links
