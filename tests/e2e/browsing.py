"""What browser tests share: the pages that the application has, a served database, and a page with its complaints."""

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

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
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error"))
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
