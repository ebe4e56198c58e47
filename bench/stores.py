"""Samples per second into each store, against bare rows of the same size through the driver."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from agent.sources.simulator.fleet import fleet
from bench.databases import postgresql, sqlite
from bench.measure import Figure, medians, seconds
from core.metrics import GPU_COLUMNS
from core.readings import GpuIdentity
from core.samples import GpuSample
from core.units import HOUR_MS, SECOND_MS
from gpuwise.demo_history import Tier, gpu_history
from store.dbapi import SQLITE_PRAGMAS, open_connection, sqlite_path
from store.ingest import Ingest

SAMPLES: Final = 40_000
TRANSACTION: Final = 1_000
GPUS: Final = 20
START_MS: Final = 1_794_960_000_000
COLUMNS: Final = ("gpu_id", "ts_ms", "span_ms", "covered_ms", "energy_method", "activity", *GPU_COLUMNS)


def samples() -> list[GpuSample]:
    """Samples of a fleet in the order in which they arrive: every GPU, then the next ten seconds."""
    tier = Tier(START_MS, START_MS + 10 * SAMPLES // GPUS * SECOND_MS, 10_000, 10_000)
    one, _processes = gpu_history(fleet(START_MS + HOUR_MS).gpus[0], tier)
    return [replace(sample, gpu_uuid=f"GPU-{number}") for sample in one for number in range(GPUS)]


def bare_rows(of: Sequence[GpuSample]) -> list[tuple[Any, ...]]:
    """The same values as plain tuples."""
    return [
        (
            int(sample.gpu_uuid.removeprefix("GPU-")),
            sample.ts_ms,
            sample.span_ms,
            sample.covered_ms,
            sample.energy_method,
            sample.activity.value,
            *map(sample.values.get, GPU_COLUMNS),
        )
        for sample in of
    ]


def run(server: str | None, runs: int) -> Iterator[Figure]:
    """Each store in turn."""
    found = samples()
    rows = bare_rows(found)
    bare, ours = medians(runs, lambda: _bare_sqlite(rows), lambda: _ingest_sqlite(found))
    yield from _figures("SQLite", "executemany", (len(rows) / bare, len(rows) / ours), runs)
    if server is not None:
        bare, ours = medians(
            runs, lambda: _bare_postgresql(server, rows), lambda: _ingest_postgresql(server, found)
        )
        yield from _figures("PostgreSQL", "COPY", (len(rows) / bare, len(rows) / ours), runs)


def _figures(kind: str, path: str, rates: tuple[float, float], runs: int) -> Iterator[Figure]:
    bare, ours = rates
    yield Figure("ingest", f"{kind}, bare {path}", bare, "rows/s", runs)
    yield Figure("ingest", f"{kind}, store.ingest", ours, "samples/s", runs, ours / bare, f"bare {path}")


def _chunks(of: Sequence[Any]) -> Iterator[list[Any]]:
    source = iter(of)
    while chunk := list(islice(source, TRANSACTION)):
        yield chunk


def _ingest(url: str, of: Sequence[GpuSample]) -> float:
    with open_connection(url) as connection:
        ingest = Ingest(connection)
        ingest.gpus(GpuIdentity(f"GPU-{number}") for number in range(GPUS))
        ingest.commit()

        def store() -> None:
            for chunk in _chunks(of):
                ingest.gpu_samples(chunk)
                ingest.commit()

        return seconds(store)


def _ingest_sqlite(of: Sequence[GpuSample]) -> float:
    with sqlite() as url:
        return _ingest(url, of)


def _ingest_postgresql(server: str, of: Sequence[GpuSample]) -> float:
    with postgresql(server) as url:
        return _ingest(url, of)


def _bare_sqlite(rows: Sequence[tuple[Any, ...]]) -> float:
    import sqlite3

    with sqlite() as url:
        path = Path(sqlite_path(url)).with_name("bare.db")
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            for pragma in SQLITE_PRAGMAS:
                connection.execute(pragma)
            connection.execute(
                f"CREATE TABLE bare ({', '.join(COLUMNS)}, PRIMARY KEY (gpu_id, ts_ms)) WITHOUT ROWID"
            )
            statement = f"INSERT INTO bare VALUES ({', '.join('?' * len(COLUMNS))})"

            def store() -> None:
                for chunk in _chunks(rows):
                    connection.execute("BEGIN IMMEDIATE")
                    connection.executemany(statement, chunk)
                    connection.commit()

            return seconds(store)


def _bare_postgresql(server: str, rows: Sequence[tuple[Any, ...]]) -> float:
    import psycopg

    kinds = {"gpu_id": "bigint", "ts_ms": "bigint", "span_ms": "bigint", "covered_ms": "bigint"}
    kinds |= {"energy_method": "text", "activity": "text"}
    columns = ", ".join(f"{name} {kinds.get(name, 'double precision')}" for name in COLUMNS)
    with postgresql(server) as url, closing(psycopg.connect(url)) as connection:
        connection.execute(f"CREATE TABLE bare ({columns}, PRIMARY KEY (gpu_id, ts_ms))".encode())
        connection.commit()

        def store() -> None:
            for chunk in _chunks(rows):
                with connection.cursor() as cursor, cursor.copy(b"COPY bare FROM STDIN") as target:
                    for row in chunk:
                        target.write_row(row)
                connection.commit()

        return seconds(store)
