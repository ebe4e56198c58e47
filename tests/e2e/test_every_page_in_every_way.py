"""Every page by keyboard, on paper, without scripts, with forced colours and without motion."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.browsing import WIDE, Site, Visit, open_page, page_routes

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("demo fleet in a browser"),
]

CONTROLS = """() => {
  const all = document.querySelectorAll("a[href],button,input:not([type=hidden]),select,textarea,summary,[tabindex='0']");
  const shown = [...all].filter((n) => n.checkVisibility() && !n.disabled && n.tabIndex >= 0);
  window.left = new Set(shown);
  window.dim = [];
  document.addEventListener("focusin", ({ target }) => {
    window.left.delete(target);
    const look = getComputedStyle(target);
    if (look.outlineStyle === "none" && look.boxShadow === "none") window.dim.push(target.outerHTML.slice(0, 90));
  });
  return shown.length;
}"""
MISSED = """() => {
  // Of radio buttons Tab reaches one, arrows the others.
  return [...window.left].filter((n) => n.type !== "radio").map((n) => n.outerHTML.slice(0, 90));
}"""
FIGURES = """() => [...document.querySelectorAll("main h1, main .tiles strong, main td.n, main svg.chart")]
  .filter((n) => n.checkVisibility() && !n.closest(".zoom") && !n.querySelector("time"))
  .map((n) => n.tagName === "svg" ? "picture" : n.textContent.trim()).sort()"""
MOST_TABS, ASKED_EVERY = 1_500, 20


@pytest.fixture(scope="module")
def pages(browser: Browser) -> Iterator[Callable[..., Visit]]:
    """A page for each way to look, kept for the module."""
    made: dict[str, Visit] = {}

    def visit(**way: object) -> Visit:
        key = repr(way)
        if key not in made:
            made[key] = Visit(browser.new_context(viewport=WIDE, **way))  # type: ignore[arg-type]
        made[key].complaints.clear()
        return made[key]

    yield visit
    for one in made.values():
        one.page.context.close()


@pytest.mark.parametrize("pattern", page_routes())
def test_tab_reaches_every_control_and_shows_where_one_is(
    site_of: Callable[[str], Site], pages: Callable[..., Visit], pattern: str
) -> None:
    page = pages().page
    open_page(site_of("demo"), pattern, page)
    count = page.evaluate(CONTROLS)
    assert count < MOST_TABS
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to content")
    for pressed in range(count + 40):  # parts that scroll and dates take stops of their own
        page.keyboard.press("Tab")
        if pressed % ASKED_EVERY == 0 and not page.evaluate("window.left.size"):
            break
    assert page.evaluate(MISSED) == []
    assert page.evaluate("window.dim") == []


@pytest.mark.parametrize("pattern", page_routes())
def test_paper_has_the_content_without_the_controls(
    site_of: Callable[[str], Site], pages: Callable[..., Visit], pattern: str
) -> None:
    page = pages().page
    open_page(site_of("demo"), pattern, page)
    shown = page.evaluate(FIGURES)
    page.emulate_media(media="print")
    for chrome in (".top nav", ".top .search", ".periods", ".skip", "main button", "footer"):
        assert page.locator(chrome).filter(visible=True).count() == 0, chrome
    assert page.evaluate(FIGURES) == shown
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(255, 255, 255)"
    page.emulate_media(media="screen")


@pytest.mark.parametrize("fleet", ["demo", "empty"])
@pytest.mark.parametrize("pattern", page_routes())
def test_without_scripts_a_page_shows_the_same_figures(
    site_of: Callable[[str], Site], pages: Callable[..., Visit], pattern: str, fleet: str
) -> None:
    site = site_of(fleet)
    plain = pages(java_script_enabled=False).page
    open_page(site, pattern, plain, scripts=False)
    expect(plain.locator("main h1")).to_be_visible()
    rich = pages().page
    open_page(site, pattern, rich)
    said = rich.evaluate(FIGURES)
    texts = plain.locator("main h1, main .tiles strong, main td.n").filter(visible=True).all_text_contents()
    assert (
        sorted(one for one in said if one != "picture" and one not in {text.strip() for text in texts}) == []
    )
    assert plain.locator("main svg.chart").filter(visible=True).count() >= said.count("picture")


@pytest.mark.parametrize("pattern", page_routes())
def test_forced_colours_and_no_motion_break_nothing(
    site_of: Callable[[str], Site], pages: Callable[..., Visit], pattern: str
) -> None:
    visit = pages(forced_colors="active", reduced_motion="reduce")
    open_page(site_of("demo"), pattern, visit.page)
    expect(visit.page.locator("main h1")).to_be_visible()
    moving = "document.getAnimations().filter((one) => one.playState === 'running').length"
    assert visit.page.evaluate(moving) == 0
    assert visit.complaints == []


def test_the_menu_of_a_narrow_window_opens_and_closes_by_keyboard(
    browser: Browser, site_of: Callable[[str], Site]
) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.goto(site_of("demo").url)
    menu, nav = page.locator("button.menu"), page.get_by_role("navigation", name="Main")
    expect(nav).to_be_hidden()
    menu.focus()
    page.keyboard.press("Enter")
    expect(nav).to_be_visible()
    page.keyboard.press("Tab")
    expect(nav.locator("a:focus")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(nav).to_be_hidden()
    expect(menu).to_be_focused()
    context.close()


def test_the_skip_link_leads_past_the_menu(browser: Browser, site_of: Callable[[str], Site]) -> None:
    context = browser.new_context(viewport=WIDE)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(site_of("demo").url)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")
    context.close()


def test_four_clicks_lead_from_the_idle_figure_to_raw_samples(
    browser: Browser, site_of: Callable[[str], Site]
) -> None:
    context = browser.new_context(viewport=WIDE, java_script_enabled=False)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(site_of("demo").url)
    expect(page.locator("main h1")).to_contain_text("$")
    clicks = 0
    for step in FOUR_CLICKS:
        page.locator(step).first.click()
        clicks += 1
    assert clicks <= 4
    assert "/samples?" in page.url
    rows = page.locator("main table tbody tr")
    assert rows.count() >= 12, "the demo keeps old hours in steps of five minutes"
    expect(page.locator("main table thead").first).to_contain_text("power")
    context.close()


FOUR_CLICKS = (
    "main .tiles .idle a",
    "main table a[href^='/gpus/'], main a[href^='/gpus/']",
    "main a[href*='/hours?']",
    "main a[href*='/samples?']",
)
"""The idle tile, a GPU, a day of its hours, an hour of its samples."""
