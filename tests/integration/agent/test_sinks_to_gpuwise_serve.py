"""Spool, sender and server sink against ``gpuwise serve`` itself, which is killed in the middle."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from agent.sender import Sender
from agent.sinks.server import ServerSink
from agent.spool import Spool
from api.resources import tokens
from core.activity import Activity
from core.clock import now_ms
from core.delivery import Delivery
from core.readings import GpuIdentity, HostIdentity
from core.samples import EnergyMethod, GpuSample
from store.dbapi import open_connection
from store.engine import make_engine, session_scope

ROOT = Path(__file__).parents[3]
HOST = "node"


def delivery(ts_ms: int, power_w: float = 300.0) -> Delivery:
    sample = GpuSample(
        "GPU-11111111-2222-3333-4444-555555555555",
        ts_ms - ts_ms % 10_000,
        10_000,
        10_000,
        {"power_w": power_w},
        EnergyMethod.COUNTER,
        Activity.UNKNOWN,
    )
    return Delivery(HostIdentity(HOST), [GpuIdentity(sample.gpu_uuid, host=HOST)], gpu_samples=[sample])


class Server:
    """``gpuwise serve`` on one port, as often as it is started."""

    def __init__(self, database_url: str) -> None:
        with closing(socket.socket()) as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self._command = [
            sys.executable,
            "-m",
            "gpuwise",
            "serve",
            "--database-url",
            database_url,
            "--port",
            str(self.port),
        ]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            self._command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def kill(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()


@pytest.fixture
def server(ready_database: str) -> Iterator[Server]:
    server = Server(ready_database)
    yield server
    server.kill()


@pytest.fixture(autouse=True)
def no_proxy_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


def until(fact: Callable[[], bool]) -> None:
    while not fact():
        time.sleep(0.01)


def test_what_the_spool_took_is_stored_once_though_the_server_is_killed_and_the_token_comes_late(
    ready_database: str, server: Server, tmp_path: Path
) -> None:
    now = now_ms()
    with session_scope(make_engine(ready_database)) as session:
        good = tokens.create(session, host=HOST, name="", expires_days=None, now_ms=now)[0]
    token = ["gw_wrong"]
    spool = Spool(tmp_path / "spool.db")
    sink = ServerSink(f"http://127.0.0.1:{server.port}", lambda: token[0])
    sender = Sender(spool, sink, jitter=lambda: 0.005)
    first = now - 3_600_000
    for number in range(30):
        spool.append(delivery(first + 10_000 * number), now)
    spool.append(delivery(now + 3_600_000), now)  # a clock that was an hour ahead
    wrong = delivery(first)
    wrong.gpu_samples[0] = replace(wrong.gpu_samples[0], covered_ms=-5)
    spool.append(wrong, now)
    sender.start()
    until(lambda: "cannot be reached" in (sender.last_error or ""))
    server.start()
    until(lambda: "does not accept the token" in (sender.last_error or ""))
    token[0] = good
    until(lambda: sender.sent >= 10)
    server.kill()
    for number in range(30, 60):
        spool.append(delivery(first + 10_000 * number), now)
        sender.wake()
    server.start()
    until(lambda: spool.waiting == 1)
    assert spool.refused == 1
    due_ms = spool.next_due_ms()
    assert due_ms is not None
    assert due_ms > now, "the early one waits"
    assert sender.stop()
    spool.close()
    with open_connection(ready_database) as connection:
        assert connection.fetch("SELECT count(*), min(ts_ms), max(ts_ms) FROM gpu_sample") == [
            (60, first - first % 10_000, first - first % 10_000 + 590_000)
        ]
