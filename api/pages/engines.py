"""Engines: one row per LLM engine, its load against the batch that reaches half its rate, money and joules per token."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from api import formats
from api.charts_lines import meter
from api.deps import ScopeDep
from api.pages.frame import DEFAULT_PERIOD, OPEN, Frame, build_frame, period_links
from api.resources.engines import EngineRow, rows
from api.resources.scope import Scope
from api.templating import render
from store.queries import recommendations
from store.queries.recommendations import Recommendation

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class EngineLine:
    """One engine with its meter (running requests over the half-rate batch) and its advice."""

    row: EngineRow
    load: Markup
    load_text: str
    advice: tuple[Recommendation, ...]


@dataclass(frozen=True, slots=True)
class EnginesPage:
    """Everything the page prints."""

    frame: Frame
    headline: str
    engines: tuple[EngineLine, ...]


def load_text(row: EngineRow) -> str:
    """Running requests against the half-rate batch, in words."""
    if row.running_mean is None:
        return "never busy in this period"
    text = f"{formats.figure(row.running_mean, 1 if row.running_mean < 100 else 0)} running"
    if row.half_batch is None:
        return text
    return f"{text}, {formats.figure(row.half_batch)} reach half its rate"


def headline(found: Sequence[EngineRow]) -> str:
    """What the page shows, as a sentence."""
    if not found:
        return "No LLM engine has been seen."
    below = [
        row
        for row in found
        if row.running_mean is not None and row.half_batch is not None and row.running_mean < row.half_batch
    ]
    known = [row for row in found if row.running_mean is not None and row.half_batch is not None]
    if not known:
        return f"{len(found)} LLM engine{'s' if len(found) != 1 else ''}"
    return f"{len(below)} of {len(known)} engines run below half of their reachable rate"


def page_of(
    frame: Frame, found: Sequence[EngineRow], advice: Mapping[str, Sequence[Recommendation]]
) -> EnginesPage:
    """Lay out the engines; pure."""
    lines = tuple(
        EngineLine(
            row,
            meter(
                row.running_mean / (2 * row.half_batch)
                if row.running_mean is not None and row.half_batch
                else None,
                label=load_text(row),
                mark=0.5 if row.half_batch else None,
            ),
            load_text(row),
            tuple(advice.get(row.engine, ())),
        )
        for row in found
    )
    return EnginesPage(frame, headline(found), lines)


def build_engines(scope: Scope, since: str) -> EnginesPage:
    """The page over the scope's window."""
    advice: dict[str, list[Recommendation]] = {}
    for rec in recommendations.listing(scope.session, OPEN):
        if rec.finding.subject.kind == "engine":
            advice.setdefault(rec.finding.subject.id, []).append(rec)
    frame = build_frame(scope, active="engines", title="Engines", periods=period_links("/engines", since))
    return page_of(frame, rows(scope), advice)


@router.get("/engines", response_class=HTMLResponse)
def engines_page(scope: ScopeDep, since: str = DEFAULT_PERIOD) -> str:
    """The engines as HTML."""
    return render("pages/engines.html", build_engines(scope, since))
