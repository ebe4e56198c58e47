"""Keeps weeks of the ledger added up (``ledger_week``): made after their days are, forgotten with any of them.

A week is made when it is over: a day of a later week has lines. Until then its days change with every run of the job.
"""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, Engine, delete, insert, select

from core.clock import from_ms, to_ms
from store.engine import begin_write
from store.ledger_amounts import AMOUNTS, IS_CORRECTION, METHOD
from store.models.ledger_engine_week import LedgerEngineWeekRow
from store.models.ledger_week import LedgerWeekRow
from store.models.ledger_week_span import LedgerWeekSpanRow
from store.models.meta import MetaRow

ZONE_KEY: Final = "ledger_time_zone"
"""Of ``meta``: the zone whose midnights the accounting days begin at."""
KEY: Final = ("gpu_id", "kind", "workload_id", "owner_id", "rate_id", "place_id", "is_correction")
"""What lines of one week have in common that are added up."""
WEEKS_AT_ONCE: Final = 4
_DAY: Final = timedelta(days=1)
Week = tuple[int, int]
"""Starts of its Monday and of the next one."""


def forget(connection: Connection, days: Collection[int] | None = None) -> None:
    """The weeks of these accounting days (their starts; None: of all) no longer hold."""
    row = LedgerWeekSpanRow
    if days is None:
        connection.execute(delete(row))
        return
    gone = [start for start, end in held(connection) if any(start <= day < end for day in days)]
    if gone:
        connection.execute(delete(row).where(row.day_ms.in_(gone)))


def held(connection: Connection) -> list[Week]:
    """Weeks whose sums hold, by time."""
    row = LedgerWeekSpanRow
    found = connection.execute(select(row.day_ms, row.to_ms).order_by(row.day_ms))
    return [(start, end) for start, end in found]


def add_up(engine: Engine, days: Iterable[int]) -> None:
    """Make the sums of every week that is over and has none; whoever calls holds the ledger's lock.

    Args:
        engine: as ever.
        days: starts of all accounting days with lines.
    """
    with engine.connect() as connection:
        zone = connection.execute(select(MetaRow.value).where(MetaRow.key == ZONE_KEY)).scalar()
        weeks = sorted({_week(day, ZoneInfo(zone or "UTC")) for day in days})
        known = set(held(connection))
    wanted = [week for week in weeks[:-1] if week not in known]
    for first in range(0, len(wanted), WEEKS_AT_ONCE):
        with engine.begin() as connection:
            begin_write(connection)
            for row in (LedgerWeekRow, LedgerEngineWeekRow):
                connection.execute(delete(row).where(row.day_ms.not_in(select(LedgerWeekSpanRow.day_ms))))
            for week in wanted[first : first + WEEKS_AT_ONCE]:
                _make(connection, week)


def _week(day_ms: int, zone: ZoneInfo) -> Week:
    """The ISO week of a day, from midnight to midnight there."""
    day = from_ms(day_ms).astimezone(zone).date()
    monday = day - day.weekday() * _DAY
    start, end = (
        to_ms(datetime(one.year, one.month, one.day, tzinfo=zone)) for one in (monday, monday + 7 * _DAY)
    )
    return start, end


def _make(connection: Connection, week: Week) -> None:
    start, end = (int(at) for at in week)
    key = [name if name != "is_correction" else IS_CORRECTION for name in KEY]
    amounts = [f"CAST(sum({name}) AS bigint)" for name in AMOUNTS]
    connection.exec_driver_sql(
        f"INSERT INTO ledger_week (day_ms, {', '.join(KEY)}, energy_method, {', '.join(AMOUNTS)}) "
        f"SELECT CAST({start} AS bigint), {', '.join(key)}, {METHOD}, {', '.join(amounts)} "
        f"FROM ledger_day WHERE day_ms >= {start} AND day_ms < {end} "
        f"GROUP BY {', '.join(str(at + 2) for at in range(len(KEY)))}"
    )
    _make_by_engine(connection, start, end)
    connection.execute(insert(LedgerWeekSpanRow).values(day_ms=start, to_ms=end))


def _make_by_engine(connection: Connection, start: int, end: int) -> None:
    """Of GPUs on which an engine was seen in the week: days with one told apart, the others as their lines."""
    keys = ", ".join(name for name in KEY if name != "is_correction")
    rest = ", ".join(("energy_method", *AMOUNTS))
    amounts = [f"CAST(sum({name}) AS bigint)" for name in AMOUNTS]
    served = f"FROM ledger_engine_day AS served WHERE served.day_ms >= {start} AND served.day_ms < {end}"
    connection.exec_driver_sql(
        f"INSERT INTO ledger_engine_week (day_ms, engine_set_id, {keys}, is_correction, energy_method, {', '.join(AMOUNTS)}) "
        f"SELECT CAST({start} AS bigint), engine_set_id, {keys}, is_correction, {METHOD}, {', '.join(amounts)} FROM ("
        f"SELECT engine_set_id, {keys}, 0 AS is_correction, {rest} {served} "
        f"UNION ALL SELECT CAST(NULL AS integer), {keys}, {IS_CORRECTION}, {rest} FROM ledger_day AS line "
        f"WHERE line.day_ms >= {start} AND line.day_ms < {end} AND line.gpu_id IN (SELECT served.gpu_id {served}) "
        "AND NOT EXISTS (SELECT 1 FROM ledger_engine_day AS told "
        "WHERE told.gpu_id = line.gpu_id AND told.day_ms = line.day_ms)"
        f") AS part GROUP BY engine_set_id, {keys}, is_correction"
    )
