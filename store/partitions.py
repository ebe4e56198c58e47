"""Day partitions of the sample tables on PostgreSQL: made when the first row of a day arrives.

A partition is created apart and then attached: that takes a lock which lets other writers go on, where CREATE
TABLE … PARTITION OF would stop them. It happens on a connection of its own, so that two writers in the middle of
their transactions cannot wait for each other.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from core.units import DAY_MS
from store.dbapi import Connection, open_connection

_LOCK: Final = 7_106_002
"""Key of the advisory lock under which partitions are made."""
LISTED: Final = """
    SELECT child.relname FROM pg_inherits
    JOIN pg_class child ON child.oid = inhrelid
    WHERE inhparent = CAST(? AS regclass)
"""
NAME: Final = re.compile(r"^(?P<table>gpu_sample|process_sample|engine_sample|host_sample)_p(?P<day>\d{8})$")


def partition_name(table: str, day: int) -> str:
    """Name of the partition of a day (days since the epoch)."""
    return f"{table}_p{datetime.fromtimestamp(day * DAY_MS / 1000, UTC):%Y%m%d}"


def day_of(name: str) -> int | None:
    """Day (since the epoch) of a partition's name; None when it is not one of ours."""
    match = NAME.match(name)
    if match is None:
        return None
    at = datetime.strptime(match["day"], "%Y%m%d").replace(tzinfo=UTC)
    return int(at.timestamp() * 1000) // DAY_MS


def existing(connection: Connection, table: str) -> dict[int, str]:
    """Partitions of ``table`` by day."""
    names = [str(name) for (name,) in connection.fetch(LISTED, (table,))]
    return {day: name for name in names if (day := day_of(name)) is not None}


class Partitions:
    """Knows which days exist, and makes the ones that do not."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._days: dict[str, set[int]] = {}

    def ensure(self, table: str, times_ms: Iterable[int]) -> None:
        """Have a partition for every day of ``times_ms``; safe beside others that do the same."""
        known = self._days.setdefault(table, set())
        missing = {ts_ms // DAY_MS for ts_ms in times_ms} - known
        if missing:
            with open_connection(self._url) as connection:
                _create(connection, table, missing)
            known |= missing

    def forget(self) -> None:
        """Look again at the next row: retention may have dropped a day."""
        self._days.clear()


def _create(connection: Connection, table: str, days: Iterable[int]) -> None:
    connection.execute("SELECT pg_advisory_xact_lock(?)", (_LOCK,))
    there = existing(connection, table)
    for day in sorted(set(days) - there.keys()):
        name = partition_name(table, day)
        connection.execute(f"CREATE TABLE {name} (LIKE {table} INCLUDING ALL)")
        connection.execute(
            f"ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES FROM ({day * DAY_MS}) TO ({(day + 1) * DAY_MS})"
        )
    connection.commit()
