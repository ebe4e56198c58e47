"""Search: a page of what was found, and the same as a short list under the search box while somebody types."""

from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from api.links import PATHS
from api.pages.frame import Frame, build_frame
from api.pages.view import View, ViewDep
from api.resources.search import MOST_LETTERS, Hit, Hits, find
from api.templating import render

router = APIRouter(include_in_schema=False)

ON_PAGE: Final = 25
AS_YOU_TYPE: Final = 4
"""Of a kind, under the search box."""
LEAST_LETTERS: Final = 2
"""One letter names everything."""


@dataclass(frozen=True, slots=True)
class Found:
    """One thing with its page."""

    name: str
    note: str
    href: str


@dataclass(frozen=True, slots=True)
class FoundGroup:
    """Things of one kind; ``more`` says that there are others."""

    title: str
    found: tuple[Found, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class SearchPage:
    """What was looked for and found; ``asked`` empty: nothing was asked yet."""

    frame: Frame
    asked: str
    groups: tuple[FoundGroup, ...]

    @property
    def count(self) -> int:
        """Things on the page."""
        return sum(len(group.found) for group in self.groups)


def groups_of(found: list[Hits]) -> tuple[FoundGroup, ...]:
    """Results with their addresses; pure."""

    def one(kind: str, hit: Hit) -> Found:
        return Found(hit.name, hit.note, PATHS[kind](hit.key))

    return tuple(
        FoundGroup(group.title, tuple(one(group.kind, hit) for hit in group.hits), group.more)
        for group in found
    )


def build_search(view: View, asked: str) -> SearchPage:
    """The page of one search."""
    frame = build_frame(view, active="", title=f"Search: {asked[:60]}" if asked else "Search", window_text="")
    found = find(view.scope.session, asked, ON_PAGE) if len(asked) >= LEAST_LETTERS else []
    return SearchPage(frame, asked, groups_of(found))


Asked = Annotated[str, Query(description="Parts of names.")]


@router.get("/search", response_class=HTMLResponse)
def search_page(view: ViewDep, q: Asked = "") -> str:
    """What was found, as HTML; a longer text is cut."""
    return render("pages/search.html", build_search(view, q.strip()[:MOST_LETTERS]))


@router.get("/search/quick", response_class=HTMLResponse)
def quick(view: ViewDep, q: Asked = "") -> str:
    """The short list under the search box; empty for less than two letters."""
    asked = q.strip()[:MOST_LETTERS]
    found = find(view.scope.session, asked, AS_YOU_TYPE) if len(asked) >= LEAST_LETTERS else []
    return render("pages/search_quick.html", groups_of(found), asked=asked)
