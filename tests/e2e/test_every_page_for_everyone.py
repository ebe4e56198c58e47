"""Every page the application has, on every fleet: axe finds nothing serious, no complaint, headings, landmarks, width."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from tests.e2e.browsing import PHONE, WIDE, Site, Visit, open_page, page_routes
from tests.e2e.sites import RECIPES

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

LOOKS: dict[str, dict[str, Any]] = {
    "light": {"viewport": WIDE, "color_scheme": "light"},
    "dark": {"viewport": WIDE, "color_scheme": "dark"},
    "phone": {"viewport": PHONE, "color_scheme": "light", "is_mobile": True, "has_touch": True},
}
CHECKED: dict[tuple[str, str], dict[str, Any]] = {
    ("demo", "light"): {},
    ("demo", "dark"): {"runOnly": ["color-contrast", "link-in-text-block"]},
    ("demo", "phone"): {},
    ("empty", "light"): {},
    ("hostile", "light"): {},
}
"""Where axe looks and at what. The dark page differs from the light one by its colours only; more rows are no other markup."""
NARROW = (640, 320)
"""1280 pixels at 200 % and at 400 %: WCAG 1.4.10 wants no scrolling in two dimensions."""
ON = [
    pytest.param(fleet, look, marks=pytest.mark.xdist_group(f"{fleet} fleet in a browser"))
    for fleet, look in (
        *(("demo", look) for look in LOOKS),
        ("empty", "light"),
        ("empty", "phone"),
        ("large", "light"),
        ("large", "phone"),
        ("hostile", "light"),
        ("hostile", "phone"),
    )
]
"""A fleet stays with one worker, which fills it once."""
OUTLINE = """() => {
  const shown = (node) => node.checkVisibility();
  const levels = [...document.querySelectorAll("h1,h2,h3,h4,h5,h6")].filter(shown).map((h) => +h.tagName[1]);
  const found = [];
  if (levels.filter((n) => n === 1).length !== 1) found.push("h1: " + levels.filter((n) => n === 1).length);
  if (levels[0] !== 1) found.push("the first heading is h" + levels[0]);
  levels.forEach((n, at) => { if (at && n > levels[at - 1] + 1) found.push(`h${levels[at - 1]} then h${n}`); });
  if (document.documentElement.lang !== "en") found.push("lang " + document.documentElement.lang);
  if (!/^.+ · gpuwise$/su.test(document.title)) found.push("title " + document.title.slice(0, 80));
  for (const mark of ["header", "main", "footer", "nav[aria-label]"])
    if (!document.querySelector(mark)) found.push("no " + mark);
  for (const th of document.querySelectorAll("th:not([scope])")) if (!th.closest(".u-legend")) found.push("th without scope: " + th.outerHTML.slice(0, 90));
  for (const node of document.querySelectorAll("[style]"))
    if (!node.closest(".zoom")) found.push("style: " + node.outerHTML.slice(0, 90));
  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
  for (const id of new Set(ids.filter((id, at) => ids.indexOf(id) !== at))) found.push("id twice: " + id);
  return found;
}"""
WIDEST = """() => {
  const most = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= most) return [];
  const wide = [...document.querySelectorAll("body *")].filter(
    (n) => n.getBoundingClientRect().right > most + 1 && !n.closest(".scroll, pre"));
  return [`${document.documentElement.scrollWidth} of ${most}`, ...wide.slice(0, 3).map((n) => n.outerHTML.slice(0, 120))];
}"""


@pytest.fixture(scope="module")
def visit_in(browser: Browser) -> Iterator[Callable[[str], Visit]]:
    """One page for each look, so that what pages share is fetched once."""
    made: dict[str, Visit] = {}

    def visit(look: str) -> Visit:
        if look not in made:
            made[look] = Visit(browser.new_context(**LOOKS[look]))
        return made[look]

    yield visit
    for one in made.values():
        one.page.context.close()


def wider_than_the_window(page: Page, most_s: float = 5.0) -> list[str]:
    """What sticks out of the window once charts have followed it: they are drawn again after a change of size."""
    until = time.monotonic() + most_s
    while (found := page.evaluate(WIDEST)) and time.monotonic() < until:
        page.wait_for_timeout(100)
    return list(found)


def serious(page: Page, fleet: str, look: str) -> list[str]:
    """What axe-core calls serious or critical, with the first element it means."""
    if (fleet, look) not in CHECKED:
        return []
    said = Axe().run(page, options=CHECKED[fleet, look] or None).response["violations"]
    return [
        f"{found['id']} ({len(found['nodes'])}×): {found['nodes'][0]['html'][:160]}"
        f" {[why['message'] for why in found['nodes'][0]['any']][:1]}"
        for found in said
        if found["impact"] in {"serious", "critical"}
    ]


@pytest.mark.parametrize("pattern", page_routes())
@pytest.mark.parametrize(("fleet", "look"), ON)
def test_a_page_keeps_nobody_out(
    site_of: Callable[[str], Site],
    visit_in: Callable[[str], Visit],
    pattern: str,
    fleet: str,
    look: str,
) -> None:
    visit = visit_in(look)
    visit.complaints.clear()
    page = visit.page
    page.set_viewport_size(LOOKS[look]["viewport"])
    open_page(site_of(fleet), pattern, page)
    found = [*page.evaluate(OUTLINE), *wider_than_the_window(page), *serious(page, fleet, look)]
    if look == "phone":
        for width in NARROW:
            page.set_viewport_size({"width": width, "height": 800})
            found += wider_than_the_window(page)
    assert [*found, *visit.complaints] == []


def test_every_page_is_opened_on_some_fleet(site_of: Callable[[str], Site]) -> None:
    opened = {pattern for name in RECIPES for pattern in site_of(name).pages}
    assert set(page_routes()) <= opened
