"""The spool: every delivery on disk before it is sent, until the other side has acknowledged it.

One SQLite file, one row per delivery. ``append`` is durable on return (write-ahead log, ``synchronous=FULL``: one
fsync). An acknowledged row is deleted without an fsync of its own: if a power cut brings it back it is sent again,
and storing it twice changes nothing. Memory does not depend on the backlog: one row's body is read at a time.
"""

import logging
import os
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from agent.spool_beside import Reserve, SpoolError, SpoolFullError, SpoolLock, set_aside
from agent.spool_file import (
    get_meta,
    is_damage,
    is_full,
    live_bytes,
    next_due,
    oldest_day,
    open_file,
    put_meta,
    shrink,
    transaction,
)
from agent.spool_notes import lost_with, newest_ts_ms
from core.clock import iso, now_ms
from core.delivery import Delivery, encode
from core.units import DAY_MS, HOUR_MS, MIB

__all__ = ["Entry", "Spool", "SpoolError", "SpoolFullError"]

log = logging.getLogger(__name__)

REFUSED_KEPT: Final = 1_000
"""Refused deliveries that are kept for people to look at."""
LATEST_MS: Final = HOUR_MS
"""How long a delivery can be put off at once. One that is put off for longer was so by a clock that was wrong."""
AGE_GRACE_S: Final = 3_600.0
"""How long the clock must have said that the oldest delivery is too old before it goes: clocks jump, and after
a long time switched off the backlog gets a chance to be delivered first."""
_GZIP: Final = 31
_LEVEL: Final = 3
"""Of zlib: a body of 17 kB (8 GPUs) shrinks to a third in 0.2 ms; level 1 is no faster, 6 takes twice that for 7 % less."""
_RESERVE_EVERY: Final = 64
_DELETED_AT_ONCE: Final = 256


class Entry(NamedTuple):
    """A delivery in the spool; ``body`` is gzip of its JSON."""

    sequence: int
    agent_id: str
    newest_ts_ms: int
    body: bytes


class Spool:
    """Deliveries in order, for one writer and one sender thread.

    Attributes:
        agent_id: random, kept with the file; with ``sequence`` it numbers the deliveries of this spool.
        dropped_rows: samples and events that were lost to the bounds, over the life of the file.
        refused: deliveries that the sink will never take, over the life of the file.
        bytes_written: bodies put into the file since it was opened.

    Raises:
        SpoolError: another agent uses it, or the file cannot be opened.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        max_bytes: int = 512 * MIB,
        max_age_days: int = 14,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = Path(path)
        self.agent_id = ""
        self._rows = self.dropped_rows = self.refused = self.bytes_written = 0
        self._max_bytes, self._max_age_ms = max_bytes, max_age_days * DAY_MS
        self._monotonic = monotonic
        self._too_old_since_s: float | None = None
        self._last = 0
        self._undeleted: set[int] = set()
        self._sent_to = 0
        self._appends = 0
        self._mutex = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._closed = False
        self._lock = SpoolLock(self.path)
        try:
            self._reserve = Reserve(self.path)
            self._open()
            self._reserve.hold()
        except BaseException:
            self._lock.release()
            raise

    @property
    def waiting(self) -> int:
        """Deliveries not acknowledged yet, those put off among them."""
        return max(self._rows - len(self._undeleted), 0)

    @property
    def bytes(self) -> int:
        """What the deliveries take on disk; pages that are free again do not count."""
        with self._use() as connection:
            return live_bytes(connection)

    def append(self, delivery: Delivery, now_ms: int) -> int:
        """Keep a delivery; its sequence. Durable on return.

        Args:
            delivery: what to keep. now_ms: when; its age counts from there.

        Raises:
            SpoolFullError: no room; nothing was kept, try again later.
            SpoolError: the file cannot be written.
        """
        with self._mutex:
            try:
                return self._append(delivery, now_ms)
            except _DamagedError:  # a fresh file has taken its place
                return self._append(delivery, now_ms)

    def oldest(self, now_ms: int) -> Entry | None:
        """The delivery to send next: the oldest that is due. None: there is nothing to send now.

        Raises:
            SpoolError: the file cannot be read.
        """
        with suppress(_DamagedError), self._use() as connection:
            sequence = next_due(connection, now_ms, now_ms + LATEST_MS, self._sent_to, self._undeleted)
            if sequence is not None:
                row = connection.execute(
                    "SELECT newest_ts_ms, body FROM delivery WHERE sequence = ?", (sequence,)
                ).fetchone()
                return Entry(sequence, self.agent_id, *row)
        return None

    def next_due_ms(self) -> int | None:
        """When the first delivery that was put off is due; None: none was put off."""
        with suppress(_DamagedError), self._use() as connection:
            (due,) = connection.execute(
                "SELECT min(not_before_ms) FROM delivery WHERE not_before_ms > 0"
            ).fetchone()
            return None if due is None else int(due)
        return None

    def done(self, sequence: int) -> None:
        """The other side has it: delete it. On a full disk it is remembered, and deleted when that is possible."""
        with self._mutex:
            self._undeleted.add(sequence)
            try:
                self._delete_acknowledged()
            except _DamagedError:
                self._undeleted.clear()
            except SpoolFullError:
                if self._make_room():
                    with suppress(SpoolError):
                        self._delete_acknowledged()
                self._skip(sequence)

    def later(self, sequence: int, until_ms: int) -> None:
        """Not before that time, an hour from its last try at most; others go first.

        Raises:
            SpoolError: the file cannot be written.
        """
        with suppress(_DamagedError), self._use() as connection:
            connection.execute(
                "UPDATE delivery SET not_before_ms = ? WHERE sequence = ?", (max(until_ms, 1), sequence)
            )

    def refuse(self, sequence: int, reason: str, now_ms: int) -> None:
        """Set it aside for people to look at: the other side will never take it.

        Raises:
            SpoolError: the file cannot be written.
        """
        with suppress(_DamagedError), self._use() as connection, transaction(connection):
            connection.execute(
                "INSERT OR REPLACE INTO refused SELECT sequence, ?, ?, body FROM delivery WHERE sequence = ?",
                (now_ms, reason, sequence),
            )
            connection.execute("DELETE FROM delivery WHERE sequence = ?", (sequence,))
            connection.execute(
                "DELETE FROM refused WHERE sequence <= (SELECT sequence FROM refused ORDER BY sequence DESC LIMIT 1 OFFSET ?)",
                (REFUSED_KEPT,),
            )
            put_meta(connection, "refused", self.refused + 1)
            self._rows -= 1
            self.refused += 1

    def close(self) -> None:
        """Let go of the file; another agent may take it."""
        with self._mutex:
            connection, self._connection = self._connection, None
            if connection is not None:
                with suppress(sqlite3.Error):
                    connection.close()
            if not self._closed:
                self._closed = True
                self._lock.release()

    # the file

    def _open(self) -> None:
        try:
            self._load(open_file(self.path))
        except sqlite3.Error as error:
            if not is_damage(error):
                raise self._sentence(error) from error
            self._begin_afresh(error)
        except OSError as error:
            raise SpoolError(
                f"spool {self.path} cannot be opened ({error.strerror}): correct the permissions or set spool_path"
            ) from error

    def _load(self, connection: sqlite3.Connection) -> None:
        try:
            self.agent_id = str(get_meta(connection, "agent_id") or "")
            if not self.agent_id:
                self.agent_id = os.urandom(16).hex()
                put_meta(connection, "agent_id", self.agent_id)
            self.dropped_rows = int(get_meta(connection, "dropped_rows") or 0)
            self.refused = int(get_meta(connection, "refused") or 0)
            (self._rows,) = connection.execute(
                "SELECT count(*) FROM delivery INDEXED BY delivery_due"
            ).fetchone()
            row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'delivery'").fetchone()
        except BaseException:
            connection.close()
            raise
        # Numbers go on behind a damaged file: what is on its way from there must not acknowledge another.
        self._last = max(self._last, row[0] if row else 0)
        self._connection = connection

    def _begin_afresh(self, error: sqlite3.Error) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None
        try:
            target = set_aside(self.path, now_ms())
            log.critical(
                "the spool is damaged: it was set aside, what it held is not delivered, a fresh one begins",
                extra={
                    "spool": str(self.path),
                    "set_aside": str(target),
                    "error": str(error),
                    "waiting": self.waiting,
                },
            )
            self._undeleted.clear()
            self._sent_to = 0
            self._load(open_file(self.path))
        except (OSError, sqlite3.Error) as again:
            raise SpoolError(
                f"spool {self.path} is damaged and cannot be replaced ({again}): check the disk"
            ) from again

    @contextmanager
    def _use(self) -> Iterator[sqlite3.Connection]:
        """The connection, to one thread at a time; a damaged file is replaced.

        Raises:
            _DamagedError: a fresh file has taken the place of a damaged one.
            SpoolError: cannot be read or written; SpoolFullError: no room.
        """
        with self._mutex:
            try:
                yield self._opened()
            except sqlite3.Error as error:
                if is_damage(error):
                    self._begin_afresh(error)
                    raise _DamagedError(str(error)) from error
                raise self._sentence(error) from error

    def _opened(self) -> sqlite3.Connection:
        if self._closed:
            raise SpoolError(f"spool {self.path} is closed")
        if self._connection is None:  # a damaged file could not be replaced: the disk may have recovered
            self._open()
        assert self._connection is not None
        return self._connection

    def _sentence(self, error: sqlite3.Error) -> SpoolError:
        if is_full(error):
            return SpoolFullError(f"spool {self.path} cannot grow ({error}): free space on its disk")
        return SpoolError(f"spool {self.path} cannot be used ({error}): check the disk and the permissions")

    # what append and done are made of

    def _append(self, delivery: Delivery, now_ms: int) -> int:
        with self._use() as connection:
            sequence = self._last + 1
            body = zlib.compress(encode(delivery, agent_id=self.agent_id, sequence=sequence), _LEVEL, _GZIP)
            self._keep_bounds(connection, now_ms, len(body))
            connection.execute(
                "INSERT INTO delivery VALUES (?, ?, ?, 0, ?, ?)",
                (sequence, now_ms, newest_ts_ms(delivery), lost_with(delivery), body),
            )
        self._last = sequence
        self._rows += 1
        self.bytes_written += len(body)
        self._appends += 1
        if self._appends % _RESERVE_EVERY == 0:
            self._reserve.hold()
        return sequence

    def _keep_bounds(self, connection: sqlite3.Connection, now_ms: int, more: int) -> None:
        while self._rows and live_bytes(connection) + more > self._max_bytes:
            self._drop(connection, "over its size")
        row = connection.execute("SELECT created_ms FROM delivery ORDER BY sequence LIMIT 1").fetchone()
        if row is None or row[0] >= now_ms - self._max_age_ms:
            self._too_old_since_s = None
        elif self._too_old_since_s is None:
            self._too_old_since_s = self._monotonic()
        elif self._monotonic() - self._too_old_since_s >= AGE_GRACE_S:
            self._drop(connection, "over its age")

    def _drop(self, connection: sqlite3.Connection, why: str) -> None:
        """The oldest day goes, or the older half where all is of one day."""
        first, created_ms, end = oldest_day(connection, self._rows)
        with transaction(connection):
            (rows,) = connection.execute(
                "SELECT sum(row_count) FROM delivery WHERE sequence < ?", (end,)
            ).fetchone()
            deliveries = connection.execute("DELETE FROM delivery WHERE sequence < ?", (end,)).rowcount
            put_meta(connection, "dropped_rows", self.dropped_rows + rows)
        self._undeleted -= set(range(first, end))
        self._rows = max(self._rows - deliveries, 0)
        self.dropped_rows += rows
        log.error(
            "the spool is over its bounds: its oldest deliveries were dropped",
            extra={
                "why": why,
                "from": iso(created_ms),
                "deliveries": deliveries,
                "rows": rows,
                "waiting": self.waiting,
            },
        )

    def _skip(self, sequence: int) -> None:
        """Go on behind an acknowledged row that cannot be deleted now; those put off are told apart by their number."""
        if sequence in self._undeleted:
            with self._use() as connection:
                row = connection.execute(
                    "SELECT not_before_ms FROM delivery WHERE sequence = ?", (sequence,)
                ).fetchone()
            if row is not None and row[0] == 0:
                self._sent_to = sequence

    def _delete_acknowledged(self) -> None:
        with self._use() as connection:
            while self._undeleted:
                some = list(islice(self._undeleted, _DELETED_AT_ONCE))
                # Without an fsync of its own; the next append's makes it durable too.
                connection.execute("PRAGMA synchronous = NORMAL")
                try:
                    with transaction(connection):
                        gone = connection.executemany(
                            "DELETE FROM delivery WHERE sequence = ?", [(one,) for one in some]
                        ).rowcount
                finally:
                    connection.execute("PRAGMA synchronous = FULL")
                self._undeleted.difference_update(some)
                self._rows -= gone
            if not self._rows:
                shrink(connection)

    def _make_room(self) -> bool:
        """Copy the log into the file with the space held in reserve, so that the log begins again at its start."""
        self._reserve.give_up()
        try:
            with self._use() as connection:
                (busy, *_pages) = connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()
        except SpoolError:
            return False
        return not busy


class _DamagedError(SpoolError):
    """The file was damaged; a fresh one has taken its place."""
