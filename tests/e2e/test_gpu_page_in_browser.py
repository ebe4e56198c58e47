"""A GPU's page in a real browser: zoom by drag, keys and fingers, live figures, four clicks down to the samples."""

import re
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import uvicorn
from fastapi import FastAPI
from playwright.sync_api import Browser, Page, expect

from api.app import create_app
from api.live_hub import LiveHub
from core.activity import Activity
from core.samples import GpuEvent
from gpuwise.server import Server
from store.dbapi import open_connection
from store.engine import dispose_engine
from store.ingest import Ingest
from tests.e2e.browsing import PHONE, WIDE, Visit, settle
from tests.integration.api.fleet_for_tests import NOW, SPAN, T0, A, fill, sample, settings_for
from tests.integration.pages.conftest import give_advice

pytestmark = pytest.mark.browser
SPAN_TEXT = re.compile(r"(\d\d):(\d\d) – (?:\d+ \w+ )?(\d\d):(\d\d) UTC")


@dataclass
class Site:
    """A running application over the small fleet."""

    url: str
    database_url: str
    app: FastAPI


@pytest.fixture(scope="module")
def gpu_site(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The application as it is served, over the small fleet with an event; it looks for news ten times a second."""
    path = tmp_path_factory.mktemp("gpu") / "gpuwise.db"
    shutil.copyfile(sqlite_template, path)
    url = f"sqlite:///{path}"
    fill(url)
    give_advice(url)
    with closing(open_connection(url)) as connection:
        ingest = Ingest(connection)
        ingest.events([GpuEvent(A, T0 + SPAN, "xid", "GPU has fallen off the bus", 79)])
        ingest.commit()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    app = create_app(replace(settings_for(url), port=port))
    app.state.clock = lambda: NOW
    app.state.live = LiveHub(every_s=0.1)
    server = Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error"), app.state.live)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_until(lambda: server.started)
    yield Site(f"http://127.0.0.1:{port}", url, app)
    server.should_exit = True
    thread.join(10)
    assert not thread.is_alive(), "a live view must not hold the server up"
    dispose_engine(url)


def wait_until(is_so: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(1000):
        if is_so():
            return
        pause.wait(0.02)
    pytest.fail("it did not come true in 20 s")


def minutes(page: Page) -> int:
    """Length of the shown span."""
    found = SPAN_TEXT.search(page.locator("[data-said]").inner_text())
    assert found is not None
    start, end = (60 * int(found[i]) + int(found[i + 1]) for i in (1, 3))
    return (end - start) % (24 * 60)


def open_charts(
    page: Page, site: Site, address: str = "/gpus/GPU-a?since=2h&until=2026-10-05T02:00:00Z"
) -> None:
    page.goto(site.url + address)
    expect(page.locator("[data-chart=power] .u-over")).to_be_visible()
    expect(page.locator("[data-said]")).to_contain_text("00:00 – 02:00 UTC")


def test_dragging_across_a_chart_zooms_into_it_and_back(visit: Visit, gpu_site: Site) -> None:
    page = visit.page
    open_charts(page, gpu_site)
    box = page.locator("[data-chart=power] .u-over").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 30, steps=5)
    page.mouse.up()
    said = page.locator("[data-said]")
    expect(said).to_contain_text(re.compile(r"00:(29|30|31) – (00:59|01:00|01:01) UTC"))
    expect(page.locator("[data-band] svg")).to_have_attribute("aria-label", re.compile("parked"))
    expect(page.locator("[data-activity-title]")).to_have_text("Parked all the time")
    expect(page).to_have_url(re.compile(r"since=2026-10-05T00%3A(29|30)"))
    page.get_by_role("button", name="Back", exact=True).click()
    expect(said).to_contain_text("00:00 – 02:00 UTC")
    expect(page.get_by_role("button", name="Back", exact=True)).to_be_hidden()
    assert visit.complaints == []


def test_a_link_to_a_zoomed_span_shows_that_span(visit: Visit, gpu_site: Site) -> None:
    page = visit.page
    open_charts(page, gpu_site)
    page.get_by_role("link", name="zoom in").click()
    expect(page.locator("[data-said]")).to_contain_text("00:30 – 01:30 UTC")
    page.goto(page.url)
    expect(page.locator("[data-said]")).to_contain_text("00:30 – 01:30 UTC")
    page.get_by_role("link", name="← earlier").click()
    expect(page.locator("[data-said]")).to_contain_text("23:30 –")
    assert visit.complaints == []


def test_keys_move_and_zoom_a_focused_chart(visit: Visit, gpu_site: Site) -> None:
    page = visit.page
    open_charts(page, gpu_site)
    chart = page.locator("[data-chart=use]")
    chart.focus()
    page.keyboard.press("+")
    expect(page.locator("[data-said]")).to_contain_text("00:30 – 01:30 UTC")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("[data-said]")).to_contain_text("00:15 – 01:15 UTC")
    expect(chart).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator("[data-said]")).to_contain_text("00:45 – 01:45 UTC")
    page.keyboard.press("0")
    expect(page.locator("[data-said]")).to_contain_text("00:00 – 02:00 UTC")
    page.keyboard.press("ArrowRight")
    expect(page.locator("[data-said]")).to_contain_text("00:00 – 02:00 UTC")
    assert visit.complaints == []


def test_two_fingers_stretch_time_and_one_moves_it(browser: Browser, gpu_site: Site) -> None:
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True)  # type: ignore[arg-type]
    page = context.new_page()
    open_charts(page, gpu_site)
    plot = page.locator("[data-chart=power] .u-over")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    wire = context.new_cdp_session(page)

    def fingers(kind: str, *places: float) -> None:
        points = [{"x": box["x"] + box["width"] * at, "y": y, "id": i} for i, at in enumerate(places)]
        wire.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    fingers("touchStart", 0.4, 0.6)
    for apart in (0.12, 0.16, 0.2):
        fingers("touchMove", 0.5 - apart, 0.5 + apart)
    fingers("touchEnd")
    expect(page.locator("[data-said]")).not_to_contain_text("00:00 – 02:00 UTC")
    page.wait_for_function("document.querySelector('[data-said]').textContent.includes('00:')")
    assert 55 <= minutes(page) <= 65, "twice as far apart shows half the time"
    before = page.locator("[data-said]").inner_text()
    fingers("touchStart", 0.3)
    for at in (0.4, 0.5, 0.6):
        fingers("touchMove", at)
    fingers("touchEnd")
    expect(page.locator("[data-said]")).not_to_have_text(before)
    assert 55 <= minutes(page) <= 65
    context.close()


def test_figures_change_by_themselves_and_only_while_the_page_is_seen(visit: Visit, gpu_site: Site) -> None:
    page = visit.page
    page.goto(gpu_site.url + "/gpus/GPU-a?since=1h")
    expect(page.locator("[data-live-state]")).to_have_text("live")
    power = page.locator("[data-live-field=power]")
    expect(power).to_have_text("70\xa0W")
    with closing(open_connection(gpu_site.database_url)) as connection:
        ingest = Ingest(connection)
        ingest.gpu_samples([sample(A, 12, Activity.COMPUTE_BOUND, 612.0, busy_ratio=1.0)])
        ingest.commit()
    expect(power).to_have_text("612\xa0W")
    expect(page.locator("[data-live-field=activity]")).to_contain_text("compute-bound")
    expect(page.locator("[data-live-field=activity] rect")).to_have_class("a-compute_bound")
    expect(page.locator("[data-said]")).to_contain_text("02:10 UTC"), "the charts follow"
    hub = gpu_site.app.state.live
    assert hub.listeners == 1
    page.evaluate(
        "Object.defineProperty(document, 'hidden', {value: true, configurable: true});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    wait_until(lambda: hub.listeners == 0 and hub.readers == 0)
    expect(page.locator("[data-live-state]")).to_contain_text("paused")
    page.evaluate(
        "Object.defineProperty(document, 'hidden', {value: false, configurable: true});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    wait_until(lambda: hub.listeners == 1)
    page.goto("about:blank")
    wait_until(lambda: hub.listeners == 0)
    assert visit.complaints == []


def test_news_leave_a_linked_span_where_it_is(visit: Visit, gpu_site: Site) -> None:
    page = visit.page
    page.goto(gpu_site.url + "/gpus/GPU-a?since=2026-10-05T00:30:00Z&until=2026-10-05T01:30:00Z")
    expect(page.locator("[data-live-state]")).to_have_text("live")
    settle(page)
    with closing(open_connection(gpu_site.database_url)) as connection:
        ingest = Ingest(connection)
        ingest.gpu_samples([sample(A, 13, Activity.COMPUTE_BOUND, 599.0, busy_ratio=1.0)])
        ingest.commit()
    expect(page.locator("[data-live-field=power]")).to_have_text("599\xa0W")
    expect(page.locator("[data-said]")).to_contain_text("00:30 – 01:30 UTC")
    assert visit.complaints == []


def test_the_page_moves_in_time_without_scripts(browser: Browser, gpu_site: Site) -> None:
    context = browser.new_context(viewport=WIDE, java_script_enabled=False)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(gpu_site.url + "/gpus/GPU-a?since=2h&until=2026-10-05T02:00:00Z")
    for name in ("power", "use", "memory"):
        expect(page.locator(f"[data-chart={name}] svg.chart").first).to_be_visible()
    expect(page.locator("[data-live-state] a")).to_have_text("reload")
    page.get_by_role("link", name="zoom in").click()
    expect(page.locator("[data-said]")).to_contain_text("00:30 – 01:30 UTC")
    page.get_by_role("link", name="later →").click()
    expect(page.locator("[data-said]")).to_contain_text("01:")
    page.get_by_role("link", name="zoom out").click()
    expect(page.locator("[data-chart=power] svg.chart")).to_be_visible()
    context.close()


def test_a_mark_leads_to_what_happened(visit: Visit, gpu_site: Site) -> None:
    page = visit.page
    open_charts(page, gpu_site)
    page.locator("[data-marks] a").first.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#events$"))
    expect(page.locator("#events")).to_contain_text("GPU has fallen off the bus")


def test_from_the_fleet_to_the_samples_in_three_clicks(visit: Visit, gpu_site: Site) -> None:
    page = visit.page
    page.goto(gpu_site.url + "/fleet")
    page.locator("a[href^='/gpus/GPU-a']").first.click()
    page.locator("#hours").get_by_role("link", name="2026-10-05").click()
    page.locator("table.hours tbody a").first.click()
    expect(page.locator("h1")).to_contain_text("3 of 6 samples were")
    expect(page.locator("table.samples tbody tr")).to_have_count(6)
    expect(page.get_by_role("link", name="These samples as CSV")).to_be_visible()
    assert visit.complaints == []


@pytest.mark.parametrize(
    "address", ["/gpus/GPU-a/hours?day=2026-10-05", "/gpus/GPU-a/samples?hour=2026-10-05T00:00:00Z"]
)
def test_hours_and_samples_fit_a_phone(browser: Browser, gpu_site: Site, address: str) -> None:
    context = browser.new_context(viewport=PHONE, is_mobile=True)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(gpu_site.url + address)
    expect(page.locator("h1")).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    context.close()
