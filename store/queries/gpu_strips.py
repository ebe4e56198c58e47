"""What each GPU mostly did, hour by hour: the strips of tables of many GPUs. One activity an hour, chosen by the database."""

from collections.abc import Collection
from typing import Any, Final

from sqlalchemy.orm import Session

from core.activity import Activity
from core.evidence import Window
from core.units import HOUR_MS

ACTIVITIES: Final = tuple(Activity)
_SECONDS: Final = tuple(f"{activity.value}_s" for activity in ACTIVITIES)


Strip = list[Activity | None]


def main_activities(
    session: Session, window: Window, gpu_ids: Collection[int] | None = None
) -> dict[int, Strip]:
    """By GPU, for each clock hour of the window the activity with most of its seconds; None: no samples.

    Args:
        session: as ever.
        window: of whole clock hours.
        gpu_ids: of these GPUs only; default all.
    """
    is_sqlite = session.get_bind().dialect.name == "sqlite"
    most = f"{'max' if is_sqlite else 'greatest'}({', '.join(_SECONDS)})"
    cases = " ".join(f"WHEN {name} THEN {at}" for at, name in enumerate(_SECONDS))
    where = (
        "" if gpu_ids is None else f"gpu.id IN ({', '.join(str(int(one)) for one in gpu_ids) or '0'}) AND "
    )
    # GPU by GPU through the key; our own whole numbers and names of columns.
    sql = (
        f"SELECT gpu.id, (hour_ms - {int(window.from_ms)}) / {HOUR_MS}, CASE {most} {cases} END "
        f"FROM gpu CROSS JOIN gpu_hour WHERE {where}gpu_hour.gpu_id = gpu.id "
        f"AND hour_ms >= {int(window.from_ms)} AND hour_ms < {int(window.to_ms)} AND covered_s > 0"
    )
    raw: Any = session.connection().connection.driver_connection
    cursor = raw.cursor()
    try:
        cursor.execute(sql)
        rows = cursor.fetchall()
    finally:
        cursor.close()
    blank: Strip = [None] * ((window.to_ms - window.from_ms) // HOUR_MS)
    strips: dict[int, Strip] = {}
    for gpu_id, hour, activity in rows:
        strip = strips.get(gpu_id)
        if strip is None:
            strip = strips[gpu_id] = blank.copy()
        strip[hour] = ACTIVITIES[activity]
    return strips
