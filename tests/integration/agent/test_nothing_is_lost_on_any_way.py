"""One spool by HTTP to a server, and straight into either database: the same hours to the last bit, late data included."""

import random
import shutil
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.batch import Batch
from agent.sinks.base import BodySink
from agent.sinks.database import DatabaseSink
from agent.sinks.server import ServerSink
from agent.sources.series import Thing
from agent.sources.simulator.fleet import Fleet, fleet
from agent.sources.simulator.live import snapshot
from agent.spool import Spool
from core.clock import now_ms
from core.metrics import HOST_COLUMNS
from core.readings import GpuHealth, HostIdentity
from core.samples import GpuEvent, HostSample
from core.units import HOUR_MS, MINUTE_MS, SECOND_MS
from store.dbapi import Connection, open_connection
from store.engine import make_engine
from store.rollup import roll_up
from tests.integration.agent.chaos import Nursery, Server
from tests.integration.agent.chaos_rounds import token_of

pytestmark = [pytest.mark.xdist_group("chaos"), pytest.mark.timeout(180)]

HOURS = 2
READ_MS = 5 * SECOND_MS
DELIVER_MS = 30 * SECOND_MS
NAMES = {
    "gpu_id": "SELECT id, gpu_uuid FROM gpu",
    "engine_id": "SELECT id, engine FROM engine",
    "host_id": "SELECT id, name FROM host",
    "workload_id": "SELECT id, natural_key FROM workload",
}
Tables = dict[str, list[tuple[Any, ...]]]


@pytest.fixture(scope="module")
def spool_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an agent of one simulated host has to say about two hours and a part of a third."""
    path = tmp_path_factory.mktemp("way") / "spool.db"
    from_ms = now_ms() // HOUR_MS * HOUR_MS - (HOURS + 1) * HOUR_MS
    everything = fleet(from_ms)
    host = next(engine.identity.host for engine in everything.engines)
    with closing(Spool(path)) as spool:
        for delivery, at_ms in deliveries(
            one_host(everything, str(host)), from_ms, from_ms + HOURS * HOUR_MS + 20 * MINUTE_MS
        ):
            spool.append(delivery, at_ms)
    return path


def one_host(everything: Fleet, host: str) -> Fleet:
    return Fleet(
        tuple(probe for probe in everything.gpus if probe.identity.host == host),
        tuple(probe for probe in everything.engines if probe.identity.host == host),
    )


def deliveries(of: Fleet, from_ms: int, to_ms: int) -> Iterator[tuple[Any, int]]:
    rng = random.Random(7)
    host = str(of.gpus[0].identity.host)
    batch = Batch()
    known: tuple[Thing, ...] = (
        *(probe.identity for probe in of.gpus),
        *(probe.identity for probe in of.engines),
    )
    for identity in known:
        batch.take(identity, write=False)
    for at_ms in range(from_ms, to_ms + 1, READ_MS):
        seen = snapshot(of, at_ms)
        things: tuple[Thing, ...] = (*seen.gpus, *seen.engines, *seen.processes)
        for thing in things:
            batch.take(thing, write=False)
        if at_ms % DELIVER_MS == 0 and at_ms > from_ms:
            batch.advance(at_ms)
            delivery = batch.take_delivery()
            delivery.host = HostIdentity("node-0", 96, 1 << 40, "1.0")
            delivery.gpus = [probe.identity for probe in of.gpus]
            delivery.engines = [probe.identity for probe in of.engines]
            start_ms = at_ms - 10 * SECOND_MS
            values = {name: rng.random() for name in HOST_COLUMNS}
            delivery.host_samples.append(HostSample(host, start_ms, 10 * SECOND_MS, values))
            gpu = rng.choice(of.gpus).identity.gpu_uuid
            delivery.events.append(GpuEvent(gpu, at_ms - 1, "xid", "Made up.", 79))
            delivery.health.append(GpuHealth(gpu, at_ms, {"ecc_corrected_count": rng.randrange(9)}))
            yield delivery, at_ms


def send(
    spool_file: Path, folder: Path, sink: BodySink, wanted: Callable[[int], bool] = lambda _sequence: True
) -> None:
    """All deliveries of a copy of the spool, or those of wanted numbers."""
    folder.mkdir(exist_ok=True)
    copy = folder / "spool.db"
    shutil.copyfile(spool_file, copy)
    with closing(Spool(copy)) as spool:
        while (entry := spool.oldest(now_ms())) is not None:
            if not wanted(entry.sequence):
                spool.done(entry.sequence)
                continue
            sink.deliver_body(entry.body, agent_id=entry.agent_id, sequence=entry.sequence)
            spool.done(entry.sequence)
        assert spool.refused == 0
    sink.close()


@contextmanager
def serving(database_url: str, folder: Path) -> Iterator[ServerSink]:
    """A sink to ``gpuwise serve``."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    token = token_of(database_url, None)
    with Nursery() as nursery:
        server = Server(nursery, folder, database_url, port)
        server.start()
        with closing(socket.socket()) as probe:
            while probe.connect_ex(("127.0.0.1", port)):
                pass
        yield ServerSink(server.url, lambda: token)
        server.end()


def hours(database_url: str, tables: Sequence[str]) -> Tables:
    """Rows of tables with names instead of numbers, sorted."""
    roll_up(make_engine(database_url), now_ms=now_ms())
    with open_connection(database_url) as connection:
        names = {column: dict(connection.fetch(sql)) for column, sql in NAMES.items()}
        return {table: sorted(_rows(connection, table, names), key=repr) for table in tables}


def _rows(connection: Connection, table: str, names: dict[str, dict[Any, Any]]) -> Iterator[tuple[Any, ...]]:
    columns = _columns(table)
    for row in connection.fetch(f"SELECT {', '.join(columns)} FROM {table}"):
        yield tuple(
            names[column].get(value) if column in names else value
            for column, value in zip(columns, row, strict=True)
        )


def _columns(table: str) -> list[str]:
    from store.tables import MODELS

    found = next(model.__table__ for model in MODELS if model.__tablename__ == table)
    return sorted(column.name for column in found.columns if column.name != "id")


TABLES = (
    "gpu_hour", "engine_hour", "usage_hour", "host_hour", "gpu_day", "engine_day", "usage_day", "host_day", "gpu_sample", "engine_sample", "process_sample", "host_sample", "gpu_event",
)  # fmt: skip


@pytest.mark.parametrize("database_kind", ["postgresql"], indirect=True)
def test_http_postgresql_and_sqlite_give_identical_hours(
    spool_file: Path,
    tmp_path: Path,
    ready_database: str,
    sqlite_template: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    served, direct = (
        f"sqlite:///{shutil.copyfile(sqlite_template, tmp_path / name)}"
        for name in ("served.db", "direct.db")
    )
    with serving(served, tmp_path) as sink:
        send(spool_file, tmp_path / "a", sink)
    send(spool_file, tmp_path / "b", DatabaseSink(ready_database))
    send(spool_file, tmp_path / "c", DatabaseSink(direct))
    by_http, postgresql, sqlite = (hours(url, TABLES) for url in (served, ready_database, direct))
    for table in TABLES:
        assert sqlite[table], table
        assert by_http[table] == sqlite[table], table
        assert postgresql[table] == sqlite[table], table


def test_late_deliveries_fold_their_hours_anew(
    spool_file: Path,
    tmp_path: Path,
    ready_database: str,
    sqlite_template: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    in_time = f"sqlite:///{shutil.copyfile(sqlite_template, tmp_path / 'in-time.db')}"
    send(spool_file, tmp_path / "a", DatabaseSink(in_time))
    late = [number for number in range(1, 10_000) if number % 7 in {2, 3, 4}]
    random.Random(3).shuffle(late)

    def deliver(sink: BodySink) -> Tables:
        send(spool_file, tmp_path / "b", sink, lambda sequence: sequence not in set(late))
        before = hours(ready_database, TABLES)
        send(spool_file, tmp_path / "c", sink, lambda sequence: sequence in set(late))
        send(spool_file, tmp_path / "d", sink)  # and all of it again
        return before

    if ready_database.startswith("sqlite"):
        with serving(ready_database, tmp_path) as server:
            before = deliver(server)
    else:
        before = deliver(DatabaseSink(ready_database))
    expected, found = hours(in_time, TABLES), hours(ready_database, TABLES)
    for table in TABLES:
        assert before[table] != expected[table], table
        assert found[table] == expected[table], table
