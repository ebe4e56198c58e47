"""The spool's SQLite file: its tables, how it is opened, and what its errors mean."""

import os
import sqlite3
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from agent.spool_beside import SpoolError
from core.units import DAY_MS

VERSION: Final = 1
_LOG_PAGES: Final = 256
"""Pages of the write-ahead log before it is copied into the file (1 MiB: an fsync of the file each few minutes)."""
_SHRINK_PAGES: Final = 1_024
"""Free pages that stay in the file (4 MiB); more are given back to the disk once the backlog is gone."""
_PRAGMAS: Final = (
    "PRAGMA auto_vacuum = INCREMENTAL",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA cache_size = -256",
    "PRAGMA temp_store = MEMORY",
    f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}",
    f"PRAGMA journal_size_limit = {2 * _LOG_PAGES * 4096}",
)
_SCHEMA: Final = f"""
    BEGIN IMMEDIATE;
    CREATE TABLE IF NOT EXISTS delivery (
        sequence INTEGER PRIMARY KEY AUTOINCREMENT,
        created_ms INTEGER NOT NULL,
        newest_ts_ms INTEGER NOT NULL,
        not_before_ms INTEGER NOT NULL,
        row_count INTEGER NOT NULL,
        body BLOB NOT NULL
    );
    CREATE INDEX IF NOT EXISTS delivery_due ON delivery (not_before_ms);
    CREATE TABLE IF NOT EXISTS refused (
        sequence INTEGER PRIMARY KEY,
        refused_ms INTEGER NOT NULL,
        reason TEXT NOT NULL,
        body BLOB NOT NULL
    );
    CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
    PRAGMA user_version = {VERSION};
    COMMIT;
"""


def open_file(path: Path) -> sqlite3.Connection:
    """A connection that any thread may use, one at a time; the tables are there.

    Raises:
        sqlite3.DatabaseError: damaged, full or not to be opened.
        SpoolError: written by a newer version.
    """
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))  # readable for its owner only
    connection = sqlite3.connect(
        path, timeout=5, isolation_level=None, check_same_thread=False, cached_statements=24
    )
    try:
        for pragma in _PRAGMAS:
            connection.execute(pragma)
        _make_tables(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _make_tables(connection: sqlite3.Connection, path: Path) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise SpoolError(
            f"spool {path} was written by a newer gpuwise: update this one, or set another spool_path"
        )
    if version < VERSION:
        connection.executescript(_SCHEMA)


def is_damage(error: sqlite3.Error) -> bool:
    """The file is no database, or its pages contradict each other."""
    return _code(error) in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def is_full(error: sqlite3.Error) -> bool:
    """No room: the disk, a quota, or a limit on the size of files (which comes as a failed write)."""
    full = {sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_FSYNC}
    return _code(error) == sqlite3.SQLITE_FULL or getattr(error, "sqlite_errorcode", 0) in full


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of it or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        raise


def get_meta(connection: sqlite3.Connection, name: str) -> Any:
    """A fact about the file; None: not known."""
    row = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return None if row is None else row[0]


def put_meta(connection: sqlite3.Connection, name: str, value: str | int) -> None:
    """Keep a fact about the file."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))


def live_bytes(connection: sqlite3.Connection) -> int:
    """Size of the file without the pages that are free again."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    return int((pages - free) * size)


def next_due(
    connection: sqlite3.Connection, now_ms: int, latest_ms: int, behind: int, sent: Container[int]
) -> int | None:
    """Sequence of the delivery to send next: one that was put off and is due, then the oldest of the others.

    Args:
        now_ms: what was put off until then is due. latest_ms: and so is what was put off beyond that.
        behind: the others are looked for behind this sequence. sent: sequences that are not wanted.
    """
    due = """
        SELECT sequence FROM delivery WHERE not_before_ms > 0 AND (not_before_ms <= ? OR not_before_ms > ?)
        ORDER BY not_before_ms, sequence
    """
    others = (
        "SELECT sequence FROM delivery WHERE not_before_ms = 0 AND sequence > ? ORDER BY sequence LIMIT 1"
    )
    for (sequence,) in connection.execute(due, (now_ms, latest_ms)):
        if sequence not in sent:
            return int(sequence)
    row = connection.execute(others, (behind,)).fetchone()
    return None if row is None else int(row[0])


def oldest_day(connection: sqlite3.Connection, rows: int) -> tuple[int, int, int]:
    """The oldest day of deliveries, or the older half where all ``rows`` are of one day.

    Returns:
        First sequence, when that was made, and the first sequence behind.
    """
    first, created_ms = connection.execute(
        "SELECT sequence, created_ms FROM delivery ORDER BY sequence LIMIT 1"
    ).fetchone()
    next_day_ms = created_ms - created_ms % DAY_MS + DAY_MS
    by_day = "SELECT sequence FROM delivery WHERE created_ms >= ? ORDER BY sequence LIMIT 1"
    by_half = "SELECT sequence FROM delivery ORDER BY sequence LIMIT 1 OFFSET ?"
    behind = connection.execute(by_day, (next_day_ms,)).fetchone()
    if behind is None:
        behind = connection.execute(by_half, (max(rows // 2, 1),)).fetchone()
    return first, created_ms, first + 1 if behind is None else behind[0]


def shrink(connection: sqlite3.Connection) -> None:
    """Give free pages back to the disk."""
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    if free > _SHRINK_PAGES:
        # execute() would step this pragma once: one page.
        connection.executescript(f"PRAGMA incremental_vacuum({free - _SHRINK_PAGES})")
