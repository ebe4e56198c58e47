"""Seconds of a seed, of the rules and of every page and REST answer on the demo fleet, against a trivial page."""

from collections.abc import Iterator
from typing import Final

from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from fastapi.testclient import TestClient

from agent.sources.simulator.fleet import gpu_uuid
from api.app import create_app
from api.resources import advise
from api.resources.scope import Scope, default_window
from bench.databases import sqlite
from bench.measure import Figure, medians, seconds
from core.clock import now_ms
from core.settings import Settings
from gpuwise.demo import seed
from store.engine import make_engine, session_scope

BUSY_GPU: Final = gpu_uuid("chat-01", 4)
PAGES: Final = (
    "/",
    "/fleet",
    f"/gpus/{BUSY_GPU}",
    f"/gpus/{BUSY_GPU}/series.json",
    "/engines",
    "/costs",
    "/recommendations",
    "/recommendations/1",
    "/report",
)
REST: Final = (
    "/api/v1/gpus",
    f"/api/v1/gpus/{BUSY_GPU}/samples",
    f"/api/v1/gpus/{BUSY_GPU}/hours",
    "/api/v1/hosts",
    "/api/v1/engines",
    "/api/v1/funnel",
    "/api/v1/usage?by=workload",
    "/api/v1/energy?by=day",
    "/api/v1/costs?by=host",
    "/api/v1/recommendations",
    "/api/v1/reports/weekly",
    "/api/v1/health",
)


def run(runs: int) -> Iterator[Figure]:
    """Seed 30 days of 32 GPUs, then ask for everything."""
    with sqlite() as url:
        settings = Settings(database_url=url, simulated=True)
        at_ms = now_ms()
        yield Figure("demo", "seed 30 days, roll up, advise", seconds(lambda: seed(settings, at_ms)), "s", 1)
        trivial = TestClient(_trivial())
        with TestClient(create_app(settings)) as client:
            (base_s,) = medians(max(runs, 20), lambda: _get(trivial, "/"))
            yield Figure("answer", "a page that says only ok", base_s * 1000, "ms", max(runs, 20))
            (took_s,) = medians(runs, lambda: seconds(lambda: _advise(settings, at_ms)))
            yield _answer("run all rules", took_s, base_s, runs)
            for path in PAGES + REST:
                _get(client, path)  # templates compile and connections open once
                (took_s,) = medians(runs, lambda p=path: _get(client, p))  # type: ignore[misc]
                yield _answer(f"GET {path.replace(BUSY_GPU, '…')}", took_s, base_s, runs)


def _answer(name: str, took_s: float, base_s: float, runs: int) -> Figure:
    return Figure("answer", name, took_s * 1000, "ms", runs, took_s / base_s, "trivial")


def _get(client: TestClient, path: str) -> float:
    status = 0

    def ask() -> None:
        nonlocal status
        status = client.get(path).status_code

    took_s = seconds(ask)
    if status != 200:
        raise RuntimeError(f"GET {path} answered {status}")
    return took_s


def _advise(settings: Settings, at_ms: int) -> None:
    with session_scope(make_engine(settings.database_url)) as session:
        window = default_window(session, at_ms)
        assert window is not None
        advise.run(Scope(session, settings, at_ms, window), record=False)


def _trivial() -> FastAPI:
    app = FastAPI()

    @app.get("/")
    def ok() -> HTMLResponse:
        return HTMLResponse("<p>ok</p>")

    return app
