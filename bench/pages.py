"""Pages over 1,000 GPUs × 90 days: the server's time, the bytes that travel, first paint in a browser; again with ten times the raw samples."""

import gzip
import os
import re
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

import uvicorn
from fastapi import FastAPI
from starlette.testclient import TestClient

from api.app import create_app
from bench import page_fleet
from bench.databases import sqlite
from bench.measure import Figure, seconds
from core.collector import settle

GPU: Final = "/gpus/GPU-00000001"

PAGES: Final = (
    "/",
    "/fleet",
    "/hosts/node-00001",
    GPU,
    f"{GPU}?since=30d",
    "/engines",
    "/workloads",
    "/owners",
    "/recommendations",
    "/costs",
    "/costs?by=gpu",
    "/costs?by=host",
    "/costs?by=model",
    "/costs?by=workload",
    "/costs?by=engine",
    "/costs?by=activity",
    "/energy",
    "/budgets",
    "/plan/rent-or-buy",
    "/plan/size",
    "/report",
    "/settings",
    "/system",
    "/search?q=node-00042",
)
PAINTED: Final = {"/report": "/report/preview"}
"""What a browser is asked to paint instead: a report's page is a sandboxed frame of the mail, of which no paint is told.

The mail forbids scripts, which would also tell of none, so its policy is left out there.
"""
PERIOD: Final = "since=90d"
PERSON: Final = {"accept": "text/html", "accept-encoding": "gzip", "sec-fetch-site": "same-origin"}
CHROMIUM: Final = Path(os.environ.get("GPUWISE_TEST_CHROMIUM", "/usr/bin/chromium"))
ASSET: Final = re.compile(r'(?:src|href)="(/static/[^"]+)"')


def run(runs: int) -> Iterator[Figure]:
    """SQLite, the default store: build, ask, grow, ask again, look."""
    with sqlite() as url:
        page_fleet.build(url)
        yield from figures(url, runs)


def figures(url: str, runs: int) -> Iterator[Figure]:
    """All figures over a database that ``page_fleet`` built."""
    app = application(url)
    client = TestClient(app, base_url="http://127.0.0.1:8787", headers=PERSON)
    client.get("/")
    settle()
    few = {page: _asked(client, page, runs) for page in PAGES}
    weights = {page: weight(client, page) for page in PAGES}
    page_fleet.grow(url, page_fleet.FEW, page_fleet.MANY)
    many = {page: _asked(client, page, runs) for page in PAGES}
    for page in PAGES:
        said = f"{page} of 1,000 GPUs × 90 days"
        yield Figure("pages", f"{said}: server time", few[page].wall_s * 1000, "ms", runs)
        yield Figure("pages", f"{said}: time of a core", few[page].core_s * 1000, "ms", runs)
        yield Figure(
            "pages",
            f"{said}: time of a core with ten times the raw samples",
            many[page].core_s * 1000,
            "ms",
            runs,
            many[page].core_s / few[page].core_s,
            "before they grew",
        )
        yield Figure("pages", f"{said}: bytes that travel, files included", weights[page] / 1000, "kB", 1)
    if CHROMIUM.is_file():
        for page, paint_ms in paints(app, runs).items():
            yield Figure("pages", f"{page}: first contentful paint in Chromium", paint_ms, "ms", runs)


def application(url: str) -> FastAPI:
    """The application with its clock at the end of the fleet."""
    app = create_app(page_fleet.settings(url))
    app.state.clock = lambda: page_fleet.END_MS
    return app


def over(page: str) -> str:
    """The page over 90 days, where it has not a period of its own."""
    return page if "since=" in page else f"{page}{'&' if '?' in page else '?'}{PERIOD}"


@dataclass(frozen=True, slots=True)
class Took:
    """Medians: what a person waits, and what the server computes; beside other work the first is the longer one."""

    wall_s: float
    core_s: float


def _asked(client: TestClient, page: str, runs: int) -> Took:
    cores: list[float] = []

    def once() -> None:
        start = time.process_time()
        answer = client.get(over(page))
        cores.append(time.process_time() - start)
        assert answer.status_code == 200, (page, answer.status_code, answer.text[:200])

    once()  # templates are compiled, the connection is open
    wall_s = median(seconds(once) for _ in range(runs))
    return Took(wall_s, median(cores[1:]))


def weight(client: TestClient, page: str) -> int:
    """Bytes of the page and of every file it names, as they travel: gzip."""
    answer = client.get(over(page))
    found = len(gzip.compress(answer.content, 6))
    for asset in dict.fromkeys(ASSET.findall(answer.text)):
        found += len(gzip.compress(client.get(asset).content, 6))
    return found


def paints(app: FastAPI, runs: int) -> dict[str, float]:
    """First contentful paint of each page in a new browser context (nothing cached), milliseconds."""
    from playwright.sync_api import sync_playwright

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    found: dict[str, float] = {}
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for page in PAGES:
            times = []
            for _ in range(runs):
                context = browser.new_context(
                    viewport={"width": 1280, "height": 900}, bypass_csp=page in PAINTED
                )
                tab = context.new_page()
                tab.goto(f"http://127.0.0.1:{port}{over(PAINTED.get(page, page))}")
                times.append(
                    tab.evaluate(
                        "() => new Promise((done) => { const now = performance.getEntriesByName('first-contentful-paint')[0];"
                        " if (now) return done(now.startTime); new PerformanceObserver((list) => { for (const e of list.getEntries())"
                        " if (e.name === 'first-contentful-paint') done(e.startTime); }).observe({type: 'paint', buffered: true}); })"
                    )
                )
                context.close()
            found[page] = median(times)
        browser.close()
    server.should_exit = True
    thread.join(10)
    return found


def main(folder: str, runs: int = 5) -> None:
    """Build a fleet in a folder (once) and print a line a page: for somebody who works on one."""
    target = Path(folder) / "gpuwise.db"
    url = f"sqlite:///{target}"
    if not target.exists():
        from store.schema import upgrade

        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = target.with_suffix(".new")
        upgrade(f"sqlite:///{scratch}")
        page_fleet.build(f"sqlite:///{scratch}")
        for left in ("-wal", "-shm"):
            scratch.with_name(scratch.name + left).unlink(missing_ok=True)
        shutil.move(scratch, target)
    client = TestClient(application(url), base_url="http://127.0.0.1:8787", headers=PERSON)
    client.get("/")
    settle()
    for page in PAGES:
        answer = client.get(over(page))
        if answer.status_code != 200:
            print(f"{page:40} {answer.status_code}")
            continue
        took = _asked(client, page, runs)
        said = f"{1000 * took.wall_s:7.0f} ms, {1000 * took.core_s:6.0f} ms of a core"
        print(f"{page:40} {said}, {weight(client, page) / 1000:6.0f} kB")


if __name__ == "__main__":
    import sys

    main(sys.argv[1])
