"""Marks of days whose lines rested on less than is known now of a GPU or a workload. On a plain DB-API connection."""

from collections.abc import Sequence
from secrets import randbits
from typing import Final

from core.units import DAY_MS
from store.dbapi import Connection

_ON_CONFLICT: Final = "ON CONFLICT (gpu_id, day_ms) DO UPDATE SET mark = excluded.mark"
_DAYS_OF_GPU: Final = (
    "SELECT gpu_id, day_ms FROM gpu_day WHERE gpu_id = ? "
    f"UNION SELECT gpu_id, from_ms / {DAY_MS} * {DAY_MS} FROM ledger_day WHERE gpu_id = ? AND kind = 'gap'"
)
_DAYS_OF_WORKLOAD: Final = "SELECT gpu_id, day_ms FROM usage_day WHERE workload_id = ?"


def mark_gpu(connection: Connection, gpu_id: int) -> None:
    """Model, memory or host of a GPU became known: what it costs may be known too."""
    _mark(connection, _DAYS_OF_GPU, (gpu_id, gpu_id))


def mark_workload(connection: Connection, workload_id: int) -> None:
    """Attributes of a workload became known: it may have another owner."""
    _mark(connection, _DAYS_OF_WORKLOAD, (workload_id,))


def _mark(connection: Connection, days: str, values: Sequence[object]) -> None:
    connection.execute(
        "INSERT INTO ledger_pending (gpu_id, day_ms, mark) "
        f"SELECT gpu_id, day_ms, CAST(? AS bigint) FROM ({days}) AS day WHERE 1 = 1 "
        f"ORDER BY gpu_id, day_ms {_ON_CONFLICT}",
        (randbits(62), *values),
    )
