"""A hundred agents of eight GPUs pushing to one server process on two cores: how fast at most, and how calm at 10 s.

The senders are processes on the same cores, so the server has less than two to itself. Every delivery is real JSON in
gzip, from a host of its own with a token of its own, over a connection that is kept.
"""

import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from queue import SimpleQueue
from random import Random
from statistics import quantiles
from typing import Final
from zlib import compressobj

from api.resources import tokens
from bench.databases import postgresql, sqlite
from bench.measure import Figure
from core.activity import Activity
from core.clock import now_ms
from core.delivery import Delivery, encode
from core.metrics import GPU_METRICS, HOST_METRICS, Metric
from core.readings import HostIdentity, WorkloadKey
from core.samples import EnergyMethod, GpuSample, HostSample, ProcessSample
from core.units import SECOND_MS
from store.dbapi import open_connection
from store.engine import make_engine, session_scope

ROOT: Final = Path(__file__).resolve().parents[1]
AGENTS: Final = 100
GPUS: Final = 8
SAMPLE_MS: Final = 10_000
NEEDED_PER_S: Final = AGENTS / (SAMPLE_MS / SECOND_MS)
SENDERS: Final = 2
CONNECTIONS: Final = 4
"""At work at once in each sender."""
WARM_UP_S: Final = 2.0
FULL_S: Final = 6.0
PACED_S: Final = 20.0
PREPARED: Final = 60
"""Deliveries per agent made before the clock starts; at full speed a run ends early when they are used up."""
ROWS: Final = GPUS * 2 + 1
CORES: Final = 2


@dataclass(frozen=True, slots=True)
class Answer:
    """One delivery: when it was due, sent and answered (monotonic seconds), rows that were new; status 0: no answer."""

    due_s: float
    sent_s: float
    done_s: float
    status: int
    new_rows: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What a sender process is to do: ``agents`` by (name, token), intervals from ``start_ms``, paced or as fast as it goes."""

    port: int
    agents: tuple[tuple[str, str], ...]
    start_ms: int
    intervals: int
    begin_s: float
    paced: bool


def run(server: str | None) -> Iterator[Figure]:
    """Figures for SQLite, and for PostgreSQL where ``server`` is one."""
    with sqlite() as url:
        yield from _database("SQLite", url)
    if server is not None:
        with postgresql(server) as url:
            yield from _database("PostgreSQL", url)


def _database(name: str, url: str) -> Iterator[Figure]:
    with session_scope(make_engine(url)) as session:
        agents = [
            (host, tokens.create(session, host=host, name="", expires_days=None, now_ms=now_ms())[0])
            for host in (f"node-{number:03d}" for number in range(AGENTS))
        ]
    start_ms = now_ms() // SAMPLE_MS * SAMPLE_MS - (PREPARED + 10) * SAMPLE_MS
    with _serving(url) as (port, pid):
        full = _send(port, agents, start_ms, PREPARED, paced=False)
        _check(url, full, "at full speed")
        before_s = _cpu_s(pid)
        paced = _send(port, agents, start_ms + PREPARED * SAMPLE_MS, 2, paced=True)
        cpu_s = _cpu_s(pid) - before_s
        if len(paced) != 2 * AGENTS:
            raise RuntimeError(f"at their pace: {len(paced)} answers to {2 * AGENTS} deliveries")
        _check(url, full + paced, "at their pace")
    begin_s = min(one.sent_s for one in full) + WARM_UP_S
    window = [one for one in full if begin_s <= one.done_s <= begin_s + FULL_S]
    spent_s = min(FULL_S, max(one.done_s for one in full) - begin_s)
    per_s = len(window) / spent_s
    waits = [(one.done_s - one.sent_s) * SECOND_MS for one in window]
    calm = [(one.done_s - one.due_s) * SECOND_MS for one in paced]
    yield Figure(
        "server",
        f"{name}, {AGENTS} agents × {GPUS} GPUs at full speed",
        per_s,
        "deliveries/s",
        1,
        per_s / NEEDED_PER_S,
        f"the {NEEDED_PER_S:g}/s they need",
    )
    yield Figure("server", f"{name}, answered at full speed, median", _part(waits, 50), "ms", len(waits))
    yield Figure("server", f"{name}, answered at full speed, 99 of 100", _part(waits, 99), "ms", len(waits))
    yield Figure("server", f"{name}, answered at 10 s, median", _part(calm, 50), "ms", len(calm))
    yield Figure("server", f"{name}, answered at 10 s, 99 of 100", _part(calm, 99), "ms", len(calm))
    yield Figure("server", f"{name}, deliveries waiting at most, at 10 s", _backlog(paced), "deliveries", 1)
    yield Figure("server", f"{name}, server's CPU at 10 s", cpu_s / PACED_S, "cores", 1)


def _send(
    port: int, agents: list[tuple[str, str]], start_ms: int, intervals: int, *, paced: bool
) -> list[Answer]:
    """All agents at work; every answer."""
    context = multiprocessing.get_context("spawn")
    begin_s = time.monotonic() + 3.0
    plans = [
        Plan(port, tuple(agents[place::SENDERS]), start_ms, intervals, begin_s, paced)
        for place in range(SENDERS)
    ]
    with context.Pool(SENDERS) as pool:
        return [one for answers in pool.map(_sender, plans) for one in answers]


def _sender(plan: Plan) -> list[Answer]:
    """One process of agents."""
    jobs: SimpleQueue[tuple[float, int, bytes] | None] = SimpleQueue()
    made = [_body(host, plan.start_ms, plan.intervals) for host, _ in plan.agents]
    begin_s = max(plan.begin_s, time.monotonic())
    answers: list[Answer] = []
    threads = [
        threading.Thread(target=_worker, args=(plan, jobs, answers, begin_s))
        for _ in range(len(plan.agents) if plan.paced else CONNECTIONS)
    ]
    for turn in range(plan.intervals):
        for place, bodies in enumerate(made):
            due_s = begin_s + (turn + place / len(made)) * SAMPLE_MS / SECOND_MS
            jobs.put((due_s if plan.paced else begin_s, place, bodies[turn]))
    for _ in threads:
        jobs.put(None)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def _worker(
    plan: Plan, jobs: "SimpleQueue[tuple[float, int, bytes] | None]", answers: list[Answer], begin_s: float
) -> None:
    with closing(HTTPConnection("127.0.0.1", plan.port, timeout=60)) as connection:
        while (job := jobs.get()) is not None:
            due_s, place, body = job
            if not plan.paced and time.monotonic() > begin_s + WARM_UP_S + FULL_S + 1:
                continue
            time.sleep(max(0.0, due_s - time.monotonic()))
            head = {
                "Content-Type": "application/json",
                "Content-Encoding": "gzip",
                "Authorization": f"Bearer {plan.agents[place][1]}",
            }
            sent_s, status, new = time.monotonic(), 0, 0
            try:
                connection.request("POST", "/api/v1/ingest", body, head)
                response = connection.getresponse()
                said = response.read()
                status = response.status
                new = json.loads(said)["new_rows"] if status == 200 else 0
            except (OSError, HTTPException):
                connection.close()
            answers.append(Answer(due_s, sent_s, time.monotonic(), status, new))


def _body(host: str, start_ms: int, intervals: int) -> list[bytes]:
    """An agent's deliveries, gzipped as it does."""
    chance = Random(host)
    return [
        _gzipped(
            encode(
                _delivery(host, start_ms + turn * SAMPLE_MS, chance),
                agent_id=host,
                sequence=start_ms // SAMPLE_MS + turn,
            )
        )
        for turn in range(intervals)
    ]


def _gzipped(raw: bytes) -> bytes:
    packer = compressobj(1, wbits=31)
    return packer.compress(raw) + packer.flush()


def _delivery(host: str, ts_ms: int, chance: Random) -> Delivery:
    made = Delivery(host=HostIdentity(host, 96, 1 << 40, "0.1.0"))
    for index in range(GPUS):
        uuid = f"GPU-{host}-{index}"
        workload = WorkloadKey(
            "pod", f"{uuid}-pod", "llama-0", "1000", host, (("namespace", "ml"), ("pod", "llama-0"))
        )
        made.gpu_samples.append(
            GpuSample(
                uuid,
                ts_ms,
                SAMPLE_MS,
                SAMPLE_MS,
                _values(GPU_METRICS, chance),
                EnergyMethod.COUNTER,
                Activity.MEMORY_BOUND,
            )
        )
        made.process_samples.append(
            ProcessSample(uuid, ts_ms, SAMPLE_MS, workload, 6.8e10, 0.93, 1, 1.02, 0.98)
        )
    made.host_samples.append(HostSample(host, ts_ms, SAMPLE_MS, _values(HOST_METRICS, chance)))
    return made


def _values(metrics: tuple[Metric, ...], chance: Random) -> dict[str, float]:
    return {one.name: round(chance.random() * min(one.plausible.most, 1e6), 6) for one in metrics}


def _check(url: str, answers: list[Answer], when: str) -> None:
    """Nothing refused, nothing lost.

    Raises:
        RuntimeError: it was.
    """
    refused = {one.status for one in answers if one.status != 200}
    with closing(open_connection(url)) as connection:
        tables = ("gpu_sample", "process_sample", "host_sample")
        rows = sum(connection.fetch(f"SELECT count(*) FROM {table}")[0][0] for table in tables)
    if refused or rows != ROWS * len(answers) or {one.new_rows for one in answers} != {ROWS}:
        raise RuntimeError(
            f"{when}: {len(answers)} deliveries left {rows} rows, not {ROWS * len(answers)}; refused: {refused or 'none'}"
        )


def _backlog(answers: list[Answer]) -> int:
    """Deliveries that were still unanswered when their agent's next one was due."""
    return sum(one.done_s > one.due_s + SAMPLE_MS / SECOND_MS for one in answers)


def _part(values: list[float], percent: int) -> float:
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def _cpu_s(pid: int) -> float:
    """CPU seconds that a process has used, with its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _serving(url: str) -> Iterator[tuple[int, int]]:
    """``gpuwise serve`` on two cores; its port and process."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-m", "gpuwise", "serve", "--database-url", url, "--port", str(port)]
    process = subprocess.Popen(
        command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL
    )
    os.sched_setaffinity(process.pid, sorted(os.sched_getaffinity(0))[:CORES])
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                if process.poll() is not None:
                    raise RuntimeError("the server did not start") from None
                time.sleep(0.05)
        yield port, process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def main() -> None:
    """Run alone: ``python -m bench.ingest_server [--no-postgresql]``."""
    from contextlib import nullcontext

    from bench.databases import postgresql_server
    from bench.measure import table

    with nullcontext() if "--no-postgresql" in sys.argv else postgresql_server() as server:
        print(table(list(run(server))))


if __name__ == "__main__":
    main()
