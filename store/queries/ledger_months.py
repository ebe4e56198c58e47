"""Closed months of the ledger, and what was booked to them afterwards."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from core.money import from_micro
from core.units import DAY_MS
from store.models.ledger_booking import LedgerBookingRow
from store.models.ledger_day import LedgerDayRow
from store.models.ledger_month import LedgerMonthRow
from store.models.ledger_pending import LedgerPendingRow
from store.models.rollup_pending import RollupPendingRow


@dataclass(frozen=True, slots=True)
class ClosedMonth:
    """A month as it was closed.

    Attributes:
        month: ``2026-10``. from_ms, to_ms: its hours. closed_by: who; None: not said. note: in their words.
        lines, cost_usd: what it held then.
        corrections, correction_usd: what was booked to it since.
    """

    month: str
    from_ms: int
    to_ms: int
    closed_at: datetime
    closed_by: str | None
    lines: int
    cost_usd: Decimal
    note: str | None
    corrections: int
    correction_usd: Decimal


def listing(session: Session) -> list[ClosedMonth]:
    """Closed months, in order of time."""
    row, line, booking = LedgerMonthRow, LedgerDayRow, LedgerBookingRow
    booked = (
        select(booking.month, func.count(line.id).label("lines"), func.sum(line.cost_usd).label("usd"))
        .join(line, (line.booking_id == booking.id) & line.booking_id.is_not(None))
        .group_by(booking.month)
        .subquery()
    )
    statement = (
        select(row, booked.c.lines, booked.c.usd)
        .outerjoin(booked, booked.c.month == row.month)
        .order_by(row.from_ms)
    )
    return [
        ClosedMonth(
            month.month,
            month.from_ms,
            month.to_ms,
            month.closed_at,
            month.closed_by,
            month.lines,
            month.cost_usd,
            month.note,
            lines or 0,
            Decimal(0) if usd is None else usd,
        )
        for month, lines, usd in session.execute(statement)
    ]


def totals(session: Session, from_day_ms: int, to_day_ms: int) -> tuple[int, Decimal]:
    """Lines of accounting days that begin in a span, and what they cost."""
    row = LedgerDayRow
    count, usd = session.execute(
        select(func.count(row.id), func.sum(row.cost_usd)).where(
            row.day_ms >= from_day_ms, row.day_ms < to_day_ms
        )
    ).one()
    return count, from_micro(0) if usd is None else usd


def span_of_lines(session: Session) -> tuple[int, int] | None:
    """Start of the first accounting day that has lines, and of the last; None without any."""
    row = LedgerDayRow
    # Each by itself: together SQLite walks the whole index.
    first = session.execute(select(func.min(row.day_ms))).scalar()
    last = session.execute(select(func.max(row.day_ms))).scalar()
    return None if first is None or last is None else (first, last)


def pending_days(session: Session, from_ms: int, to_ms: int) -> int:
    """GPU-days of a span that wait to be priced."""
    row = LedgerPendingRow
    statement = select(func.count()).select_from(row)
    return session.execute(statement.where(row.day_ms > from_ms - DAY_MS, row.day_ms < to_ms)).scalar_one()


def unrolled_hours(session: Session, from_ms: int, to_ms: int) -> int:
    """Hours of a span whose samples wait to be rolled up."""
    row = RollupPendingRow
    statement = select(func.count()).select_from(row).where(row.hour_ms >= from_ms, row.hour_ms < to_ms)
    return session.execute(statement).scalar_one()


def close(session: Session, closed: ClosedMonth) -> None:
    """Keep that a month is closed."""
    session.add(
        LedgerMonthRow(
            month=closed.month,
            from_ms=closed.from_ms,
            to_ms=closed.to_ms,
            closed_at=closed.closed_at,
            closed_by=closed.closed_by,
            lines=closed.lines,
            cost_usd=closed.cost_usd,
            note=closed.note,
        )
    )
    session.flush()
