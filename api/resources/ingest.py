"""Deliveries into the database: few threads with a connection each, bounded in number and bytes, durable when answered."""

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final, TypedDict

from api.resources.ingest_body import IngestBody
from api.resources.ingest_bytes import inflate, parse
from api.resources.ingest_checks import Keeping, check_hosts, check_parts, check_times, round_shares
from api.resources.ingest_refusals import RefusedError
from core.clock import iso
from core.delivery import Delivery, from_object
from core.errors import StoreError
from core.units import MIB, SECOND_MS
from store.dbapi import Connection, dialect_of, open_connection
from store.ingest import Ingest

log = logging.getLogger(__name__)

THREADS: Final = {"sqlite": 1, "postgresql": 4}
"""SQLite has one writer at a time, and waiting in line is fairer than polling for its lock."""
MOST_WAITING: Final = 256
MOST_WAITING_BYTES: Final = 128 * MIB
"""Deliveries in hand at once; with more the server is behind, and their senders keep them better than it does."""
MOST_WAIT_S: Final = 10.0
"""A delivery that waited this long is given back: its sender is about to give up."""
RETRY_S: Final = 5
RENEW_AFTER: Final = 10_000
"""Deliveries after which a thread forgets the keys it remembers: workloads come and go for ever."""


class Receipt(TypedDict):
    """What became of a delivery."""

    sequence: int
    rows: int
    new_rows: int
    clock_skew_s: float | None
    server_time: str


@dataclass(frozen=True, slots=True)
class Sent:
    """One request: its body as it came, and what its head says.

    Attributes:
        body: of the request. encoding: its Content-Encoding, lower case.
        host: the only host it may speak for; None: any.
        now_ms: when it came. clock_skew_s: how far the sender's clock is ahead; None: not told.
    """

    body: bytes
    encoding: str
    host: str | None
    now_ms: int
    clock_skew_s: float | None


def busy(why: str) -> RefusedError:
    """Not now: the sender keeps it and comes again."""
    return RefusedError(503, f"{why}: the delivery was not stored, send it again", retry_s=RETRY_S)


def clock_skew_s(date: str | None, now_ms: int) -> float | None:
    """How far the clock that wrote a Date header is ahead of ours, seconds; None without a valid one.

    The header counts whole seconds, so half a second is added and the answer is good to half a second.
    """
    if date is None:
        return None
    try:
        at = parsedate_to_datetime(date)
        sent_s = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() + 0.5
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
    return round(sent_s - now_ms / SECOND_MS, 1)


class Writer:
    """One connection and the ingest on it; both are renewed after an error."""

    def __init__(self, database_url: str) -> None:
        self._url = database_url
        self._connection: Connection | None = None
        self._ingest: Ingest | None = None
        self._stored = 0

    def store(self, delivery: Delivery, *, agent_id: str, sequence: int, now_ms: int) -> int:
        """Store a delivery in one transaction; rows that were new. It is on the disk on return.

        Keys remembered from long ago may name rows and partitions that retention took away, and a server may have
        been started anew: such an error is no fault of the delivery, so a connection that has served is given one
        more try with a new one. SQLite's own waiting is over by then and not begun again.

        Raises:
            StoreError: the database is locked, full, or not to be reached.
        """
        served = self._ingest is not None
        try:
            return self._store(delivery, agent_id, sequence, now_ms)
        except StoreError as error:
            self.close()
            if not served or isinstance(error.__cause__, sqlite3.OperationalError):
                raise
        try:
            return self._store(delivery, agent_id, sequence, now_ms)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the connection; what was not committed is rolled back."""
        connection, self._connection, self._ingest = self._connection, None, None
        if connection is not None:
            with suppress(connection.errors):
                connection.close()

    def _store(self, delivery: Delivery, agent_id: str, sequence: int, now_ms: int) -> int:
        ingest = self._open()
        new = ingest.deliver(delivery, agent_id=agent_id, sequence=sequence, now_ms=now_ms)
        ingest.commit()
        self._stored += 1
        return new

    def _open(self) -> Ingest:
        if self._connection is None:
            self._connection = open_connection(self._url)
            if self._connection.dialect == "sqlite":
                # An agent forgets what was acknowledged, so a power cut must not: WAL alone syncs at checkpoints only.
                self._connection.execute("PRAGMA synchronous = FULL")
        if self._ingest is None or self._stored % RENEW_AFTER == 0:
            self._ingest = Ingest(self._connection)
        return self._ingest


class Intake:
    """Takes deliveries off the hands of the web server's own threads, so that pages go on while ingest waits."""

    def __init__(self, database_url: str, keeping: Keeping) -> None:
        self._url = database_url
        self._keeping = keeping
        self._pool = ThreadPoolExecutor(THREADS[dialect_of(database_url)], "ingest")
        self._own = threading.local()
        self._lock = threading.Lock()
        self._writers: list[Writer] = []
        self._waiting = 0
        self._waiting_bytes = 0

    @contextmanager
    def in_hand(self) -> Iterator[Callable[[int], None]]:
        """Take a request in hand; what is yielded counts bytes of it as they come.

        Raises:
            RefusedError: 503, there are too many requests or bytes; also from the counting.
        """
        held = 0

        def count(size: int) -> None:
            nonlocal held
            with self._lock:
                if self._waiting_bytes + size > MOST_WAITING_BYTES:
                    raise busy("more bytes are waiting than this server can store")
                self._waiting_bytes += size
                held += size

        with self._lock:
            if self._waiting >= MOST_WAITING:
                raise busy("more deliveries are waiting than this server can store")
            self._waiting += 1
        try:
            yield count
        finally:
            with self._lock:
                self._waiting -= 1
                self._waiting_bytes -= held

    def submit(self, sent: Sent) -> "Future[Receipt]":
        """Have a delivery checked and stored."""
        return self._pool.submit(self._take, sent, time.monotonic())

    def close(self) -> None:
        """Finish what was begun, refuse what waits, close the connections."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        for writer in self._writers:
            writer.close()
        self._writers.clear()

    def _take(self, sent: Sent, since_s: float) -> Receipt:
        """Check and store one delivery.

        Raises:
            RefusedError: with the status and sentence to answer.
        """
        if time.monotonic() - since_s > MOST_WAIT_S:
            raise busy("the database keeps this server waiting")
        body = read(sent, self._keeping)
        delivery = from_object(body)
        try:
            new = self._writer().store(
                delivery, agent_id=body["agent_id"], sequence=body["sequence"], now_ms=sent.now_ms
            )
        except StoreError as error:
            log.warning("delivery not stored", extra={"reason": str(error)})
            raise busy(str(error)) from error
        return Receipt(
            sequence=body["sequence"],
            rows=delivery.row_count,
            new_rows=new,
            clock_skew_s=sent.clock_skew_s,
            server_time=str(iso(sent.now_ms)),
        )

    def _writer(self) -> Writer:
        found: Writer | None = getattr(self._own, "writer", None)
        if found is None:
            found = self._own.writer = Writer(self._url)
            with self._lock:
                self._writers.append(found)
        return found


def read(sent: Sent, keeping: Keeping) -> IngestBody:
    """The checked body of a request.

    Raises:
        RefusedError: names the field.
    """
    body = parse(inflate(sent.body, sent.encoding))
    check_hosts(body, sent.host)
    check_parts(body)
    check_times(body, now_ms=sent.now_ms, keeping=keeping, clock_skew_s=sent.clock_skew_s)
    round_shares(body)
    return body
