"""Every GPU with the price in force, where it is from and how old it is; those without one, and why."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Annotated

from sqlalchemy.orm import Session

from api.resources.columns import about
from api.resources.pricing import price_lookup, spec_of
from catalog.gpu_prices import STALE_DAYS, age_days
from core.clock import from_ms
from core.evidence import Price
from core.readings import GpuIdentity
from core.settings import Settings
from ledger.prices import Unpriced
from store.known import known_gpus


@dataclass(frozen=True, slots=True)
class EffectivePriceRow:
    """A GPU and its price now."""

    gpu_uuid: Annotated[str, about("UUID.")]
    host: Annotated[str | None, about("Its host; null: no source names it.")]
    model: Annotated[str | None, about("As the driver names it.")]
    gpu_key: Annotated[str | None, about("Row of the GPU catalogue; null: none fits.")]
    usd_per_gpu_hour: Annotated[Decimal | None, about("Dollars of one GPU-hour; null: unpriced, never 0.")]
    price_basis: Annotated[
        str | None, about("Where it is from, with its date; warns when the catalogue's is old.")
    ]
    billing: Annotated[str | None, about("on_demand, reserved, spot, committed or owned.")]
    gpus_per_unit: Annotated[int | None, about("GPUs that can only be released together.")]
    commitment: Annotated[str | None, about("Name of the commitment it belongs to.")]
    price_id: Annotated[int | None, about("Your price; null: the catalogue's, or none.")]
    list_usd_per_gpu_hour: Annotated[
        Decimal | None, about("The catalogue's price beside it; null: it lists none.")
    ]
    as_of: Annotated[str | None, about("ISO date of the price, possibly only its month or year.")]
    price_age_days: Annotated[int | None, about("Days since then; null: unpriced, or in force since ever.")]
    stale: Annotated[
        bool, about(f"A catalogue price older than {STALE_DAYS} days; your own holds until you change it.")
    ]
    why_unpriced: Annotated[str | None, about("Why there is no price and what to do; null: there is one.")]


def rows(session: Session, settings: Settings, now_ms: int) -> list[EffectivePriceRow]:
    """Every GPU, by host, index and UUID. MIG slices are left out, because their card is here."""
    prices = price_lookup(session, settings)
    today = from_ms(now_ms).date()
    found = []
    for known in known_gpus(session.connection()):
        identity = known.identity
        if identity.is_slice:
            continue
        spec = spec_of(identity)
        gpu_key = None if spec is None else spec.gpu_key
        found.append(_row(identity, gpu_key, prices.answer(identity, gpu_key, now_ms), today))
    return found


def counts(found: list[EffectivePriceRow]) -> dict[str, int]:
    """GPUs with a price, without one, and with an old one of the catalogue."""
    priced = sum(row.usd_per_gpu_hour is not None for row in found)
    return {
        "priced_count": priced,
        "unpriced_count": len(found) - priced,
        "stale_count": sum(row.stale for row in found),
    }


def _row(
    identity: GpuIdentity, gpu_key: str | None, found: Price | Unpriced, today: date
) -> EffectivePriceRow:
    price = found if isinstance(found, Price) else None
    age = None if price is None or price.as_of == "1970-01-01" else age_days(price.as_of, today)
    stale = age is not None and price is not None and not price.from_user and age > STALE_DAYS
    return EffectivePriceRow(
        gpu_uuid=identity.gpu_uuid,
        host=identity.host,
        model=identity.model,
        gpu_key=gpu_key,
        usd_per_gpu_hour=None if price is None else price.usd_per_gpu_hour,
        price_basis=None if price is None else price.basis,
        billing=None if price is None else price.billing,
        gpus_per_unit=None if price is None else price.gpus_per_unit,
        commitment=None if price is None else price.commitment,
        price_id=None if price is None else price.price_id,
        list_usd_per_gpu_hour=None if price is None else price.list_usd_per_gpu_hour,
        as_of=None if price is None else price.as_of,
        price_age_days=age,
        stale=stale,
        why_unpriced=found.why if isinstance(found, Unpriced) else None,
    )
