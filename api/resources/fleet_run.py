"""Chunks of a fleet judged by this process and, where the fleet is large and a core is free, by a second one.

Both take the next chunk when they are done with one; what was said is put together in the fleet's order, so that the
advice is the same however the chunks fell. A second process that fails is said in the log, and its chunks are judged here.
"""

import gc
import logging
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pickle import PickleError
from queue import SimpleQueue
from typing import Final

from sqlalchemy import Connection as Database

from advisor.engine import Judged
from advisor.limits_book import limits_book
from advisor.site_run import SiteRun
from api.resources.evidence import fleet_reader
from api.resources.scope import Scope
from core.clock import from_ms
from core.collector import rarely_collected
from core.evidence import Window
from core.settings import Settings
from store.engine import leave_engines, make_engine, session_scope
from store.queries.carried import packed, unpacked
from store.queries.chunks import Chunk
from store.queries.evidence import CHUNK_GPUS, FleetReader, fleet_chunks

log = logging.getLogger(__name__)

LEAST_CHUNKS: Final = 12
"""Two thousand GPUs: a process needs a second to start, in which the first judges some six hundred."""


@dataclass(frozen=True, slots=True)
class Job:
    """All that a second process needs: where to read, what for, and the chunks by their number."""

    database_url: str
    settings: Settings
    now_ms: int
    window: Window
    chunks: tuple[Chunk, ...]


Said = Sequence[Judged] | None
"""What was said of a chunk; None: it holds nothing of the window."""


class Chunks:
    """Numbers of chunks that nobody took yet, and what was said of the others."""

    def __init__(self, count: int) -> None:
        self._lock = threading.Lock()
        self._left = list(reversed(range(count)))
        self.said: dict[int, Said] = {}

    def next(self) -> int | None:
        """The next one; None: all are taken."""
        with self._lock:
            return self._left.pop() if self._left else None

    def give_back(self, number: int) -> None:
        """Nothing was said of it."""
        with self._lock:
            self._left.append(number)


def judge_fleet(
    scope: Scope, rules: SiteRun, *, processes: int | None = None, chunk_gpus: int = CHUNK_GPUS
) -> FleetReader:
    """Feed the whole fleet to ``rules``; its reader's shelves may be cleared once they have said everything.

    Args:
        scope: where and when; its session must stay open as long as ``rules`` is asked for advice.
        rules: takes it. processes: 1 or 2; None: two where the fleet is large and there is more than one core.
        chunk_gpus: GPUs of a chunk, about.
    """
    chunks = fleet_chunks(scope.session, chunk_gpus=chunk_gpus)
    reader = fleet_reader(scope)
    todo = Chunks(len(chunks))
    if processes is None:
        processes = 2 if len(chunks) >= LEAST_CHUNKS and _cores() > 1 else 1
    job = Job(_address(scope), scope.settings, scope.now_ms, scope.window, tuple(chunks))
    with _second_process(job, todo, reader) if processes > 1 else _alone():
        judge_here(reader, rules, chunks, todo)
    judge_here(reader, rules, chunks, todo)  # what was given back
    for number in range(len(chunks)):
        said = todo.said.pop(number)
        if said is not None:
            rules.take(said)
    return reader


def judge_here(
    reader: FleetReader, rules: SiteRun, chunks: Sequence[Chunk], todo: Chunks, *, most: int | None = None
) -> None:
    """Judge chunks until none is left, or so many."""
    while most != 0 and (number := todo.next()) is not None:
        most = None if most is None else most - 1
        seen = reader.read(chunks[number])
        todo.said[number] = None if seen is None else rules.judge(seen)


@contextmanager
def _alone() -> Iterator[None]:
    yield


@contextmanager
def _second_process(job: Job, todo: Chunks, reader: FleetReader) -> Iterator[None]:
    """A second process takes chunks meanwhile; at the end its last one is waited for.

    What it says is unpacked as it comes, beside the judging here: afterwards only one of the cores would be at work.
    """
    here, there = Pipe()
    failed: SimpleQueue[BaseException] = SimpleQueue()

    def lead() -> None:
        number: int | None = None
        try:
            here.send(job)
            while (number := todo.next()) is not None:
                here.send(number)
                todo.said[number] = unpacked(here.recv_bytes(), reader.session, reader.shelves)
            here.send(None)
        except (OSError, EOFError, PickleError, TypeError, ValueError) as error:
            failed.put(error)
            if number is not None:
                todo.give_back(number)

    process = (
        get_context("fork").Process(target=_judge_forked, args=(there, here), daemon=True)
        if may_fork()
        else get_context("spawn").Process(target=judge_elsewhere, args=(there,), daemon=True)
    )
    thread = threading.Thread(target=lead, daemon=True)
    try:
        process.start()
        there.close()
        thread.start()
    except (
        OSError,
        AssertionError,
        RuntimeError,
    ) as error:  # no more processes, or none from within a daemon
        failed.put(error)
    try:
        yield
    finally:
        if thread.ident is not None:
            thread.join()
        here.close()
        if process.pid is not None:
            process.join(5)
        if not failed.empty():
            log.warning(
                "second process for the advice ended early; its share is judged by this one",
                extra={"reason": repr(failed.get()), "exit_code": process.exitcode},
            )


def may_fork() -> bool:
    """Whether the second process may begin as a copy of this one, instead of a second of imports.

    Only from a lone thread, as of a command: another one could hold a lock that nobody would ever release in the copy.
    """
    return sys.platform == "linux" and threading.active_count() == 1


def _judge_forked(orders: Connection, not_ours: Connection) -> None:
    not_ours.close()  # held open here, it would hide the other process's end
    leave_engines()
    judge_elsewhere(orders)


def judge_elsewhere(orders: Connection) -> None:
    """The second process: judges the chunks it is told the numbers of."""
    job: Job = orders.recv()
    rules = SiteRun(limits_book(job.settings.rules), now=from_ms(job.now_ms))
    with rarely_collected(), session_scope(make_engine(job.database_url)) as session:
        reader = fleet_reader(Scope(session, job.settings, job.now_ms, job.window))
        while (number := orders.recv()) is not None:
            seen = reader.read(job.chunks[number])
            orders.send_bytes(packed(None if seen is None else rules.judge(seen)))
        gc.freeze()  # the other process waits for the end of this one: no look at all it holds before that


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _address(scope: Scope) -> str:
    """Of the database that the session reads, whatever the settings say."""
    bind = scope.session.get_bind()
    url = (bind.engine if isinstance(bind, Database) else bind).url
    return url.set(drivername=url.get_backend_name()).render_as_string(hide_password=False)
