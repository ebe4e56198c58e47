"""The demo: a simulated fleet in a database of its own, seeded once, topped up at each start, then fed live."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import groupby
from multiprocessing import get_context
from typing import Final

from sqlalchemy import Engine

from agent.sources.simulator.cast import HISTORY_DAYS
from agent.sources.simulator.fleet import fleet
from core.clock import from_ms
from core.errors import GpuwiseError
from core.settings import Settings, load, state_home
from core.units import DAY_MS, HOUR_MS
from gpuwise.demo_history import Tier, register, tiers, write_engine, write_gpu
from store.dbapi import shown
from store.engine import make_engine, session_scope
from store.queries import fleet as known
from store.queries import meta
from store.queries.hours import bounds as hours_bounds
from store.rollup import roll_up
from store.schema import ensure_ready

ANCHOR_KEY: Final = "demo_anchor_ms"
"""Hour of the first seed: the scenario hangs on it, so that a demo opened again later tells the same story."""
MONEY_KEY: Final = "demo_money"
ADVICE_KEY: Final = "demo_advice"
MOST_WORKERS: Final = 4

Progress = Callable[[str, int, int], None]
"""Told of a phase, how much of it is done and how much there is."""


@dataclass(frozen=True, slots=True)
class Seeded:
    """What a seed did: samples stored, hours rolled up, and how far the fleet's history reaches."""

    samples: int
    gpu_hours: int
    to_ms: int


@dataclass(frozen=True, slots=True)
class _Task:
    """One GPU or engine to write: which function, its number in the fleet, its host, what is missing."""

    write: Callable[..., int]
    number: int
    host: str | None
    stretches: tuple[Tier, ...]


def demo_settings(
    database_url: str | None = None, host: str | None = None, port: int | None = None
) -> Settings:
    """Settings of the demo: the user's, but for the database, which is never the one of real telemetry."""
    url = database_url or f"sqlite:///{state_home() / 'demo.db'}"
    return load({"database_url": url, "host": host, "port": port, "simulated": True})


def seed(
    settings: Settings,
    now_ms: int,
    *,
    days: int = HISTORY_DAYS,
    workers: int | None = None,
    progress: Progress = lambda _phase, _done, _total: None,
) -> Seeded:
    """Fill the database up to ``now_ms``: all of the history the first time, what is missing later.

    Each GPU is one transaction, so that a seed that was ended halfway goes on where it stopped.

    Args:
        settings: whose database. now_ms: end of the history; the same end gives the same samples.
        days: history of a new database, and the most that is filled of one that rested for longer.
        workers: processes that simulate; default one per core, 4 at most. 0: none but this one.
        progress: told of each step.

    Raises:
        GpuwiseError: the database holds real data.
    """
    url = settings.database_url
    ensure_ready(url)
    engine = make_engine(url)
    anchor_ms = _anchor(engine, url, now_ms)
    register(url, anchor_ms)
    _money(engine, settings, now_ms, days)
    tasks = _tasks(engine, anchor_ms, now_ms - days * DAY_MS, now_ms)
    samples = hours = done = 0
    progress("simulate", done, len(tasks))
    if workers is None:
        workers = min(os.cpu_count() or 1, MOST_WORKERS)
    written = _written(tasks, url, anchor_ms, workers)
    # A host's hours are folded while the next host is still being simulated.
    for _host, group in groupby(written, key=lambda pair: pair[0].host):
        for _task, stored in group:
            samples += stored
            done += 1
            progress("simulate", done, len(tasks))
        hours += roll_up(engine, now_ms=now_ms).gpu_hours
        progress("roll up", done, len(tasks))
    hours += roll_up(engine, now_ms=now_ms).gpu_hours  # what a seed that was ended halfway had left
    progress("price", 0, 1)
    _run(engine, settings, now_ms, "ledger")
    progress("price", 1, 1)
    progress("advise", 0, 1)
    _advice(engine, settings, now_ms, anchor_ms)
    progress("advise", 1, 1)
    return Seeded(samples, hours, now_ms)


def _anchor(engine: Engine, url: str, now_ms: int) -> int:
    """The scenario's hour; marks a new database as simulated."""
    with session_scope(engine) as session:
        if not meta.simulated(session):
            if known.gpus(session) or known.engines(session):
                raise GpuwiseError(
                    f"database {shown(url)} holds real telemetry, and the demo never mixes with it: "
                    "give the demo a database of its own with --database-url"
                )
            meta.set_simulated(session)
        value = meta.get(session, ANCHOR_KEY)
        if value is None:
            value = str(now_ms // HOUR_MS * HOUR_MS)
            meta.put(session, ANCHOR_KEY, value)
        return int(value)


def _money(engine: Engine, settings: Settings, now_ms: int, days: int) -> None:
    """Owners, budgets and tariff of the demo, once: what somebody changes of them stays."""
    from gpuwise.demo_money import tell

    with session_scope(engine) as session:
        if meta.get(session, MONEY_KEY) is None:
            tell(session, settings, now_ms, f"{from_ms(now_ms - days * DAY_MS):%Y-%m}")
            meta.put(session, MONEY_KEY, "told")


def _advice(engine: Engine, settings: Settings, now_ms: int, anchor_ms: int) -> None:
    """Run the rules; in a new database at earlier times too, with the steps that people of the demo took then."""
    from gpuwise.demo_advice import RUNS, take

    with session_scope(engine) as session:
        is_told = meta.get(session, ADVICE_KEY) is not None
        seen = hours_bounds(session)
    told = () if is_told or seen is None else RUNS
    for ago_h, steps in told:
        then_ms = anchor_ms - ago_h * HOUR_MS
        if seen is None or seen.from_ms > then_ms - 7 * DAY_MS:
            continue  # a short history has no past in which anybody could have acted
        _run(engine, settings, then_ms, "advice")
        with session_scope(engine) as session:
            take(session, steps, anchor_ms)
            meta.put(session, ADVICE_KEY, "told")
    _run(engine, settings, now_ms, "advice")
    if told:
        _run(engine, settings, now_ms, "verification")


def _tasks(engine: Engine, anchor_ms: int, oldest_ms: int, now_ms: int) -> list[_Task]:
    """What to write, host by host: each GPU and engine from where its samples end."""
    crew = fleet(anchor_ms)
    with session_scope(engine) as session:
        until = {gpu.identity.gpu_uuid: gpu.last_seen_ms for gpu in known.gpus(session)}
        until |= {one.identity.engine: one.last_seen_ms for one in known.engines(session)}
    oldest_ms = oldest_ms // HOUR_MS * HOUR_MS

    def missing(key: str) -> tuple[Tier, ...]:
        return tiers(max(until[key] or 0, oldest_ms), now_ms)

    found = [
        _Task(write_gpu, number, probe.identity.host, missing(probe.identity.gpu_uuid))
        for number, probe in enumerate(crew.gpus)
    ]
    found += [
        _Task(write_engine, number, probe.identity.host, missing(probe.identity.engine))
        for number, probe in enumerate(crew.engines)
    ]
    hosts = list(dict.fromkeys(task.host for task in found))
    return sorted((task for task in found if task.stretches), key=lambda task: hosts.index(task.host))


def _written(tasks: Sequence[_Task], url: str, anchor_ms: int, workers: int) -> Iterator[tuple[_Task, int]]:
    """Write every task; each with the samples stored as soon as it is done, host after host."""
    if workers == 0:
        for task in tasks:
            yield task, task.write(url, anchor_ms, task.number, task.stretches)
        return
    # Spawned, not forked: this process has database connections and perhaps threads.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_ignore_interrupt) as pool:
        try:
            started = [
                (task, pool.submit(task.write, url, anchor_ms, task.number, task.stretches)) for task in tasks
            ]
            for _host, group in groupby(started, key=lambda pair: pair[0].host):
                task_of = {future: task for task, future in group}
                for future in as_completed(task_of):
                    yield task_of[future], future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _ignore_interrupt() -> None:
    """Ctrl-C reaches the whole process group; the parent ends its workers in order."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _run(engine: Engine, settings: Settings, now_ms: int, name: str) -> None:
    from api.jobs.model import run_job
    from gpuwise.scheduler import by_name

    run_job(by_name(name), engine, settings, now_ms)
