"""Exchange rates the user gives: what a unit of a currency is worth in dollars, from a UTC day on."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, Field
from sqlalchemy.orm import Session

from api.refusals import validated
from api.resources.columns import about
from api.resources.moments import check_year
from api.resources.price_specs import STRICT, currency_of, decimal_of
from api.resources.table_csv import read, refused, written
from core.clock import from_ms, to_ms
from core.errors import NotFoundError, UsageError
from core.user_price import RATE_PLACES, ExchangeRate
from ledger.exchange import Exchange
from ledger.price_changes import described
from ledger.prices import plain
from store.queries import exchange_rates as kept
from store.queries import prices as price_queries

COLUMNS: Final = ("currency", "from_day", "usd_per_unit")
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
Rate = Annotated[Decimal, Field(strict=False), BeforeValidator(decimal_of(Decimal(999_999), RATE_PLACES))]


class RateBody(BaseModel):
    """An exchange rate to keep."""

    model_config = STRICT

    currency: str = Field(max_length=10, description="ISO 4217, any but USD.")
    from_day: str = Field(max_length=10, description="In force from this UTC day until the next rate of it.")
    usd_per_unit: Rate = Field(description="Dollars of one unit, as a decimal string or a number.")


@dataclass(frozen=True, slots=True)
class RateView:
    """An exchange rate."""

    id: Annotated[int, about("Its key.")]
    currency: Annotated[str, about("ISO 4217.")]
    from_day: Annotated[str, about("In force from this UTC day until the next rate of the currency.")]
    usd_per_unit: Annotated[str, about("Dollars of one unit, a decimal string.")]


@dataclass(frozen=True, slots=True)
class RateImportView:
    """What an import did."""

    added_count: Annotated[int, about("Rates that are new.")]
    unchanged_count: Annotated[int, about("Rates that were there already, just so.")]
    replaced_count: Annotated[int, about("Rates of a day whose figure is another now.")]
    rates: Annotated[list[RateView], about("The new and the replaced ones.")]


def rows(session: Session) -> list[RateView]:
    """Every rate, by currency and day."""
    return [_view(rate) for rate in kept.listing(session)]


def add(session: Session, body: RateBody, *, replace_: bool = False) -> RateView:
    """Keep a rate; ``replace_`` puts it in the place of one of the same currency and day.

    Raises:
        UsageError: it could not be applied, or there is one of that day.
    """
    price_queries.lock(session)
    rate = _rate(body)
    _put(session, [rate], replace_=replace_)
    return next(
        _view(there)
        for there in kept.listing(session)
        if (there.currency, there.from_ms) == (rate.currency, rate.from_ms)
    )


def add_all(
    session: Session,
    given: Sequence[tuple[int, Mapping[str, Any]]],
    *,
    replace_: bool = False,
    unit: str = "line",
) -> RateImportView:
    """Keep many rates: all or none; those that are there, just so, are left alone.

    Raises:
        UsageError: some could not be applied; names every one of them by its line.
    """
    price_queries.lock(session)
    rates: list[ExchangeRate] = []
    bad: list[str] = []
    there = {(rate.currency, rate.from_ms): rate for rate in kept.listing(session)}
    seen: dict[tuple[str, int], int] = {}
    for line, values in given:
        try:
            rate = _rate(parsed(values))
            key = (rate.currency, rate.from_ms)
            _free(there.get(key), rate, replace_=replace_)
        except UsageError as error:
            bad.append(f"{unit} {line}: {error}")
            continue
        if key in seen:
            bad.append(
                f"{unit} {line}: {rate.currency} of {_day(rate)} is on {unit} {seen[key]} too: give it once"
            )
            continue
        seen[key] = line
        rates.append(rate)
    if bad:
        raise refused(len(given), bad)
    return _put(session, rates, replace_=replace_)


def parsed(given: Mapping[str, Any]) -> RateBody:
    """A rate from named values. Raises ``UsageError`` that names field and value."""
    return validated(RateBody, given, "rate")


def remove(session: Session, id_: int) -> None:
    """Remove a rate, as if it had never been given.

    Raises:
        NotFoundError: there is none of that key. UsageError: a price would be left without a rate at its start.
    """
    price_queries.lock(session)
    rates = kept.listing(session)
    gone = next((rate for rate in rates if rate.id == id_), None)
    if gone is None:
        raise NotFoundError(f"no exchange rate {id_}: list the rates for their numbers")
    before, after = Exchange(rates), Exchange([rate for rate in rates if rate.id != id_])
    for price in price_queries.listing(session):
        had = before.usd_per_unit(price.currency, price.valid_from_ms)
        if had is not None and after.usd_per_unit(price.currency, price.valid_from_ms) is None:
            raise UsageError(
                f"the rate of {gone.currency} of {_day(gone)} is what price {price.id} ({described(price)}) starts with: "
                "replace the rate, or remove the price first"
            )
    kept.delete(session, id_)


def csv_of(found: Iterable[Mapping[str, str]]) -> str:
    """Rates (as JSON has them) as a file that ``bodies_of`` reads back exactly."""
    return written(COLUMNS, ([rate[name] for name in COLUMNS] for rate in found))


def bodies_of(text: str) -> list[tuple[int, Mapping[str, Any]]]:
    """Rows of a file as named values for ``parsed``, with their lines. Raises ``UsageError`` for what is no such file."""
    return [(line, dict(cells)) for line, cells in read(text, COLUMNS, COLUMNS)]


def _put(session: Session, rates: Sequence[ExchangeRate], *, replace_: bool) -> RateImportView:
    there = {(rate.currency, rate.from_ms): rate for rate in kept.listing(session)}
    fresh, others = [], []
    unchanged = 0
    for rate in rates:
        old = there.get((rate.currency, rate.from_ms))
        _free(old, rate, replace_=replace_)
        if old is None:
            fresh.append(rate)
        elif old.usd_per_unit == rate.usd_per_unit:
            unchanged += 1
        else:
            others.append(kept.replace_one(session, replace(rate, id=old.id)))
    made = kept.insert_all(session, fresh)
    return RateImportView(len(made), unchanged, len(others), [_view(rate) for rate in [*made, *others]])


def _free(old: ExchangeRate | None, rate: ExchangeRate, *, replace_: bool) -> None:
    if old is not None and not replace_ and old.usd_per_unit != rate.usd_per_unit:
        raise UsageError(
            f"there is a rate of {rate.currency} of {_day(rate)} already, {plain(old.usd_per_unit)}: "
            f"replace it, or give {plain(rate.usd_per_unit)} another day"
        )


def _rate(body: RateBody) -> ExchangeRate:
    currency = currency_of(body.currency)
    try:
        if not _DAY.fullmatch(body.from_day.strip()):
            raise ValueError(body.from_day)  # noqa: TRY301 - one sentence for both
        day = date.fromisoformat(body.from_day.strip())
    except ValueError as error:
        raise UsageError(f"from_day is {body.from_day!r}: give a day such as 2026-10-05") from error
    check_year(body.from_day, "from_day")
    try:
        return ExchangeRate(
            0, currency, to_ms(datetime(day.year, day.month, day.day, tzinfo=UTC)), body.usd_per_unit
        )
    except ValueError as error:
        raise UsageError(str(error)) from error


def _day(rate: ExchangeRate) -> str:
    return from_ms(rate.from_ms).date().isoformat()


def _view(rate: ExchangeRate) -> RateView:
    return RateView(rate.id, rate.currency, _day(rate), plain(rate.usd_per_unit))
