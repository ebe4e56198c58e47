"""Make the pictures of the main pages: ``python -m docs.screenshots``. The same demo at the same hour, so that they stay as they are."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, sync_playwright

from gpuwise.demo import demo_settings, seed
from store.schema import upgrade
from tests.e2e.browsing import served

FOLDER: Final = Path(__file__).parent / "screenshots"
CHROMIUM: Final = os.environ.get("GPUWISE_TEST_CHROMIUM", "/usr/bin/chromium")
NOW_MS: Final = 1_791_216_000_000
"""2026-10-05T16:00Z, a Monday afternoon."""
DAYS: Final = 30
MOST_BYTES: Final = 150_000


@dataclass(frozen=True)
class Shot:
    """One picture: of which page, in which colours, how large."""

    path: str
    scheme: str = "light"
    width: int = 1240
    height: int = 660


SHOTS: Final[Mapping[str, Shot]] = {
    "overview": Shot("/"),
    "overview-dark": Shot("/", "dark"),
    "overview-phone": Shot("/", width=390, height=844),
    "recommendation": Shot("first:/recommendations"),
    "gpu": Shot("first:/fleet?by=gpu|/gpus/"),
    "engine": Shot("first:/engines|/engines/"),
    "engine-dark": Shot("first:/engines|/engines/", "dark"),
    "costs": Shot("/costs?by=owner"),
    "costs-dark": Shot("/costs?by=owner", "dark"),
    "rent-or-buy": Shot("/plan/rent-or-buy"),
}
"""By file name. ``first:LIST|PREFIX``: the first page of that address that the list links to."""


def main() -> None:
    """Fill a demo, serve it, and take every picture."""
    with tempfile.TemporaryDirectory() as scratch:
        url = f"sqlite:///{scratch}/demo.db"
        upgrade(url)
        seed(demo_settings(url), NOW_MS, days=DAYS)
        with served(demo_settings(url), NOW_MS) as site, sync_playwright() as play:
            browser = play.chromium.launch(
                executable_path=CHROMIUM, args=["--no-sandbox", "--font-render-hinting=none"]
            )
            FOLDER.mkdir(exist_ok=True)
            for name, shot in SHOTS.items():
                take(browser, site, shot, FOLDER / f"{name}.png")
            browser.close()


def take(browser: Browser, site: str, shot: Shot, path: Path) -> None:
    """One picture, with fewer colours where a tool for that is there."""
    context = browser.new_context(
        viewport={"width": shot.width, "height": shot.height},
        color_scheme="dark" if shot.scheme == "dark" else "light",
        reduced_motion="reduce",
        locale="en-GB",
        timezone_id="UTC",
    )
    page = context.new_page()
    if shot.path.startswith("first:"):
        where, _, prefix = shot.path.removeprefix("first:").partition("|")
        page.goto(site + where)
        link = page.locator(f"main a[href^='{prefix or where + '/'}']:not([href*='/rules'])").first
        href = link.get_attribute("href")
        assert href, f"{where} links to no page"
        page.goto(site + href)
    else:
        page.goto(site + shot.path)
    page.wait_for_load_state("networkidle")
    page.screenshot(path=path, animations="disabled")
    context.close()
    if pngquant := shutil.which("pngquant"):
        subprocess.run([pngquant, "--force", "--output", path, "64", path], check=True)  # noqa: S603 - our own files
    if path.stat().st_size > MOST_BYTES:
        sys.exit(f"{path.name} has {path.stat().st_size:,} bytes, {MOST_BYTES:,} are the most")


if __name__ == "__main__":
    main()
