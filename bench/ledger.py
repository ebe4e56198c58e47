"""Pricing a month of 1,000 GPUs anew, on either store, against a loop that only reads the same rows.

The fleet is written straight into the tables (a roll-up of 720,000 hours is no part of the question): a third of the
GPUs run one job all along, others are empty, parked, idle at night, shared by three jobs, or silent now and then.
"""

import os
import random
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from api.resources.ledger_days import materialise
from bench.databases import postgresql, sqlite
from bench.measure import Figure, seconds
from core.activity import IDLE, Activity
from core.days import gpu_day
from core.hours import GpuHour
from core.samples import EnergyMethod
from core.settings import Settings
from core.units import DAY_MS, GIB, HOUR_MS
from store.day_rows import gpu_day_values
from store.dbapi import Connection, open_connection
from store.engine import make_engine, session_scope
from store.hour_rows import gpu_hour_values
from store.ledger_reader import hour_rows, use_rows
from store.queries import ledger_pending, prices

GPUS: Final = 1_000
DAYS: Final = 30
PER_HOST: Final = 8
START_MS: Final = 1_793_491_200_000 // DAY_MS * DAY_MS
"""2026-11-01."""
MODEL: Final = "NVIDIA H100 80GB HBM3"
KINDS: Final = (
    ("job",) * 8 + ("nightly",) * 4 + ("shared",) * 4 + ("parked",) * 3 + ("empty",) * 3 + ("silent",) * 2
)
JOBS: Final = {"empty": 0, "shared": 3}
"""Workloads at once; the others have one."""
ROWS_AT_ONCE: Final = 50_000
SETTINGS: Final = {"tariff_usd_per_kwh": 0.12, "grid_code": "DEU"}


def run(server: str | None) -> Iterator[Figure]:
    """Both stores."""
    with sqlite() as url:
        yield from _figures("SQLite", url)
    if server is not None:
        with postgresql(server) as url:
            yield from _figures("PostgreSQL", url)


def _figures(store: str, url: str) -> Iterator[Figure]:
    took_s = seconds(lambda: build_fleet(url, GPUS, DAYS))
    yield Figure("ledger", f"{store}: build {GPUS:,} GPUs × {DAYS} days", took_s, "s", 1)
    hours = GPUS * DAYS * 24
    bare_s = seconds(lambda: _read(url))
    first_s = seconds(lambda: _price(url))
    with session_scope(make_engine(url)) as session:
        ledger_pending.mark(session, 0, None)
    before = os.times()
    again_s = seconds(lambda: _price(url))
    spent = [now - then for now, then in zip(os.times()[:4], before[:4], strict=True)]
    what = f"{store}: a month of {GPUS:,} GPUs"
    against = "reading the rows"
    yield Figure("ledger", f"{what}: read the rows only", bare_s, "s", 1)
    yield Figure("ledger", f"{what}: price for the first time", first_s, "s", 1, first_s / bare_s, against)
    yield Figure("ledger", f"{what}: price anew", again_s, "s", 1, again_s / bare_s, against)
    yield Figure("ledger", f"{what}: price anew, processor time", sum(spent), "s", 1)
    yield Figure("ledger", f"{what}: priced anew a second", hours / again_s, "GPU-hours/s", 1)


def _price(url: str) -> None:
    done = materialise(make_engine(url), Settings(database_url=url, **SETTINGS), START_MS + DAYS * DAY_MS)  # type: ignore[arg-type]
    assert done.gpu_days >= GPUS * DAYS, done


def _read(url: str) -> None:
    """What pricing reads, in the same chunks, and nothing else."""
    with make_engine(url).connect() as connection:
        for first in range(1, GPUS + 1, 24):
            ids = range(first, min(first + 24, GPUS + 1))
            hour_rows(connection, ids, START_MS, START_MS + DAYS * DAY_MS)
            use_rows(connection, ids, START_MS, START_MS + DAYS * DAY_MS)


def build_fleet(url: str, gpus: int, days: int, *, with_price: bool = True) -> None:
    """Fill hours, days, usage and workloads of a fleet, all marked to be priced; nothing is priced yet.

    Args:
        url: a new, upgraded database of either kind.
        gpus, days: how many GPUs over how many days from ``START_MS``; eight GPUs a host.
        with_price: the user's price of every GPU.
    """
    shapes = [_Shape(number, kind) for number, kind in enumerate(KINDS)]
    with closing(open_connection(url)) as connection:
        if connection.dialect == "sqlite":
            connection.execute("PRAGMA synchronous = OFF")
        writer = _Writer(connection)
        connection.begin()
        for host in range(1, -(-gpus // PER_HOST) + 1):
            writer.add("host", {"id": host, "name": f"node-{host:05}", "cpu_count": 64})
        for gpu in range(1, gpus + 1):
            _gpu(writer, gpu, shapes[random.Random(gpu).randrange(len(shapes))], days)
        writer.flush()
        connection.raw.commit()
        connection.execute("ANALYZE")
        connection.raw.commit()
    with session_scope(make_engine(url)) as session:
        ledger_pending.mark(session, 0, None)
        if with_price:
            prices.add(
                session,
                scope_kind="all",
                scope_value="",
                usd_per_gpu_hour=Decimal("2.69"),
                billing="on_demand",
                valid_from_ms=0,
            )


def _gpu(writer: "_Writer", gpu: int, shape: "_Shape", days: int) -> None:
    end_ms = START_MS + days * DAY_MS
    writer.add(
        "gpu",
        {
            "id": gpu,
            "gpu_uuid": f"GPU-{gpu:08}",
            "host_id": (gpu - 1) // PER_HOST + 1,
            "gpu_index": (gpu - 1) % PER_HOST,
            "model": MODEL,
            "memory_total_bytes": 80 * GIB,
            "first_sample_ms": START_MS,
            "last_sample_ms": end_ms - 1,
            "seen_until_ms": end_ms,
        },
    )
    for week in range(-(-days // 7)):
        for job in range(shape.jobs):
            key = _workload(gpu, week, job)
            writer.add(
                "workload",
                {
                    "id": key,
                    "natural_key": f"pod/{key}",
                    "host_id": (gpu - 1) // PER_HOST + 1,
                    "kind": "pod",
                    "key": f"team-{gpu % 12}/job-{key}",
                    "name": f"job-{key}",
                    "user_name": f"user-{gpu % 40}",
                    "attributes": f'{{"namespace": "team-{gpu % 12}"}}',
                },
            )
    for day in range(days):
        at_ms = START_MS + day * DAY_MS
        of = shape.days[day % 7]
        writer.rows("gpu_day", of.day_names, [(gpu, at_ms, *of.day)])
        writer.rows(
            "gpu_hour", of.hour_names, [(gpu, at_ms + hour * HOUR_MS, *row) for hour, row in of.hours]
        )
        writer.rows(
            "usage_hour",
            _USE,
            [
                (gpu, at_ms + hour * HOUR_MS, _workload(gpu, day // 7, job), *row)
                for hour, job, row in of.uses
            ],
        )


def _workload(gpu: int, week: int, job: int) -> int:
    return gpu * 100 + week * 3 + job


_USE: Final = (
    "gpu_id",
    "hour_ms",
    "workload_id",
    "allocated_s",
    "active_s",
    "effective_s",
    "memory_byte_s",
    "energy_j",
    "share_method",
)


@dataclass(slots=True)
class _Day:
    """Rows of one day of one shape, without the GPU and the time."""

    hour_names: tuple[str, ...]
    hours: list[tuple[int, tuple[Any, ...]]]
    day_names: tuple[str, ...]
    day: tuple[Any, ...]
    uses: list[tuple[int, int, tuple[Any, ...]]]


class _Shape:
    """A week of one kind of GPU."""

    def __init__(self, number: int, kind: str) -> None:
        self.kind = kind
        self.jobs = JOBS.get(kind, 1)
        self._random = random.Random(number)
        self.days = [self._day(day) for day in range(7)]

    def _day(self, day: int) -> _Day:
        at = [hour for hour in range(24) if not (self.kind == "silent" and hour in {day, day + 9})]
        hours = [self._hour(hour) for hour in at]
        names, rows = _split([gpu_hour_values(hour, 0) for hour in hours], "gpu_id", "hour_ms")
        day_names, day_rows = _split([gpu_day_values(gpu_day(hours), 0)], "gpu_id", "day_ms")
        uses = [
            (at_hour, job, self._use(hour))
            for at_hour, hour in zip(at, hours, strict=True)
            for job in range(self.jobs)
        ]
        return _Day(names, list(zip(at, rows, strict=True)), day_names, day_rows[0], uses)

    def _hour(self, at: int) -> GpuHour:
        activity = self._activity(at)
        works = activity not in IDLE
        jitter = self._random.random()
        watts = {Activity.EMPTY: 72.0, Activity.PARKED: 118.0}.get(activity, 480.0) + 10 * jitter
        busy_s = round(3600.0 * (0.9 + 0.1 * jitter), 3) if works else 0.0
        seconds_by = {activity: 3600.0}
        if works:
            seconds_by = {activity: busy_s, Activity.PARKED: 3600.0 - busy_s}
        return GpuHour(
            gpu_uuid="",
            hour_ms=START_MS + at * HOUR_MS,
            covered_s=3600.0,
            seconds=seconds_by,
            joules={part: watts * s for part, s in seconds_by.items()},
            energy_j=watts * 3600,
            energy_method=EnergyMethod.COUNTER,
            energy_covered_s=3600.0,
            allocated_s=0.0 if activity is Activity.EMPTY else 3600.0,
            active_s=busy_s,
            effective_s=busy_s,
            effective_unknown_s=0.0,
            busy_ratio=0.9 * works,
            sm_active_ratio=0.8 * works,
            dram_active_ratio=0.6 * works,
            memory_used_bytes=60.0 * GIB,
            power_w=watts,
            power_limit_w=700.0,
        )

    def _activity(self, at: int) -> Activity:
        if self.kind in {"empty", "parked"}:
            return Activity(self.kind)
        if self.kind == "nightly" and not 7 <= at < 20:
            return Activity.PARKED
        return Activity.MEMORY_BOUND if self.kind == "job" else Activity.COMPUTE_BOUND

    def _use(self, hour: GpuHour) -> tuple[Any, ...]:
        part = 1 / self.jobs
        method = "whole" if self.jobs == 1 else "memory_time"
        figures = (hour.covered_s, hour.active_s, hour.effective_s, 60.0 * GIB * 3600, hour.energy_j or 0.0)
        return (*(value * part for value in figures), method)


def _split(rows: Sequence[dict[str, Any]], *keys: str) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Names of the columns, the keys first, and the rows without the keys."""
    names = [name for name in rows[0] if name not in keys]
    return (*keys, *names), [tuple(row[name] for name in names) for row in rows]


@dataclass(slots=True)
class _Writer:
    """Rows in bulk: COPY or executemany, tables in the order in which they were first met."""

    connection: Connection
    _waiting: dict[tuple[str, tuple[str, ...]], list[tuple[Any, ...]]] = field(default_factory=dict)
    _count: int = 0

    def add(self, table: str, values: dict[str, Any]) -> None:
        self.rows(table, tuple(values), [tuple(values.values())])

    def rows(self, table: str, names: tuple[str, ...], rows: Sequence[tuple[Any, ...]]) -> None:
        self._waiting.setdefault((table, names), []).extend(rows)
        self._count += len(rows)
        if self._count >= ROWS_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        for (table, names), rows in self._waiting.items():
            listed = ", ".join(names)
            if self.connection.dialect == "sqlite":
                marks = ", ".join("?" * len(names))
                self.connection.executemany(f"INSERT INTO {table} ({listed}) VALUES ({marks})", rows)
            else:
                self.connection.copy(f"COPY {table} ({listed}) FROM STDIN", rows)
            rows.clear()
        self._count = 0
