"""One jobs process at a time: an advisory lock that dies with its holder."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import Engine, text

JOBS_LOCK: Final = 0x6770_7577
"""Key of PostgreSQL's advisory lock (``gpuw``)."""


@contextmanager
def jobs_lock(engine: Engine) -> Iterator[bool]:
    """Hold the lock of the jobs process; yields False when another process has it.

    PostgreSQL: a session's advisory lock. SQLite: a locked file beside the database (in memory: always free).
    """
    if engine.dialect.name == "postgresql":
        with engine.connect() as connection:
            held = bool(
                connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": JOBS_LOCK}).scalar()
            )
            connection.commit()
            yield held
        return
    database = engine.url.database
    if not database or database == ":memory:":
        yield True
        return
    with Path(f"{database}.jobs.lock").open("a+", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield True
