"""Stored lines of the ledger, as the driver gives them."""

from collections.abc import Collection, Iterator
from typing import Any, Final

from sqlalchemy import delete, func, select, tuple_
from sqlalchemy.orm import Session

from store import ledger_totals
from store.ledger_writer import COLUMNS
from store.models.gpu import GpuRow
from store.models.ledger_day import LedgerDayRow
from store.models.ledger_engine_day import LedgerEngineDayRow
from store.retention import hours_purged_until_ms

AT_ONCE: Final = 5_000


def stored_lines(
    session: Session,
    from_day_ms: int,
    to_day_ms: int,
    *,
    without: Collection[tuple[int, int]] = (),
    columns: Collection[str] = COLUMNS,
) -> Iterator[tuple[Any, ...]]:
    """Rows of ``ledger_day`` of accounting days that begin in a span, corrections of closed months among them.

    Values are as the table has them: whole milliseconds, millijoules, micro-dollars, micrograms. Memory stays small,
    whatever the span.

    Args:
        session: open as long as rows are taken.
        from_day_ms, to_day_ms: starts of accounting days (``day_ms``), inclusive and exclusive.
        without: GPU and accounting day of those that are priced on the fly (``api.resources.ledger_reading``).
        columns: which, in this order; default all that are written.
    """
    names = ["gpu_id", "day_ms", *columns]
    statement = (
        f"SELECT {', '.join(names)} FROM ledger_day "
        f"WHERE day_ms >= {int(from_day_ms)} AND day_ms < {int(to_day_ms)}"
    )
    skipped = frozenset(without)
    options = {"stream_results": True, "yield_per": AT_ONCE}
    for row in session.connection().exec_driver_sql(statement, execution_options=options):
        if (row[0], row[1]) not in skipped:
            yield tuple(row[2:])


def span_of_samples(session: Session) -> tuple[int, int] | None:
    """Start of the first sample of any GPU and end of the newest, kept or not; None without any."""
    first, last = session.execute(
        select(func.min(GpuRow.first_sample_ms), func.max(GpuRow.seen_until_ms))
    ).one()
    return None if first is None or last is None else (first, last)


def remove_days_with_hours(session: Session) -> None:
    """Remove lines that can be made anew: those of days whose hours are still there. Their days are to be marked before."""
    line, apart = LedgerDayRow, LedgerEngineDayRow
    goes = line.to_ms > hours_purged_until_ms(session.connection())
    days = select(line.gpu_id, line.day_ms).where(goes)
    session.execute(delete(apart).where(tuple_(apart.gpu_id, apart.day_ms).in_(days)))
    session.execute(delete(line).where(goes))
    ledger_totals.forget(session.connection())
