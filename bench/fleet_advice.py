"""Advice over large fleets: GPUs a second at 1,000 and at 10,000, the processor time and the memory of both.

A fortnight of hours and days is written straight into SQLite (a roll-up of 3.4 million hours is no part of the
question). Six of ten GPUs are healthy, the others empty, parked or idle at night; a third serve LLM engines.
"""

import random
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, Final

from api.resources import advise
from api.resources.scope import Scope, default_window
from bench.measure import Figure, seconds
from core.activity import IDLE, Activity
from core.days import engine_day, gpu_day, host_day, usage_days
from core.histogram import Histogram
from core.hours import BatchPoint, EngineHour, GpuHour, HostHour, UsageHour
from core.readings import WorkloadKey
from core.samples import EnergyMethod
from core.settings import Settings
from core.units import DAY_MS, GIB, HOUR_MS
from store.day_rows import engine_day_values, gpu_day_values, host_day_values, usage_day_values
from store.dbapi import SQLITE_PRAGMAS, sqlite_path
from store.engine import make_engine, session_scope
from store.hour_rows import engine_hour_values, gpu_hour_values, host_hour_values, usage_hour_values

FLEETS: Final = (1_000, 10_000)
DAYS: Final = 14
START_MS: Final = 1_794_960_000_000 // DAY_MS * DAY_MS
END_MS: Final = START_MS + DAYS * DAY_MS
SPAN: Final = range(START_MS, END_MS, HOUR_MS)
PER_HOST: Final = 8
MODEL: Final = "NVIDIA H100 80GB HBM3"
VARIANTS: Final = 24
"""Different GPUs and engines of each kind; the fleet repeats them, which makes rows fast and no query cheaper."""
Rows = dict[str, tuple[tuple[str, ...], list[tuple[Any, ...]]]]
"""Columns and rows by table."""


def run() -> Iterator[Figure]:
    """Both fleets, each advised by a process of its own, so that its memory is its own."""
    from bench.databases import sqlite

    rates: list[float] = []
    for count in FLEETS:
        with sqlite() as url:
            took_s = seconds(lambda url=url, count=count: build(url, count))  # type: ignore[misc]
            yield Figure("fleet", f"{count:,} GPUs × {DAYS} days: build hours and days", took_s, "s", 1)
            said = subprocess.run(
                [sys.executable, "-m", "bench.fleet_advice", url], capture_output=True, text=True, check=True
            )
            wall_s, cpu_s, peak_mib, second_mib, findings = (float(value) for value in said.stdout.split())
        rates.append(count / wall_s)
        yield Figure("fleet", f"{count:,} GPUs: advise, {findings:,.0f} findings", wall_s, "s", 1)
        against = "" if len(rates) == 1 else f"{FLEETS[0]:,} GPUs"
        ratio = rates[-1] / rates[0] if against else None
        yield Figure("fleet", f"{count:,} GPUs: advised a second", rates[-1], "GPUs/s", 1, ratio, against)
        yield Figure("fleet", f"{count:,} GPUs: processor time of both processes", cpu_s, "s", 1)
        yield Figure("fleet", f"{count:,} GPUs: peak memory", peak_mib, "MiB", 1)
        if second_mib:
            yield Figure("fleet", f"{count:,} GPUs: peak memory of the second process", second_mib, "MiB", 1)


def build(url: str, count: int, span: range = SPAN) -> None:
    """Write the fleet: each shape once, then every GPU, host, workload and engine as a copy of one.

    ``span`` are the hours (epoch ms, whole days) that it was seen in.
    """
    shapes = [_Shape(variant, span) for variant in range(VARIANTS)]
    hosts = -(-count // PER_HOST)
    with closing(sqlite3.connect(sqlite_path(url), isolation_level=None)) as connection:
        for pragma in (*SQLITE_PRAGMAS, "PRAGMA synchronous = OFF", "PRAGMA foreign_keys = OFF"):
            connection.execute(pragma)
        connection.execute("PRAGMA cache_size = -200000")
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(
            "INSERT INTO host (id, name, cpu_count) VALUES (?, ?, 64)",
            [(host, f"node-{host:05}") for host in range(1, hosts + 1)],
        )
        of = {gpu: shapes[random.Random(gpu).randrange(VARIANTS)] for gpu in range(1, count + 1)}
        for gpu, shape in of.items():
            _gpu(connection, gpu, shape, span)
        _copy(connection, [shape.gpu for shape in shapes], "gpu_id", of)
        _copy(connection, [shape.usage for shape in shapes], "gpu_id", of, "nullif(held * id, 0)")
        _copy(
            connection,
            [shape.engine for shape in shapes],
            "engine_id",
            {g: s for g, s in of.items() if s.serves},
        )
        _copy(connection, [shapes[0].host], "host_id", dict.fromkeys(range(1, hosts + 1), shapes[0]))
        connection.execute("COMMIT")
        connection.execute("ANALYZE")


def _gpu(connection: sqlite3.Connection, gpu: int, shape: "_Shape", span: range) -> None:
    """A GPU, with its workload and its engine where it has them."""
    host = (gpu - 1) // PER_HOST + 1
    uuid = f"GPU-{gpu:08}"
    connection.execute(
        "INSERT INTO gpu (id, gpu_uuid, host_id, gpu_index, model, memory_total_bytes, power_limit_default_w, "
        "first_sample_ms, last_sample_ms, seen_until_ms, last_held_ms) VALUES (?,?,?,?,?,?,?,?,?,?,?)",
        (gpu, uuid, host, (gpu - 1) % PER_HOST, MODEL, 80 * GIB, 700.0, *_seen(span)),
    )
    if shape.held:
        connection.execute(
            "INSERT INTO workload (id, natural_key, host_id, kind, key, name) VALUES (?, ?, ?, 'pod', ?, ?)",
            (gpu, f"pod/{gpu}", host, f"ns/job-{gpu}", f"job-{gpu}"),
        )
    if shape.serves:
        connection.execute(
            "INSERT INTO engine (id, engine, host_id, kind, model, settings, gpu_uuids, joined_gpu_ids, "
            "first_sample_ms, seen_until_ms) VALUES (?,?,?,'vllm','meta-llama/Llama-3.1-8B-Instruct',?,?,?,?,?)",
            (
                gpu,
                f"node-{host:05}:{8000 + gpu % PER_HOST}/0",
                host,
                '{"max_num_seqs": "256", "num_gpu_blocks": "30000", "block_size": "16", "dtype": "bfloat16"}',
                f'["{uuid}"]',
                f"[{gpu}]",
                span.start,
                span.stop,
            ),
        )


def _seen(span: range) -> tuple[int, int, int, int]:
    """Start of the first and of the newest sample, end of the newest, start of the newest with somebody on the GPU."""
    return span.start, span.stop - 1, span.stop, span.stop


def _copy(
    connection: sqlite3.Connection,
    rows_of: Sequence[Rows],
    key: str,
    subjects: Mapping[int, "_Shape"],
    workload: str | None = None,
) -> None:
    """The rows of each subject's shape, as its own; ``workload`` says whose they are, where the table asks."""
    connection.execute("CREATE TEMP TABLE subject (id INTEGER PRIMARY KEY, held INTEGER, shape INTEGER)")
    connection.executemany(
        "INSERT INTO subject VALUES (?, ?, ?)",
        [(number, int(shape.held), shape.number) for number, shape in subjects.items()],
    )
    for table in dict.fromkeys(name for rows in rows_of for name in rows):
        names, _ = next(rows[table] for rows in rows_of if table in rows)
        columns = ", ".join(names)
        connection.execute(f"CREATE TEMP TABLE shape AS SELECT 0 AS shape, {columns} FROM {table} LIMIT 0")
        marks = ", ".join("?" * (len(names) + 1))
        for number, rows in enumerate(rows_of):
            connection.executemany(
                f"INSERT INTO shape VALUES ({marks})",
                [(number, *row) for row in rows.get(table, (names, []))[1]],
            )
        connection.execute("CREATE INDEX temp.of_shape ON shape (shape)")
        indexes = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL",
            (table,),
        ).fetchall()
        for name, _ in indexes:  # made at the end: in one sort instead of row by row
            connection.execute(f"DROP INDEX {name}")
        more, value = ("", "") if workload is None else (", workload_id", f", {workload}")
        connection.execute(
            f"INSERT INTO {table} ({key}{more}, {columns}) SELECT id{value}, {columns}"
            " FROM subject CROSS JOIN shape ON shape.shape = subject.shape ORDER BY id, shape.rowid"
        )
        for _, sql in indexes:
            connection.execute(sql)
        connection.execute("DROP TABLE shape")
    connection.execute("DROP TABLE subject")


def _rows(table: str, values: list[dict[str, Any]], *keys: str) -> Rows:
    """Rows of ``table`` but for the keys."""
    names = tuple(name for name in values[0] if name not in keys)
    return {table: (names, [tuple(row[name] for name in names) for row in values])}


class _Shape:
    """The span of one kind of GPU, as rows."""

    def __init__(self, variant: int, span: range) -> None:
        self.number = variant
        self._random = random.Random(variant)
        self._kind = ("healthy",) * 15 + ("empty",) * 4 + ("parked",) * 3 + ("nightly",) * 2
        self.kind = self._kind[variant]
        self.serves = (variant % 3 == 0 and self.kind in {"healthy", "nightly"}) or variant in {1, 2}
        self.held = self.kind != "empty"
        hours = [self._hour(hour_ms) for hour_ms in span]
        usage = [self._usage(hour) for hour in hours]
        by_day = range(0, len(hours), 24)
        gpu_days = [gpu_day(hours[at : at + 24]) for at in by_day]
        days_of_usage = [usage_days(usage[at : at + 24]) for at in by_day]
        self.gpu = _rows("gpu_hour", [gpu_hour_values(hour, 0) for hour in hours], "gpu_id")
        self.gpu |= _rows("gpu_day", [gpu_day_values(day, 0) for day in gpu_days], "gpu_id")
        keys = ("gpu_id", "workload_id")
        self.usage = _rows("usage_hour", [usage_hour_values(line, 0, 0) for line in usage], *keys)
        self.usage |= _rows(
            "usage_day", [usage_day_values(day, 0, 0) for of in days_of_usage for day in of], *keys
        )
        engine_hours = [self._engine(hour) for hour in hours]
        self.engine = _rows(
            "engine_hour", [engine_hour_values(hour, 0) for hour in engine_hours], "engine_id"
        )
        engine_days = [engine_day(engine_hours[at : at + 24]) for at in by_day]
        self.engine |= _rows("engine_day", [engine_day_values(day, 0) for day in engine_days], "engine_id")
        host_hours = [
            HostHour("", hour.hour_ms, 3600.0, 0.3 + 0.1 * self._random.random(), 0.8, 0.01, 3e11, 900.0)
            for hour in hours
        ]
        self.host = _rows("host_hour", [host_hour_values(hour, 0) for hour in host_hours], "host_id")
        host_days = [host_day(host_hours[at : at + 24]) for at in by_day]
        self.host |= _rows("host_day", [host_day_values(day, 0) for day in host_days], "host_id")

    def _activity(self, hour_ms: int) -> Activity:
        night = not 7 <= hour_ms % DAY_MS // HOUR_MS < 20
        if self.kind in {"empty", "parked"}:
            return Activity(self.kind)
        if self.kind == "nightly" and night:
            return Activity.PARKED
        return Activity.MEMORY_BOUND if self.serves else Activity.COMPUTE_BOUND

    def _hour(self, hour_ms: int) -> GpuHour:
        activity = self._activity(hour_ms)
        works = activity not in IDLE
        jitter = self._random.random()
        watts = {Activity.EMPTY: 72.0, Activity.PARKED: 118.0}.get(activity, 480.0) + 10 * jitter
        busy_s = 3600.0 * (0.9 + 0.1 * jitter) if works else 0.0
        rest = Activity.PARKED if works else activity
        seconds = {activity: busy_s, rest: 3600.0 - busy_s} if works else {activity: 3600.0}
        hour = GpuHour(
            gpu_uuid="",
            hour_ms=hour_ms,
            covered_s=3600.0,
            seconds=seconds,
            joules={part: watts * s for part, s in seconds.items()},
            energy_j=watts * 3600,
            energy_method=EnergyMethod.COUNTER,
            energy_covered_s=3600.0,
            allocated_s=0.0 if activity is Activity.EMPTY else 3600.0,
            active_s=busy_s,
            effective_s=busy_s,
            effective_unknown_s=0.0,
            busy_ratio=0.95 * busy_s / 3600 + 0.01 * jitter,
            memory_busy_ratio=0.6 * works,
            sm_active_ratio=0.8 * busy_s / 3600,
            sm_occupancy_ratio=0.4 * works,
            tensor_active_ratio=(0.12 if self.serves else 0.5) * works,
            dram_active_ratio=(0.7 if self.serves else 0.3) * works,
            memory_used_bytes=0.0 if activity is Activity.EMPTY else 60.0 * GIB,
            memory_used_max_bytes=0.0 if activity is Activity.EMPTY else 62.0 * GIB,
            power_w=watts,
            power_max_w=watts + 60,
            power_limit_w=700.0,
            empty_power_w=watts if activity is Activity.EMPTY else None,
            parked_power_w=118.0 if activity is Activity.PARKED else None,
            sm_clock_hz=1.9e9 if works else None,
            throttled_s=0.0,
            temperature_max_c=62.0,
            pcie_bytes_per_s=2e8 * works,
            nvlink_bytes_per_s=1e9 * works,
        )
        return replace(hour, slowed_power_s=0.0, slowed_thermal_s=0.0, temperature_margin_min_c=20.0)

    def _usage(self, hour: GpuHour) -> UsageHour:
        workload = WorkloadKey("pod", "ns/job", "job", None, None) if self.held else None
        share = (hour.covered_s, hour.active_s, hour.effective_s)
        return UsageHour(
            workload, "", hour.hour_ms, *share, 60.0 * GIB * 3600, hour.energy_j, "whole", 2.0, 0.6
        )

    def _engine(self, hour: GpuHour) -> EngineHour:
        batch = 4.0 if self.kind == "nightly" else 160.0
        spread = {batch * share: hour.active_s * part for share, part in ((0.5, 0.2), (1.0, 0.6), (1.5, 0.2))}
        spread = {level: s for level, s in spread.items() if s > 0}
        rates = {level: level / (0.008 + 0.0001 * level) for level in spread}
        generated = sum(rates[level] * s for level, s in spread.items())
        return EngineHour(
            engine="",
            hour_ms=hour.hour_ms,
            covered_s=3600.0,
            busy_s=hour.active_s,
            running=Histogram(dict(spread)),
            waiting=Histogram({0.0: hour.active_s} if hour.active_s else {}),
            kv_used=Histogram({0.4: hour.active_s} if hour.active_s else {}),
            profile={level: BatchPoint(s, rates[level] * s, rates[level] * s) for level, s in spread.items()},
            generated_tokens=generated,
            busy_generated_tokens=generated,
            prompt_tokens=generated,
            cached_prompt_tokens=0.3 * generated,
            preemption_count=0.0,
            finished_requests=generated / 300,
            ttft_sum_s=generated / 300 * 0.2,
            ttft_count=generated / 300,
            itl_sum_s=None,
            itl_count=None,
            busy_energy_j=hour.energy_j if hour.active_s else 0.0,
        )


def main(url: str) -> None:
    """Advise over one database; print seconds, seconds of a core, peak memory (MiB) of both processes, and findings."""
    settings = Settings(database_url=url)
    found = 0

    def ask() -> None:
        nonlocal found
        with session_scope(make_engine(url)) as session:
            window = default_window(session, END_MS)
            assert window is not None
            found = len(advise.run(Scope(session, settings, END_MS, window), record=False).recommendations)

    before_s = sum(_cpu_s())
    took_s = seconds(ask)
    both = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    print(
        took_s, sum(_cpu_s()) - before_s, *(resource.getrusage(who).ru_maxrss / 1024 for who in both), found
    )


def _cpu_s() -> Iterator[float]:
    """User and system time of this process, and of those it waited for."""
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        used = resource.getrusage(who)
        yield used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main(sys.argv[1])
