"""The SQLAlchemy engine: one per address and process, with SQLite set to behave like PostgreSQL.

On SQLite no transaction is open while only reading, so every query sees the latest commit (PostgreSQL's READ
COMMITTED); the first writing statement takes the write lock with BEGIN IMMEDIATE and waits for it. A deferred
transaction that turns from reading to writing would fail at once instead, busy timeout or not.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.orm import Session

from core.errors import StoreError
from store.dbapi import SQLITE_PRAGMAS, dialect_of, sqlite_path

_READS: Final = ("SELECT", "PRAGMA", "EXPLAIN", "VALUES", "BEGIN", "WITH")
_engines: dict[str, Engine] = {}
_left: list[dict[str, Engine]] = []
_lock = Lock()


def make_engine(url: str) -> Engine:
    """The engine of ``url``, made once per process.

    Raises:
        StoreError: the address is of no known kind, or its folder does not exist.
    """
    with _lock:
        engine = _engines.get(url)
        if engine is None:
            engine = _engines[url] = (
                _make_sqlite(url) if dialect_of(url) == "sqlite" else _make_postgresql(url)
            )
        return engine


def dispose_engine(url: str) -> None:
    """Close the connections of ``url``'s engine and forget it; for processes that fork, and for tests."""
    with _lock:
        engine = _engines.pop(url, None)
    if engine is not None:
        engine.dispose()


def leave_engines() -> None:
    """In a forked process: make new engines, and neither use nor close the connections of the one it came from.

    Closing them would end conversations that are not its own, so they are kept until the process ends.
    """
    _left.append(dict(_engines))
    _engines.clear()


@contextmanager
def session_scope(engine: Engine) -> Iterator[Session]:
    """A session that commits once at the end, and rolls back when the block raises."""
    session = Session(engine, expire_on_commit=False)
    try:
        yield session
        session.commit()
    except BaseException:
        session.rollback()
        raise
    finally:
        session.close()


def begin_write(connection: Connection) -> None:
    """Take SQLite's write lock now, before the first read; PostgreSQL locks rows, so nothing to do there."""
    raw = connection.connection.driver_connection
    if connection.dialect.name == "sqlite" and raw is not None and not raw.in_transaction:
        raw.execute("BEGIN IMMEDIATE")


def _make_postgresql(url: str) -> Engine:
    return create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1), pool_pre_ping=True)


def _make_sqlite(url: str) -> Engine:
    folder = sqlite_path(url).parent
    if not folder.is_dir():
        raise StoreError(
            f"folder {folder} of the database does not exist: create it or correct the database address"
        )
    engine = create_engine(url)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "before_cursor_execute", _begin_when_writing)
    return engine


def _prepare_sqlite(raw: Any, _record: object) -> None:
    raw.isolation_level = None
    for pragma in SQLITE_PRAGMAS:
        raw.execute(pragma)


def _begin_when_writing(
    connection: Connection,
    _cursor: object,
    statement: str,
    _parameters: object,
    _context: object,
    _many: bool,
) -> None:
    if not statement.lstrip().upper().startswith(_READS):
        begin_write(connection)
