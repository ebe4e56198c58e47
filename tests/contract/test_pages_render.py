"""Every page renders from a fixture, without a database: nothing undefined, nothing inline, everything named."""

import re
import tomllib
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from api.pages import (
    overview,
    report,
)
from api.pages.frame import NAV, Frame
from api.pages.problem import ProblemPage, nav, tools
from api.rec_row import row_of
from api.report import report_of
from api.report_render import render_html, render_text
from api.resources.engines import EngineRow
from api.resources.overview_model import Overview
from api.templating import render
from core.activity import Activity
from core.finding import Totals
from core.ownership import Owner
from core.settings import Settings
from core.units import HOUR_MS
from tests.contract import gpu_fixtures
from tests.contract import page_fixtures as good
from tests.contract.report_fixtures import week_of

STATIC = Path(__file__).resolve().parents[2] / "templates" / "static"


def engine_row(**changes: object) -> EngineRow:
    from decimal import Decimal

    row = EngineRow(
        engine="gpu-node-02:8000/0",
        host="gpu-node-02",
        gpu_uuids=("GPU-4",),
        kind="vllm",
        model="meta-llama/Llama-2-13b-chat-hf",
        running_mean=8.0,
        running_p95=8.0,
        waiting_mean=340.2,
        kv_used_max_ratio=0.09,
        tokens_generated=1e6,
        tokens_prompt=4e6,
        tokens_per_s=523.0,
        tokens_per_j=1.2,
        usd_per_million_tokens=Decimal("1.59"),
        itl_s=0.015,
        mbu_ratio=0.62,
        mfu_ratio=0.04,
        half_batch=71.0,
        data_quality=("the limit on its batch is not published",),
        busy_s=3600.0,
        covered_s=3600.0,
        ttft_s=1.2,
        preemption_count=0.0,
        finished_requests=1200.0,
        join="process",
        price_basis=None,
        first_seen_at=None,
        last_seen_at=None,
    )
    return replace(row, **changes)  # type: ignore[arg-type]


def overview_html(frame: Frame, view: Overview) -> str:
    rows = tuple(row_of(str(rec.id), rec.finding) for rec in view.recommendations)
    return render("pages/overview.html", overview.page_of(view, frame, rows))


Make = Callable[[Frame], str]
PAGES: dict[str, Make] = {
    "overview": lambda f: overview_html(f, good.overview()),
    "overview, unpriced": lambda f: render(
        "pages/overview.html",
        overview.page_of(
            good.overview(
                money=good.empty_overview().money,
                days=tuple(replace(d, cost_by_activity={}, unseen_usd=None) for d in good.overview().days),
            ),
            f,
        ),
    ),
    "overview, empty": lambda f: render("pages/overview.html", overview.page_of(good.empty_overview(), f)),
    "gpu": lambda f: render("pages/gpu.html", gpu_fixtures.page(f)),
    "report": lambda f: render("pages/report.html", report.page_of(f, None, good.WINDOW, Settings())),
    "report, empty": lambda f: render("pages/report.html", report.page_of(f, None, good.WINDOW, Settings())),
    "report of an owner": lambda f: render(
        "pages/report.html", report.page_of(f, Owner("research", "lab"), good.WINDOW, Settings())
    ),
}


NOTHING = Totals(None, None, None, None)


class Document(HTMLParser):
    """What the tests ask of a page."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.ids: list[str] = []
        self.inline: list[str] = []
        self.unnamed: list[str] = []
        self.headings: list[str] = []
        self.links: list[str] = []
        self.unlabelled: list[str] = []
        self.unscoped = 0
        self.labels = 0
        self.pictures = 0
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if "id" in given:
            self.ids.append(given["id"] or "")
        if tag == "style" or (tag == "script" and "src" not in given):
            self.inline.append(tag)
        self.inline += [f"{tag} {name}" for name in given if name == "style" or name.startswith("on")]
        if tag == "svg":
            self.pictures += 1
            is_part = self.pictures > 1  # a drawing within a picture is named by it
            if not is_part and not given.get("aria-label") and given.get("aria-hidden") != "true":
                self.unnamed.append(str(given))
        self.labels += tag == "label"
        is_field = tag in {"select", "textarea"} or (tag == "input" and given.get("type") != "hidden")
        if is_field and not self.labels and not given.get("aria-label"):
            self.unlabelled.append(given.get("name") or tag)
        self.unscoped += tag == "th" and "scope" not in given
        if tag in {"h1", "h2", "h3"}:
            self.headings.append(tag)
        if tag == "a":
            self.links.append(given.get("href") or "")

    def handle_endtag(self, tag: str) -> None:
        self.pictures -= tag == "svg"
        self.labels -= tag == "label"

    @property
    def skips(self) -> list[tuple[str, str]]:
        """Headings that follow one more than a level above."""
        return [(one, after) for one, after in pairwise(self.headings) if int(after[1]) - int(one[1]) > 1]


@pytest.fixture(params=PAGES)
def html(request: pytest.FixtureRequest) -> str:
    return PAGES[request.param](good.frame())


def test_a_page_carries_no_inline_style_or_script(html: str) -> None:
    assert Document(html).inline == []


def test_a_page_names_every_picture_and_repeats_no_id(html: str) -> None:
    document = Document(html)
    assert document.unnamed == []
    assert len(document.ids) == len(set(document.ids))
    assert document.headings.count("h1") == 1


def test_a_page_says_freshness_coverage_and_where_one_is(html: str) -> None:
    assert "Fresh 12" in html
    assert "99.2" in html
    for _, href, name in NAV:
        assert f'href="{href}"' in html
        assert name in html


def test_a_page_prints_no_python(html: str) -> None:
    text = re.sub(r"<[^>]+>", " ", html)
    assert not re.search(r"\bNone\b|Decimal\(|<built-in|Activity\.|\{\{|\bnan\b", text)


@pytest.mark.parametrize("name", PAGES)
def test_a_simulated_fleet_is_bannered_on_every_page(name: str) -> None:
    assert 'class="simulated"' in PAGES[name](good.frame(simulated=True))
    assert 'class="simulated"' not in PAGES[name](good.frame())


@pytest.mark.parametrize("name", ["overview, empty", "report, empty"])
def test_an_empty_page_says_what_to_do_next(name: str) -> None:
    html = PAGES[name](good.frame(newest_ms=None, coverage_ratio=None))
    assert "gpuwise agent" in html
    assert "gpuwise import" in html
    assert "No samples yet" in html


def test_old_data_is_not_called_fresh() -> None:
    html = PAGES["overview"](good.frame(newest_ms=good.NOW_MS - 18 * 24 * HOUR_MS))
    assert "Fresh" not in html
    assert "18\xa0days ago" in html


def test_hostile_names_are_inert_everywhere() -> None:
    view = good.overview(
        hosts=tuple(replace(line, host=good.HOSTILE) for line in good.host_lines()),
        price_note=good.HOSTILE,
        recommendations=(
            good.recommendation(1, title=good.HOSTILE, because=good.HOSTILE, no_figure=good.HOSTILE),
        ),
    )
    made = report_of(week_of(view), Settings())
    pages = [
        overview_html(good.frame(), view),
        render("pages/gpu.html", gpu_fixtures.page(good.frame())),
        render_html(made, {"days": "cid:a", "funnel": "cid:b"}),
    ]
    for html in pages:
        assert "<script>alert" not in html
        assert "alert(1)" in html, "the name itself is shown"


def test_a_recommendation_without_a_figure_says_why() -> None:
    html = PAGES["overview"](good.frame())
    assert "no figure" in html
    assert "needs engine metrics" in html


def test_the_overview_shows_conclusions_in_its_chart_titles_and_the_data_in_a_table() -> None:
    html = PAGES["overview"](good.frame())
    assert "of the money did no work" in html
    assert "Work ran in 62" in html
    assert html.count('<tr><th scope="row">') >= 30


def test_every_activity_is_told_by_name_beside_its_colour() -> None:
    html = PAGES["overview"](good.frame())
    for activity in Activity:
        assert f'class="a-{activity.value}"' in html, activity


def test_the_error_page_needs_no_database() -> None:
    page = ProblemPage(404, "Not Found", good.HOSTILE, nav("", 0), tools(""))
    html = render("pages/problem.html", page)
    assert "Not Found" in html
    assert "<script>alert" not in html
    assert Document(html).inline == []


def test_the_text_part_says_what_the_html_part_says() -> None:
    made = report_of(week_of(), Settings())
    text = render_text(made)
    for figure in (
        "$84,310",
        "$31,870",
        "$5,470 / month",
        "gcloud compute instances stop gpu-node-07",
        "gpu-node-07",
    ):
        assert figure in text
    assert "\xa0" not in text
    assert "<" not in text


def test_vendored_files_are_the_pinned_ones_with_their_licence() -> None:
    listed = tomllib.loads((STATIC / "vendor" / "vendored.toml").read_text(encoding="utf-8"))["file"]
    assert {entry["name"] for entry in listed} == {"uPlot", "Inter", "htmx"}
    for entry in listed:
        path = STATIC / "vendor" / entry["path"]
        assert sha256(path.read_bytes()).hexdigest() == entry["sha256"], entry["path"]
        assert entry["version"] in entry["path"]
        assert (path.parent / "LICENSE").is_file()
    shipped = {
        p.relative_to(STATIC / "vendor").as_posix() for p in (STATIC / "vendor").rglob("*") if p.is_file()
    }
    assert {p for p in shipped if not p.endswith(("LICENSE", "vendored.toml"))} == {e["path"] for e in listed}


def test_no_page_asset_comes_from_elsewhere() -> None:
    for path in (*STATIC.glob("*.css"), *STATIC.glob("*.js"), *STATIC.parent.glob("**/*.html")):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"(src|href)=\"https?://|url\(https?:|@import", text), path.name
