"""Every page renders from a fixture, without a database: nothing undefined, nothing inline, everything named."""

import re
import tomllib
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest

from api.pages import (
    costs,
    engines,
    fleet,
    gpu,
    gpu_charts,
    gpu_health,
    gpu_series,
    overview,
    recommendations,
    report,
)
from api.pages.frame import NAV, Frame
from api.pages.problem import ProblemPage, nav
from api.rec_row import row_of, sums
from api.report import render_html, render_text, report_of
from api.resources.by import By
from api.resources.costs import CostRow
from api.resources.engines import EngineRow
from api.templating import render
from api.words import STATUS, Mark
from core.activity import Activity
from core.evidence import Window
from core.finding import Status, Totals
from core.readings import GpuHealth
from core.samples import GpuEvent
from core.settings import Settings
from core.units import HOUR_MS
from tests.contract import page_fixtures as good

STATIC = Path(__file__).resolve().parents[2] / "templates" / "static"


def cost_row(key: str | None, **changes: object) -> CostRow:
    from decimal import Decimal

    row = CostRow(
        key=key,
        label=key or "not attributed",
        cost_usd=Decimal("120.50"),
        idle_cost_usd=Decimal("40.00"),
        energy_cost_usd=None,
        carbon_g=1200.0,
        price_basis="catalogue: median on-demand of H100-SXM5-80GB, 9 providers, 2025-11-09",
        priced_ratio=1.0,
        gpu_h=48.0,
        unseen_cost_usd=Decimal("3.50"),
        energy_in_cost=False,
        site_energy_kwh=33.0,
        energy_coverage_ratio=1.0,
        carbon_code="WLD",
        carbon_year=2024,
        carbon_method="life cycle",
        coverage_ratio=0.97,
    )
    return replace(row, **changes)  # type: ignore[arg-type]


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


def series(activity: Activity = Activity.MEMORY_BOUND) -> gpu_series.GpuSeries:
    samples = [
        good.sample(i, activity, power_w=410.0, power_max_w=440.0, busy_ratio=0.95) for i in range(360)
    ]
    return gpu_series.from_samples(
        samples[:100] + samples[150:], Window(good.WINDOW.to_ms - HOUR_MS, good.WINDOW.to_ms)
    )


def gpu_page(frame: Frame) -> gpu.GpuPage:
    points = series()
    rows, left_out = gpu_charts.table_rows(points)
    return gpu.GpuPage(
        frame=frame,
        gpu=good.gpu(),
        name="GPU 0 on gpu-node-01",
        latest=good.gpu().latest,
        limit_w=None,
        window=points.window,
        from_at="2025-11-19T23:00:00Z",
        to_at="2025-11-20T00:00:00Z",
        series_href="/gpus/GPU-0/series.json",
        earlier="/gpus/GPU-0?since=1h",
        later=None,
        series=points,
        charts=gpu_charts.draw(points, None, 700.0),
        activities=(Activity.MEMORY_BOUND,),
        covered_ratio=0.86,
        money=gpu.GpuMoney(
            widened=True, price=None, cost_usd=None, idle_usd=None, unseen_usd=None, idle_h=0.0
        ),
        alarms=(gpu_health.Said(Mark.BAD, good.HOSTILE),),
        health=gpu_health.health_block(
            GpuHealth("GPU-0", good.NOW_MS, {"ecc_mode": "disabled", "compute_mode": good.HOSTILE}),
            good.NOW_MS,
        ),
        events=gpu_health.event_lines([GpuEvent("GPU-0", good.NOW_MS, good.HOSTILE, good.HOSTILE)]),
        events_left_out=3,
        holders=(
            gpu.Holder(good.HOSTILE, "process", None, None, points.window.from_ms, points.window.to_ms),
        ),
        recommendations=(row_of("2", good.finding()),),
        rows=rows,
        rows_left_out=left_out,
    )


def list_page(frame: Frame, view: str = "open") -> recommendations.ListPage:
    from core.finding import NotEvaluated, Subject

    refused = [
        NotEvaluated("small-batch", Subject("engine", f"e{i}"), ("running_requests",), good.HOSTILE)
        for i in range(5)
    ]
    return recommendations.ListPage(
        frame=frame,
        views=(recommendations.ViewLink("Open", "/recommendations?view=open", view == "open", 4),),
        view=view,
        rows=tuple(row_of(str(rec.id), rec.finding, rec.status) for rec in good.recommendations()),
        refusals=recommendations.refusals(refused),
        totals=good.overview().totals,
        claims=recommendations.claims(good.overview().totals or NOTHING, Window(0, 30 * 86_400_000)),
        ran_at_ms=good.NOW_MS,
        has_data=True,
    )


def detail_page(frame: Frame) -> recommendations.DetailPage:
    rec = good.recommendation(2)
    return recommendations.DetailPage(
        frame=frame,
        recommendation=rec,
        finding=rec.finding,
        row=row_of("2", rec.finding, rec.status),
        sums=tuple(sums(rec.finding.saving, rec.finding.no_figure)),
        chart=recommendations.chart_of(rec.finding),
        chart_title="requests",
        chart_rows=((good.NOW_MS, 8.0), (good.NOW_MS, None)),
        evidence=recommendations.facts_of(rec.finding.evidence),
        grade_word="fitted here",
        status_word=STATUS[Status.OPEN],
        life=(recommendations.LifeLine(good.NOW_MS, STATUS[Status.OPEN], good.HOSTILE),),
        gpus=(("/gpus/GPU-0", "GPU-0"),),
        forms=recommendations.allowed(Status.OPEN),
        snooze_from="2025-11-21",
        most_note=2000,
    )


Make = Callable[[Frame], str]
DAYS = tuple(cost_row(f"2025-11-{d:02d}") for d in range(1, 20))
PAGES: dict[str, Make] = {
    "overview": lambda f: render("pages/overview.html", overview.page_of(good.overview(), f)),
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
    "fleet": lambda f: render("pages/fleet.html", fleet.page_of(good.overview(), f, since="30d")),
    "fleet by idle money": lambda f: render(
        "pages/fleet.html",
        fleet.page_of(good.overview(), f, since="30d", sort="idle", activity=Activity.EMPTY),
    ),
    "fleet, empty": lambda f: render(
        "pages/fleet.html", fleet.page_of(good.empty_overview(), f, since="30d")
    ),
    "gpu": lambda f: render("pages/gpu.html", gpu_page(f)),
    "engines": lambda f: render(
        "pages/engines.html",
        engines.page_of(
            f,
            [
                engine_row(),
                engine_row(engine="b", model=None, running_mean=None, half_batch=None, tokens_per_s=None),
            ],
            {"b": good.recommendations()},
        ),
    ),
    "engines, none": lambda f: render("pages/engines.html", engines.page_of(f, [], {})),
    "recommendations": lambda f: render("pages/recommendations.html", list_page(f)),
    "recommendations, not judged": lambda f: render("pages/recommendations.html", list_page(f, "not-judged")),
    "recommendation": lambda f: render("pages/recommendation.html", detail_page(f)),
    "costs": lambda f: render(
        "pages/costs.html",
        costs.page_of(f, [cost_row("a"), cost_row(None, cost_usd=None)], DAYS, by=By.HOST, since="30d"),
    ),
    "costs, empty": lambda f: render("pages/costs.html", costs.page_of(f, [], [], by=By.HOST, since="30d")),
    "report": lambda f: render(
        "pages/report.html", report.ReportPage(f, report_of(good.overview(), Settings()), "Not mailed.")
    ),
    "report, empty": lambda f: render(
        "pages/report.html", report.ReportPage(f, report_of(good.empty_overview(), Settings()), "Not mailed.")
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
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if "id" in given:
            self.ids.append(given["id"] or "")
        if tag == "style" or (tag == "script" and "src" not in given):
            self.inline.append(tag)
        self.inline += [f"{tag} {name}" for name in given if name == "style" or name.startswith("on")]
        if tag == "svg" and not given.get("aria-label") and given.get("aria-hidden") != "true":
            self.unnamed.append(str(given))
        if tag in {"h1", "h2", "h3"}:
            self.headings.append(tag)
        if tag == "a":
            self.links.append(given.get("href") or "")


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


@pytest.mark.parametrize("name", ["overview, empty", "fleet, empty", "costs, empty", "report, empty"])
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
        fleet=tuple(replace(line, host=good.HOSTILE, model=good.HOSTILE) for line in good.fleet_lines()),
        price_note=good.HOSTILE,
        recommendations=(
            good.recommendation(1, title=good.HOSTILE, because=good.HOSTILE, no_figure=good.HOSTILE),
        ),
    )
    made = report_of(view, Settings())
    pages = [
        render("pages/overview.html", overview.page_of(view, good.frame())),
        render("pages/fleet.html", fleet.page_of(view, good.frame(), since="30d")),
        render("pages/recommendations.html", list_page(good.frame(), "not-judged")),
        render("pages/gpu.html", gpu_page(good.frame())),
        render("pages/recommendation.html", detail_page(good.frame())),
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


def test_a_fleet_can_be_cut_by_activity() -> None:
    page = fleet.page_of(good.overview(), good.frame(), since="30d", activity=Activity.EMPTY)
    assert page.shown == 4
    assert page.total == 32
    assert {gpu.line.activity for group in page.groups for gpu in group.gpus} == {Activity.EMPTY}


def test_runs_of_one_program_are_one_line_of_costs() -> None:
    runs = [cost_row(f"pid:{i}", label="train.py") for i in range(3)] + [cost_row("x", label="dear.py")]
    page = costs.page_of(good.frame(), runs, DAYS, by=By.WORKLOAD, since="30d")
    assert [(line.row.label, line.count) for line in page.lines] == [("train.py", 3), ("dear.py", 1)]
    assert str(page.lines[0].row.cost_usd) == "361.50"
    assert page.lines[0].row.gpu_h == 144.0


def test_an_unknown_cost_is_not_made_known_by_adding() -> None:
    runs = [cost_row(f"pid:{i}", label="train.py", cost_usd=None, carbon_g=None) for i in range(2)]
    (line,) = costs.page_of(good.frame(), runs, DAYS, by=By.WORKLOAD, since="30d").lines
    assert line.row.cost_usd is None
    assert line.row.carbon_g is None


def test_the_error_page_needs_no_database() -> None:
    page = ProblemPage(404, "Not Found", good.HOSTILE, nav("", 0))
    html = render("pages/problem.html", page)
    assert "Not Found" in html
    assert "<script>alert" not in html
    assert Document(html).inline == []


def test_the_text_part_says_what_the_html_part_says() -> None:
    made = report_of(good.overview(), Settings())
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
    assert {entry["name"] for entry in listed} == {"uPlot", "Inter"}
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
