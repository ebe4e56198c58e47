"""A browser for all browser tests, and the fleets that every page is opened on."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from store.engine import dispose_engine
from tests.e2e.browsing import Site, served
from tests.e2e.sites import RECIPES, pages_of

CHROMIUM = Path(os.environ.get("GPUWISE_TEST_CHROMIUM", "/usr/bin/chromium"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium without a window; skipped where there is none, a failure in CI."""
    if not CHROMIUM.is_file():
        sentence = f"no browser at {CHROMIUM}: install chromium, or set GPUWISE_TEST_CHROMIUM"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(sentence, pytrace=False)
        pytest.skip(sentence)
    with sync_playwright() as play:
        found = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="session")
def site_of(
    sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Site]]:
    """Fills and serves a fleet when it is first asked for, until the session ends."""
    made: dict[str, Site] = {}
    with ExitStack() as stack:

        def site(name: str) -> Site:
            if name not in made:
                path = tmp_path_factory.mktemp(name) / "gpuwise.db"
                shutil.copyfile(sqlite_template, path)
                url, recipe = f"sqlite:///{path}", RECIPES[name]
                recipe.fill(url)
                stack.callback(dispose_engine, url)
                address = stack.enter_context(served(recipe.settings(url), recipe.now_ms))
                made[name] = Site(name, address, pages_of(url))
            return made[name]

        yield site
