"""Values that come metric after metric, put into the order of time on disk, so that memory stays constant."""

import sqlite3
from collections.abc import Iterator
from typing import Final, Self

from core.errors import GpuwiseError

Row = tuple[int, int, int, float]
"""Instant (ms), entity, slot, value."""

CACHE_KIB: Final = 32 * 1024


class Spill:
    """A temporary table that SQLite keeps in memory while it is small and on disk when it is not."""

    def __init__(self) -> None:
        # An empty name is a private database in a temporary file that goes away by itself.
        self._connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        for pragma in (
            "journal_mode = OFF",
            "synchronous = OFF",
            f"cache_size = -{CACHE_KIB}",
            "temp_store = FILE",
        ):
            self._connection.execute(f"PRAGMA {pragma}")
        self._connection.execute("CREATE TABLE v (ts INTEGER, entity INTEGER, slot INTEGER, value REAL)")
        self._connection.execute("BEGIN")

    def add(self, rows: list[Row]) -> None:
        """Take values. Raises ``GpuwiseError`` when the disk is full."""
        try:
            self._connection.executemany("INSERT INTO v VALUES (?, ?, ?, ?)", rows)
        except sqlite3.Error as error:
            raise _full(error) from error

    def in_order(self, summed: frozenset[int]) -> Iterator[tuple[int, int, dict[int, float]]]:
        """Instant, entity, and its values by slot; by time. Values of a ``summed`` slot add up, else the last counts."""
        ts_ms = entity = -1
        values: dict[int, float] = {}
        try:
            cursor = self._connection.execute("SELECT ts, entity, slot, value FROM v ORDER BY ts, entity")
            for ts, number, slot, value in cursor:
                if ts != ts_ms or number != entity:
                    if values:
                        yield ts_ms, entity, values
                    ts_ms, entity, values = ts, number, {}
                if slot in summed and slot in values:
                    values[slot] += value
                else:
                    values[slot] = value
        except sqlite3.Error as error:
            raise _full(error) from error
        if values:
            yield ts_ms, entity, values

    def close(self) -> None:
        """Give the disk back."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()


def _full(error: sqlite3.Error) -> GpuwiseError:
    return GpuwiseError(
        f"sorting the file on disk failed ({error}): make room in the temporary folder, or point TMPDIR at a larger one"
    )
