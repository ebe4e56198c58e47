"""Engines: one row per LLM engine, its load against the batch that reaches half its rate, money and joules per token."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from api import formats
from api.charts_lines import meter
from api.links import engine_path
from api.pages import engine_list
from api.pages.filters import FilterBar, filter_bar
from api.pages.frame import OPEN, Frame, build_frame
from api.pages.pager import Pager, pager
from api.pages.period import period_bar
from api.pages.sorting import SortLink, sort_rows
from api.pages.view import Address, View, ViewDep
from api.ranking import rank
from api.resources.engines import EngineRow, with_servings
from api.resources.pricing import price_lookup
from api.templating import render
from store.queries import fleet
from store.queries.advice_heads import AdviceHead, advice_heads

router = APIRouter(include_in_schema=False)
AT_ONCE: Final = 10
"""Rows of a page: what is told of an engine costs some milliseconds of its hours each."""


@dataclass(frozen=True, slots=True)
class EngineLine:
    """One engine with its meter (running requests over the half-rate batch) and its advice."""

    row: EngineRow
    href: str
    load: Markup
    load_text: str
    advice: tuple[AdviceHead, ...]

    @property
    def j_per_token(self) -> float | None:
        """Joules per generated token while busy."""
        return None if not self.row.tokens_per_j else 1 / self.row.tokens_per_j


@dataclass(frozen=True, slots=True)
class EnginesPage:
    """Everything the page prints. ``seen``: engines of the window before any filter."""

    frame: Frame
    headline: str
    engines: tuple[EngineLine, ...]
    seen: int
    sort: Mapping[str, SortLink]
    filters: FilterBar
    pager: Pager


def engine_href(address: Address, engine: str) -> str:
    """Address of an engine's page over the same period."""
    return address.link(engine_path(engine))


def load_text(row: EngineRow) -> str:
    """Running requests against the half-rate batch, in words."""
    if row.running_mean is None:
        return "never busy in this period"
    text = f"{formats.figure(row.running_mean, 1 if row.running_mean < 100 else 0)} running"
    if row.running_p95 is not None:
        text += f" (p95 {formats.figure(row.running_p95)})"
    if row.half_batch is None:
        return text
    return f"{text}, {formats.figure(row.half_batch)} reach half its rate"


def load_of(row: EngineRow) -> Markup:
    """The meter of an engine's load: its middle is the batch at half of the reachable rate."""
    return meter(
        row.running_mean / (2 * row.half_batch) if row.running_mean is not None and row.half_batch else None,
        label=load_text(row),
        mark=0.5 if row.half_batch else None,
    )


def headline(found: Sequence[EngineRow], of: int) -> str:
    """What the page shows, as a sentence; ``of``: engines that fit, on other pages too."""
    if not of:
        return "No LLM engine here"
    known = [row for row in found if row.running_mean is not None and row.half_batch is not None]
    below = [row for row in known if (row.running_mean or 0.0) < (row.half_batch or 0.0)]
    if not known:
        return f"{formats.figure(of)} LLM engine{'s' if of != 1 else ''}"
    where = "engines run" if len(found) == of else "engines on this page run"
    return f"{len(below)} of {len(known)} {where} below half of their reachable rate"


def page_of(  # noqa: PLR0917 - the parts of a page
    frame: Frame,
    found: Sequence[EngineRow],
    advice: Mapping[str, Sequence[AdviceHead]],
    address: Address,
    pages: Pager,
    sort: Mapping[str, SortLink],
    choices: Mapping[str, Sequence[str]],
    seen: int,
) -> EnginesPage:
    """Lay out the engines of one page; pure."""
    return EnginesPage(
        frame=frame,
        headline=headline(found, pages.count),
        engines=tuple(
            EngineLine(
                row,
                engine_href(address, row.engine),
                load_of(row),
                load_text(row),
                tuple(advice.get(row.engine, ())),
            )
            for row in found
        ),
        seen=seen,
        sort=sort,
        filters=filter_bar(address, choices),
        pager=pages,
    )


def build_engines(view: View) -> EnginesPage:
    """The page over the scope's window."""
    scope, address = view.scope, view.address
    prices, known = price_lookup(scope.session, scope.settings), fleet.engines(scope.session)
    everything = engine_list.candidates(scope, prices, known)
    listed, sort = sort_rows(
        address, engine_list.fitting(scope, address, everything), engine_list.COLUMNS, "engine"
    )
    pages = pager(address, len(listed), AT_ONCE)
    names = [one.name for one in listed[pages.first : pages.last]]
    read = with_servings(scope, names, prices=prices, known=known) if names else []
    by_name = {row.engine: row for row, _ in read}
    advice: dict[str, list[AdviceHead]] = {}
    for head in sorted(advice_heads(scope.session, OPEN, "engine"), key=lambda one: rank(one.finding)):
        advice.setdefault(head.finding.subject.id, []).append(head)
    frame = build_frame(view, active="engines", title="Engines", periods=period_bar(view))
    found = [by_name[name] for name in names if name in by_name]
    choices = engine_list.choices_of(scope, everything)
    return page_of(frame, found, advice, address, pages, sort, choices, len(everything))


@router.get("/engines", response_class=HTMLResponse)
def engines_page(view: ViewDep) -> str:
    """The engines as HTML."""
    return render("pages/engines.html", build_engines(view))
