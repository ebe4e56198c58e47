"""The database sink on both databases: exactly once, and through a database that goes away and comes back."""

import sqlite3
import sys
import threading
import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from subprocess import run

import pytest

from agent.sender import Sender
from agent.sinks.base import RefusedError, SinkError
from agent.sinks.database import DatabaseSink
from agent.spool import Spool
from core.activity import Activity
from core.delivery import Delivery, encode
from core.readings import GpuHealth, GpuIdentity, HostIdentity, WorkloadKey
from core.samples import EnergyMethod, GpuEvent, GpuSample, HostSample, ProcessSample
from store.dbapi import open_connection

ROOT = Path(__file__).parents[3]
T0 = 1_791_187_200_000
GPUS = ("GPU-a", "GPU-b")


def delivery(number: int) -> Delivery:
    ts_ms = T0 + 10_000 * number
    workload = WorkloadKey("pod", "u-1", "llm-0", "1000", "n1")
    return Delivery(
        HostIdentity("n1", cpu_count=96),
        [GpuIdentity(name, host="n1", model="NVIDIA H200") for name in GPUS],
        gpu_samples=[
            GpuSample(name, ts_ms, 10_000, 10_000, {"power_w": 300.0}, EnergyMethod.COUNTER, Activity.BUSY)
            for name in GPUS
        ],
        process_samples=[ProcessSample("GPU-a", ts_ms, 10_000, workload, 1e9, 0.5, 1)],
        host_samples=[HostSample("n1", ts_ms, 10_000, {"cpu_busy_ratio": 0.1})],
        events=[GpuEvent("GPU-a", ts_ms, "xid", "GPU has fallen off the bus.", 79)],
        health=[GpuHealth("GPU-a", ts_ms, {"compute_mode": "default"})],
    )


def body(number: int, agent_id: str = "a") -> bytes:
    return zlib.compress(encode(delivery(number), agent_id=agent_id, sequence=number), 1, 31)


def counts(url: str) -> list[int]:
    with open_connection(url) as connection:
        return [
            connection.fetch(f"SELECT count(*) FROM {table}")[0][0]
            for table in ("gpu_sample", "process_sample", "host_sample", "gpu_event")
        ]


def until(fact: Callable[[], bool]) -> None:
    while not fact():
        time.sleep(0.005)


def test_a_delivery_of_the_spool_is_stored_once_however_often_it_comes(ready_database: str) -> None:
    with DatabaseSink(ready_database) as sink:
        for _time in range(3):
            sink.deliver_body(body(1), agent_id="a", sequence=1)
        sink.deliver_body(body(2), agent_id="a", sequence=2)
        assert sink.deliver(delivery(2)) == 0
        assert sink.deliver(delivery(3)) == delivery(3).row_count
    with DatabaseSink(ready_database) as other:
        other.deliver_body(body(1, "b"), agent_id="b", sequence=1)
    assert counts(ready_database) == [6, 3, 3, 3]


@pytest.mark.parametrize(
    "bad",
    [
        b"no gzip",
        body(1)[:-9],
        zlib.compress(b"[]", 1, 31),
        zlib.compress(b'{"version":9}', 1, 31),
        zlib.compress(b'{"version":1,"gpus":[{}]}', 1, 31),
    ],
)
def test_a_body_that_is_no_delivery_is_for_good(ready_database: str, bad: bytes) -> None:
    with DatabaseSink(ready_database) as sink:
        with pytest.raises(RefusedError, match="delivery 7 of the spool is damaged"):
            sink.deliver_body(bad, agent_id="a", sequence=7)
        sink.deliver_body(body(1), agent_id="a", sequence=1)
    assert counts(ready_database)[0] == 2


def test_a_value_that_no_database_takes_does_not_pass_for_a_database_that_is_away(
    ready_database: str,
) -> None:
    wrong = delivery(1)
    wrong.gpu_samples[0] = replace(wrong.gpu_samples[0], span_ms=1 << 80)
    with DatabaseSink(ready_database) as sink:
        with pytest.raises((RefusedError, SinkError)) as error:
            sink.deliver(wrong)
        assert isinstance(error.value, RefusedError) or error.value.suspect
        assert sink.deliver(delivery(2)) == delivery(2).row_count
    assert counts(ready_database) == [2, 1, 1, 1]


def test_a_database_without_tables_is_a_sentence_and_taken_once_it_has_them(
    tmp_path: Path, sqlite_template: Path
) -> None:
    path = tmp_path / "gpuwise.db"
    sink = DatabaseSink(f"sqlite:///{path}")
    with pytest.raises(SinkError, match="gpuwise db upgrade"):
        sink.deliver(delivery(1))
    path.unlink()
    path.write_bytes(sqlite_template.read_bytes())
    assert sink.deliver(delivery(1)) > 0
    sink.close()


def test_a_locked_sqlite_database_delays_and_loses_nothing(
    tmp_path: Path, sqlite_template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "store.dbapi.SQLITE_PRAGMAS", ("PRAGMA busy_timeout = 10", "PRAGMA journal_mode = WAL")
    )
    path = tmp_path / "gpuwise.db"
    path.write_bytes(sqlite_template.read_bytes())
    spool = Spool(tmp_path / "spool.db")
    sender = Sender(spool, DatabaseSink(f"sqlite:///{path}"), jitter=lambda: 0.002)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    for number in range(5):
        spool.append(delivery(number), T0)
    sender.start()
    until(lambda: sender.errors >= 2)
    assert spool.waiting == 5
    holder.execute("ROLLBACK")
    holder.close()
    until(lambda: spool.waiting == 0)
    assert sender.stop()
    spool.close()
    assert counts(f"sqlite:///{path}") == [10, 5, 5, 5]


@pytest.mark.parametrize("database_kind", ["postgresql"], indirect=True)
def test_connections_cut_by_postgresql_at_any_point_lose_and_double_nothing(
    ready_database: str, tmp_path: Path
) -> None:
    import psycopg

    url = ready_database
    spool = Spool(tmp_path / "spool.db")
    sender = Sender(spool, DatabaseSink(url), jitter=lambda: 0.001)
    ended = threading.Event()

    def cut() -> None:
        with psycopg.connect(url, autocommit=True) as killer:
            while not ended.wait(0.01):
                killer.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )

    thread = threading.Thread(target=cut)
    thread.start()
    sender.start()
    for number in range(60):
        spool.append(delivery(number), T0)
        sender.wake()
        time.sleep(0.005)
    until(lambda: sender.errors > 0)
    ended.set()
    thread.join()
    until(lambda: spool.waiting == 0)
    assert sender.stop()
    assert spool.refused == 0
    spool.close()
    assert counts(url) == [120, 60, 60, 60]


@pytest.mark.parametrize("sink", ["database", "server"])
def test_neither_sink_loads_what_the_server_needs(sink: str) -> None:
    code = (
        "import sys\nfrom core.settings import Settings\nfrom agent.sinks.choose import make_sink\n"
        "import agent.sender, agent.spool\n"
        f"make_sink(Settings(sink={sink!r}, server_url='https://h'))\n"
        "heavy = {'sqlalchemy', 'pydantic', 'fastapi', 'psycopg', 'click', 'urllib.request', 'gzip'}\n"
        "extra = {'store', 'psutil'} if SERVER else {'http.client', 'ssl'}\n"
        "print(sorted((heavy | extra) & set(sys.modules)))"
    ).replace("SERVER", str(sink == "server"))
    done = run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
