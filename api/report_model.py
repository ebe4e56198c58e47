"""The weekly report as a value: everything that page, mail, text and JSON say of one week of one audience."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final
from urllib.parse import urlencode

from markupsafe import Markup

from api.links import owner_path
from api.overview_parts import Tile
from api.rec_row import RecommendationRow
from api.resources.overview_model import Overview
from core.activity import Activity
from core.clock import from_ms, iso
from core.evidence import Window
from core.ownership import Owner
from core.units import DAY_MS
from store.queries.report_told import Told

LONGEST_IN_LINKS: Final = 300
"""Letters of an owner's name; with a longer one links would make up most of a mail, and pages would not take it."""


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
class BudgetLine:
    """How one month goes, against a budget or without one.

    Attributes:
        name: the budget's, or whose spend it is. text: spent, amount, what is expected.
        state: in words; empty: on track, or no budget. is_bad: over, or likely to be.
        spent_percent, expected_percent: of the amount, 0–100, for the bar; None: no bar.
    """

    name: str
    text: str
    state: str = ""
    is_bad: bool = False
    spent_percent: int | None = None
    expected_percent: int | None = None


@dataclass(frozen=True, slots=True)
class DoneLine:
    """Something that was decided or proven in the week: what became of it, what it was, and the figures."""

    step: str
    title: str
    href: str
    figures: str = ""


@dataclass(frozen=True, slots=True)
class WeeklyReport:
    """One week of one audience.

    Attributes:
        window: full UTC days; shorter when there are fewer, said in ``partial_note``.
        audience: whose GPUs and money; None: the whole fleet. audience_name: for people, of a length that fits anywhere.
        days: the window for people. period: key of the window; a report is mailed once per period and audience.
        has_news: there is something that is worth a mail; False too without data.
        compared: how it stands against the seven days before; empty without them.
        recommendations: the best that were not told before, or grew since. grown: by how much, by id of the row.
        still_open: what was told before and still waits, in one sentence; empty: nothing.
        open_count: all that wait. done: what was decided and proven in the week. done_more: how many more there are.
        quality: data quality in one line. told: the actions of this report, for the next one to know.
    """

    window: Window
    audience: Owner | None
    audience_name: str
    period: str
    days: str
    has_data: bool
    has_news: bool
    simulated: bool
    subject: str
    headline: str
    headline_idle: str
    compared: str
    partial_note: str
    tiles: tuple[Tile, ...]
    budgets: tuple[BudgetLine, ...]
    recommendations: tuple[RecommendationRow, ...]
    grown: Mapping[str, str]
    still_open: str
    open_count: int
    done: tuple[DoneLine, ...]
    done_more: int
    charts: tuple[ReportChart, ...]
    activities: tuple[Activity, ...]
    hosts: tuple[HostIdle, ...]
    hosts_more: int
    hosts_all: HostIdle | None
    quality: str
    price_note: str
    carbon_note: str
    base_url: str
    overview: Overview
    told: tuple[Told, ...]

    def link(self, path: str, *, period: bool = True) -> str:
        """A page of gpuwise with the report's period and owner."""
        query: list[tuple[str, str]] = []
        if period:
            query += self._period
        if self.audience is not None and len(self.audience.name) <= LONGEST_IN_LINKS:
            query.append(("owner", self.audience.team))
            if self.audience.project:
                query.append(("project", self.audience.project))
        return f"{self.base_url}{path}" + (f"?{urlencode(query)}" if query else "")

    @property
    def _period(self) -> list[tuple[str, str]]:
        return [("since", _moment(self.window.from_ms)), ("until", _moment(self.window.to_ms))]

    @property
    def url_home(self) -> str:
        """Where a reader goes on: the owner's page, or the overview."""
        if self.audience is None or len(self.audience.name) > LONGEST_IN_LINKS:
            return self.link("/")
        return f"{self.base_url}{owner_path(self.audience.team)}?{urlencode(self._period)}"

    @property
    def url_costs(self) -> str:
        """What the spend is made of."""
        return self.link("/costs")

    @property
    def url_advice(self) -> str:
        """Everything that waits."""
        return self.link("/recommendations", period=False)

    @property
    def url(self) -> str:
        """The report as a page, with who gets it."""
        return self.link("/report", period=False)

    @property
    def url_mail(self) -> str:
        """The mail as it is sent, in a browser."""
        return self.link("/report/preview", period=False)


def _moment(at_ms: int) -> str:
    """A time as links have it: a day where it begins one."""
    return f"{from_ms(at_ms):%Y-%m-%d}" if at_ms % DAY_MS == 0 else iso(at_ms) or ""
