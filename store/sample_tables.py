"""The sample tables as ingest writes them: columns in order, and the statements for both databases."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from core.metrics import BY_NAME, ENGINE_COLUMNS, GPU_COLUMNS, HOST_COLUMNS, Fold
from store.dbapi import Connection
from store.partitions import Partitions

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class SampleTable:
    """One sample table.

    Attributes:
        name: of the table. keys: its primary key, first columns of every row. fixed: columns that every row has, in
            order; the metrics come after them. columns: all, in order.
        covered_at: place of ``covered_ms`` in a row: rows of the same interval complete each other; None: the first
            one stays.
    """

    name: str
    keys: tuple[str, ...]
    fixed: tuple[str, ...]
    metrics: tuple[str, ...]
    covered_at: int | None
    columns: tuple[str, ...] = field(init=False)
    conflict_sql: str = field(init=False)
    incoming_sql: str = field(init=False)

    def __post_init__(self) -> None:
        """Write what is the same for every batch once."""
        set_ = object.__setattr__
        set_(self, "columns", self.fixed + self.metrics)
        set_(self, "conflict_sql", self._on_conflict())
        set_(
            self,
            "incoming_sql",
            f"CREATE TEMPORARY TABLE IF NOT EXISTS incoming_{self.name} (LIKE {self.name}) ON COMMIT DELETE ROWS",
        )

    def _on_conflict(self) -> str:
        """What a second row of the same interval does: cover more of it, or tell what the first did not know.

        Two logs of one run (a query log and dmon) fill each other's unknown columns, in either order; the same row
        again changes nothing and counts as nothing.
        """
        keys = ", ".join(self.keys)
        if self.covered_at is None:
            return f"ON CONFLICT ({keys}) DO NOTHING"
        here, given = self.name, "excluded"
        more = f"{given}.covered_ms > {here}.covered_ms"
        values = [c for c in self.columns if c not in {*self.keys, "span_ms", "covered_ms", "activity"}]
        updates = [
            f"{c} = CASE WHEN {more} THEN {given}.{c} ELSE {here}.{c} END" for c in ("span_ms", "covered_ms")
        ]
        updates += [
            f"{c} = CASE WHEN {more} THEN COALESCE({given}.{c}, {_filler(c, here, given)}) "
            f"ELSE COALESCE({here}.{c}, {_filler(c, given, here)}) END"
            for c in values
        ]
        if "activity" in self.columns:
            updates.append(
                f"activity = CASE WHEN {here}.activity = 'unknown' OR ({more} AND {given}.activity <> 'unknown') "
                f"THEN {given}.activity ELSE {here}.activity END"
            )
        tells = " OR ".join(f"({here}.{c} IS NULL AND {_filler(c, given, here)} IS NOT NULL)" for c in values)
        same = f"{given}.span_ms = {here}.span_ms"
        return (
            f"ON CONFLICT ({keys}) DO UPDATE SET {', '.join(updates)} WHERE {more} OR ({same} AND ({tells}))"
        )


def _filler(column: str, giver: str, taker: str) -> str:
    """A value for a column that ``taker`` does not know.

    An amount (joules, tokens) of a row that covers clearly less would pass for the amount of the whole: it is not taken.
    """
    amount = column == "energy_method" or (column in BY_NAME and BY_NAME[column].fold is Fold.DELTA)
    if not amount:
        return f"{giver}.{column}"
    return f"CASE WHEN {giver}.covered_ms * 10 >= {taker}.covered_ms * 9 THEN {giver}.{column} END"


@lru_cache(maxsize=256)
def insert_sql(table: SampleTable, columns: tuple[str, ...]) -> str:
    """Insert one row of ``columns``; the others stay unknown, or as they are stored."""
    marks = ", ".join("?" * len(columns))
    return f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({marks}) {table.conflict_sql}"


@lru_cache(maxsize=256)
def copy_sql(table: SampleTable, columns: tuple[str, ...]) -> str:
    """COPY rows of ``columns`` into the temporary table."""
    return f"COPY incoming_{table.name} ({', '.join(columns)}) FROM STDIN"


@lru_cache(maxsize=256)
def merge_sql(table: SampleTable, columns: tuple[str, ...]) -> str:
    """Take over what was copied, in key order: two writers take their locks in the same order."""
    names = ", ".join(columns)
    return (
        f"INSERT INTO {table.name} ({names}) SELECT {names} FROM incoming_{table.name} "
        f"ORDER BY {', '.join(table.keys)} {table.conflict_sql}"
    )


GPU_SAMPLE: Final = SampleTable(
    "gpu_sample",
    ("gpu_id", "ts_ms"),
    ("gpu_id", "ts_ms", "span_ms", "covered_ms", "energy_method", "activity"),
    GPU_COLUMNS,
    covered_at=3,
)
PROCESS_SAMPLE: Final = SampleTable(
    "process_sample",
    ("gpu_id", "ts_ms", "workload_id"),
    (
        "gpu_id",
        "ts_ms",
        "workload_id",
        "span_ms",
        "memory_used_bytes",
        "busy_ratio",
        "process_count",
        "cpu_ratio",
        "cpu_thread_ratio",
    ),
    (),
    covered_at=None,
)
ENGINE_SAMPLE: Final = SampleTable(
    "engine_sample",
    ("engine_id", "ts_ms"),
    ("engine_id", "ts_ms", "span_ms", "covered_ms", "busy_ms", "busy_running_requests"),
    ENGINE_COLUMNS,
    covered_at=3,
)
HOST_SAMPLE: Final = SampleTable(
    "host_sample", ("host_id", "ts_ms"), ("host_id", "ts_ms", "span_ms"), HOST_COLUMNS, covered_at=None
)
SAMPLE_TABLES: Final = (GPU_SAMPLE, PROCESS_SAMPLE, ENGINE_SAMPLE, HOST_SAMPLE)


class SampleWriter:
    """Writes rows by the driver's fast path: executemany on SQLite; COPY, then one INSERT … SELECT, on PostgreSQL."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._partitions = Partitions(connection.url)

    def write(self, table: SampleTable, columns: tuple[str, ...], rows: Sequence[Row]) -> int:
        """Store ``rows`` of ``columns`` (the fixed ones first); how many were new or completed a stored one."""
        connection = self._connection
        connection.begin()
        if connection.dialect == "sqlite":
            return connection.executemany(insert_sql(table, columns), rows)
        self._partitions.ensure(table.name, (row[1] for row in rows))
        connection.execute(table.incoming_sql)
        connection.execute(f"TRUNCATE incoming_{table.name}")
        connection.copy(copy_sql(table, columns), _without_doubles(table, rows))
        return connection.execute(merge_sql(table, columns))

    def forget(self) -> None:
        """After a rollback: look again which partitions there are."""
        self._partitions.forget()


def _without_doubles(table: SampleTable, rows: Sequence[Row]) -> Iterable[Row]:
    """PostgreSQL refuses one INSERT that meets the same key twice; keep the row that would have stayed."""
    width, at = len(table.keys), table.covered_at
    kept: dict[Row, Row] = {}
    for row in rows:
        key = row[:width]
        stored = kept.get(key)
        if stored is None or (at is not None and row[at] > stored[at]):
            kept[key] = row
    return kept.values()
