"""The live view costs nothing when nobody looks, reads once for all who do, and ends when they go."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy import event

from api.app import create_app
from api.live_hub import LiveHub
from core.activity import Activity
from store.dbapi import open_connection
from store.engine import make_engine
from store.ingest import Ingest
from tests.integration.api.fleet_for_tests import A, fill, sample, settings_for


class Looker:
    """A browser that looks at ``path`` until it goes; ``told`` are the events as JSON."""

    def __init__(self, app: FastAPI, path: str, **headers: str) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.told: list[dict[str, Any]] = []
        self.body = b""
        self.over = False
        self._gone, self._more = asyncio.Event(), asyncio.Event()
        sent = {"host": "127.0.0.1", **headers}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(key.encode(), value.encode()) for key, value in sent.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8787),
            "app": app,
        }
        self.task = asyncio.create_task(app(scope, self._receive, self._send))  # type: ignore[arg-type]

    async def _receive(self) -> dict[str, Any]:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {key.decode(): value.decode() for key, value in message["headers"]}
        else:
            self.body += message["body"]
            if message["body"].startswith(b"event: gpus\ndata: "):
                self.told.append(json.loads(message["body"].decode().split("data: ", 1)[1]))
            self.over = not message.get("more_body", False)
        self._more.set()

    async def until(self, ready: Callable[["Looker"], bool]) -> None:
        async with asyncio.timeout(20):
            while not ready(self):
                self._more.clear()
                await self._more.wait()

    async def go(self) -> None:
        self._gone.set()
        async with asyncio.timeout(20):
            await self.task


def app_over(url: str, **hub: Any) -> FastAPI:
    app = create_app(settings_for(url))
    app.state.live = LiveHub(**{"every_s": 0.02, **hub})
    return app


def statements(url: str) -> list[str]:
    """Every statement from now on."""
    found: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        found.append(statement)

    event.listen(make_engine(url), "before_cursor_execute", note)
    return found


def live(scenario: Callable[[], Awaitable[None]]) -> None:
    """Runs a scenario in a thread of its own: Playwright keeps a loop running in the main one."""
    with ThreadPoolExecutor(1) as aside:
        aside.submit(asyncio.run, scenario()).result()  # type: ignore[arg-type]


def store(url: str, slot: int, **values: float) -> None:
    with closing(open_connection(url)) as connection:
        ingest = Ingest(connection)
        ingest.gpu_samples([sample(A, slot, Activity.COMPUTE_BOUND, 612.0, busy_ratio=1.0, **values)])
        ingest.commit()


def test_the_newest_sample_comes_first_and_then_only_what_changed(ready_database: str) -> None:
    fill(ready_database)

    async def scenario() -> None:
        looker = Looker(app_over(ready_database), "/live/fleet")
        await looker.until(lambda one: len(one.told) == 1)
        assert {uuid: item["activity"] for uuid, item in looker.told[0].items()} == {
            "GPU-a": "empty",
            "GPU-b": "busy",
            "GPU-c": "busy",
        }
        assert looker.told[0]["GPU-a"]["fields"]["power"] == "70\xa0W"
        assert looker.told[0]["GPU-a"]["fields"]["sm"] == "–", "not measured is not 0"
        await asyncio.to_thread(store, ready_database, 12)
        await looker.until(lambda one: len(one.told) == 2)
        assert list(looker.told[1]) == ["GPU-a"]
        assert looker.told[1]["GPU-a"]["fields"]["power"] == "612\xa0W"
        assert looker.told[1]["GPU-a"]["at"] == "2026-10-05T02:10:00.000Z"
        await looker.go()

    live(scenario)


def test_no_query_runs_where_nobody_looks(ready_database: str) -> None:
    fill(ready_database)

    async def scenario() -> None:
        app = app_over(ready_database, every_s=0.005)
        asked = statements(ready_database)
        await asyncio.sleep(0.1)
        assert asked == []
        looker = Looker(app, "/live/gpus/GPU-a")
        await looker.until(lambda one: bool(one.told))
        await looker.go()
        assert app.state.live.readers == 0
        await asyncio.sleep(0.05)  # a look that had begun ends
        asked.clear()
        await asyncio.sleep(0.1)
        assert asked == []

    live(scenario)


def test_all_who_look_at_the_same_share_one_reader(ready_database: str) -> None:
    fill(ready_database)

    async def scenario() -> None:
        app = app_over(ready_database, every_s=3600)
        asked = statements(ready_database)
        lookers = [Looker(app, "/live/fleet") for _ in range(5)]
        for looker in lookers:
            await looker.until(lambda one: bool(one.told))
        reads = [one for one in asked if "gpu_sample" in one]
        assert len(reads) == 1
        assert (app.state.live.readers, app.state.live.listeners) == (1, 5)
        for looker in lookers[:4]:
            await looker.go()
        assert (app.state.live.readers, app.state.live.listeners) == (1, 1)
        await lookers[4].go()
        assert (app.state.live.readers, app.state.live.listeners) == (0, 0)

    live(scenario)


def test_one_too_many_is_told_so_in_a_sentence(ready_database: str) -> None:
    fill(ready_database)

    async def scenario() -> None:
        app = app_over(ready_database, most=1)
        first = Looker(app, "/live/fleet")
        await first.until(lambda one: bool(one.told))
        second = Looker(app, "/live/gpus/GPU-a")
        await second.until(lambda one: one.over)
        assert second.status == 503
        assert "too many look" in second.body.decode()
        await first.go()
        third = Looker(app, "/live/gpus/GPU-a")
        await third.until(lambda one: bool(one.told))
        await third.go()

    live(scenario)


def test_the_end_of_the_server_ends_every_stream(ready_database: str) -> None:
    fill(ready_database)

    async def scenario() -> None:
        app = app_over(ready_database)
        looker = Looker(app, "/live/fleet")
        await looker.until(lambda one: bool(one.told))
        app.state.live.close()
        await looker.until(lambda one: one.over)
        late = Looker(app, "/live/fleet")
        await late.until(lambda one: one.over)
        assert late.status == 503

    live(scenario)


def test_a_stream_is_neither_compressed_nor_kept(ready_database: str) -> None:
    fill(ready_database)

    async def scenario() -> None:
        looker = Looker(app_over(ready_database), "/live/fleet", **{"accept-encoding": "gzip"})
        await looker.until(lambda one: bool(one.told))
        assert looker.headers["content-type"].startswith("text/event-stream")
        assert "content-encoding" not in looker.headers
        assert "content-length" not in looker.headers
        assert looker.headers["cache-control"] == "no-store"
        assert "content-security-policy" in looker.headers
        await looker.go()

    live(scenario)


def test_a_reader_that_fails_once_goes_on(ready_database: str, caplog: pytest.LogCaptureFixture) -> None:
    calls: list[int] = []

    def read() -> dict[str, dict[str, Any]]:
        calls.append(1)
        if len(calls) == 1:
            raise OSError("the database is away")
        return {"GPU-a": {"at": str(len(calls))}}

    async def scenario() -> None:
        hub = LiveHub(every_s=0.01)
        with hub.listen("x", read) as listener:
            assert await listener.next(10)
        assert hub.readers == 0

    live(scenario)
    assert "live view could not be read" in caplog.text


def test_a_quiet_stream_says_that_it_is_there() -> None:
    async def scenario() -> None:
        with LiveHub(every_s=3600).listen("x", dict) as listener:
            assert await listener.next(0.01) == {}

    live(scenario)


def test_a_gpu_nobody_knows_is_not_found(ready_database: str) -> None:
    async def scenario() -> None:
        looker = Looker(app_over(ready_database), "/live/gpus/GPU-nobody")
        await looker.until(lambda one: one.over)
        assert looker.status == 404

    live(scenario)
