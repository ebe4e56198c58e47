"""Rows written in bulk, straight to the driver."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Table


def replace_rows(connection: Connection, table: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows, or overwrite those of the same key: one prepared statement for all."""
    if not rows:
        return
    assert isinstance(table, Table)
    names = [column.name for column in table.columns]
    keys = [column.name for column in table.primary_key.columns]
    updates = ", ".join(f"{name} = excluded.{name}" for name in names if name not in keys)
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    # What no row knows is left to be NULL (of a stored row too): binding NULLs costs more than binding numbers.
    told = [name for name in names if any(row[name] is not None for row in rows)]
    # Straight to the driver: the values are plain, and preparing each row costs more than storing it.
    connection.exec_driver_sql(
        f"INSERT INTO {table.name} ({', '.join(told)}) VALUES ({', '.join([mark] * len(told))}) "
        f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {updates}",
        [tuple(row[name] for name in told) for row in rows],
    )
