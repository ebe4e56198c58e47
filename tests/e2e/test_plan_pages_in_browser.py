"""The calculators in a real browser: the answer follows what is typed, the address keeps it, and all of it works without scripts."""

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.browsing import WIDE, Visit

pytestmark = pytest.mark.browser
NODE = "/plan/rent-or-buy?gpu_model=H100-SXM5-80GB&tariff_usd_per_kwh=0.12&utilisation_percent=60&rent_usd_per_gpu_hour=3.99"


def test_the_answer_follows_what_is_typed_and_the_address_keeps_it(visit: Visit, site: str) -> None:
    page = visit.page
    page.goto(site + NODE)
    expect(page.locator("h1")).to_contain_text("Owning pays if a machine of 8 GPUs costs less than")
    price = page.get_by_role("textbox", name="Purchase of the machine")
    price.press_sequentially("330000")
    expect(page.locator("h1")).to_contain_text("Owning pays: it takes")
    expect(price).to_be_focused()
    expect(page.locator("#result svg.chart").first).to_be_visible()
    expect(page).to_have_url(re.compile("capex_usd=330000"))
    said = page.locator("h1").inner_text()
    page.goto(page.url)
    expect(page.locator("h1")).to_have_text(said)
    assert visit.complaints == []


def test_a_typing_error_takes_the_figures_away_and_its_correction_brings_them_back(
    visit: Visit, site: str
) -> None:
    page = visit.page
    page.goto(f"{site}{NODE}&capex_usd=330000")
    expect(page.locator("#result .tiles")).to_be_visible()
    price = page.get_by_role("textbox", name="Purchase of the machine")
    price.fill("33oooo")
    expect(page.locator("#note-capex_usd")).to_contain_text("no number")
    expect(page.locator("#result .tiles")).to_have_count(0)
    price.fill("400000")
    expect(page.locator("#result .tiles")).to_be_visible()
    expect(page.locator("#note-capex_usd .error")).to_have_count(0)
    assert visit.complaints == []


def test_models_are_sized_while_their_load_is_typed(visit: Visit, site: str) -> None:
    page = visit.page
    page.goto(f"{site}/plan/size?model=llama-3.1-8b&gpu=L40S&concurrency=8")
    expect(page.locator("h1")).to_contain_text("One L40S serves llama-3.1-8b")
    page.get_by_role("textbox", name="Requests at once").fill("400")
    expect(page.locator("h1")).to_contain_text(re.compile(r"\d × L40S serve llama-3.1-8b"))
    page.get_by_role("link", name="Tokens/s").click()
    expect(page.locator("th[aria-sort=descending]")).to_have_count(1)
    assert visit.complaints == []


def test_without_scripts_a_button_gives_the_answer(browser: Browser, site: str) -> None:
    context = browser.new_context(viewport=WIDE, java_script_enabled=False)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(site + NODE)
    page.get_by_role("textbox", name="Purchase of the machine").fill("330000")
    page.get_by_role("button", name="Calculate").click()
    expect(page.locator("h1")).to_contain_text("Owning pays: it takes")
    page.get_by_text("Link to this result").click()
    page.get_by_role("link", name="Open it").click()
    expect(page.locator("h1")).to_contain_text("Owning pays: it takes")
    page.get_by_role("link", name="Reset Purchase of the machine").click()
    expect(page.locator("h1")).to_contain_text("costs less than")
    context.close()
