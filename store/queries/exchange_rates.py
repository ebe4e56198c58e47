"""Exchange rates: written, listed, removed. Whatever changes one marks the days in which it is in force."""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import func, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from core.clock import from_ms
from core.errors import StoreError
from core.user_price import ExchangeRate
from store.models.exchange_rate import ExchangeRateRow
from store.queries import ledger_pending


def listing(session: Session) -> list[ExchangeRate]:
    """Every rate, by currency and day."""
    row = ExchangeRateRow
    statement = select(row.id, row.currency, row.from_ms, row.usd_per_unit)
    return [ExchangeRate(*found) for found in session.execute(statement.order_by(row.currency, row.from_ms))]


def insert_all(session: Session, rates: Sequence[ExchangeRate]) -> list[ExchangeRate]:
    """Keep rates; returns them with their keys.

    Raises:
        StoreError: there is a rate of that currency and day already.
    """
    if not rates:
        return []
    statement = insert(ExchangeRateRow).returning(ExchangeRateRow.id, sort_by_parameter_order=True)
    values = [
        {"currency": rate.currency, "from_ms": rate.from_ms, "usd_per_unit": rate.usd_per_unit}
        for rate in rates
    ]
    try:
        with session.begin_nested():
            keys = session.execute(statement, values).scalars().all()
    except IntegrityError as error:
        raise StoreError(
            f"the exchange rate is refused ({error.orig}): one rate of a currency a day"
        ) from error
    made = [replace(rate, id=key) for rate, key in zip(rates, keys, strict=True)]
    for rate in made:
        _mark(session, rate)
    return made


def delete(session: Session, rate_id: int) -> bool:
    """Remove a rate, as if it had never been given; False when there is none of that key."""
    row = session.get(ExchangeRateRow, rate_id)
    if row is None:
        return False
    rate = ExchangeRate(row.id, row.currency, row.from_ms, row.usd_per_unit)
    session.delete(row)
    session.flush()
    _mark(session, rate)
    return True


def replace_one(session: Session, rate: ExchangeRate) -> ExchangeRate:
    """Put another figure in the place of a rate that is there (by its ``id``).

    Raises:
        StoreError: there is none of that key.
    """
    row = session.get(ExchangeRateRow, rate.id)
    if row is None:
        raise StoreError(f"there is no rate of {rate.currency} of {from_ms(rate.from_ms).date()} to replace")
    row.usd_per_unit = rate.usd_per_unit
    session.flush()
    _mark(session, rate)
    return rate


def _mark(session: Session, rate: ExchangeRate) -> None:
    """Mark from its day to the next rate's of that currency."""
    row = ExchangeRateRow
    following = select(func.min(row.from_ms)).where(row.currency == rate.currency, row.from_ms > rate.from_ms)
    ledger_pending.mark(session, rate.from_ms, session.scalar(following))
