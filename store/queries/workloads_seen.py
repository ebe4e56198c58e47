"""When workloads held GPUs first and last: told by whole days, and by hours at the edges of a window."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from core.evidence import Window
from core.units import DAY_MS, HOUR_MS
from store.models.day_pending import DayPendingRow
from store.models.usage_hour import UsageHourRow
from store.queries.hours import within
from store.queries.plain_rows import plain_rows


def workloads_seen(session: Session, window: Window) -> dict[int, tuple[int, int]]:
    """Start of the first and end of the last hour of the window in which each workload held a GPU, by its key."""
    found: dict[int, tuple[int, int]] = {}
    for workload_id, first_ms, last_ms in _spans(session, window):
        known = found.get(workload_id, (first_ms, last_ms))
        found[workload_id] = min(known[0], first_ms), max(known[1], last_ms)
    return found


def _spans(session: Session, window: Window) -> Iterator[Any]:
    """Of whole UTC days, then of the hours around them and those of days that wait to be made from hours."""
    first, last = -(-window.from_ms // DAY_MS) * DAY_MS, window.to_ms // DAY_MS * DAY_MS
    if last <= first:
        yield from _of_hours(session, window)
        return
    pending = DayPendingRow
    statement = select(pending.day_ms).where(
        pending.kind == "gpu", pending.day_ms >= first, pending.day_ms < last
    )
    stale = sorted(set(session.execute(statement).scalars()))
    yield from _of_days(session, first, last, stale)
    for start_ms, end_ms in (
        (window.from_ms, first),
        (last, window.to_ms),
        *((at, at + DAY_MS) for at in stale),
    ):
        if start_ms < end_ms:
            yield from _of_hours(session, Window(start_ms, end_ms))


def _of_days(session: Session, from_ms: int, to_ms: int, without: Collection[int]) -> Iterable[Any]:
    left_out = ", ".join(str(int(day)) for day in without) or "-1"  # our own whole numbers; no day is -1
    # GPU by GPU through the key: from the index of days SQLite looks up every row by itself, four times as long.
    sql = (
        "SELECT day.workload_id, min(day.first_ms), max(day.last_ms) FROM gpu CROSS JOIN usage_day AS day "
        f"WHERE day.gpu_id = gpu.id AND day.day_ms >= {int(from_ms)} AND day.day_ms < {int(to_ms)} "
        f"AND day.day_ms NOT IN ({left_out}) AND day.workload_id IS NOT NULL GROUP BY gpu.id, day.workload_id"
    )
    return session.connection().exec_driver_sql(sql)


def _of_hours(session: Session, window: Window) -> Iterable[Any]:
    row = UsageHourRow
    columns: tuple[Any, ...] = (row.workload_id, func.min(row.hour_ms), func.max(row.hour_ms) + HOUR_MS)
    statement: Select[Any] = (
        select(*columns)
        .where(row.workload_id.is_not(None), *within(row.hour_ms, window))
        .group_by(row.workload_id)
    )
    return plain_rows(session, statement)
