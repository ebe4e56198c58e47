"""What people do on pages in a real browser: times, commands, a dismissed recommendation, themes, keys."""

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.browsing import Visit

pytestmark = pytest.mark.browser


def test_light_and_dark_differ(browser: Browser, site: str) -> None:
    grounds = []
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme)  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(site)
        grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        context.close()
    assert len(set(grounds)) == 2


def test_a_gpus_span_is_chosen_with_scripts_off(browser: Browser, site: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(site + "/gpus/GPU-a?since=2h")
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
