"""Hours that changed make their days anew: from a mark, in a transaction of their own, resumable anywhere.

The hours' transaction leaves the mark, this one takes it away together with writing the day. So a day is either
what its hours fold to, or marked; readers fold marked days from their hours (``store.queries.days``).
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, Final

from sqlalchemy import Connection, Engine, bindparam, delete, insert, select, text

from core.days import engine_day, gpu_day, host_day, usage_days
from core.hours import EngineHour, GpuHour, HostHour, UsageHour
from core.readings import WorkloadKey
from core.units import DAY_MS
from store import day_sums
from store.bulk import replace_rows
from store.day_rows import engine_day_values, gpu_day_values, host_day_values, usage_day_values
from store.engine import begin_write
from store.hour_rows import engine_hour_of, gpu_hour_of, host_hour_of
from store.models.day_pending import DayPendingRow
from store.models.engine_day import EngineDayRow
from store.models.engine_hour import EngineHourRow
from store.models.gpu_day import GpuDayRow
from store.models.gpu_hour import GpuHourRow
from store.models.host_day import HostDayRow
from store.models.host_hour import HostHourRow
from store.models.usage_day import UsageDayRow
from store.models.usage_hour import UsageHourRow
from store.queries.host_share import follow_days

DAYS_AT_ONCE: Final = 512
"""Days folded in one transaction: some twelve thousand hours, well under a second of holding the write lock."""
DayMark = tuple[str, int, int]
"""Kind, key and day."""


def mark_days(connection: Connection, kind: str, hours: Iterable[tuple[int, int]]) -> None:
    """Mark the days of ``hours`` (key and start of each), in the transaction that writes them."""
    days = sorted({(key, hour_ms - hour_ms % DAY_MS) for key, hour_ms in hours})
    if days:
        # An update, not nothing, on conflict: it waits for who folds that day now, so that the mark outlives that fold.
        connection.execute(
            text(
                "INSERT INTO day_pending (kind, entity_id, day_ms) VALUES (:kind, :key, :day_ms) "
                "ON CONFLICT (kind, entity_id, day_ms) DO UPDATE SET day_ms = excluded.day_ms"
            ),
            [{"kind": kind, "key": key, "day_ms": day_ms} for key, day_ms in days],
        )


def write_days(engine: Engine) -> int:
    """Fold every marked day from its hours, and add up what goes with days; returns how many were folded.

    Days that another process is folding are left to it.
    """
    written = 0
    while True:
        with engine.begin() as connection:
            begin_write(connection)
            marks = _next(connection)
            if not marks:
                break
            for kind, same in groupby(marks, key=lambda mark: mark[0]):
                _FOLD[kind](connection, [(key, day_ms) for _, key, day_ms in same])
            follow_days(connection, marks)
            row = DayPendingRow
            connection.execute(
                delete(row).where(
                    row.kind == bindparam("k"), row.entity_id == bindparam("e"), row.day_ms == bindparam("d")
                ),
                [{"k": kind, "e": key, "d": day_ms} for kind, key, day_ms in marks],
            )
            written += len(marks)
    day_sums.add_up(engine)
    return written


def _next(connection: Connection) -> list[DayMark]:
    """Some marks, locked until the end of the transaction, by kind and subject."""
    row = DayPendingRow
    statement = (
        select(row.kind, row.entity_id, row.day_ms)
        .order_by(row.kind, row.entity_id, row.day_ms)
        .limit(DAYS_AT_ONCE)
        .with_for_update(skip_locked=True)
    )
    return [(kind, key, day_ms) for kind, key, day_ms in connection.execute(statement)]


def _fold_gpus(connection: Connection, days: Sequence[tuple[int, int]]) -> None:
    rows = []
    for key, found in _hours(connection, GpuHourRow.__table__, "gpu_id", days):
        hours: list[GpuHour] = [gpu_hour_of(row, "") for row in found]
        rows.append(gpu_day_values(gpu_day(hours), key))
    _clear(connection, GpuDayRow.__table__, "gpu_id", days)
    replace_rows(connection, GpuDayRow.__table__, rows)
    day_sums.follow(connection, days)
    _fold_usage(connection, days)


def _fold_usage(connection: Connection, days: Sequence[tuple[int, int]]) -> None:
    rows = []
    for key, found in _hours(connection, UsageHourRow.__table__, "gpu_id", days):
        ids: dict[WorkloadKey | None, int | None] = {}
        lines: list[UsageHour] = []
        for row in found:
            # The key stands for the workload: the day's row refers to it by the same number.
            workload_id = row["workload_id"]
            workload = None if workload_id is None else WorkloadKey("", str(workload_id), "", None, None)
            ids[workload] = workload_id
            lines.append(UsageHour(workload, "", *(row[name] for name in _USAGE)))
        rows += [usage_day_values(day, key, ids[day.workload]) for day in usage_days(lines)]
    _clear(connection, UsageDayRow.__table__, "gpu_id", days)
    if rows:
        connection.execute(insert(UsageDayRow), rows)


_USAGE: Final = (
    "hour_ms",
    "allocated_s",
    "active_s",
    "effective_s",
    "memory_byte_s",
    "energy_j",
    "share_method",
    "cpu_ratio",
    "cpu_thread_ratio",
)


def _fold_engines(connection: Connection, days: Sequence[tuple[int, int]]) -> None:
    rows = []
    for key, found in _hours(connection, EngineHourRow.__table__, "engine_id", days):
        hours: list[EngineHour] = [engine_hour_of(row, "") for row in found]
        rows.append(engine_day_values(engine_day(hours), key))
    _clear(connection, EngineDayRow.__table__, "engine_id", days)
    replace_rows(connection, EngineDayRow.__table__, rows)


def _fold_hosts(connection: Connection, days: Sequence[tuple[int, int]]) -> None:
    rows = []
    for key, found in _hours(connection, HostHourRow.__table__, "host_id", days):
        hours: list[HostHour] = [host_hour_of(row, "") for row in found]
        rows.append(host_day_values(host_day(hours), key))
    _clear(connection, HostDayRow.__table__, "host_id", days)
    replace_rows(connection, HostDayRow.__table__, rows)


_FOLD: Final[dict[str, Callable[[Connection, Sequence[tuple[int, int]]], None]]] = {
    "gpu": _fold_gpus,
    "engine": _fold_engines,
    "host": _fold_hosts,
}


def _hours(
    connection: Connection, table: Any, key: str, days: Sequence[tuple[int, int]]
) -> Iterable[tuple[int, list[Any]]]:
    """Key and hours of each of ``days`` that has any."""
    wanted = set(days)
    columns = table.c
    statement = (
        select(table)
        .where(
            columns[key].in_({of for of, _ in days}),
            columns.hour_ms >= min(day_ms for _, day_ms in days),
            columns.hour_ms < max(day_ms for _, day_ms in days) + DAY_MS,
        )
        .order_by(columns[key], columns.hour_ms)
    )
    found = connection.execute(statement).mappings()
    for (of, day), hours in groupby(found, key=lambda row: (row[key], row["hour_ms"] // DAY_MS)):
        if (of, day * DAY_MS) in wanted:
            yield of, list(hours)


def _clear(connection: Connection, table: Any, key: str, days: Sequence[tuple[int, int]]) -> None:
    """Remove what these days were, also of those whose hours are gone."""
    connection.execute(
        delete(table).where(table.c[key] == bindparam("of"), table.c.day_ms == bindparam("day")),
        [{"of": of, "day": day_ms} for of, day_ms in days],
    )
