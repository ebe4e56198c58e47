"""What GPUs drew in each activity: seconds and joules of weeks and days, and of hours where no day row says it."""

from collections.abc import Collection, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.orm import Session

from core.activity import Activity
from core.evidence import Window
from core.units import DAY_MS
from store.day_sums import WEEK_MS, week_of
from store.models.day_pending import DayPendingRow
from store.models.gpu import GpuRow
from store.models.gpu_day import GpuDayRow
from store.models.gpu_hour import GpuHourRow
from store.models.gpu_week import GpuWeekRow
from store.queries.hours import within
from store.queries.plain_rows import plain_rows

Watts = dict[str, dict[Activity, float]]
"""Mean power by GPU UUID and activity; what is not known is not there."""
_ACTIVITIES: Final = tuple(Activity)


def watts_by_activity(
    session: Session, window: Window, activities: Collection[Activity] = _ACTIVITIES
) -> Watts:
    """Mean power of each GPU in each of these activities over the hours that overlap the window."""
    asked = [one for one in _ACTIVITIES if one in activities]
    sums: dict[str, list[float | None]] = {}
    for row, where in _pieces(session, window) if asked else ():
        for gpu_uuid, *values in _sums(session, row, where, asked):
            known = sums.get(gpu_uuid)
            sums[gpu_uuid] = values if known is None else list(map(_added, known, values))
    found: Watts = {}
    for gpu_uuid, values in sums.items():
        of = zip(asked, values[: len(asked)], values[len(asked) :], strict=True)
        found[gpu_uuid] = {activity: j / s for activity, s, j in of if s and j is not None}
    return found


Row = type[GpuWeekRow] | type[GpuDayRow] | type[GpuHourRow]
Piece = tuple[Row, list[ColumnElement[bool]]]


def _pieces(session: Session, window: Window) -> list[Piece]:
    """Whole UTC weeks, then days, from their rows; the window's edges and days that wait to be made from hours."""
    first, last = -(-window.from_ms // DAY_MS) * DAY_MS, window.to_ms // DAY_MS * DAY_MS
    if last <= first:
        return [(GpuHourRow, list(within(GpuHourRow.hour_ms, window)))]
    pending = set(
        session.execute(
            select(DayPendingRow.day_ms)
            .where(DayPendingRow.kind == "gpu", DayPendingRow.day_ms >= first, DayPendingRow.day_ms < last)
            .distinct()
        ).scalars()
    )
    touched = {week_of(day) for day in pending}
    weeks = [
        week
        for week in range(week_of(first + WEEK_MS - DAY_MS), last - WEEK_MS + 1, WEEK_MS)
        if week not in touched
    ]
    in_weeks = {day for week in weeks for day in range(week, week + WEEK_MS, DAY_MS)}
    days = [day for day in range(first, last, DAY_MS) if day not in pending and day not in in_weeks]
    spans = [(window.from_ms, first), (last, window.to_ms), *((day, day + DAY_MS) for day in sorted(pending))]
    pieces: list[Piece] = [
        (GpuHourRow, list(within(GpuHourRow.hour_ms, Window(start, end))))
        for start, end in spans
        if start < end
    ]
    if days:
        pieces.append((GpuDayRow, [_in_runs(GpuDayRow.day_ms, days, DAY_MS)]))
    if weeks:
        pieces.append((GpuWeekRow, [_in_runs(GpuWeekRow.day_ms, weeks, WEEK_MS)]))
    return pieces


def _in_runs(column: Any, starts: Sequence[int], step_ms: int) -> ColumnElement[bool]:
    """``starts``, ascending, as spans without a hole: of each GPU a database then reads these rows and no others."""
    runs: list[list[int]] = []
    for start in starts:
        if runs and start == runs[-1][1] + step_ms:
            runs[-1][1] = start
        else:
            runs.append([start, start])
    return or_(*(column.between(first, last) for first, last in runs))


def _sums(
    session: Session, row: Row, where: Sequence[ColumnElement[bool]], asked: Sequence[Activity]
) -> list[tuple[str, *tuple[float | None, ...]]]:
    columns = [func.sum(getattr(row, f"{one.value}_{unit}")) for unit in "sj" for one in asked]
    statement = (
        select(GpuRow.gpu_uuid, *columns).join(row, row.gpu_id == GpuRow.id).where(*where).group_by(GpuRow.id)
    )
    return [tuple(one) for one in plain_rows(session, statement)]


def _added(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else one + other
