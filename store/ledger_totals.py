"""Keeps the days of the ledger added up (``ledger_total``, ``ledger_gpu_total``): made after the lines, forgotten with them.

A day counts only while it is in ``ledger_total_day``; whoever changes a line of a day takes it out of there in the same
transaction, and reports then add its lines up themselves until it is made anew. Weeks go with their days
(``store.ledger_weeks``).
"""

from collections.abc import Collection
from typing import Final

from sqlalchemy import Connection, Engine, Table, delete, insert, select

from store import ledger_weeks
from store.engine import begin_write
from store.ledger_amounts import AMOUNTS, IS_CORRECTION, METHOD
from store.lock import ledger_lock
from store.models.ledger_day import LedgerDayRow
from store.models.ledger_gpu_total import LedgerGpuTotalRow
from store.models.ledger_total import LedgerTotalRow
from store.models.ledger_total_day import LedgerTotalDayRow

DAYS_AT_ONCE: Final = 31
KEY: Final = ("day_ms", "kind", "owner_id", "rate_id", "place_id", "is_correction")
"""What lines have in common that are added up."""
GPU_KEY: Final = ("gpu_id", "day_ms", "owner_id")
"""The same of ``ledger_gpu_total``; owner 0 there is nobody."""
_GPU_TABLE: Final = LedgerGpuTotalRow.__table__
assert isinstance(_GPU_TABLE, Table)
GPU_AMOUNTS: Final = tuple(column.name for column in _GPU_TABLE.columns if column.name not in GPU_KEY)
OF_SOME_LINES: Final = {"paid_usd": "CASE WHEN rate_id IS NOT NULL THEN billed_energy_usd END"}
"""Amounts that are columns of ``ledger_gpu_total`` and of no line."""


def forget(connection: Connection, days: Collection[int] | None = None) -> None:
    """Of these accounting days (their starts; None: of all) the totals no longer hold."""
    ledger_weeks.forget(connection, days)
    row = LedgerTotalDayRow
    statement = delete(row)
    if days is None:
        connection.execute(statement)
        return
    ordered = sorted(days)
    for first in range(0, len(ordered), 500):
        connection.execute(statement.where(row.day_ms.in_(ordered[first : first + 500])))


def add_up(engine: Engine) -> int:
    """Make the totals of every day that has none which hold; how many days. Does nothing while lines are written."""
    with ledger_lock(engine) as held:
        if not held:
            return 0
        with engine.connect() as connection:
            hold = set(connection.execute(select(LedgerTotalDayRow.day_ms)).scalars())
            there = set(connection.execute(select(LedgerDayRow.day_ms).distinct()).scalars())
        days = sorted(there - hold)
        for first in range(0, len(days), DAYS_AT_ONCE):
            with engine.begin() as connection:
                begin_write(connection)
                _make(connection, days[first : first + DAYS_AT_ONCE])
        ledger_weeks.add_up(engine, there)
        return len(days)


def _make(connection: Connection, days: list[int]) -> None:
    hold = select(LedgerTotalDayRow.day_ms)
    for row in (LedgerTotalRow, LedgerGpuTotalRow):
        connection.execute(delete(row).where(row.day_ms.not_in(hold)))
    key = [name if name != "is_correction" else IS_CORRECTION for name in KEY]
    amounts = [f"CAST(sum({name}) AS bigint)" for name in AMOUNTS]
    listed = ", ".join(str(int(day)) for day in days)
    connection.exec_driver_sql(
        f"INSERT INTO ledger_total ({', '.join(KEY)}, energy_method, {', '.join(AMOUNTS)}) "
        f"SELECT {', '.join(key)}, {METHOD}, {', '.join(amounts)} "
        f"FROM ledger_day WHERE day_ms IN ({listed}) "
        f"GROUP BY {', '.join(str(at + 1) for at in range(len(KEY)))}"
    )
    gpu_amounts = [f"CAST(sum({OF_SOME_LINES.get(name, name)}) AS bigint)" for name in GPU_AMOUNTS]
    connection.exec_driver_sql(
        f"INSERT INTO ledger_gpu_total ({', '.join(GPU_KEY)}, {', '.join(GPU_AMOUNTS)}) "
        f"SELECT gpu_id, day_ms, COALESCE(owner_id, 0), {', '.join(gpu_amounts)} "
        f"FROM ledger_day WHERE day_ms IN ({listed}) GROUP BY 1, 2, 3"
    )
    connection.execute(insert(LedgerTotalDayRow), [{"day_ms": day} for day in days])
