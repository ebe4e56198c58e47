"""What each GPU mostly did, hour by hour: the strips of tables of many GPUs. One activity an hour, chosen by the database.

Twelve hours come as one number, four bits an hour: a row a GPU instead of one an hour, and GPUs whose days were alike
share what is made of it.
"""

from collections.abc import Collection
from functools import lru_cache
from typing import Any, Final

from sqlalchemy.orm import Session

from core.activity import Activity
from core.evidence import Window
from core.units import HOUR_MS

ACTIVITIES: Final = tuple(Activity)
BITS: Final = 4
"""Of an hour: 0 is no samples, else the activity's place in ``ACTIVITIES`` and one."""
assert len(ACTIVITIES) < 1 << BITS
PACKED: Final = 12
"""Hours of a number: 48 bits, which fit every kind of number on the way."""
_SECONDS: Final = tuple(f"{activity.value}_s" for activity in ACTIVITIES)
Strip = tuple[Activity | None, ...]


def main_activities(
    session: Session, window: Window, gpu_ids: Collection[int] | None = None
) -> dict[int, Strip]:
    """By GPU, for each clock hour of the window the activity with most of its seconds; None: no samples.

    Args:
        session: as ever.
        window: of whole clock hours.
        gpu_ids: of these GPUs only; default all.
    """
    code = _main(session.get_bind().dialect.name)
    count = (window.to_ms - window.from_ms) // HOUR_MS
    starts = range(int(window.from_ms), int(window.to_ms), PACKED * HOUR_MS)
    numbers = [
        f"CAST(sum(CASE WHEN hour_ms >= {at} AND hour_ms < {at + PACKED * HOUR_MS} "
        f"THEN CAST({code} AS bigint) << CAST((hour_ms - {at}) / {HOUR_MS} * {BITS} AS integer) END) AS bigint)"
        for at in starts
    ]
    where = (
        "" if gpu_ids is None else f"gpu.id IN ({', '.join(str(int(one)) for one in gpu_ids) or '0'}) AND "
    )
    # GPU by GPU through the key; our own whole numbers and names of columns.
    sql = (
        f"SELECT gpu.id, {', '.join(numbers)} FROM gpu CROSS JOIN gpu_hour WHERE {where}gpu_hour.gpu_id = gpu.id "
        f"AND hour_ms >= {starts.start} AND hour_ms < {starts.stop} AND covered_s > 0 GROUP BY gpu.id"
    )
    raw: Any = session.connection().connection.driver_connection
    cursor = raw.cursor()
    try:
        cursor.execute(sql)
        return {row[0]: _strip(row[1:], count) for row in cursor.fetchall()}
    finally:
        cursor.close()


def _main(dialect: str) -> str:
    """SQL for the place of the activity with most of an hour's seconds, counted from 1; of equal ones the first.

    More than half of what is covered is most: few hours need all of their columns.
    """
    most = f"{'max' if dialect == 'sqlite' else 'greatest'}({', '.join(_SECONDS)})"
    of_most = " ".join(f"WHEN {name} THEN {at}" for at, name in enumerate(_SECONDS, 1))
    of_half = " ".join(f"WHEN {name} + {name} > covered_s THEN {at}" for at, name in enumerate(_SECONDS, 1))
    return f"CASE {of_half} ELSE CASE {most} {of_most} END END"


@lru_cache(maxsize=8_192)
def _strip(numbers: tuple[int | None, ...], hours: int) -> Strip:
    """Hours of numbers of ``PACKED`` each."""
    codes = [(number or 0) >> BITS * at & (1 << BITS) - 1 for number in numbers for at in range(PACKED)]
    return tuple([ACTIVITIES[code - 1] if code else None for code in codes[:hours]])
