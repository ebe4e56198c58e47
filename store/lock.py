"""One process at a time: advisory locks that die with their holder."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from store.keys import DAY_SUMS_LOCK

JOBS_LOCK: Final = 0x6770_7577
LEDGER_LOCK: Final = 0x6770_7578
"""Keys of PostgreSQL's advisory locks (``gpuw`` and the next)."""


def jobs_lock(engine: Engine) -> AbstractContextManager[bool]:
    """Hold the lock of the jobs process; gives False when another process has it."""
    return _held(engine, JOBS_LOCK, "jobs")


def ledger_lock(engine: Engine) -> AbstractContextManager[bool]:
    """Hold the lock of whoever writes lines of the ledger; gives False when another process has it."""
    return _held(engine, LEDGER_LOCK, "ledger")


def wait_for_day_sums(connection: Connection) -> None:
    """Until this transaction ends nobody else writes sums of days; SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": DAY_SUMS_LOCK})


@contextmanager
def _held(engine: Engine, key: int, name: str) -> Iterator[bool]:
    """PostgreSQL: a session's advisory lock. SQLite: a locked file beside the database (in memory: always free)."""
    if engine.dialect.name == "postgresql":
        with engine.connect() as connection:
            held = bool(connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": key}).scalar())
            connection.commit()
            try:
                yield held
            finally:
                # The connection goes back to the pool, where the lock would outlive its holder; one that broke took it along.
                with suppress(DBAPIError):
                    connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": key})
                    connection.commit()
        return
    database = engine.url.database
    if not database or database == ":memory:":
        yield True
        return
    with Path(f"{database}.{name}.lock").open("a+", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield True
