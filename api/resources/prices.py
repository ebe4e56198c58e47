"""The user's prices. Which one is in force is the ledger's to say; changing one re-prices, usage stays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Annotated, Any

from sqlalchemy.orm import Session

from api.resources.columns import about
from api.resources.owner_specs import when
from api.resources.places import place_lookup, site_of
from api.resources.price_specs import PriceBody, SiteOf, parsed, price_of
from api.resources.pricing import gpus_by_scope
from api.resources.table_csv import refused
from core.clock import from_ms
from core.errors import NotFoundError, UsageError
from core.evidence import Site
from core.settings import Settings
from core.user_price import UserPrice
from ledger.exchange import Exchange
from ledger.owned_rate import OwnedInputs, owned_rate
from ledger.price_changes import Changes, changes, described, prepaid
from ledger.price_terms import effective_amount, spot_effective
from ledger.share import rounded
from store.queries import exchange_rates
from store.queries import prices as kept


@dataclass(frozen=True, slots=True)
class PriceView:
    """A price of one GPU-hour."""

    id: Annotated[int, about("Its key.")]
    scope_kind: Annotated[
        str,
        about(
            "gpu_uuid, host, label, instance_type, cluster, model or all, most specific first: that one wins."
        ),
    ]
    scope_value: Annotated[str, about("Which GPU, host, key=value, …; empty for all.")]
    amount_per_gpu_hour: Annotated[
        Decimal, about("Amount for one GPU-hour in its currency; with an upfront, what comes on top.")
    ]
    currency: Annotated[str, about("ISO 4217.")]
    usd_per_gpu_hour: Annotated[
        Decimal | None,
        about(
            "Dollars of one GPU-hour at the newest rate within its time, its share of the upfront included; null: no rate."
        ),
    ]
    billing: Annotated[str, about("on_demand, reserved, spot, committed or owned.")]
    gpus_per_unit: Annotated[
        int | None, about("GPUs that can only be released together; null: all of a host.")
    ]
    valid_from: Annotated[datetime, about("In force from, inclusive, UTC.")]
    valid_to: Annotated[datetime | None, about("In force until, exclusive, UTC; null: still.")]
    commitment: Annotated[str | None, about("Name of the reservation it belongs to.")]
    committed_gpus: Annotated[int | None, about("GPUs of the commitment.")]
    upfront: Annotated[
        Decimal | None, about("Paid at its start for all its GPUs and hours, in its currency.")
    ]
    effective_amount_per_gpu_hour: Annotated[
        Decimal, about("The amount with its share of the upfront, spread over the term.")
    ]
    spot_effective_amount_per_gpu_hour: Annotated[
        Decimal | None,
        about(
            "Spot, for information: an hour of finished work, with what interruptions cost; null: not said."
        ),
    ]
    inputs: Annotated[
        Mapping[str, Any] | None,
        about("What an owned rate was figured from, or what interrupts a spot machine."),
    ]
    owned_rate: Annotated[
        Mapping[str, Any] | None,
        about("How an owned rate comes about, in its currency; whether energy is in it."),
    ]
    gpu_count: Annotated[
        int, about("GPUs it is for, of those known now; 0: none is called so. A more specific price may win.")
    ]
    note: Annotated[str, about("In your own words.")]


@dataclass(frozen=True, slots=True)
class ImportView:
    """What an import did."""

    added_count: Annotated[int, about("Prices that are new.")]
    unchanged_count: Annotated[int, about("Prices that were there already, just so.")]
    ended_count: Annotated[int, about("Prices that were superseded: they end where a new one starts.")]
    prices: Annotated[list[PriceView], about("The new ones.")]


def rows(session: Session, now_ms: int) -> list[PriceView]:
    """Every price of the user, in the order they were given."""
    shown = _Shown(session, now_ms)
    return [shown.view(price) for price in kept.listing(session)]


def add(
    session: Session, settings: Settings, now_ms: int, body: PriceBody, *, supersede: bool = False
) -> PriceView:
    """Keep a price; ``supersede`` ends an older one for the same thing where it starts.

    Raises:
        UsageError: it could not be applied, or overlaps another one; says which.
    """
    price = price_of(body, settings, now_ms, _sites(session, settings, now_ms))
    kept.lock(session)
    exchange = Exchange(exchange_rates.listing(session))
    _has_rate(price, exchange)
    plan = changes(kept.listing(session), [price], supersede=supersede)
    if plan.refused:
        raise UsageError(f"price of {plan.refused[0][1]}")
    return _Shown(session, now_ms).view(_apply(session, plan)[0])


def add_all(
    session: Session,
    settings: Settings,
    now_ms: int,
    given: Sequence[tuple[int, Mapping[str, Any]]],
    *,
    supersede: bool = False,
    unit: str = "line",
) -> ImportView:
    """Keep many prices: all or none. Prices that are there already, just so, are left alone.

    Args:
        given: line and named values of each (``PriceBody``). unit: what the number before each is.

    Raises:
        UsageError: some could not be applied; names every one of them by its line.
    """
    kept.lock(session)
    exchange = Exchange(exchange_rates.listing(session))
    site_of_host = _sites(session, settings, now_ms)
    prices: list[UserPrice] = []
    lines: list[int] = []
    bad: list[tuple[int, str]] = []
    for line, values in given:
        try:
            price = price_of(parsed(values), settings, now_ms, site_of_host)
            _has_rate(price, exchange)
        except UsageError as error:
            bad.append((line, str(error)))
            continue
        prices.append(price)
        lines.append(line)
    plan = changes(kept.listing(session), prices, supersede=supersede, skip_same=True)
    bad += [(lines[place], why) for place, why in plan.refused]
    if bad:
        raise refused(len(given), [f"{unit} {line}: {why}" for line, why in sorted(bad)])
    made = _apply(session, plan)
    shown = _Shown(session, now_ms)
    return ImportView(
        added_count=len(made),
        unchanged_count=len(plan.same),
        ended_count=len(plan.ends),
        prices=[shown.view(price) for price in made],
    )


def end(session: Session, settings: Settings, now_ms: int, id_: int, valid_to: str) -> PriceView:
    """Let a price end, or end elsewhere; what it priced before stays priced.

    Raises:
        NotFoundError: there is none of that key. UsageError: it cannot end then; says why.
    """
    kept.lock(session)
    price = kept.get(session, id_)
    if price is None:
        raise _missing(id_)
    valid_to_ms = when(valid_to, settings, now_ms, "valid_to")
    if valid_to_ms <= price.valid_from_ms:
        raise UsageError(
            f"valid_to is {valid_to!r}, not after the start of price {id_} ({described(price)}): give a later time, or remove it"
        )
    if price.upfront is not None and valid_to_ms != price.valid_to_ms:
        raise UsageError(prepaid(price))
    if price.valid_to_ms is not None and valid_to_ms > price.valid_to_ms:
        others = [other for other in kept.listing(session) if other.id != id_]
        longer = kept.end(session, id_, valid_to_ms)
        plan = changes(others, [longer], supersede=False)
        if plan.refused:
            raise UsageError(f"price {id_} cannot end at {valid_to}: {plan.refused[0][1]}")
    return _Shown(session, now_ms).view(kept.end(session, id_, valid_to_ms))


def remove(session: Session, id_: int) -> None:
    """Remove a price, as if it had never been given.

    Raises:
        NotFoundError: there is none of that key.
    """
    if not kept.delete(session, id_):
        raise _missing(id_)


def _sites(session: Session, settings: Settings, now_ms: int) -> SiteOf:
    """Energy terms of a host, or of the site as a whole, as of now; read when first asked for."""
    lookup = cache(lambda: place_lookup(session, settings))

    def site_of_host(host: str | None) -> Site:
        places = lookup()
        terms = places.common_terms(now_ms) if host is None else places.terms(host, now_ms)
        return site_of(terms, settings, now_ms)

    return site_of_host


def _missing(id_: int) -> NotFoundError:
    return NotFoundError(f"no price {id_}: list the prices for their numbers")


def _apply(session: Session, plan: Changes) -> list[UserPrice]:
    for id_, valid_to_ms in plan.ends.items():
        kept.end(session, id_, valid_to_ms)
    return kept.insert_all(session, plan.add)


def _has_rate(price: UserPrice, exchange: Exchange) -> None:
    """Refuse a price that would be unpriced from its first day."""
    if exchange.usd_per_unit(price.currency, price.valid_from_ms) is None:
        raise UsageError(
            f"price of {described(price)}: {exchange.missing(price.currency)}, or let the price start later (valid_from)"
        )


class _Shown:
    """Prices as they are told: at the rates and for the GPUs there are now."""

    def __init__(self, session: Session, now_ms: int) -> None:
        self._exchange = Exchange(exchange_rates.listing(session))
        self._gpus = gpus_by_scope(session)
        self._now_ms = now_ms

    def view(self, price: UserPrice) -> PriceView:
        """A price with what follows from it."""
        last_ms = max(price.valid_from_ms, self._now_ms)
        if price.valid_to_ms is not None:
            last_ms = min(last_ms, price.valid_to_ms - 1)
        rate = self._exchange.usd_per_unit(price.currency, last_ms)
        effective = effective_amount(price)
        owned = price.inputs if price.billing == "owned" else None
        return PriceView(
            id=price.id,
            scope_kind=price.scope_kind,
            scope_value=price.scope_value,
            amount_per_gpu_hour=price.amount_per_gpu_hour,
            currency=price.currency,
            usd_per_gpu_hour=None if rate is None else rounded(effective * rate),
            billing=price.billing,
            gpus_per_unit=price.gpus_per_unit,
            valid_from=from_ms(price.valid_from_ms),
            valid_to=None if price.valid_to_ms is None else from_ms(price.valid_to_ms),
            commitment=price.commitment,
            committed_gpus=price.committed_gpus,
            upfront=price.upfront,
            effective_amount_per_gpu_hour=rounded(effective),
            spot_effective_amount_per_gpu_hour=spot_effective(price),
            inputs=price.inputs,
            owned_rate=None if owned is None else _figured(OwnedInputs.of(owned)),
            gpu_count=self._gpus[price.key],
            note=price.note,
        )


def _figured(inputs: OwnedInputs) -> dict[str, Any]:
    rate = owned_rate(inputs)
    return {
        "capital_per_year": rate.capital_per_year,
        "running_per_year": rate.running_per_year,
        "gpu_hours_per_year": rate.gpu_hours_per_year,
        "amount_per_gpu_hour": rate.amount_per_gpu_hour,
        "energy": rate.energy,
    }
