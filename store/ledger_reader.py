"""What the ledger prices: hours and usage of many GPUs at once, as the driver gives them, who the GPUs are and what served on them."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, select

from core.activity import Activity
from core.readings import GpuIdentity
from store.known import known_gpus
from store.models.engine import EngineRow
from store.retention import hours_purged_until_ms
from store.usage_shares import MIG_SLICE

HOUR: Final = (
    "hour_ms",
    "covered_s",
    *(f"{activity.value}_s" for activity in Activity if activity is not Activity.UNKNOWN),
    "effective_s",
    "effective_unknown_s",
    "energy_j",
    "energy_method",
    "energy_covered_s",
    "empty_j",
)
"""Columns of ``gpu_hour`` in the order of ``ledger.line.Hour``."""
USE: Final = (
    "workload_id",
    "allocated_s",
    "active_s",
    "effective_s",
    "memory_byte_s",
    "energy_j",
    "share_method",
)
"""Columns of ``usage_hour`` in the order of ``ledger.line.Use``."""
Row = tuple[Any, ...]
EnginesByHour = Mapping[int, tuple[int, ...]]
"""Keys of the engines seen on one GPU, ascending, by the start of the hour; an hour without any is not there."""


@dataclass(frozen=True, slots=True)
class LedgerGpu:
    """A card that is paid for.

    Attributes:
        id: its key. identity: as the driver names it.
        first_ms, until_ms: start of its first and end of its newest sample.
        purged_until_ms: hours before this one are past their age, and their lines stay as they are; 0: none are.
    """

    id: int
    identity: GpuIdentity
    first_ms: int
    until_ms: int
    purged_until_ms: int


def ledger_gpus(connection: Connection, ids: Collection[int] | None = None) -> list[LedgerGpu]:
    """Cards (default all) with samples, by host, index and UUID; a MIG slice is a part of one, and not here."""
    purged_ms = hours_purged_until_ms(connection)
    found = []
    for gpu in known_gpus(connection, ids):
        if gpu.identity.is_slice or gpu.first_sample_ms is None or gpu.seen_until_ms is None:
            continue
        purged = gpu.first_sample_ms < purged_ms
        found.append(
            LedgerGpu(
                gpu.id, gpu.identity, gpu.first_sample_ms, gpu.seen_until_ms, purged_ms if purged else 0
            )
        )
    return found


def hour_rows(
    connection: Connection, gpu_ids: Collection[int], from_ms: int, to_ms: int
) -> dict[int, dict[int, Row]]:
    """Rows of ``HOUR`` columns (with the GPU's key behind them) by GPU and hour."""
    found: dict[int, dict[int, Row]] = {gpu_id: {} for gpu_id in gpu_ids}
    where = _where(gpu_ids, from_ms, to_ms)
    for row in _rows(connection, f"SELECT {', '.join((*HOUR, 'gpu_id'))} FROM gpu_hour WHERE {where}"):
        found[row[-1]][row[0]] = row
    return found


def use_rows(
    connection: Connection, gpu_ids: Collection[int], from_ms: int, to_ms: int
) -> dict[int, dict[int, list[Row]]]:
    """Rows of ``USE`` columns (with hour and GPU behind them) of known workloads by GPU and hour, by workload.

    Last of an hour, without a workload, what nobody used of a card in MIG slices.
    """
    found: dict[int, dict[int, list[Row]]] = {gpu_id: {} for gpu_id in gpu_ids}
    columns = ", ".join((*USE, "hour_ms", "gpu_id"))
    where = f"{_where(gpu_ids, from_ms, to_ms)} AND (workload_id IS NOT NULL OR share_method = '{MIG_SLICE}')"
    for row in _rows(connection, f"SELECT {columns} FROM usage_hour WHERE {where}"):
        of_gpu = found[row[-1]]
        of_hour = of_gpu.get(row[-2])
        if of_hour is None:
            of_gpu[row[-2]] = [row]
        else:
            of_hour.append(row)
            of_hour.sort(key=_workload)
    return found


def engines_by_hour(
    connection: Connection, gpu_ids: Collection[int] | None, from_ms: int, to_ms: int
) -> dict[int, EnginesByHour]:
    """Engines seen in hours of GPUs (None: of all), by GPU; one without any is not there.

    An engine is on the GPUs that the roll-up joined it to: whatever changes that marks the days (``store.pending``).
    """
    gpus_of = _gpus_of_engines(connection, gpu_ids)
    if not gpus_of:
        return {}
    where = f"hour_ms >= {int(from_ms)} AND hour_ms < {int(to_ms)} AND covered_s > 0"
    if gpu_ids is not None:
        where = f"engine_id IN ({', '.join(map(str, gpus_of))}) AND {where}"
    found: dict[int, dict[int, tuple[int, ...]]] = {}
    rows = _rows(connection, f"SELECT engine_id, hour_ms FROM engine_hour WHERE {where} ORDER BY engine_id")
    for engine_id, hour_ms in rows:
        for gpu_id in gpus_of.get(engine_id, ()):
            of_gpu = found.setdefault(gpu_id, {})
            of_gpu[hour_ms] = (*of_gpu.get(hour_ms, ()), engine_id)
    return dict(found)


def _gpus_of_engines(connection: Connection, gpu_ids: Collection[int] | None) -> dict[int, list[int]]:
    row = EngineRow
    wanted = None if gpu_ids is None else frozenset(gpu_ids)
    found: dict[int, list[int]] = {}
    for engine_id, told in connection.execute(
        select(row.id, row.joined_gpu_ids).where(row.joined_gpu_ids.is_not(None))
    ):
        on = [gpu_id for gpu_id in json.loads(told or "[]") if wanted is None or gpu_id in wanted]
        if on:
            found[engine_id] = on
    return found


def _workload(row: Row) -> tuple[bool, int]:
    workload_id: int | None = row[0]
    return workload_id is None, workload_id or 0


def _where(gpu_ids: Collection[int], from_ms: int, to_ms: int) -> str:
    """All that is filled in is our own whole numbers; 0 is no key."""
    ids = ", ".join(str(int(gpu_id)) for gpu_id in gpu_ids) or "0"
    return f"gpu_id IN ({ids}) AND hour_ms >= {int(from_ms)} AND hour_ms < {int(to_ms)}"


def _rows(connection: Connection, sql: str) -> list[Row]:
    # Straight from the driver: there are a million of these rows, and the values are plain.
    raw: Any = connection.connection.driver_connection
    cursor = raw.cursor() if connection.dialect.name == "sqlite" else raw.cursor(binary=True)
    try:
        cursor.execute(sql)
        rows: list[Row] = cursor.fetchall()
    finally:
        cursor.close()
    return rows
