"""Pages in a real browser: no script errors, no page wider than the phone, zoom, copy, forms, both themes, scripts off."""

import re
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import uvicorn
from playwright.sync_api import Browser, BrowserContext, Page, expect

from api.app import create_app
from store.engine import dispose_engine
from tests.integration.api.agents_for_tests import deliver
from tests.integration.api.fleet_for_tests import NOW, fill, settings_for
from tests.integration.pages.conftest import give_advice

pytestmark = pytest.mark.browser

ADDRESSES = (
    "/",
    "/fleet",
    "/hosts/h1",
    "/gpus/GPU-a?since=2h",
    "/gpus/GPU-a/hours?day=2026-10-05",
    "/gpus/GPU-a/samples?hour=2026-10-05T00:00:00Z",
    "/engines",
    "/recommendations",
    "/recommendations/1",
    "/recommendations/rules",
    "/costs",
    "/costs/parts?by=host&key=h1",
    "/energy",
    "/budgets",
    "/report",
    "/plan/rent-or-buy?gpu_model=H100-SXM5-80GB&capex_usd=330000&utilisation_percent=60&tariff_usd_per_kwh=0.12",
    "/plan/size?model=llama-3.1-8b&itl_slo_ms=40",
    "/plan/mix?capex_usd=330000&assume_measured=1",
    "/settings",
    "/settings/prices",
    "/settings/tariffs",
    "/settings/owners",
    "/settings/recipients",
    "/settings/rules?rule=small-batch",
    "/settings/tokens",
    "/engines/h1%3A8000%2F0",
    "/workloads",
    "/owners",
    "/users/ann",
    "/workloads/1",
)
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def site(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The application on a port of its own over the small fleet."""
    path = tmp_path_factory.mktemp("browser") / "gpuwise.db"
    shutil.copyfile(sqlite_template, path)
    url = f"sqlite:///{path}"
    fill(url)
    deliver(url)
    give_advice(url)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    app = create_app(replace(settings_for(url), port=port))
    app.state.clock = lambda: NOW
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 20
    while not server.started and time.monotonic() < deadline:
        threading.Event().wait(0.02)
    assert server.started
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(10)
    dispose_engine(url)


class Visit:
    """A page with everything it complained about."""

    def __init__(self, context: BrowserContext) -> None:
        self.page: Page = context.new_page()
        self.complaints: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on(
            "console",
            lambda message: (
                self.complaints.append(message.text) if message.type in {"error", "warning"} else None
            ),
        )


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    """A wide window, light."""
    context = browser.new_context(viewport=WIDE)  # type: ignore[arg-type]
    yield Visit(context)
    context.close()


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_loads_without_a_complaint(browser: Browser, site: str, address: str, scheme: str) -> None:
    context = browser.new_context(viewport=WIDE, color_scheme=scheme)  # type: ignore[arg-type]
    visit = Visit(context)
    visit.page.goto(site + address)
    expect(visit.page.locator("h1")).to_have_count(1)
    visit.page.wait_for_load_state("networkidle")
    assert visit.complaints == []
    context.close()


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_page_is_wider_than_a_phone(browser: Browser, site: str, address: str) -> None:
    context = browser.new_context(viewport=PHONE, device_scale_factor=2, is_mobile=True)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(site + address)
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    context.close()


def test_light_and_dark_differ(browser: Browser, site: str) -> None:
    grounds = []
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme)  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(site)
        grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        context.close()
    assert len(set(grounds)) == 2


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_page_works_with_scripts_off(browser: Browser, site: str, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(site + address)
    expect(page.locator("main h1")).to_be_visible()
    if address.startswith("/gpus/GPU-a?"):
        expect(page.locator("[data-chart=power] svg.chart")).to_be_visible()
        page.get_by_role("link", name="10 min", exact=True).click()
        expect(page.locator("[data-chart=power] svg.chart")).to_be_visible()
    context.close()


def test_times_are_local_with_utc_on_hover(browser: Browser, site: str) -> None:
    context = browser.new_context(timezone_id="Asia/Kolkata", locale="en-GB")
    page = context.new_page()
    page.goto(site + "/gpus/GPU-a")
    time_ = page.locator("time[datetime='2026-10-05T02:00:00.000Z']").first
    expect(time_).to_have_attribute("title", "2026-10-05 02:00:00 UTC")
    expect(time_).to_contain_text("07:30")
    context.close()


def test_a_command_is_copied_by_its_button(browser: Browser, site: str) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(site)
    line = page.locator(".copyline", has_text="--max-num-seqs 96").first
    line.get_by_role("button", name="Copy").click()
    expect(line.get_by_role("button")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "vllm serve … --max-num-seqs 96"
    context.close()


def test_a_person_dismisses_a_recommendation_and_finds_the_reason(visit: Visit, site: str) -> None:
    page = visit.page
    page.goto(site)
    page.get_by_role("link", name="Raise the batch of llama-70b on gpu-node-02").first.click()
    page.get_by_label("Because").select_option("other")
    page.get_by_label("In your words").fill("latency promise of 20 ms")
    page.get_by_role("button", name="Dismiss").click()
    expect(page.locator("h1 .status")).to_have_text("dismissed")
    expect(page.get_by_text("latency promise of 20 ms")).to_be_visible()
    page.get_by_role("button", name="Reopen").click()
    expect(page.locator("h1 .status")).to_have_text("reopened")
    assert visit.complaints == []


def test_from_the_idle_figure_to_its_samples_in_four_clicks(visit: Visit, site: str) -> None:
    page = visit.page
    page.goto(site)
    expect(page.locator("h1 em")).to_contain_text("nothing ran")
    page.get_by_role("link", name="h1", exact=True).click()
    page.get_by_role("link", name="GPU 0", exact=True).first.click()
    page.locator(".period").get_by_role("link", name="6 h", exact=True).click()
    page.locator("summary", has_text="steps as a table").click()
    expect(page.get_by_role("cell", name=re.compile("^parked 10")).first).to_be_visible()


def test_everything_is_reached_by_keyboard(visit: Visit, site: str) -> None:
    page = visit.page
    page.goto(site)
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to content")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_attribute("aria-current", "page")
