"""Days of the ledger: marked GPU-days priced anew from their hours and written, resumable anywhere, safe to run twice.

A day is either what its hours, prices, places and owners give, or marked (``api.resources.ledger_basis`` marks all where
settings or shipped facts changed). Lines outlive their hours (``hour_days``): days whose hours are gone stay as they are.
"""

import gc
import logging
import os
import signal
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from typing import Any, Final, Generic, TypeVar

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from api.resources import ledger_anew
from api.resources.ledger_basis import prepare
from api.resources.ledger_book import LedgerBook, ledger_book
from api.resources.ledger_hours import workloads_in
from core.clock import from_ms
from core.place import Place
from core.readings import WorkloadKey
from core.settings import Settings
from core.units import DAY_MS, HOUR_MS
from ledger.calendar import Span, utc_month_parts
from ledger.day_lines import DayLines, added, differences
from ledger.gpu_lines import GpuHours, Stretch, add_gpu_lines
from store import ledger_marks
from store.engine import make_engine, session_scope
from store.ledger_marks import LedgerMark
from store.ledger_reader import EnginesByHour, LedgerGpu, engines_by_hour, hour_rows, ledger_gpus, use_rows
from store.ledger_writer import LedgerWriter, Priced, Row, Written
from store.lock import ledger_lock
from store.queries import ledger_pending
from store.queries.workloads import workload_keys

log = logging.getLogger(__name__)

MARKS_AT_ONCE: Final = 720
"""GPU-days in one transaction: some seventeen thousand hours, and well under a second of holding the write lock."""
MOST_WORKERS: Final = 4
WORTH_WORKERS: Final = 10_000
"""GPU-days from which on other processes help: they take a second or two to start."""
REASON: Final = "samples, prices, tariffs, sites or owners changed after the month was closed"
Lines = Mapping[tuple[Any, ...], Row]
"""Lines by key."""
NO_ENGINES: Final[EnginesByHour] = {}
T = TypeVar("T", bound=Hashable)
Progress = Callable[[int, int], None]
"""Told how many marks are done, of how many."""


@dataclass(frozen=True, slots=True)
class Materialised:
    """What one run did. ``busy``: another process is at it, and nothing was done here."""

    gpu_days: int = 0
    lines: int = 0
    corrections: int = 0
    pending_left: int = 0
    busy: bool = False


def materialise(
    engine: Engine,
    settings: Settings,
    now_ms: int,
    progress: Progress = lambda _done, _total: None,
    *,
    workers: int | None = None,
) -> Materialised:
    """Write every marked day; days that are marked meanwhile are left for the next run.

    Args:
        engine: whose days. settings: zone, tariff, grid. now_ms: of corrections. progress: told of every chunk.
        workers: processes that read and price; default one per core, 4 at most, where there is much to do. 0: only this.

    Raises:
        GpuwiseError: the accounting time zone changed while months are closed in the old one.
    """
    with ledger_lock(engine) as held:
        if not held:
            return Materialised(busy=True)
        with session_scope(engine) as session:
            prepare(session, settings)
            ledger_anew.begin(session, now_ms)
            total = ledger_pending.count(session)
        if workers is None:
            workers = min(os.cpu_count() or 1, MOST_WORKERS) if total >= WORTH_WORKERS else 0
        writer = LedgerWriter(engine, _corrections, from_ms(now_ms), REASON)
        done = 0

        def write(count: int) -> None:
            nonlocal done
            for priced in _chunks(engine, settings, count):
                writer.write(priced)
                done += sum(len(marks) for marks in priced.marks.values())
                progress(min(done, total), total)

        try:
            write(workers)
        except BrokenProcessPool:
            log.warning("processes that price days ended early: going on without them")
            write(0)
        with session_scope(engine) as session:
            ledger_anew.end(session)
            return _said(writer.written, ledger_pending.count(session))


def _chunks(engine: Engine, settings: Settings, workers: int) -> Iterator[Priced]:
    """Every mark's GPU-days as lines, chunk by chunk; what other processes price comes in the same order."""
    if workers < 2:
        for marks in _marks(engine):
            with session_scope(engine) as session:
                yield _priced(session, settings, marks)
        return
    url = engine.url.render_as_string(hide_password=False)
    # Spawned, not forked: this process has database connections and perhaps threads.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_start_worker) as pool:
        started: deque[Future[Priced]] = deque()
        try:
            for marks in _marks(engine):
                started.append(pool.submit(_priced_elsewhere, url, settings, marks))
                if len(started) > 2 * workers:
                    yield started.popleft().result()
            while started:
                yield started.popleft().result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _marks(engine: Engine) -> Iterator[list[LedgerMark]]:
    """Marks in chunks. Read before the hours: what changes later leaves another mark, and then nothing is written."""
    after: LedgerMark | None = None
    while True:
        with engine.connect() as connection:
            marks = ledger_marks.next_marks(connection, after, MARKS_AT_ONCE)
        if not marks:
            return
        yield marks
        after = marks[-1]


def _priced_elsewhere(url: str, settings: Settings, marks: Sequence[LedgerMark]) -> Priced:
    with session_scope(make_engine(url)) as session:
        return _priced(session, settings, marks)


def _start_worker() -> None:
    """Ctrl-C reaches the whole process group; the parent ends its workers in order."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A chunk is half a million tuples, none of them in a cycle: looking for cycles in them takes a tenth of the time.
    gc.set_threshold(100_000, 50, 100)


def _said(written: Written, left: int) -> Materialised:
    return Materialised(written.gpu_days, written.lines, written.corrections, left)


def _priced(session: Session, settings: Settings, marks: Sequence[LedgerMark]) -> Priced:
    """The accounting days that marked GPU-days touch, as lines."""
    book = ledger_book(session, settings)
    of_gpu: dict[int, list[LedgerMark]] = {}
    for mark in marks:
        of_gpu.setdefault(mark.gpu_id, []).append(mark)
    gpus = {gpu.id: gpu for gpu in ledger_gpus(session.connection(), of_gpu)}
    days = {
        gpu_id: _days(book, found, gpus[gpu_id]) if gpu_id in gpus else [] for gpu_id, found in of_gpu.items()
    }
    chunk = _Chunk(book, _Numbers())
    lines: dict[int, Lines] = {}
    apart: dict[int, Lines] = {}
    for (start_ms, end_ms), ids in _together(days).items():
        connection = session.connection()
        hours = hour_rows(connection, ids, start_ms, end_ms)
        uses = use_rows(connection, ids, start_ms, end_ms)
        engines = engines_by_hour(connection, ids, start_ms, end_ms)
        chunk.workloads = workload_keys(session, workloads_in(uses.values()))
        for gpu_id in ids:
            seen = engines.get(gpu_id, NO_ENGINES)
            found = _gpu_days(chunk, gpus[gpu_id], days[gpu_id], (hours[gpu_id], uses[gpu_id], seen))
            if seen:
                apart[gpu_id] = _of_days_with_engines(found)
                found = _together_again(found)
            lines[gpu_id] = found
    numbers = chunk.numbers
    return Priced(
        of_gpu,
        {gpu_id: [(day.start_ms, day.from_ms, day.to_ms) for day in found] for gpu_id, found in days.items()},
        lines,
        numbers.owners.things,
        numbers.rates.things,
        numbers.places.things,
        apart,
        numbers.engine_sets.things,
    )


def _days(book: LedgerBook, marks: Sequence[LedgerMark], gpu: LedgerGpu) -> list[Span]:
    """Accounting days that marked UTC days touch, but for those whose hours are gone."""
    found: dict[int, Span] = {}
    for mark in marks:
        for day in book.calendar.days(mark.day_ms, mark.day_ms + DAY_MS):
            if day.from_ms >= gpu.purged_until_ms:
                found[day.start_ms] = day
    return [found[start] for start in sorted(found)]


def _together(days: Mapping[int, Sequence[Span]]) -> dict[tuple[int, int], list[int]]:
    """GPUs by the span of their days: read together."""
    found: dict[tuple[int, int], list[int]] = {}
    for gpu_id, of in days.items():
        if of:
            found.setdefault((of[0].from_ms, of[-1].to_ms), []).append(gpu_id)
    return found


@dataclass(slots=True)
class _Chunk:
    """What the GPUs of one chunk share: all that prices a line, the workloads met, and numbers for what a line names."""

    book: LedgerBook
    numbers: "_Numbers"
    workloads: Mapping[int, WorkloadKey] = field(default_factory=dict)


def _gpu_days(
    chunk: _Chunk,
    gpu: LedgerGpu,
    days: Sequence[Span],
    known_of: tuple[Mapping[int, Row], Mapping[int, Sequence[Row]], EnginesByHour],
) -> Lines:
    """Lines of one GPU's days by key; where engines were seen on it (hours, uses, engines), their set is last in the key."""
    hours, uses, seen = known_of
    book, numbers = chunk.book, chunk.numbers
    stretches: list[Stretch] = []
    heads: dict[int, tuple[Any, ...]] = {}
    for day in days:
        for from_ms_, to_ms_ in utc_month_parts(day.from_ms, day.to_ms):
            of_part = book.stretches(gpu, from_ms_, to_ms_)
            if seen:
                of_part = _cut_by_engines(of_part, seen)
            stretches += of_part
            for stretch, part in zip(of_part, _one_price(of_part), strict=True):
                heads[stretch.from_ms] = (day.start_ms, *part, gpu.id)

    def key_of(stretch: Stretch, kind: str, workload: int | None) -> tuple[Any, ...]:
        owner = book.owner(gpu, workload, chunk.workloads, stretch.from_ms)
        return (
            *heads[stretch.from_ms],
            kind,
            workload,
            numbers.owners.of(owner),
            numbers.rates.of(stretch.price),
            numbers.places.of(_kept(stretch.place)),
            *((numbers.engine_sets.of(seen.get(stretch.from_ms)),) if seen else ()),
        )

    lines = DayLines()
    known = GpuHours(hours, uses, max(gpu.first_ms, gpu.purged_until_ms), gpu.until_ms)
    add_gpu_lines(lines, stretches, known, key_of)
    return lines.rows()


def _cut_by_engines(stretches: Sequence[Stretch], seen: EnginesByHour) -> list[Stretch]:
    """The same stretches, cut where other engines are seen than in the hour before."""
    found = []
    for stretch in stretches:
        start_ms = stretch.from_ms
        for hour_ms in range(start_ms + HOUR_MS, stretch.to_ms, HOUR_MS):
            if seen.get(hour_ms) != seen.get(hour_ms - HOUR_MS):
                found.append(stretch._replace(from_ms=start_ms, to_ms=hour_ms))
                start_ms = hour_ms
        found.append(stretch._replace(from_ms=start_ms))
    return found


def _of_days_with_engines(lines: Lines) -> Lines:
    """Of lines told apart by engines those of days on which one was seen."""
    days = {key[0] for key in lines if key[-1] is not None}
    return {key: row for key, row in lines.items() if key[0] in days}


def _together_again(lines: Lines) -> Lines:
    """Lines told apart by engines as those of the ledger: whole numbers, so that nothing is priced twice."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for key, row in lines.items():
        found.setdefault(key[:-1], []).append(row)
    return {key: rows[0] if len(rows) == 1 else added(rows) for key, rows in found.items()}


def _one_price(stretches: Sequence[Stretch]) -> list[tuple[int, int]]:
    """For each of consecutive stretches the span around it in which the price is the same."""
    found: list[tuple[int, int]] = []
    first = 0
    for at, stretch in enumerate(stretches):
        if at + 1 == len(stretches) or stretches[at + 1].price != stretch.price:
            found += [(stretches[first].from_ms, stretch.to_ms)] * (at + 1 - first)
            first = at + 1
    return found


def _kept(place: Place) -> Place:
    """A place by time of use without the price of the hour: a day is one line, not one for each price."""
    return replace(place, usd_per_kwh=None) if place.is_time_of_use else place


def _corrections(
    booked: Iterable[tuple[tuple[Any, ...], Row]], fresh: Mapping[tuple[Any, ...], Row]
) -> Mapping[tuple[Any, ...], Row]:
    by_key: dict[tuple[Any, ...], list[Row]] = {}
    for key, row in booked:
        by_key.setdefault(key, []).append(row)
    return differences({key: added(rows) for key, rows in by_key.items()}, fresh)


class _Listed(Generic[T]):
    """Things in the order in which they first came; what is None has no number."""

    def __init__(self) -> None:
        self.things: list[T] = []
        self._numbers: dict[T, int] = {}

    def of(self, thing: T | None) -> int | None:
        """Its place in the list."""
        if thing is None:
            return None
        number = self._numbers.get(thing)
        if number is None:
            number = self._numbers[thing] = len(self.things)
            self.things.append(thing)
        return number


class _Numbers:
    """Owners, rates, places and sets of engines of one chunk."""

    def __init__(self) -> None:
        self.owners: _Listed[Any] = _Listed()
        self.rates: _Listed[Any] = _Listed()
        self.places: _Listed[Any] = _Listed()
        self.engine_sets: _Listed[tuple[int, ...]] = _Listed()
