"""What browser tests share: the pages that the application has, a served database, and a page with its complaints."""

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

import pytest
import uvicorn
from fastapi.responses import HTMLResponse
from fastapi.routing import APIRoute
from playwright.sync_api import BrowserContext, Page

from api.app import PAGES, create_app
from core.settings import Settings

WIDE: Final = {"width": 1280, "height": 900}
PHONE: Final = {"width": 390, "height": 844}
FRAGMENTS: Final = frozenset({"/search/quick", "/report/preview"})
"""Parts of pages: what the search box shows while one types, the mail as it will be."""
DRAWN: Final = """() => {
  const zoom = document.querySelector("[data-series]");
  if (zoom && !zoom.classList.contains("drawn")) return false;
  return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))));
}"""
"""A GPU's charts come after the page, and what watches sizes acts a frame later."""


def page_routes() -> tuple[str, ...]:
    """The address pattern of every page, from the application itself: a new page is tested unasked."""
    found = (route for router in PAGES for route in router.routes if isinstance(route, APIRoute))
    return tuple(
        dict.fromkeys(
            route.path
            for route in found
            if "GET" in route.methods
            and issubclass(_answer(route), HTMLResponse)
            and route.path not in FRAGMENTS
        )
    )


def _answer(route: APIRoute) -> type:
    given = route.response_class
    return given if isinstance(given, type) else given.value


@dataclass(frozen=True)
class Site:
    """A fleet that is served: ``pages`` is the address of every page that it can show, by pattern."""

    name: str
    url: str
    pages: Mapping[str, str]


@contextmanager
def served(settings: Settings, now_ms: int) -> Iterator[str]:
    """The application on a port of its own, its clock at ``now_ms``."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    app = create_app(replace(settings, host="127.0.0.1", port=port))
    app.state.clock = lambda: now_ms
    # A live view that a browser left open keeps no server from ending.
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    pause = threading.Event()
    for _ in range(1_000):
        if server.started:
            break
        pause.wait(0.02)
    assert server.started, "the server did not start within 20 s"
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(10)


class Visit:
    """A page with everything it complained about; a dialog is a complaint too, and is closed."""

    def __init__(self, context: BrowserContext) -> None:
        self.page: Page = context.new_page()
        self.complaints: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda message: self._said(message.type, message.text))
        self.page.on("dialog", self._asked)

    def _said(self, kind: str, text: str) -> None:
        if kind in {"error", "warning"}:
            self.complaints.append(text)

    def _asked(self, dialog: object) -> None:
        self.complaints.append(f"dialog: {dialog.message}")  # type: ignore[attr-defined]
        dialog.dismiss()  # type: ignore[attr-defined]


def open_page(site: Site, pattern: str, page: Page, *, scripts: bool = True) -> None:
    """Open the page of that pattern and wait for its charts, or skip where the fleet has none."""
    if pattern not in site.pages:
        pytest.skip(f"the {site.name} fleet has no {pattern}")
    answer = page.goto(site.url + site.pages[pattern])
    assert answer is not None
    assert answer.status == 200
    if scripts:
        settle(page)


def settle(page: Page) -> None:
    """Wait until everything is drawn that a page draws by itself."""
    page.wait_for_function(DRAWN)
