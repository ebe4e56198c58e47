"""A report by owner and day over 90 days of 1,000 GPUs, through REST, against a bare sum over the same lines.

The ledger's days are written straight into the tables: two lines a GPU-day (a job of one of twenty owners, and idle
time). Then hours and raw samples grow tenfold, and the same report is asked again.
"""

import random
import time
from collections.abc import Iterator
from contextlib import closing
from statistics import median
from typing import Any, Final

from sqlalchemy import text
from starlette.testclient import TestClient

from api.app import create_app
from api.resources import ledger_basis
from bench.databases import postgresql, sqlite
from bench.measure import Figure, seconds
from core.activity import Activity
from core.clock import iso
from core.hours import GpuHour
from core.samples import EnergyMethod
from core.settings import Settings
from core.units import DAY_MS, HOUR_MS
from store import ledger_totals
from store.dbapi import Connection, open_connection
from store.engine import make_engine, session_scope
from store.hour_rows import gpu_hour_values
from store.ledger_writer import COLUMNS
from store.partitions import Partitions

GPUS: Final = 1_000
DAYS: Final = 90
OWNERS: Final = 20
RATE: Final = 2_690_000
START_MS: Final = 1_790_812_800_000
"""2026-10-01."""
END_MS: Final = START_MS + DAYS * DAY_MS
ROWS_AT_ONCE: Final = 20_000
HISTORY: Final = 100
"""Hours, and raw samples, of each GPU before they grow tenfold."""
SAMPLE_MS: Final = 10_000


def run(server: str | None, runs: int) -> Iterator[Figure]:
    """Both stores."""
    with sqlite() as url:
        yield from _figures("SQLite", url, runs)
    if server is not None:
        with postgresql(server) as url:
            yield from _figures("PostgreSQL", url, runs)


def _figures(store: str, url: str, runs: int) -> Iterator[Figure]:
    build_ledger(url)
    bare_s = median(seconds(lambda: _bare(url)) for _ in range(runs))
    lines_s, _ = _asked(url, runs)
    took_s = seconds(lambda: ledger_totals.add_up(make_engine(url)))
    report_s, cpu_s = _asked(url, runs)
    what = f"{store}: {DAYS} days of {GPUS:,} GPUs by owner and day"
    yield Figure("reports", f"{store}: one bare sum of the same lines", bare_s * 1000, "ms", runs)
    yield from _against(what, report_s, bare_s, runs)
    yield Figure("reports", f"{what}: processor time of this process", cpu_s * 1000, "ms", runs)
    yield from _against(f"{what}, days not added up yet", lines_s, bare_s, runs)
    yield Figure("reports", f"{store}: add the days up", took_s, "s", 1)
    _fill_history(url, 0, HISTORY)
    once_s, _ = _asked(url, runs)
    _fill_history(url, HISTORY, 10 * HISTORY)
    later_s, _ = _asked(url, runs)
    yield from _against(f"{what}, with hours and samples", once_s, bare_s, runs)
    yield from _against(f"{what}, with ten times as many", later_s, once_s, runs, "before")


def _against(
    what: str, took_s: float, than_s: float, runs: int, against: str = "one bare sum"
) -> Iterator[Figure]:
    yield Figure("reports", what, took_s * 1000, "ms", runs, took_s / than_s, against)


def _asked(url: str, runs: int) -> tuple[float, float]:
    """Median seconds from request to answer, by the clock and of the processor: a page of 500 of its rows.

    That is what REST gives unless told otherwise.
    """
    app = create_app(Settings(database_url=url))
    app.state.clock = lambda: END_MS
    client = TestClient(app, base_url="http://127.0.0.1:8787")
    path = f"/api/v1/costs?since={iso(START_MS)}&until={iso(END_MS)}&by=owner,day"
    clock: list[float] = []
    processor: list[float] = []
    for _ in range(runs):
        start = time.process_time()
        clock.append(seconds(lambda: _get(client, path)))
        processor.append(time.process_time() - start)
    return median(clock), median(processor)


def _get(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    assert len(answer.content) > 100_000


def _bare(url: str) -> None:
    with make_engine(url).connect() as connection:
        connection.execute(
            text("SELECT sum(cost_usd) FROM ledger_day WHERE day_ms >= :first AND day_ms < :last"),
            {"first": START_MS, "last": END_MS},
        ).scalar_one()


def build_ledger(url: str) -> None:
    """Fill the ledger of a new database of either kind."""
    with closing(open_connection(url)) as connection:
        is_sqlite = connection.dialect == "sqlite"
        yes, no = (1, 0) if is_sqlite else (True, False)
        connection.begin()
        span = (START_MS, END_MS - 1, END_MS)
        _insert(
            connection,
            "gpu",
            ("id", "gpu_uuid", "model", "first_sample_ms", "last_sample_ms", "seen_until_ms"),
            [(gpu, f"GPU-{gpu:08}", "NVIDIA H100 80GB HBM3", *span) for gpu in range(1, GPUS + 1)],
        )
        owners = [(one, f"team-{one:02}", "", "") for one in range(1, OWNERS + 1)]
        _insert(connection, "owner", ("id", "team", "project", "cost_centre"), owners)
        _insert(
            connection,
            "workload",
            ("id", "natural_key", "kind", "key", "name", "attributes"),
            [(gpu, f"pod/{gpu}", "pod", f"job-{gpu}", f"job-{gpu}", "{}") for gpu in range(1, GPUS + 1)],
        )
        _insert(
            connection,
            "ledger_rate",
            ("id", "digest", "usd_per_gpu_hour", "billing", "basis", "as_of", "from_user", "gpus_per_unit"),
            [(1, "rate", RATE, "on_demand", "your price", "2026-10-01", yes, 1)],
        )
        place = ("settings", 1.3, 0.3, "setting", 380.0, "DEU", 2024, "life-cycle", no)
        _insert(
            connection,
            "ledger_place",
            (
                *("id", "digest", "site", "pue", "host_share_ratio", "host_share_method", "carbon_g_per_kwh"),
                *("carbon_code", "carbon_year", "carbon_method", "pays_for_power"),
            ),
            [(1, "place", *place)],
        )
        rows = []
        chance = random.Random(1)
        for day in range(DAYS):
            for gpu in range(1, GPUS + 1):
                held_ms = chance.randrange(40_000_000, 80_000_000)
                rows += [_line(day, gpu, "workload", held_ms), _line(day, gpu, "idle", DAY_MS - held_ms)]
            if len(rows) >= ROWS_AT_ONCE:
                _insert(connection, "ledger_day", COLUMNS, rows)
                rows = []
        _insert(connection, "ledger_day", COLUMNS, rows)
        connection.raw.commit()
        connection.execute("ANALYZE")
        connection.raw.commit()
    with session_scope(make_engine(url)) as session:
        ledger_basis.prepare(session, Settings(database_url=url))
        session.execute(text("DELETE FROM ledger_pending"))


def _line(day: int, gpu: int, kind: str, ms: int) -> tuple[Any, ...]:
    day_ms, held = START_MS + day * DAY_MS, kind == "workload"
    cost = RATE * ms // HOUR_MS
    told: dict[str, Any] = dict.fromkeys(COLUMNS, 0) | {
        "day_ms": day_ms,
        "from_ms": day_ms,
        "to_ms": day_ms + DAY_MS,
        "gpu_id": gpu,
        "kind": kind,
        "workload_id": gpu if held else None,
        "owner_id": gpu % OWNERS + 1 if held else None,
        "rate_id": 1,
        "place_id": 1,
        "booking_id": None,
        "share_method": "whole",
        "memory_byte_s": None,
        "energy_mj": ms * 400,
        "energy_method": "counter",
        "site_energy_mj": ms * 676,
        "cost_usd": cost,
        "idle_cost_usd": 0 if held else cost,
        "energy_usd": None,
        "billed_energy_usd": None,
        "carbon_ug": ms * 50,
        "busy_ms" if held else "empty_ms": ms,
        "busy_usd" if held else "empty_usd": cost,
    }
    for name in ("known_ms", "covered_ms", "energy_covered_ms"):
        told[name] = ms
    for name in ("allocated_ms", "active_ms", "effective_unknown_ms"):
        told[name] = ms if held else 0
    return tuple(told[name] for name in COLUMNS)


def _fill_history(url: str, first: int, last: int) -> None:
    """Hours and samples number ``first`` to ``last`` of each GPU, all inside the window, multiplied inside the database."""
    hour = GpuHour(
        gpu_uuid="",
        hour_ms=0,
        covered_s=3600.0,
        seconds={Activity.BUSY: 3600.0},
        joules={Activity.BUSY: 1_440_000.0},
        energy_j=1_440_000.0,
        energy_method=EnergyMethod.COUNTER,
        energy_covered_s=3600.0,
        allocated_s=3600.0,
        active_s=3600.0,
        effective_s=0.0,
        effective_unknown_s=3600.0,
        busy_ratio=0.9,
        sm_active_ratio=None,
        dram_active_ratio=None,
        memory_used_bytes=None,
        power_w=400.0,
        power_limit_w=700.0,
    )
    sample = {"span_ms": SAMPLE_MS, "covered_ms": SAMPLE_MS, "activity": "busy", "power_w": 400.0}
    tables = (
        ("gpu_hour", "hour_ms", HOUR_MS, gpu_hour_values(hour, 0)),
        ("gpu_sample", "ts_ms", SAMPLE_MS, sample),
    )
    with closing(open_connection(url)) as connection:
        if connection.dialect == "postgresql":
            Partitions(url).ensure("gpu_sample", [START_MS])
        connection.begin()
        connection.execute("CREATE TEMPORARY TABLE numbers (n bigint)")
        connection.executemany("INSERT INTO numbers VALUES (?)", [(n,) for n in range(first, last)])
        for table, time, step_ms, row in tables:
            values = {name: _literal(value) for name, value in row.items() if name not in {"gpu_id", time}}
            connection.execute(
                f"INSERT INTO {table} (gpu_id, {time}, {', '.join(values)}) "
                f"SELECT gpu.id, {START_MS} + {step_ms} * n, {', '.join(values.values())} FROM gpu CROSS JOIN numbers"
            )
        connection.execute("DROP TABLE numbers")
        connection.raw.commit()
        connection.execute("ANALYZE")
        connection.raw.commit()


def _literal(value: float | str | None) -> str:
    return "NULL" if value is None else repr(str(value)) if isinstance(value, str) else repr(value)


def _insert(connection: Connection, table: str, names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    listed = ", ".join(names)
    if connection.dialect == "sqlite":
        marks = ", ".join("?" * len(names))
        connection.executemany(f"INSERT INTO {table} ({listed}) VALUES ({marks})", rows)
    else:
        connection.copy(f"COPY {table} ({listed}) FROM STDIN", rows)
