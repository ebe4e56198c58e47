"""Months of the ledger: what each cost, which are closed for chargeback, and what was booked to those since.

A closed month is frozen: its lines stay as they were charged, and what later samples, prices or owners change becomes a
correction beside them (cost-model 5).
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Final

from sqlalchemy.orm import Session

from api.resources.columns import about
from api.resources.ledger_basis import is_current
from core.clock import from_ms
from core.errors import GpuwiseError, UsageError
from core.settings import Settings
from core.units import HOUR_MS
from ledger.calendar import Calendar, Span
from store.queries import ledger_months as kept
from store.queries.ledger_months import ClosedMonth

PRICE_THEM: Final = "run gpuwise ledger rebuild, or wait for the jobs process"


@dataclass(frozen=True, slots=True)
class MonthView:
    """One month of the accounting time zone."""

    month: Annotated[str, about("Year and month, such as 2026-10.")]
    from_at: Annotated[datetime, about("Start of its first hour, UTC.")]
    to_at: Annotated[datetime, about("End of its last hour, UTC.")]
    is_over: Annotated[bool, about("It has ended, so that it can be closed.")]
    is_closed: Annotated[bool, about("Its lines are frozen; later changes become corrections.")]
    closed_at: Annotated[datetime | None, about("When it was closed, UTC.")]
    closed_by: Annotated[str | None, about("Who closed it, as told.")]
    note: Annotated[str | None, about("In their words.")]
    lines: Annotated[int, about("Lines: of a closed month when it was closed, else now.")]
    cost_usd: Annotated[
        Decimal, about("GPU cost of priced lines, without energy: of a closed month when it was closed.")
    ]
    corrections: Annotated[int, about("Lines booked since it was closed.")]
    correction_usd: Annotated[Decimal, about("What they add to cost_usd; negative: they take off.")]
    pending_gpu_days: Annotated[int, about("GPU-days that wait to be priced.")]


def rows(session: Session, settings: Settings, now_ms: int) -> list[MonthView]:
    """Every month with lines, and every closed one, in order of time."""
    calendar = Calendar(settings.accounting_time_zone)
    closed = {month.month: month for month in kept.listing(session)}
    months = {key: calendar.month(key) for key in closed}
    span = kept.span_of_lines(session)
    if span is not None:
        # A day's first hour begins up to an hour after the day.
        first_ms, last_ms = (day_ms + -day_ms % HOUR_MS for day_ms in span)
        months |= {month.key: month for month in calendar.months(first_ms, last_ms + HOUR_MS)}
    return [
        _view(session, calendar, months[key], closed.get(key), now_ms)
        for key in sorted(months, key=lambda key: months[key].from_ms)
    ]


def close(
    session: Session,
    settings: Settings,
    now_ms: int,
    month: str,
    *,
    by: str | None = None,
    note: str | None = None,
) -> MonthView:
    """Freeze a month for chargeback. Any month that is over can be closed, whether or not the one before it is.

    Raises:
        UsageError: ``month`` is none. GpuwiseError: it cannot be closed (yet); says why and what to do.
    """
    calendar = Calendar(settings.accounting_time_zone)
    try:
        span = calendar.month(month)
    except ValueError as error:
        raise UsageError(f"month {error}") from error
    _check(session, settings, now_ms, span)
    lines, cost_usd = kept.totals(session, span.start_ms, _next_ms(calendar, span))
    if not lines:
        raise GpuwiseError(f"month {month} has no lines: there is nothing to close")
    made = ClosedMonth(
        month=span.key,
        from_ms=span.from_ms,
        to_ms=span.to_ms,
        closed_at=from_ms(now_ms),
        closed_by=(by or "").strip() or None,
        lines=lines,
        cost_usd=cost_usd,
        note=(note or "").strip() or None,
        corrections=0,
        correction_usd=Decimal(0),
    )
    kept.close(session, made)
    return _view(session, calendar, span, made, now_ms)


def _check(session: Session, settings: Settings, now_ms: int, span: Span) -> None:
    month, zone = span.key, settings.accounting_time_zone
    if span.to_ms > now_ms:
        end = from_ms(span.to_ms).isoformat(timespec="minutes")
        raise GpuwiseError(f"month {month} is not over before {end} ({zone}): close it then")
    for closed in kept.listing(session):
        if closed.month == month:
            at = closed.closed_at.isoformat(timespec="minutes")
            by = "" if closed.closed_by is None else f" by {closed.closed_by}"
            raise GpuwiseError(
                f"month {month} was closed at {at}{by}: later changes are booked to it as corrections"
            )
    if not is_current(session, settings):
        raise GpuwiseError(f"month {month} is priced with other settings than these: {PRICE_THEM}")
    hours = kept.unrolled_hours(session, span.from_ms, span.to_ms)
    if hours:
        raise GpuwiseError(
            f"month {month} has samples that are not rolled up ({hours} hours): run gpuwise jobs --once roll-up, then {PRICE_THEM}"
        )
    days = kept.pending_days(session, span.from_ms, span.to_ms)
    if days:
        raise GpuwiseError(f"month {month} has {days} GPU-days that wait to be priced: {PRICE_THEM}")


def _view(
    session: Session, calendar: Calendar, span: Span, closed: ClosedMonth | None, now_ms: int
) -> MonthView:
    if closed is None:
        lines, cost_usd = kept.totals(session, span.start_ms, _next_ms(calendar, span))
    else:
        lines, cost_usd = closed.lines, closed.cost_usd
    return MonthView(
        month=span.key,
        from_at=from_ms(span.from_ms),
        to_at=from_ms(span.to_ms),
        is_over=span.to_ms <= now_ms,
        is_closed=closed is not None,
        closed_at=None if closed is None else closed.closed_at,
        closed_by=None if closed is None else closed.closed_by,
        note=None if closed is None else closed.note,
        lines=lines,
        cost_usd=cost_usd,
        corrections=0 if closed is None else closed.corrections,
        correction_usd=Decimal(0) if closed is None else closed.correction_usd,
        pending_gpu_days=kept.pending_days(session, span.from_ms, span.to_ms),
    )


def _next_ms(calendar: Calendar, span: Span) -> int:
    """Start of the first day after a month."""
    return calendar.day_at(span.to_ms).start_ms
