"""Hours rolled up per second, from the samples of a live agent (10 s) and of the demo's older history (30 min)."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Final

from agent.sources.simulator.fleet import fleet
from bench.databases import postgresql, sqlite
from bench.measure import Figure, medians, seconds
from core.units import HOUR_MS, MINUTE_MS
from gpuwise.demo_history import Tier, register, write_engine, write_gpu
from store.dbapi import open_connection
from store.engine import make_engine
from store.rollup import roll_up

START_MS: Final = 1_794_960_000_000
_MARK_ALL: Final = """
    INSERT INTO rollup_pending (hour_ms, kind, entity_id, mark)
    SELECT DISTINCT ts_ms - ts_ms % 3600000, '{kind}', {kind}_id, 1 FROM {kind}_sample WHERE true
    ON CONFLICT DO NOTHING
"""
LIVE: Final = Tier(START_MS, START_MS + 4 * HOUR_MS, 5_000, 10_000)
COARSE: Final = Tier(START_MS, START_MS + 120 * HOUR_MS, 5 * MINUTE_MS, 30 * MINUTE_MS)


def run(server: str | None, runs: int) -> Iterator[Figure]:
    """Each store in turn."""
    yield from _store("SQLite", sqlite(), runs)
    if server is not None:
        yield from _store("PostgreSQL", postgresql(server), runs)


def _store(kind: str, database: AbstractContextManager[str], runs: int) -> Iterator[Figure]:
    anchor_ms = START_MS + 240 * HOUR_MS
    with database as url:
        register(url, anchor_ms)
        for number, probe in enumerate(fleet(anchor_ms).gpus):
            tier = LIVE if probe.identity.host == "chat-01" else COARSE
            if probe.identity.host in {"chat-01", "train-01"}:
                write_gpu(url, anchor_ms, number, (tier,))
        for number in range(5):
            write_engine(url, anchor_ms, number, (LIVE,))
        for name, host, hours in (
            ("10 s samples", "chat-01", 8 * 4),
            ("30 min samples", "train-01", 8 * 120),
        ):
            roll_up(make_engine(url), now_ms=anchor_ms)
            (took_s,) = medians(runs, lambda h=host, n=hours: _again(url, h, n, anchor_ms))  # type: ignore[misc]
            yield Figure("roll-up", f"{kind}, {name}", hours / took_s, "GPU-hours/s", runs)


def _again(url: str, host: str, hours: int, now_ms: int) -> float:
    """Mark every hour of a host's GPUs and engines, and roll them up once more."""
    with open_connection(url) as connection:
        connection.begin()
        for kind in ("gpu", "engine"):
            connection.execute(_MARK_ALL.format(kind=kind))
        connection.execute(
            "DELETE FROM rollup_pending WHERE kind = 'gpu' AND entity_id NOT IN "
            "(SELECT gpu.id FROM gpu JOIN host ON host.id = gpu.host_id WHERE host.name = ?)",
            (host,),
        )
        if host != "chat-01":
            connection.execute("DELETE FROM rollup_pending WHERE kind = 'engine'")
        connection.commit()
    engine = make_engine(url)
    done = 0

    def fold() -> None:
        nonlocal done
        done = roll_up(engine, now_ms=now_ms).gpu_hours

    took_s = seconds(fold)
    if done != hours:
        raise RuntimeError(f"{done} GPU-hours were rolled up where {hours} were due")
    return took_s
