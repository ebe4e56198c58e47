"""A browser for all browser tests, and the fleets that every page is opened on."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from store.engine import dispose_engine
from tests.e2e.browsing import WIDE, Site, Visit, served
from tests.e2e.sites import RECIPES, pages_of
from tests.integration.api.agents_for_tests import deliver
from tests.integration.api.fleet_for_tests import NOW, fill, settings_for
from tests.integration.pages.conftest import give_advice

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


@pytest.fixture(scope="module")
def site(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The small fleet with an agent's deliveries and advice, served for one module: people change things in it."""
    path = tmp_path_factory.mktemp("browser") / "gpuwise.db"
    shutil.copyfile(sqlite_template, path)
    url = f"sqlite:///{path}"
    fill(url)
    deliver(url)
    give_advice(url)
    with served(settings_for(url), NOW) as address:
        yield address
    dispose_engine(url)


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    """A wide window, light."""
    context = browser.new_context(viewport=WIDE)  # type: ignore[arg-type]
    yield Visit(context)
    context.close()
