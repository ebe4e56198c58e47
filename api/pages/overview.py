"""Overview: the sentence a manager can repeat, five tiles, what to do first, then the pictures."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from api import formats
from api.charts_bands import activity_band
from api.deps import ScopeDep
from api.overview_parts import (
    Tile,
    anchor,
    build_days,
    build_funnel,
    day_activities,
    days_title,
    headline,
    strip_columns,
    strip_window,
    tiles,
)
from api.pages.frame import DEFAULT_PERIOD, OPEN, Frame, build_frame, period_links
from api.rec_row import RecommendationRow, row_of, rows_of
from api.resources.overview import BEST, overview
from api.resources.overview_model import Day, FleetLine, Overview
from api.resources.scope import Scope
from api.templating import render
from api.words import ACTIVITY
from core.activity import Activity
from store.queries import recommendations
from store.queries.recommendations import Recommendation

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class HostLine:
    """One host in the fleet list.

    Attributes:
        name: for people. href: its place on the fleet page. strip: its GPUs over the last 24 hours of data.
        gpus: how many. cost_usd, idle_usd: of the window, None unpriced. advice: best advice on any of its GPUs.
    """

    name: str
    href: str
    strip: Markup
    gpus: int
    cost_usd: Decimal | None
    idle_usd: Decimal | None
    advice: RecommendationRow | None


@dataclass(frozen=True, slots=True)
class DayRow:
    """One day of the table under the chart: money by activity in the chart's order; None where nothing is known.

    ``unseen_usd`` is the part of unknown, and of the spend, that no sample vouches for.
    """

    day: str
    spend_usd: Decimal | None
    by_activity: tuple[Decimal | None, ...]
    unseen_usd: Decimal | None


@dataclass(frozen=True, slots=True)
class OverviewPage:
    """Everything the page prints."""

    frame: Frame
    overview: Overview
    headline: str
    headline_idle: str
    tiles: tuple[Tile, ...]
    recommendations: tuple[RecommendationRow, ...]
    days_title: str
    days_note: str
    days_chart: Markup
    day_activities: tuple[Activity, ...]
    day_rows: tuple[DayRow, ...]
    in_hours: bool
    funnel_title: str
    funnel_chart: Markup
    funnel_note: str
    hosts: tuple[HostLine, ...]
    strip_activities: tuple[Activity, ...]
    strip_text: str


def host_lines(view: Overview) -> tuple[HostLine, ...]:
    """The fleet by host: its strip, its idle money, its best advice; most idle money first."""
    by_host: dict[str, list[FleetLine]] = {}
    for line in view.fleet:
        by_host.setdefault(line.host or "", []).append(line)
    window = strip_window(view)
    found = []
    for host, lines in by_host.items():
        name = host or "host unknown"
        advice = next((rec for rec in view.recommendations for line in lines if _touches(line, rec.id)), None)
        advice = advice or next((line.advice for line in lines if line.advice is not None), None)
        found.append(
            HostLine(
                name=name,
                href=f"/fleet#{anchor(name)}",
                strip=activity_band(
                    strip_columns(lines, window), window=window, label=f"{name}, last 24 hours", height=16
                ),
                gpus=len(lines),
                cost_usd=_sum(line.cost_usd for line in lines),
                idle_usd=_sum(line.idle_usd for line in lines),
                advice=row_of(str(advice.id), advice.finding) if advice else None,
            )
        )
    return tuple(sorted(found, key=lambda line: (-(line.idle_usd or Decimal(0)), line.name)))


def _touches(line: FleetLine, recommendation_id: int) -> bool:
    return line.advice is not None and line.advice.id == recommendation_id


def _sum(values: object) -> Decimal | None:
    known = [value for value in values if value is not None]  # type: ignore[attr-defined]
    return sum(known, Decimal(0)) if known else None


def page_of(view: Overview, frame: Frame, found: Sequence[Recommendation] | None = None) -> OverviewPage:
    """Lay out an overview; pure. ``found``: all open recommendations; default: the overview's best."""
    host_of = {line.gpu_uuid: line.host for line in view.fleet}
    chart, in_hours = build_days(view)
    first, second = headline(view)
    funnel_title, funnel_chart, funnel_note = build_funnel(view)
    shown = day_activities(view)
    window = strip_window(view)
    in_strips = {a for line in view.fleet for a in line.strip}
    return OverviewPage(
        frame=frame,
        overview=view,
        headline=first,
        headline_idle=second,
        tiles=tiles(view),
        recommendations=rows_of(view.recommendations if found is None else found, host_of, most=BEST),
        days_title=days_title(view),
        days_note="GPU-hours per day by activity" if in_hours else "cost per day by activity, US dollars",
        days_chart=chart,
        day_activities=shown,
        day_rows=tuple(_day_row(day, shown) for day in view.days),
        in_hours=in_hours,
        funnel_title=funnel_title,
        funnel_chart=funnel_chart,
        funnel_note=funnel_note,
        hosts=host_lines(view),
        strip_activities=tuple(a for a in ACTIVITY if a in in_strips),
        strip_text=f"{formats.minute(window.from_ms)} – {formats.minute(window.to_ms)} UTC",
    )


def _day_row(day: Day, activities: Sequence[Activity]) -> DayRow:
    seen = bool(day.cost_by_activity)
    return DayRow(
        day=formats.day_year(day.from_ms),
        spend_usd=day.spend_usd if seen else None,
        by_activity=tuple(day.cost_by_activity.get(a, Decimal(0)) if seen else None for a in activities),
        unseen_usd=day.unseen_usd,
    )


def build_overview(scope: Scope, since: str = DEFAULT_PERIOD) -> OverviewPage:
    """The page over the scope's window."""
    view = overview(scope)
    frame = build_frame(
        scope,
        active="overview",
        title="Overview",
        periods=period_links("/", since),
        coverage_ratio=view.coverage_ratio,
    )
    return page_of(view, frame, recommendations.listing(scope.session, OPEN))


@router.get("/", response_class=HTMLResponse)
def overview_page(scope: ScopeDep, since: str = DEFAULT_PERIOD) -> str:
    """The overview as HTML."""
    return render("pages/overview.html", build_overview(scope, since))
