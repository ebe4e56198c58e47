"""Sums that go with days of GPUs: their weeks by activity (``gpu_week``), and hours by model (``demand_hour``).

A week is added up anew in the transaction that folds a day of it. Hours of all GPUs of a day are many: that transaction
only takes the day out of ``demand_day``, and it is made anew when nothing of it waits to be folded. The newest day is
never made: it changes with every run.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from sqlalchemy import Connection, Engine, bindparam, delete, insert, select, text

from core.activity import Activity
from core.units import DAY_MS
from store.engine import begin_write
from store.lock import wait_for_day_sums
from store.models.day_pending import DayPendingRow
from store.models.demand_day import DemandDayRow
from store.models.demand_hour import DemandHourRow
from store.models.gpu_week import GpuWeekRow

WEEK_MS: Final = 7 * DAY_MS
MONDAY_MS: Final = 4 * DAY_MS
"""The first Monday of the epoch."""
METERED_RATIO: Final = 0.99
"""An hour tells the power of what was done in it when energy is known for all of it, but for rounding of samples."""
WORKING: Final = tuple(a for a in Activity if a not in {Activity.EMPTY, Activity.PARKED, Activity.UNKNOWN})
DAYS_AT_ONCE: Final = 8
_FIGURES: Final = ", ".join(f"{activity.value}_{unit}" for unit in "sj" for activity in Activity)
_SUMS: Final = ", ".join(f"sum({activity.value}_{unit})" for unit in "sj" for activity in Activity)


def week_of(day_ms: int) -> int:
    """Start of the week (Monday, UTC) of a moment."""
    return day_ms - (day_ms - MONDAY_MS) % WEEK_MS


def follow(connection: Connection, days: Sequence[tuple[int, int]]) -> None:
    """Add the weeks of these days (GPU and start) up anew, in the transaction that folded the days."""
    if not days:
        return
    wait_for_day_sums(connection)
    weeks = sorted({(gpu_id, week_of(day_ms)) for gpu_id, day_ms in days})
    values = [{"g": gpu_id, "w": week, "e": week + WEEK_MS} for gpu_id, week in weeks]
    row = GpuWeekRow
    connection.execute(delete(row).where(row.gpu_id == bindparam("g"), row.day_ms == bindparam("w")), values)
    connection.execute(
        text(
            f"INSERT INTO gpu_week (gpu_id, day_ms, {_FIGURES}) SELECT gpu_id, CAST(:w AS bigint), {_SUMS} FROM gpu_day "
            "WHERE gpu_id = :g AND day_ms >= :w AND day_ms < :e GROUP BY gpu_id"
        ),
        values,
    )
    forget(connection, {day_ms for _, day_ms in days})


def forget(connection: Connection, days: Iterable[int]) -> None:
    """The demand of these UTC days no longer holds."""
    row = DemandDayRow
    connection.execute(
        delete(row).where(row.day_ms == bindparam("d")), [{"d": day_ms} for day_ms in sorted(days)]
    )


def add_up(engine: Engine) -> None:
    """Make the demand of every day that has none which holds, but for the newest and those that wait to be folded."""
    with engine.connect() as connection:
        days = _without_demand(connection)
    for first in range(0, len(days), DAYS_AT_ONCE):
        with engine.begin() as connection:
            begin_write(connection)
            wait_for_day_sums(connection)
            left = set(_without_demand(connection))
            for day_ms in days[first : first + DAYS_AT_ONCE]:
                if day_ms in left:
                    _make(connection, day_ms)


def _without_demand(connection: Connection) -> list[int]:
    there = days_there(connection)
    hold = set(connection.execute(select(DemandDayRow.day_ms)).scalars())
    row = DayPendingRow
    waiting = set(connection.execute(select(row.day_ms).where(row.kind == "gpu").distinct()).scalars())
    return [day_ms for day_ms in there[:-1] if day_ms not in hold and day_ms not in waiting]


def days_there(connection: Connection) -> list[int]:
    """UTC days that any GPU has a day of, in order: by hops through the index."""
    sql = (
        "WITH RECURSIVE day (ms) AS (SELECT min(day_ms) FROM gpu_day UNION ALL "
        "SELECT (SELECT min(day_ms) FROM gpu_day WHERE day_ms > day.ms) FROM day WHERE day.ms IS NOT NULL) "
        "SELECT ms FROM day WHERE ms IS NOT NULL"
    )
    return sorted(connection.exec_driver_sql(sql).scalars())


def _make(connection: Connection, day_ms: int) -> None:
    row = DemandHourRow
    connection.execute(delete(row).where(row.hour_ms >= day_ms, row.hour_ms < day_ms + DAY_MS))
    connection.execute(
        text(
            f"INSERT INTO demand_hour (hour_ms, model, {', '.join(DEMAND)}) "
            f"SELECT hour_ms, COALESCE(gpu.model, ''), {', '.join(DEMAND.values())} "
            # GPU by GPU, along the primary key: by the index on the hour each row would be looked up.
            "FROM gpu CROSS JOIN gpu_hour AS hour WHERE hour.gpu_id = gpu.id "
            "AND hour_ms >= :day AND hour_ms < :end GROUP BY 1, 2"
        ),
        {"day": day_ms, "end": day_ms + DAY_MS},
    )
    connection.execute(insert(DemandDayRow).values(day_ms=day_ms))


def _metered(activities: Iterable[Activity], unit: str) -> str:
    added = " + ".join(f"COALESCE({one.value}_{unit}, 0.0)" for one in activities)
    return f"COALESCE(sum(CASE WHEN energy_covered_s >= {METERED_RATIO} * covered_s THEN {added} END), 0.0)"


DEMAND: Final = {
    "known_s": "sum(covered_s - unknown_s)",
    "allocated_s": "sum(allocated_s)",
    "active_s": "sum(active_s)",
} | {
    f"{name}_{unit}": _metered(activities, unit)
    for name, activities in (
        ("empty", (Activity.EMPTY,)),
        ("parked", (Activity.PARKED,)),
        ("working", WORKING),
    )
    for unit in "sj"
}
"""Columns of ``demand_hour``, and what they are of ``gpu_hour``."""
