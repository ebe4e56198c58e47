"""Rent or buy with the site's settings, the price in force and the use measured here, for whatever is not given."""

from dataclasses import dataclass, fields, replace
from decimal import Decimal
from statistics import quantiles
from typing import Annotated, Any, Final

from api.resources.book import Book, read_book
from api.resources.by import By
from api.resources.columns import about
from api.resources.places import site
from api.resources.recommendations import with_money
from api.resources.scope import Scope
from api.resources.slices import slices
from api.resources.usage import UsageSum, add_up
from core.errors import UsageError
from core.evidence import Price, Window
from ledger.rent_or_buy import RentOrBuyResult, Spread, Verdict, evaluate, of_site
from ledger.rent_or_buy_inputs import RentOrBuyInputs

FEW_DAYS: Final = 4
"""Fewer days than quartiles need give no range of use."""
INPUTS: Final = frozenset(field.name for field in fields(RentOrBuyInputs))


@dataclass(frozen=True, slots=True)
class RentOrBuyRow:
    """The answer, with both tests, their ranges and everything assumed."""

    verdict: Annotated[Verdict, about("rent, buy, mix, never (renting always wins) or unknown.")]
    payback_months: Annotated[float | None, about("Months until the purchase is earned back; null: never.")]
    breakeven_utilisation: Annotated[
        float | None, about("Use above which owning is cheaper; above 1: at none.")
    ]
    own_usd_per_gpu_h: Annotated[Decimal | None, about("One wanted GPU-hour of an owned node at this use.")]
    rent_usd_per_gpu_h: Annotated[Decimal | None, about("One GPU-hour rented.")]
    ranges: Annotated[dict[str, Spread], about("Over rent −30 %/+20 %, life 3–5 years, use p25–p75.")]
    assumptions: Annotated[dict[str, Any], about("Every input, and every term left out.")]
    reason: Annotated[str, about("One sentence for the verdict.")]
    missing: Annotated[tuple[str, ...], about("Inputs without which there is no verdict.")]
    firm: Annotated[bool | None, about("The verdict is the same in every corner of the ranges.")]
    breakeven_hours_per_day: Annotated[float | None, about("The break-even use as hours of a day.")]
    own_usd_per_year: Annotated[Decimal | None, about("The owned node at this use.")]
    rent_usd_per_year: Annotated[Decimal | None, about("The rented node at this use.")]


def rent_or_buy(
    scope: Scope, given: dict[str, Any], *, gpu_model: str | None = None, host: str | None = None
) -> RentOrBuyRow:
    """Weigh renting against buying.

    Args:
        scope: its window is what the use is measured over.
        given: inputs by name (``RentOrBuyInputs``); what is absent comes from settings, prices and measurement.
        gpu_model, host: which GPUs are measured and priced; default: all.

    Raises:
        UsageError: an input that cannot be, or no GPU of that model or host.
    """
    book = read_book(scope)
    chosen = _chosen(book, gpu_model, host)
    if not chosen and (gpu_model is not None or host is not None):
        raise UsageError(
            f"no GPU here of model {gpu_model or 'any'} on host {host or 'any'}: gpus lists them"
        )
    use = None if given.get("utilisation") is not None else _measured(scope, book, chosen)
    inputs = of_site(
        site(scope.session, scope.settings, scope.window.to_ms - 1),
        _price(book, chosen, scope.window),
        utilisation=None if use is None else use[0],
        utilisation_p25=None if use is None else use[1],
        utilisation_p75=None if use is None else use[2],
        utilisation_basis="given" if use is None else _basis(chosen, scope.window),
    )
    if "rent_usd_per_hour" in given or "rent_usd_per_gpu_hour" in given:
        inputs = replace(inputs, rent_usd_per_gpu_hour=None, rent_basis="given")
    try:
        result = evaluate(
            replace(inputs, **{k: v for k, v in given.items() if k in INPUTS and v is not None})
        )
    except ValueError as error:
        raise UsageError(str(error)) from error
    return _row(result)


def _chosen(book: Book, gpu_model: str | None, host: str | None) -> frozenset[str]:
    def fits(uuid: str) -> bool:
        identity = book.gpus[uuid].identity
        names = {name.casefold() for name in (identity.model, book.gpu_keys[uuid]) if name is not None}
        return (gpu_model is None or gpu_model.casefold() in names) and (
            host is None or host == identity.host
        )

    return frozenset(uuid for uuid in book.gpus if fits(uuid))


def _measured(
    scope: Scope, book: Book, chosen: frozenset[str]
) -> tuple[float, float | None, float | None] | None:
    """Share of the seen time with work, and its quartiles over days; None when nothing could be named."""
    by_day = add_up(part for part in slices(scope, book, By.DAY) if part.gpu_uuid in chosen)
    shares = [share for used in by_day.values() if (share := _share(used)) is not None]
    named_s = sum(used.named_s for used in by_day.values())
    if not shares or named_s <= 0:
        return None
    whole = min(1.0, sum(used.active_s for used in by_day.values()) / named_s)
    if len(shares) < FEW_DAYS:
        return whole, None, None
    low, _, high = quantiles(shares, n=4, method="inclusive")
    return whole, low, high


def _share(used: UsageSum) -> float | None:
    return min(1.0, used.active_s / used.named_s) if used.named_s > 0 else None


def _basis(chosen: frozenset[str], window: Window) -> str:
    return f"measured: time with work of {len(chosen)} GPUs over {window.hours:,.0f} h, quartiles over days"


def _price(book: Book, chosen: frozenset[str], window: Window) -> Price | None:
    """The one price of all chosen GPUs; None when there is none or several."""
    found = {book.price(uuid, window.to_ms - 1) for uuid in chosen}
    return found.pop() if len(found) == 1 else None


def _row(result: RentOrBuyResult) -> RentOrBuyRow:
    return RentOrBuyRow(
        verdict=result.verdict,
        payback_months=result.payback_months,
        breakeven_utilisation=result.breakeven_utilisation,
        own_usd_per_gpu_h=result.own_usd_per_gpu_h,
        rent_usd_per_gpu_h=result.rent_usd_per_gpu_h,
        ranges=dict(result.ranges),
        assumptions=with_money(result.assumptions),
        reason=result.reason,
        missing=result.missing,
        firm=result.firm,
        breakeven_hours_per_day=result.breakeven_hours_per_day,
        own_usd_per_year=result.own_usd_per_year,
        rent_usd_per_year=result.rent_usd_per_year,
    )
