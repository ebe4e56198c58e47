"""Long lists in pages: which rows are shown, and where the ones before and after them are."""

from dataclasses import dataclass
from typing import Final

from api.pages.view import Address

PARAMETER: Final = "page"


@dataclass(frozen=True, slots=True)
class Pager:
    """Rows ``first`` (from 0) to ``last`` (exclusive) of ``count``; addresses are empty where there is no such page."""

    first: int
    last: int
    count: int
    before: str = ""
    after: str = ""


def pager(address: Address, count: int, at_once: int) -> Pager:
    """The page that an address asks for; one that does not exist is the nearest that does."""
    asked = address.get(PARAMETER, "1")
    last_page = max(1, -(-count // at_once))
    number = min(max(int(asked), 1), last_page) if asked.isdecimal() and len(asked) < 7 else 1
    first = (number - 1) * at_once
    return Pager(
        first,
        min(first + at_once, count),
        count,
        address.href(page=None if number == 2 else str(number - 1)) if number > 1 else "",
        address.href(page=str(number + 1)) if number < last_page else "",
    )
