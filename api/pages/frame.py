"""What stands around every page: navigation, freshness, share of samples received, period, the simulated banner."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from api import formats
from api.resources.scope import Scope
from core.evidence import Window
from core.finding import Status
from core.units import DAY_MS, MINUTE_MS
from store.queries import fleet, hours, meta, recommendations

FRESH_MS: Final = 3 * MINUTE_MS
"""A live agent stores every 10 s; three minutes without a sample is no longer live."""

NAV: Final = (
    ("overview", "/", "Overview"),
    ("fleet", "/fleet", "Fleet"),
    ("engines", "/engines", "Engines"),
    ("recommendations", "/recommendations", "Recommendations"),
    ("costs", "/costs", "Costs"),
    ("report", "/report", "Weekly report"),
)
PERIODS: Final = (("24h", "24 h"), ("7d", "7 days"), ("30d", "30 days"), ("90d", "90 days"))
DEFAULT_PERIOD: Final = "30d"
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
class PeriodLink:
    """One period to look at."""

    name: str
    href: str
    current: bool


@dataclass(frozen=True, slots=True)
class Frame:
    """Everything around the content.

    Attributes:
        title: of the browser's tab.
        newest_ms: end of the newest sample; None: nothing stored. stale: nothing came for ``FRESH_MS``.
        coverage_ratio: covered over known GPU time; ``coverage_text`` says over which time.
        window_text: the window for people. days_zone: where days of money begin; charts over time are in UTC.
    """

    title: str
    nav: tuple[NavItem, ...]
    periods: tuple[PeriodLink, ...]
    simulated: bool
    newest_ms: int | None
    now_ms: int
    coverage_ratio: float | None
    coverage_text: str
    hosts: int
    gpus: int
    window_text: str
    days_zone: str = "UTC"

    @property
    def stale(self) -> bool:
        """No live data."""
        return self.newest_ms is not None and self.now_ms - self.newest_ms > FRESH_MS


def nav(active: str, open_count: int) -> tuple[NavItem, ...]:
    """The main navigation with the number of open recommendations."""
    return tuple(
        NavItem(name, href, key == active, open_count if key == "recommendations" else 0)
        for key, href, name in NAV
    )


def period_links(
    path: str,
    chosen: str,
    *,
    keep: Mapping[str, str] | None = None,
    periods: tuple[tuple[str, str], ...] = PERIODS,
) -> tuple[PeriodLink, ...]:
    """Links to the same page over other periods; ``keep`` are parameters that stay."""
    return tuple(
        PeriodLink(name, f"{path}?{urlencode({**(keep or {}), 'since': key})}", key == chosen)
        for key, name in periods
    )


def build_frame(
    scope: Scope,
    *,
    active: str,
    title: str,
    periods: tuple[PeriodLink, ...] = (),
    window_text: str | None = None,
    coverage_ratio: float | None = None,
    coverage_text: str = "",
) -> Frame:
    """Read the frame of a page.

    Args:
        coverage_ratio: the page's own; None: that of the last 24 hours of data, said so.
        window_text: the page's own, empty for none; None: the scope's window.
    """
    gpus = fleet.gpus(scope.session)
    newest = max((gpu.last_seen_ms for gpu in gpus if gpu.last_seen_ms is not None), default=None)
    if coverage_ratio is None and newest is not None:
        coverage_ratio = _coverage(scope, Window(newest - DAY_MS, newest))
        coverage_text = " in the last 24 h of data"
    open_count = len(recommendations.listing(scope.session, OPEN))
    return Frame(
        title=title,
        nav=nav(active, open_count),
        periods=periods,
        simulated=scope.settings.simulated or meta.simulated(scope.session),
        newest_ms=newest,
        now_ms=scope.now_ms,
        coverage_ratio=coverage_ratio,
        coverage_text=coverage_text,
        hosts=len({gpu.identity.host for gpu in gpus if gpu.identity.host}),
        gpus=sum(not gpu.identity.is_slice for gpu in gpus),
        window_text=formats.span(scope.window.from_ms, scope.window.to_ms)
        if window_text is None
        else window_text,
        days_zone=scope.settings.accounting_time_zone,
    )


def _coverage(scope: Scope, window: Window) -> float | None:
    """Covered over known GPU time: a GPU is known from its first to its last sample."""
    covered = sum(hour.covered_s for hour in hours.gpu_hours(scope.session, window))
    known = 0.0
    for gpu in fleet.gpus(scope.session):
        if gpu.first_seen_ms is not None and gpu.last_seen_ms is not None:
            start = max(gpu.first_seen_ms, window.from_ms - window.from_ms % 3_600_000)
            known += max(0, min(gpu.last_seen_ms, window.to_ms) - start) / 1000
    return min(1.0, covered / known) if known > 0 else None
