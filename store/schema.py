"""Bring a database to the head of the one migration history; Alembic is configured here, without an ini file."""

import sqlite3
from functools import cache
from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

import migrations
from core.errors import StoreError
from store.dbapi import dialect_of, open_connection, shown, sqlite_path
from store.engine import begin_write, make_engine

_UPGRADE_LOCK: Final = 7_106_001
"""Key of PostgreSQL's advisory lock that lets one process at a time change the schema."""


def configuration(connection: Connection | None = None) -> Config:
    """Alembic's configuration; ``migrations/env.py`` runs on ``connection``."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__path__[0])))
    config.attributes["connection"] = connection
    return config


def upgrade(url: str, revision: str = "head") -> None:
    """Bring ``url`` to ``revision``, in one transaction; a second process waits for the first.

    Raises:
        StoreError: not reachable or not writable.
    """
    _migrate(url, revision, up=True)


def downgrade(url: str, revision: str) -> None:
    """Take ``url`` back to ``revision`` (``base``: nothing left), in one transaction."""
    _migrate(url, revision, up=False)


def _migrate(url: str, revision: str, *, up: bool) -> None:
    if dialect_of(url) == "sqlite":
        _make_folder(sqlite_path(url).parent)
    try:
        with make_engine(url).begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _UPGRADE_LOCK})
            begin_write(connection)
            (command.upgrade if up else command.downgrade)(configuration(connection), revision)
    except DBAPIError as error:
        raise StoreError(
            f"database {shown(url)} cannot be changed ({error.orig}): check server and permissions"
        ) from error


def check(url: str) -> str | None:
    """None when the database is at the head; else one sentence that says what it is.

    Raises:
        StoreError: not reachable.
    """
    if dialect_of(url) == "sqlite" and not _exists(sqlite_path(url)):
        return f"database {sqlite_path(url)} does not exist yet"
    head = _history().get_current_head()
    try:
        with make_engine(url).connect() as connection:
            current = MigrationContext.configure(connection).get_current_revision()
    except DBAPIError as error:
        raise StoreError(
            f"database {shown(url)} cannot be read ({error.orig}): check address and server"
        ) from error
    if current == head:
        return None
    if current is None:
        return f"database {shown(url)} has no gpuwise tables yet"
    known = {script.revision for script in _history().walk_revisions()}
    if current not in known:
        return f"database {shown(url)} is at revision {current}, which is newer than this gpuwise"
    return f"database {shown(url)} is at revision {current}, not at {head}"


@cache
def _history() -> ScriptDirectory:
    """All migrations, read once in a process: each is a module of its own."""
    return ScriptDirectory.from_config(configuration())


def ensure_ready(url: str) -> None:
    """Make ``url`` usable: a SQLite file is created and upgraded, PostgreSQL must have been upgraded.

    Raises:
        StoreError: PostgreSQL not at the head, a database newer than this program, or not reachable.
    """
    state = check(url)
    if state is None:
        return
    if "newer than" in state:
        raise StoreError(f"{state}: upgrade gpuwise")
    if dialect_of(url) == "postgresql":
        raise StoreError(f"{state}: run: gpuwise db upgrade")
    upgrade(url)


def backup(url: str, path: Path) -> None:
    """Write a consistent copy of a SQLite database to ``path`` while it is in use.

    Raises:
        StoreError: not SQLite, no such database, or ``path`` cannot be written.
    """
    if dialect_of(url) != "sqlite":
        raise StoreError(f"database {shown(url)} is PostgreSQL: back it up with pg_dump")
    if not sqlite_path(url).is_file():
        raise StoreError(f"database {sqlite_path(url)} does not exist: nothing to back up")
    with open_connection(url) as source:
        assert isinstance(source.raw, sqlite3.Connection)
        try:
            target = sqlite3.connect(path)
        except sqlite3.Error as error:
            raise StoreError(f"{path} cannot be written ({error}): check folder and permissions") from error
        try:
            source.raw.backup(target)
        except sqlite3.Error as error:
            raise StoreError(f"{path} cannot be written ({error}): check space and permissions") from error
        finally:
            target.close()


def _exists(path: Path) -> bool:
    try:
        return path.is_file()
    except PermissionError as error:
        raise StoreError(
            f"database {path} cannot be looked at ({error.strerror}): check the folder's permissions"
        ) from error


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"folder {folder} cannot be created ({error.strerror}): check its permissions"
        ) from error
