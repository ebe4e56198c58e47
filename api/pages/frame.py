"""What stands around every page: navigation, search, freshness, share of samples received, period, the simulated banner."""

from dataclasses import dataclass
from typing import Final

from api import formats
from api.pages.period import PeriodBar
from api.pages.view import Address, View
from api.resources.ledger_anew import anew
from api.words import NOTICE
from core.evidence import Window
from core.finding import Status
from core.units import HOUR_MS, MINUTE_MS
from ledger.calendar import Calendar
from store.queries import meta
from store.queries.fleet_state import coverage_ratio as coverage_of
from store.queries.fleet_state import fleet_state, recommendation_count

FRESH_MS: Final = 3 * MINUTE_MS
"""A live agent stores every 10 s; three minutes without a sample is no longer live."""

LATELY_MS: Final = 3 * HOUR_MS
"""Share of samples received where a page has none of its own: of the last hours, whose rows are few."""

NAV: Final = (
    ("overview", "/", "Overview"),
    ("fleet", "/fleet", "Fleet"),
    ("engines", "/engines", "Engines"),
    ("workloads", "/workloads", "Workloads"),
    ("recommendations", "/recommendations", "Recommendations"),
    ("costs", "/costs", "Costs"),
    ("energy", "/energy", "Energy"),
    ("budgets", "/budgets", "Budgets"),
    ("plan", "/plan/rent-or-buy", "Plan"),
    ("report", "/report", "Report"),
)
TOOLS: Final = (("settings", "/settings", "Settings"), ("system", "/system", "System"))
WINDOWED: Final = frozenset({"overview", "fleet", "engines", "workloads", "costs", "energy"})
"""Pages over a period: links between them keep it."""
OPEN: Final = (Status.OPEN, Status.REOPENED, Status.CLAIMED)
"""Statuses that wait for somebody; ``claimed`` still does."""


@dataclass(frozen=True, slots=True)
class NavItem:
    """One link of the main navigation; ``count`` is drawn as a pill when it is not 0."""

    name: str
    href: str
    current: bool
    count: int = 0


@dataclass(frozen=True, slots=True)
class Frame:
    """Everything around the content.

    Attributes:
        title: of the browser's tab. nav: the pages. tools: those for who looks after gpuwise.
        periods: periods to choose from; None: the page has none.
        newest_ms: end of the newest sample; None: nothing stored. stale: nothing came for ``FRESH_MS``.
        coverage_ratio: covered over known GPU time; ``coverage_text`` says over which time.
        window_text: the window for people. days_zone: where days of money begin; charts over time are in UTC.
        days_begin_late: midnight there falls into an hour of UTC, which belongs to the day before.
        search: what was searched for. notice: a sentence about what the reader just did.
        anew: the ledger is priced anew, and how far that is; empty: figures are as of now.
    """

    title: str
    nav: tuple[NavItem, ...]
    tools: tuple[NavItem, ...]
    periods: PeriodBar | None
    simulated: bool
    newest_ms: int | None
    now_ms: int
    coverage_ratio: float | None
    coverage_text: str
    hosts: int
    gpus: int
    window_text: str
    days_zone: str = "UTC"
    days_begin_late: bool = False
    search: str = ""
    notice: str = ""
    anew: str = ""

    @property
    def stale(self) -> bool:
        """No live data."""
        return self.newest_ms is not None and self.now_ms - self.newest_ms > FRESH_MS

    @property
    def here(self) -> str:
        """Name of the part of gpuwise that this page belongs to."""
        return next((item.name for item in (*self.nav, *self.tools) if item.current), "Menu")


def nav(active: str, open_count: int, address: Address | None = None) -> tuple[NavItem, ...]:
    """The main navigation with the number of open recommendations; pages over a period keep the address's."""

    def href(key: str, path: str) -> str:
        keeps = address is not None and active in WINDOWED and key in WINDOWED
        return address.link(path) if address is not None and keeps else path

    return tuple(
        NavItem(name, href(key, path), key == active, open_count if key == "recommendations" else 0)
        for key, path, name in NAV
    )


def tools(active: str) -> tuple[NavItem, ...]:
    """The second navigation: for who looks after gpuwise."""
    return tuple(NavItem(name, path, key == active) for key, path, name in TOOLS)


def window_words(window: Window, zone: str) -> str:
    """A window for people: its accounting days when it is days long, UTC minutes otherwise."""
    if window.to_ms - window.from_ms < formats.SPAN_OF_DAYS_MS:
        return formats.span(window.from_ms, window.to_ms)
    calendar = Calendar(zone)
    # As days of the calendar, whatever hour of UTC they begin at.
    first, last = calendar.date_ms(window.from_ms), calendar.date_ms(window.to_ms - 1)
    return f"{formats.day(first)} – {formats.day_year(last)}"


def build_frame(
    view: View,
    *,
    active: str,
    title: str,
    periods: PeriodBar | None = None,
    window_text: str | None = None,
    coverage_ratio: float | None = None,
    coverage_text: str = "",
) -> Frame:
    """Read the frame of a page.

    Args:
        active: key of ``NAV`` or ``TOOLS``.
        periods: ``period_bar(view)`` for a page over a period.
        window_text: the page's own, empty for none; None: the window of the view.
        coverage_ratio: the page's own; None: that of the last hours of data, said so.
    """
    scope = view.scope
    zone = scope.settings.accounting_time_zone
    state = fleet_state(scope.session)
    if coverage_ratio is None and state.newest_ms is not None:
        coverage_ratio = coverage_of(scope.session, Window(state.newest_ms - LATELY_MS, state.newest_ms))
        coverage_text = " in the last 3 h of data"
    return Frame(
        title=title,
        nav=nav(active, recommendation_count(scope.session, OPEN), view.address),
        tools=tools(active),
        periods=periods,
        simulated=scope.settings.simulated or meta.simulated(scope.session),
        newest_ms=state.newest_ms,
        now_ms=scope.now_ms,
        coverage_ratio=coverage_ratio,
        coverage_text=coverage_text,
        hosts=state.hosts,
        gpus=state.gpus,
        window_text=window_words(scope.window, zone) if window_text is None else window_text,
        days_zone=zone,
        days_begin_late=Calendar(zone).begins_within_an_hour(scope.now_ms),
        search=view.address.get("q") if view.address.path == "/search" else "",
        notice=NOTICE.get(view.address.get("said"), ""),
        anew=str(anew(scope.session, scope.settings, scope.now_ms) or ""),
    )
