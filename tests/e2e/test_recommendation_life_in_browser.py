"""A recommendation's whole life in a real browser: copy its command, claim, be refused, snooze, reopen, dismiss, with scripts on and off."""

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.browsing import PHONE, WIDE

pytestmark = pytest.mark.browser


def opened(browser: Browser, site: str, *, scripts: bool = True, phone: bool = False) -> Page:
    context = browser.new_context(
        viewport=PHONE if phone else WIDE,
        java_script_enabled=scripts,
        permissions=["clipboard-read", "clipboard-write"],
    )
    page = context.new_page()
    page.goto(f"{site}/recommendations?rule=small-batch")
    page.get_by_role("link", name="Raise the batch").click()
    return page


def test_a_command_is_copied_by_keyboard(browser: Browser, site: str) -> None:
    page = opened(browser, site)
    button = page.get_by_role("button", name="Copy").first
    button.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Copied").first).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.locator(".copyline code").first.text_content()
    page.context.close()


def test_its_life_is_clicked_through_without_scripts(browser: Browser, site: str) -> None:
    page = opened(browser, site, scripts=False)
    page.get_by_label("Who takes it").fill("ann")
    page.get_by_role("button", name="Claim").click()
    expect(page.locator("h1 .status")).to_have_text("claimed")
    expect(page.get_by_role("status")).to_contain_text("Noted")
    page.get_by_role("button", name="1 week").click()
    expect(page.locator("h1 .status")).to_have_text("snoozed")
    page.get_by_role("button", name="Reopen").click()
    expect(page.locator("h1 .status")).to_have_text("reopened")
    page.get_by_label("Because").select_option("other")
    page.get_by_role("button", name="Dismiss").click()
    expect(page.get_by_role("alert")).to_contain_text("say what")
    expect(page.get_by_label("Because")).to_have_value("other")
    page.get_by_label("In your words").fill("kept for the launch")
    page.get_by_role("button", name="Dismiss").click()
    expect(page.locator("h1 .status")).to_have_text("dismissed")
    page.get_by_role("button", name="Reopen").click()
    page.get_by_label("What was changed").fill("limit set to 96")
    page.get_by_role("button", name="Done").click()
    expect(page.locator("h1 .status")).to_have_text("done")
    expect(page.locator(".life")).to_contain_text("kept for the launch")
    expect(page.locator(".life")).to_contain_text("limit set to 96")
    page.get_by_role("button", name="Reopen").click()
    expect(page.locator("h1 .status")).to_have_text("reopened")
    page.context.close()


def test_no_page_of_advice_is_wider_than_a_phone(browser: Browser, site: str) -> None:
    page = opened(browser, site, phone=True)
    for address in ("", "/recommendations", "/recommendations/rules", "/recommendations?view=not-judged"):
        if address:
            page.goto(f"{site}{address}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, address or "one"
    page.context.close()
