"""The weekly report: the last seven full days of data against the seven before, as page, file, mail and text."""

import html
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import css_inline
from markupsafe import Markup
from sqlalchemy.orm import Session

from api import formats
from api.charts_png import colour_of, to_png, tokens
from api.overview_parts import Tile, build_days, build_funnel, day_activities, days_title, headline, tiles
from api.rec_row import RecommendationRow, rows_of
from api.resources.overview import WAITING, overview
from api.resources.overview_model import Overview
from api.resources.scope import Scope
from api.templating import environment
from api.words import activity_class
from core.activity import Activity
from core.clock import from_ms
from core.evidence import Window
from core.settings import Settings
from core.units import DAY_MS, HOUR_MS
from store.queries import recommendations
from store.queries.hours import bounds
from store.queries.recommendations import Recommendation

DAYS = 7
CHART_PX = 560
BEST = 3


@dataclass(frozen=True, slots=True)
class ReportChart:
    """One chart: its key in the mail, the sentence that titles it, the SVG, and the words for who does not see it."""

    key: str
    title: str
    svg: Markup
    alt: str
    note: str
    height_px: int


@dataclass(frozen=True, slots=True)
class HostIdle:
    """One host's cost and idle money of the week."""

    host: str
    gpus: int
    cost_usd: Decimal | None
    idle_usd: Decimal | None


@dataclass(frozen=True, slots=True)
class WeeklyReport:
    """One week of one fleet.

    Attributes:
        window: full UTC days; shorter when there are fewer, said in ``partial_note``.
        days: the window for people. period: key of the window; a report is mailed once per period.
        compared: how it stands against the seven days before; empty without them.
    """

    window: Window
    period: str
    days: str
    has_data: bool
    simulated: bool
    subject: str
    headline: str
    headline_idle: str
    compared: str
    partial_note: str
    tiles: tuple[Tile, ...]
    recommendations: tuple[RecommendationRow, ...]
    open_count: int
    charts: tuple[ReportChart, ...]
    activities: tuple[Activity, ...]
    hosts: tuple[HostIdle, ...]
    quality: str
    price_note: str
    carbon_note: str
    base_url: str
    overview: Overview


def report_window(data: Window) -> tuple[Window, str]:
    """The last seven full UTC days of data, and a note where there are fewer.

    Days end at the newest full one; data that hold no full day are taken as they are.
    """
    end = data.to_ms - data.to_ms % DAY_MS
    start = end - DAYS * DAY_MS
    if end - data.from_ms < DAY_MS - HOUR_MS:
        length = formats.duration((data.to_ms - data.from_ms) / 1000)
        return data, f"There is no full day of data yet: these are {length}."
    if data.from_ms - start >= HOUR_MS:
        first = data.from_ms - data.from_ms % HOUR_MS
        days = (end - first) / DAY_MS
        return Window(first, end), f"There are {days:.1f} days of data so far, not seven."
    return Window(start, end), ""


def weekly(session: Session, settings: Settings, now_ms: int) -> WeeklyReport:
    """The report as of the newest data."""
    data = bounds(session)
    window, note = (Window(now_ms - DAYS * DAY_MS, now_ms), "") if data is None else report_window(data)
    view = overview(Scope(session, settings, now_ms, window))
    return report_of(view, settings, note, recommendations.listing(session, WAITING))


def report_of(
    view: Overview,
    settings: Settings,
    partial_note: str = "",
    found: Sequence[Recommendation] | None = None,
) -> WeeklyReport:
    """Lay out an overview as a report; pure. ``found``: all open recommendations; default: the overview's best."""
    host_of = {line.gpu_uuid: line.host for line in view.fleet}
    first, second = headline(view)
    return WeeklyReport(
        window=view.window,
        period=_period(view.window),
        days=formats.days(view.window.from_ms, view.window.to_ms),
        has_data=view.has_data,
        simulated=view.simulated,
        subject=subject(view),
        headline=first,
        headline_idle=second,
        compared=compared(view),
        partial_note=partial_note,
        tiles=tiles(view),
        recommendations=rows_of(view.recommendations if found is None else found, host_of, most=BEST),
        open_count=view.open_count,
        charts=_charts(view),
        activities=day_activities(view),
        hosts=_hosts(view),
        quality=(
            f"{formats.percent(view.coverage_ratio)} of samples received from {view.gpu_count} GPUs on"
            f" {view.host_count} hosts"
        ),
        price_note=view.price_note,
        carbon_note=view.carbon_note,
        base_url=settings.base_url.rstrip("/"),
        overview=view,
    )


def _period(window: Window) -> str:
    return f"{_iso_day(window.from_ms)}/{_iso_day(window.to_ms - 1)}"


def _iso_day(ts_ms: int) -> str:
    return f"{from_ms(ts_ms):%Y-%m-%d}"


def subject(view: Overview) -> str:
    """The subject with its number."""
    when = formats.days(view.window.from_ms, view.window.to_ms)
    mark = "[simulated] " if view.simulated else ""
    if not view.has_data:
        return f"{mark}gpuwise: no samples, {when}"
    money = view.money
    if money.spend_usd is None:
        total = next((row.gpu_h for row in view.funnel if row.step == "total"), None)
        return f"{mark}gpuwise: {formats.gpu_hours(total)}, no price known, {when}".replace(formats.NBSP, " ")
    idle = f", {formats.money(money.idle_usd)} of it idle" if money.idle_usd is not None else ""
    return f"{mark}gpuwise: {formats.money(money.spend_usd)} spent{idle}, {when}".replace(formats.NBSP, " ")


def compared(view: Overview) -> str:
    """The week against the one before; empty when that one is not there in full."""
    before = view.previous
    if before is None or before.spend_usd is None or view.money.spend_usd is None:
        return ""
    text = f"Spend {formats.change(view.money.spend_usd, before.spend_usd)} on the {DAYS} days before ({formats.money(before.spend_usd)})"
    if before.idle_usd is not None and view.money.idle_usd is not None:
        change = formats.change(view.money.idle_usd, before.idle_usd)
        text += f"; idle {change} ({formats.money(before.idle_usd)})" if before.idle_usd else ""
    return text + "."


def _charts(view: Overview) -> tuple[ReportChart, ...]:
    days, in_hours = build_days(view, height=190)
    title, bars, note = build_funnel(view)
    unit = "GPU-hours per day by activity" if in_hours else "cost per day by activity, US dollars"
    return (
        ReportChart("days", days_title(view), days, _label(days), unit, 202),
        ReportChart("funnel", title, bars, _label(bars), note, 188),
    )


def _label(svg: str) -> str:
    """The chart's accessible name: what the picture says, for the mail's alt text."""
    start = svg.index('aria-label="') + len('aria-label="')
    return html.unescape(svg[start : svg.index('"', start)])


def _hosts(view: Overview, most: int = 8) -> tuple[HostIdle, ...]:
    by_host: dict[str, HostIdle] = {}
    for line in view.fleet:
        host = line.host or "host unknown"
        known = by_host.get(host, HostIdle(host, 0, None, None))
        by_host[host] = HostIdle(
            host, known.gpus + 1, _plus(known.cost_usd, line.cost_usd), _plus(known.idle_usd, line.idle_usd)
        )
    return tuple(sorted(by_host.values(), key=lambda row: (-(row.idle_usd or Decimal(0)), row.host))[:most])


def _plus(a: Decimal | None, b: Decimal | None) -> Decimal | None:
    return b if a is None else a if b is None else a + b


def pictures(report: WeeklyReport) -> dict[str, bytes]:
    """The report's charts as PNG by key."""
    return {chart.key: to_png(chart.svg, width=CHART_PX) for chart in report.charts}


def data_uris(images: dict[str, bytes]) -> dict[str, str]:
    """Pictures inside the file itself."""
    return {key: "data:image/png;base64," + b64encode(png).decode("ascii") for key, png in images.items()}


def render_html(report: WeeklyReport, sources: dict[str, str] | None = None) -> str:
    """The report as one HTML document with inlined CSS.

    Args:
        report: what to say.
        sources: where each chart's picture is (``cid:…``); default: inside the document.
    """
    where = data_uris(pictures(report)) if sources is None else sources
    keys = {activity: _key_style(activity) for activity in report.activities}
    document = environment().get_template("mail/weekly.html").render(report=report, sources=where, keys=keys)
    return css_inline.inline(document, load_remote_stylesheets=False)


def _key_style(activity: Activity) -> str:
    colour = colour_of(activity_class(activity))
    return f"background:{colour}" if colour else f"border:1px dashed {tokens()['faint']}"


def render_text(report: WeeklyReport) -> str:
    """The report as plain text; says everything the HTML says but the pictures."""
    text = environment().get_template("mail/weekly.txt").render(report=report)
    return text.replace(formats.NBSP, " ").strip() + "\n"
