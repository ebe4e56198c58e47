"""Plain DB-API connections: what ingest runs on, so that the agent never loads SQLAlchemy.

Statements are written once with ``?``; psycopg wants ``%s``. Both databases then behave alike: reads see the
latest commit, and a writer takes the write lock when it begins, not half-way.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit

from core.errors import StoreError

if TYPE_CHECKING:
    import psycopg

BUSY_TIMEOUT_MS: Final = 10_000
"""How long a SQLite writer waits for another one."""
SQLITE_PRAGMAS: Final = (
    f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    "PRAGMA foreign_keys = ON",
)


def dialect_of(url: str) -> str:
    """``sqlite`` or ``postgresql``; raises ``StoreError`` for anything else."""
    scheme = url.split(":", 1)[0].split("+", 1)[0]
    if scheme not in {"sqlite", "postgresql"}:
        raise StoreError(
            f"database {shown(url)} is of no known kind: use sqlite:///PATH or postgresql://USER@HOST/DB"
        )
    return scheme


def sqlite_path(url: str) -> Path:
    """File of a ``sqlite:///`` address."""
    path = url.removeprefix("sqlite:///").split("?", 1)[0]
    if not path or path == ":memory:":
        raise StoreError(f"database {url} names no file: use sqlite:///PATH")
    return Path(path)


def shown(url: str) -> str:
    """The address as it may be printed: without user and password."""
    if url.startswith("sqlite"):
        return url
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"


class Connection:
    """One connection to either database; ``raw`` is the driver's own."""

    __slots__ = ("dialect", "errors", "raw", "url")

    def __init__(
        self,
        url: str,
        dialect: str,
        raw: "sqlite3.Connection | psycopg.Connection[Any]",
        errors: type[Exception],
    ) -> None:
        self.url = url
        self.dialect = dialect
        self.raw = raw
        self.errors = errors

    def begin(self) -> None:
        """Start a writing transaction unless one is open (psycopg opens its own)."""
        if isinstance(self.raw, sqlite3.Connection) and not self.raw.in_transaction:
            self.raw.execute("BEGIN IMMEDIATE")

    def fetch(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Rows of a query."""
        if isinstance(self.raw, sqlite3.Connection):
            return self.raw.execute(sql, parameters).fetchall()
        return self.raw.execute(sql.replace("?", "%s").encode(), parameters).fetchall()

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> int:
        """Run one statement; rows it touched. A ``?`` in the text is always a parameter."""
        if isinstance(self.raw, sqlite3.Connection):
            return self.raw.execute(sql, parameters).rowcount
        return self.raw.execute(sql.replace("?", "%s").encode(), parameters or None).rowcount

    def executemany(self, sql: str, rows: Iterable[Sequence[object]]) -> int:
        """Run one statement for each row; rows it touched."""
        if isinstance(self.raw, sqlite3.Connection):
            return self.raw.executemany(sql, rows).rowcount
        with self.raw.cursor() as cursor:
            cursor.executemany(sql.replace("?", "%s").encode(), rows)
            return cursor.rowcount

    def copy(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """Stream rows into PostgreSQL by COPY … FROM STDIN."""
        if isinstance(self.raw, sqlite3.Connection):
            raise TypeError("SQLite has no COPY: use executemany")
        with self.raw.cursor() as cursor, cursor.copy(sql.encode()) as target:
            for row in rows:
                target.write_row(row)

    def commit(self) -> None:
        """End the transaction; the work is durable."""
        self.raw.commit()

    def rollback(self) -> None:
        """End the transaction; nothing happened."""
        self.raw.rollback()

    def close(self) -> None:
        """Close; an open transaction is rolled back."""
        self.raw.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()


def open_connection(url: str) -> Connection:
    """Open ``url``.

    Raises:
        StoreError: not reachable, not a database, or no driver installed.
    """
    if dialect_of(url) == "sqlite":
        return Connection(url, "sqlite", _open_sqlite(url), sqlite3.Error)
    return _open_postgresql(url)


def _open_sqlite(url: str) -> sqlite3.Connection:
    path = sqlite_path(url)
    if not path.parent.is_dir():
        raise StoreError(
            f"folder {path.parent} of the database does not exist: create it or correct the database address"
        )
    raw: sqlite3.Connection | None = None
    try:
        # isolation_level None: the driver opens no transactions of its own; begin() does.
        raw = sqlite3.connect(
            path, timeout=BUSY_TIMEOUT_MS / 1000, isolation_level=None, check_same_thread=False
        )
        for pragma in SQLITE_PRAGMAS:
            raw.execute(pragma)
    except sqlite3.Error as error:
        if raw is not None:
            raw.close()
        raise StoreError(
            f"database {path} cannot be opened ({error}): check the path and its permissions"
        ) from error
    return raw


def _open_postgresql(url: str) -> Connection:
    try:
        import psycopg
    except ImportError as error:
        raise StoreError("the PostgreSQL driver is not installed: install gpuwise[server]") from error
    try:
        raw = psycopg.connect(url.replace("postgresql+psycopg://", "postgresql://", 1), connect_timeout=10)
    except psycopg.Error as error:
        raise StoreError(
            f"database {shown(url)} cannot be reached ({error}): check address and server"
        ) from error
    return Connection(url, "postgresql", raw, psycopg.Error)
