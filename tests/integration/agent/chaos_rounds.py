"""Rounds of kills from the first start to the last delivery, and what became of everything that was durable."""

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from agent.sinks.base import BodySink
from agent.sinks.database import DatabaseSink
from agent.sinks.server import ServerSink
from api.resources import tokens
from core.clock import now_ms
from core.samples import GpuSample
from store.dbapi import open_connection
from store.engine import make_engine, session_scope
from tests.engine_pages import vllm
from tests.integration.agent.chaos import POWER_W, Agent, Nursery, Server, all_at_once, drain
from tests.integration.agent.chaos_notes import Row, doubles, losses, stored_rows
from tests.page_server import serving

TAP_S: Final = 0.003
READING_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Plan:
    """How many, and how often each is killed.

    Attributes:
        server_rounds: kills of the server; None: the agents write to the database themselves.
        hold: another program locks the database at random meanwhile.
    """

    agents: int
    rounds: int
    server_rounds: int | None
    gpus: int = 2
    hold: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was done and what was found.

    Attributes:
        noted: rows that were seen durable in a spool; backlog: the most deliveries that a kill left waiting.
        wrong: what must not be: refused, renumbered, two agents in one spool, joules that were not used.
    """

    kills: int
    stored: Counter[str]
    noted: Counter[str]
    backlog: int
    losses: list[str]
    doubles: list[str]
    wrong: list[str]


def kill_rounds(
    folder: Path, database_url: str, plan: Plan, *, library: Path, port: int, seed: int
) -> Outcome:
    """Kill everything as planned, let all arrive, compare; ``seed`` decides about every wait."""
    with ExitStack() as stack:
        nursery = stack.enter_context(Nursery())
        page = stack.enter_context(serving())
        started = time.monotonic()
        page.pages["/metrics"] = lambda handler: page.send(
            handler, vllm(generated=round(1e6 * (time.monotonic() - started))).encode()
        )
        server = None if plan.server_rounds is None else Server(nursery, folder, database_url, port)
        make = partial(
            Agent, nursery, folder, library=library, gpus=plan.gpus, engine_url=f"{page.url}/metrics"
        )
        agents = [_agent(make, number, database_url, server) for number in range(plan.agents)]
        rng = random.Random(seed)
        work = [partial(agent.rounds, plan.rounds, random.Random(rng.random()), server) for agent in agents]
        if server is not None:
            server.start()
            work.append(partial(server.rounds, plan.server_rounds or 0, random.Random(rng.random())))
        with _tap(agents), _held(database_url, rng) if plan.hold else ExitStack():
            all_at_once(*work)
            all_at_once(*(agent.end for agent in agents))
        all_at_once(*(partial(drain, agent, _sink(agent, database_url, server)) for agent in agents))
        if server is not None:
            server.end()
        kills = sum(agent.kills for agent in agents) + (0 if server is None else server.kills)
    return _outcome(agents, kills, stored_rows(database_url))


def _agent(make: Callable[..., Agent], number: int, database_url: str, server: Server | None) -> Agent:
    if server is None:
        return make(number=number, sink=["--sink", "database", "--database-url", database_url])
    return make(
        number=number, sink=server.flags, environment={"GPUWISE_SERVER_TOKEN": token_of(database_url, number)}
    )


def token_of(database_url: str, number: int | None) -> str:
    """A new token of an agent's host; None: of any host."""
    with session_scope(make_engine(database_url)) as session:
        host = None if number is None else f"node-{number}"
        return tokens.create(session, host=host, name="", expires_days=None, now_ms=now_ms())[0]


def _sink(agent: Agent, database_url: str, server: Server | None) -> BodySink:
    if server is None:
        return DatabaseSink(database_url)
    return ServerSink(server.url, lambda: agent.environment["GPUWISE_SERVER_TOKEN"])


@contextmanager
def _tap(agents: list[Agent]) -> Iterator[None]:
    """Note what comes into the spools as soon as it is there: most of it is acknowledged a moment later."""
    ended = threading.Event()

    def watch() -> None:
        seen: dict[int, int] = {}
        while not ended.wait(TAP_S):
            for agent in agents:
                with suppress(OSError):
                    stamp = agent.notes.spool.with_name("spool.db-wal").stat().st_mtime_ns
                    if seen.get(agent.number) != stamp:
                        seen[agent.number] = stamp
                        agent.notes.take_live()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def _held(database_url: str, rng: random.Random) -> Iterator[None]:
    """Lock the database against writers for up to a second, again and again."""
    ended = threading.Event()

    def hold() -> None:
        while not ended.wait(rng.uniform(0, 1.0)):
            with closing(open_connection(database_url)) as connection:
                connection.begin()
                if connection.dialect == "postgresql":
                    connection.execute("LOCK TABLE gpu, host IN EXCLUSIVE MODE")
                ended.wait(rng.uniform(0, 1.0))
                connection.rollback()

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _outcome(agents: list[Agent], kills: int, stored: list[Row]) -> Outcome:
    notes = [agent.notes for agent in agents]
    wrong = [f"refused {one.refused} of {one.spool}" for one in notes if one.refused]
    wrong += [f"renumbered {one.changed} in {one.spool}" for one in notes if one.changed]
    wrong += [f"{len(one.agents)} ids in {one.spool}" for one in notes if len(one.agents) != 1]
    for row in stored:
        if isinstance(row, GpuSample) and "energy_j" in row.values:
            used_j = POWER_W * row.covered_ms / 1000
            if abs(row.values["energy_j"] - used_j) > 2 * READING_S * POWER_W:
                wrong.append(f"{used_j:.0f} J were used, not {row.values['energy_j']:.0f}: {row}")
    return Outcome(
        kills,
        Counter(type(row).__name__ for row in stored),
        Counter(type(row).__name__ for one in notes for row in one.rows.values()),
        max(agent.backlog for agent in agents),
        losses(notes, stored),
        doubles(stored),
        wrong,
    )


def new_seed() -> int:
    """Another one each time, unless ``GPUWISE_CHAOS_SEED`` names the one of a failure."""
    return int(os.environ.get("GPUWISE_CHAOS_SEED") or time.time_ns() % 1_000_000_007)
