"""A server process of its own: deliveries at the same time, and ``kill -9`` in the middle of them."""

import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from random import Random
from typing import Any

import pytest
from ingest_for_tests import HOST, PATH, SPAN, counts, delivery, json_of, make_token

from core.clock import now_ms
from core.delivery import Delivery

ROOT = Path(__file__).parents[3]
START_S = 30.0
ROUNDS = 6
PER_ROUND = 20


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """``gpuwise serve`` as a process."""

    def __init__(self, url: str) -> None:
        self.port = free_port()
        command = [sys.executable, "-m", "gpuwise", "serve", "--database-url", url, "--port", str(self.port)]
        environment = os.environ | {"PYTHONPATH": str(ROOT), "GPUWISE_CONFIG": ""}
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        deadline = time.monotonic() + START_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                assert self.process.poll() is None, self.said()
                assert time.monotonic() < deadline
                time.sleep(0.05)
            else:
                return

    def said(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read().decode(errors="replace")

    def stop(self, how: int = signal.SIGTERM) -> None:
        self.process.send_signal(how)
        self.process.wait(30)
        if self.process.stderr is not None:
            self.process.stderr.close()


@contextmanager
def serving(url: str) -> Iterator[Server]:
    server = Server(url)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()


def body(made: Delivery, sequence: int) -> bytes:
    return gzip.compress(json.dumps(json_of(made, sequence=sequence)).encode(), 1)


def send(port: int, token: str, raw: bytes) -> dict[str, Any]:
    """Post once.

    Raises:
        OSError, HTTPException: no answer.
    """
    head = {
        "Content-Type": "application/json",
        "Content-Encoding": "gzip",
        "Authorization": f"Bearer {token}",
    }
    with closing(HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.request("POST", PATH, raw, head)
        response = connection.getresponse()
        answer: dict[str, Any] = json.loads(response.read())
        assert response.status == 200, answer
        return answer


def recent(number: int, *, uuid: str = "GPU-a", host: str = HOST) -> Delivery:
    """The ``number``-th interval before the last hour began."""
    from dataclasses import replace

    made = delivery(uuid=uuid, host=host)
    ts_ms = now_ms() // 3_600_000 * 3_600_000 - (number + 1) * SPAN
    for name in ("gpu_samples", "process_samples", "engine_samples", "host_samples", "events", "health"):
        setattr(made, name, [replace(row, ts_ms=ts_ms) for row in getattr(made, name)])
    return made


def test_the_same_delivery_many_times_at_once_is_stored_once(ready_database: str) -> None:
    token = make_token(ready_database)
    raw = body(recent(0), 1)
    with serving(ready_database) as server, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: send(server.port, token, raw), range(24)))
    assert counts(ready_database) == dict.fromkeys(counts(ready_database), 1)
    assert sum(answer["new_rows"] for answer in answers) == 5


def test_many_hosts_at_once_are_all_stored(ready_database: str) -> None:
    token = make_token(ready_database, None)
    bodies = [
        body(recent(number // 8, uuid=f"GPU-{number % 8}", host=f"h{number % 8}"), number)
        for number in range(64)
    ]
    with serving(ready_database) as server, ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda raw: send(server.port, token, raw), bodies))
    assert counts(ready_database) == dict.fromkeys(counts(ready_database), 64)
    assert {answer["new_rows"] for answer in answers} == {5}


@pytest.mark.timeout(240)
def test_killed_in_the_middle_nothing_answered_is_lost_and_nothing_is_stored_twice(
    ready_database: str,
) -> None:
    """Deliveries go on while the server is killed; what has no answer is sent again to the next one."""
    token = make_token(ready_database)
    chance = Random(8)
    waiting = [body(recent(number), number) for number in range(ROUNDS * PER_ROUND)]
    answered = 0
    for _ in range(ROUNDS):
        server = Server(ready_database)
        with ThreadPoolExecutor(4) as pool:
            sent = {pool.submit(send, server.port, token, raw): raw for raw in waiting}
            time.sleep(chance.uniform(0.0, 0.25))
            server.stop(signal.SIGKILL)
            still = []
            for future, raw in sent.items():
                try:
                    future.result()
                    answered += 1
                except (OSError, HTTPException, ValueError):
                    still.append(raw)
        waiting = still
        assert min(counts(ready_database).values()) >= answered
    with serving(ready_database) as server:
        for raw in waiting:
            send(server.port, token, raw)
    assert counts(ready_database) == dict.fromkeys(counts(ready_database), ROUNDS * PER_ROUND)
