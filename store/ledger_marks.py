"""Marks of GPU-days whose ledger lines no longer hold: set with the hours, taken away with the lines. See ``store.pending``."""

from collections.abc import Collection, Iterable, Sequence
from secrets import randbits
from typing import Final, NamedTuple

from sqlalchemy import BigInteger, Connection, bindparam, delete, func, select, text, tuple_

from core.days import day_of
from core.units import DAY_MS
from store.models.gpu import GpuRow
from store.models.gpu_hour import GpuHourRow
from store.models.ledger_pending import LedgerPendingRow

ON_CONFLICT: Final = "ON CONFLICT (gpu_id, day_ms) DO UPDATE SET mark = excluded.mark"
_MARK: Final = text(
    f"INSERT INTO ledger_pending (gpu_id, day_ms, mark) VALUES (:gpu_id, :day_ms, :mark) {ON_CONFLICT}"
)


class LedgerMark(NamedTuple):
    """One UTC day of one GPU; ``mark`` tells one change from the next."""

    gpu_id: int
    day_ms: int
    mark: int


def mark_hours(connection: Connection, hours: Iterable[tuple[int, int]]) -> None:
    """Mark the days of ``hours`` (GPU and start of each), in the transaction that writes them and before it does.

    Where a GPU was silent before or after, those days are marked too: what was not known of it is a gap from now on.
    """
    spans: dict[int, list[int]] = {}
    for gpu_id, hour_ms in hours:
        spans.setdefault(gpu_id, []).append(hour_ms)
    together: dict[tuple[int, int], list[int]] = {}
    for gpu_id, found in spans.items():
        together.setdefault((min(found), max(found)), []).append(gpu_id)
    days: list[tuple[int, int]] = []
    for (first_ms, last_ms), gpu_ids in sorted(together.items()):
        for gpu_id, before_ms, after_ms in _neighbours(connection, gpu_ids, first_ms, last_ms):
            start = day_of(first_ms if before_ms is None else before_ms)
            end = last_ms if after_ms is None else after_ms
            days += [(gpu_id, day_ms) for day_ms in range(start, end + 1, DAY_MS)]
    _mark(connection, days)


def mark_engines_seen(connection: Connection, hours: Iterable[tuple[int, int]]) -> None:
    """Mark the days of ``hours`` (GPU and start of each) in which an engine is seen that was not, or no longer."""
    _mark(connection, {(gpu_id, day_of(hour_ms)) for gpu_id, hour_ms in hours})


def mark_joined(connection: Connection, engine_id: int, gpu_ids: Collection[int]) -> None:
    """Mark the days on which an engine was seen, of GPUs that it is told to be on now, or no longer."""
    statement = text(
        "INSERT INTO ledger_pending (gpu_id, day_ms, mark) "
        f"SELECT DISTINCT CAST(:gpu_id AS integer), hour_ms - hour_ms % {DAY_MS}, CAST(:mark AS bigint) "
        f"FROM engine_hour WHERE engine_id = :engine_id AND covered_s > 0 {ON_CONFLICT}"
    ).bindparams(bindparam("mark", type_=BigInteger))
    for gpu_id in sorted(gpu_ids):
        connection.execute(statement, {"gpu_id": gpu_id, "engine_id": engine_id, "mark": randbits(62)})


def _mark(connection: Connection, days: Collection[tuple[int, int]]) -> None:
    if days:
        mark = randbits(62)
        rows = [{"gpu_id": gpu_id, "day_ms": day_ms, "mark": mark} for gpu_id, day_ms in sorted(days)]
        connection.execute(_MARK, rows)


def _neighbours(
    connection: Connection, gpu_ids: Sequence[int], first_ms: int, last_ms: int
) -> list[tuple[int, int | None, int | None]]:
    """Of each GPU the stored hours next to a span: the last by its first hour, the first from its last hour."""
    gpu, hour = GpuRow, GpuHourRow
    before = select(func.max(hour.hour_ms)).where(hour.gpu_id == gpu.id, hour.hour_ms <= first_ms)
    after = select(func.min(hour.hour_ms)).where(hour.gpu_id == gpu.id, hour.hour_ms >= last_ms)
    statement = select(
        gpu.id, before.correlate(gpu).scalar_subquery(), after.correlate(gpu).scalar_subquery()
    ).where(gpu.id.in_(gpu_ids))
    return [(gpu_id, before_ms, after_ms) for gpu_id, before_ms, after_ms in connection.execute(statement)]


def next_marks(connection: Connection, after: LedgerMark | None, limit: int) -> list[LedgerMark]:
    """Marks after ``after``, GPU by GPU and by day: whole GPUs, unless one alone has more than ``limit``."""
    row = LedgerPendingRow
    statement = select(row.gpu_id, row.day_ms, row.mark).order_by(row.gpu_id, row.day_ms).limit(limit)
    if after is not None:
        statement = statement.where(tuple_(row.gpu_id, row.day_ms) > (after.gpu_id, after.day_ms))
    found = [LedgerMark(*of) for of in connection.execute(statement)]
    if len(found) == limit and found[0].gpu_id != found[-1].gpu_id:
        return [mark for mark in found if mark.gpu_id != found[-1].gpu_id]
    return found


def unchanged(connection: Connection, marks: Sequence[LedgerMark]) -> set[LedgerMark]:
    """Those of ``marks`` that are still as they were read, locked until the end of the transaction."""
    row = LedgerPendingRow
    days = [mark.day_ms for mark in marks]
    statement = (
        select(row.gpu_id, row.day_ms, row.mark)
        .where(
            row.gpu_id.in_({mark.gpu_id for mark in marks}),
            row.day_ms >= min(days),
            row.day_ms <= max(days),
        )
        .order_by(row.gpu_id, row.day_ms)
        .with_for_update()
    )
    return {LedgerMark(*of) for of in connection.execute(statement)} & set(marks)


def remove(connection: Connection, marks: Iterable[LedgerMark]) -> None:
    """Delete marks whose lines are written."""
    row = LedgerPendingRow
    rows = [{"g": mark.gpu_id, "d": mark.day_ms} for mark in marks]
    if rows:
        connection.execute(
            delete(row).where(row.gpu_id == bindparam("g"), row.day_ms == bindparam("d")), rows
        )
