"""Overview: the sentence a manager can repeat, six tiles, where the hours and the money went, what to do first, the fleet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from api import formats
from api.charts_bands import activity_band
from api.links import host_path
from api.overview_parts import (
    Tile,
    WasteLine,
    build_days,
    build_funnel,
    day_activities,
    days_title,
    headline,
    host_columns,
    tiles,
    waste_lines,
    waste_title,
)
from api.pages.frame import Frame, build_frame
from api.pages.period import period_bar
from api.pages.view import Address, View, ViewDep
from api.rec_row import RecommendationRow, row_of, rows_of
from api.resources.overview import BEST, HOSTS_SHOWN, overview, strip_window
from api.resources.overview_model import Day, HostLine, Overview
from api.templating import render
from api.words import ACTIVITY
from core.activity import Activity
from core.evidence import Window
from store.queries import recommendations
from store.queries.gpu_hosts import hosts_of_gpus

router = APIRouter(include_in_schema=False)
HERE = Address("/")


@dataclass(frozen=True, slots=True)
class HostRow:
    """One host in the fleet list: its name, page, GPUs over the last 24 hours of data, money, the best advice on any of them."""

    name: str
    href: str
    strip: Markup
    line: HostLine


@dataclass(frozen=True, slots=True)
class DayRow:
    """One day of the table under the chart: money by activity in the chart's order; None where nothing is known.

    ``unseen_usd`` is the part of unknown, and of the spend, that no sample vouches for. ``href`` are the day's costs.
    """

    day: str
    href: str
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
    funnel_title: str
    funnel_chart: Markup
    funnel_note: str
    waste_title: str
    waste: tuple[WasteLine, ...]
    recommendations: tuple[RecommendationRow, ...]
    days_title: str
    days_note: str
    days_chart: Markup
    day_activities: tuple[Activity, ...]
    day_rows: tuple[DayRow, ...]
    hosts: tuple[HostRow, ...]
    hosts_left_out: int
    strip_activities: tuple[Activity, ...]
    strip_text: str
    fleet_href: str


def host_rows(lines: Sequence[HostLine], window: Window, address: Address) -> tuple[HostRow, ...]:
    """Hosts as the table shows them."""
    rows = []
    for line in lines:
        name = line.host or "host unknown"
        href = address.link(host_path(line.host) if line.host else "/fleet")
        band = activity_band(
            host_columns(line, window), window=window, label=f"{name}, last 24 hours", height=16
        )
        rows.append(HostRow(name, href, band, line))
    return tuple(rows)


def best_rows(
    found: Sequence[RecommendationRow], full: Mapping[str, RecommendationRow]
) -> tuple[RecommendationRow, ...]:
    """Rows with the small charts of their first findings, which lists of many leave out."""
    return tuple(replace(row, spark=full[row.id].spark) if row.id in full else row for row in found)


def page_of(
    view: Overview,
    frame: Frame,
    rows: Sequence[RecommendationRow] = (),
    address: Address = HERE,
) -> OverviewPage:
    """Lay out an overview; pure. ``rows``: what to do first."""
    chart, in_hours = build_days(view)
    first, second = headline(view)
    funnel_title, funnel_chart, funnel_note = build_funnel(view)
    shown = day_activities(view)
    window = strip_window(view.window)
    drawn = view.hosts[:HOSTS_SHOWN]
    in_strips = {activity for line in drawn for hour in line.hours for activity in hour}
    return OverviewPage(
        frame=frame,
        overview=view,
        headline=first,
        headline_idle=second,
        tiles=tuple(
            replace(tile, href=address.link(tile.href)) if tile.href else tile for tile in tiles(view)
        ),
        funnel_title=funnel_title,
        funnel_chart=funnel_chart,
        funnel_note=funnel_note,
        waste_title=waste_title(view),
        waste=waste_lines(view),
        recommendations=tuple(rows),
        days_title=days_title(view),
        days_note="GPU-hours per day by activity" if in_hours else "cost per day by activity, US dollars",
        days_chart=chart,
        day_activities=shown,
        day_rows=tuple(_day_row(day, shown) for day in view.days),
        hosts=host_rows(drawn, window, address),
        hosts_left_out=len(view.hosts) - len(drawn),
        strip_activities=tuple(a for a in ACTIVITY if a in in_strips),
        strip_text=f"{formats.minute(window.from_ms)} – {formats.minute(window.to_ms)} UTC",
        fleet_href=address.link("/fleet"),
    )


def _day_row(day: Day, activities: Sequence[Activity]) -> DayRow:
    seen = bool(day.cost_by_activity)
    return DayRow(
        day=formats.day_year(day.from_ms),
        href=f"/costs?since={day.day}&through={day.day}",
        spend_usd=day.spend_usd if seen else None,
        by_activity=tuple(day.cost_by_activity.get(a, Decimal(0)) if seen else None for a in activities),
        unseen_usd=day.unseen_usd,
    )


def build_overview(view: View) -> OverviewPage:
    """The page over the view's window."""
    scope = view.scope
    found = overview(scope)
    frame = build_frame(
        view,
        active="overview",
        title="Overview",
        periods=period_bar(view),
        coverage_ratio=found.coverage_ratio,
    )
    rows = rows_of(found.recommendations, hosts_of_gpus(scope.session), most=BEST)
    whole = recommendations.several(scope.session, [int(row.id) for row in rows])
    full = {str(one.id): row_of(str(one.id), one.finding) for one in whole}
    return page_of(found, frame, best_rows(rows, full), view.address)


@router.get("/", response_class=HTMLResponse)
def overview_page(view: ViewDep) -> str:
    """The overview as HTML."""
    return render("pages/overview.html", build_overview(view))
