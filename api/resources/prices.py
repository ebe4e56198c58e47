"""The user's prices. Which one is in force is the ledger's to say; changing one re-prices, usage stays."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Annotated

from sqlalchemy.orm import Session

from api.resources.columns import about
from core.clock import from_ms
from core.errors import NotFoundError, UsageError
from core.user_price import UserPrice
from store.queries import prices as kept


@dataclass(frozen=True, slots=True)
class PriceView:
    """A price of one GPU-hour."""

    id: Annotated[int, about("Its key.")]
    scope_kind: Annotated[str, about("gpu_uuid, host, model or all; the most specific one in force wins.")]
    scope_value: Annotated[str, about("Which GPU, host or model; empty for all.")]
    usd_per_gpu_hour: Annotated[Decimal, about("Dollars for one GPU-hour.")]
    billing: Annotated[str, about("on_demand, reserved, spot or owned.")]
    gpus_per_unit: Annotated[
        int | None, about("GPUs that can only be released together; null: all of a host.")
    ]
    valid_from: Annotated[datetime, about("In force from, inclusive, UTC.")]
    valid_to: Annotated[datetime | None, about("In force until, exclusive, UTC; null: still.")]
    note: Annotated[str, about("In your own words.")]


def rows(session: Session) -> list[PriceView]:
    """Every price of the user, in the order they were given."""
    return [_view(record) for record in kept.listing(session)]


def add(
    session: Session,
    *,
    scope_kind: str,
    scope_value: str,
    usd_per_gpu_hour: Decimal,
    billing: str,
    gpus_per_unit: int | None,
    valid_from_ms: int,
    valid_to_ms: int | None,
    note: str,
) -> PriceView:
    """Keep a price.

    Raises:
        UsageError: it could not be applied; says why.
    """
    try:
        checked = UserPrice(
            0,
            scope_kind,
            scope_value,
            usd_per_gpu_hour,
            billing,
            gpus_per_unit,
            valid_from_ms,
            valid_to_ms,
            note,
        )
    except ValueError as error:
        raise UsageError(str(error)) from error
    return _view(kept.insert_all(session, [checked])[0])


def remove(session: Session, id_: int) -> None:
    """Remove a price, as if it had never been given.

    Raises:
        NotFoundError: there is none of that key.
    """
    if not kept.delete(session, id_):
        raise NotFoundError(f"no price {id_}: GET /api/v1/prices lists them")


def _view(record: UserPrice) -> PriceView:
    return PriceView(
        id=record.id,
        scope_kind=record.scope_kind,
        scope_value=record.scope_value,
        usd_per_gpu_hour=record.amount_per_gpu_hour,
        billing=record.billing,
        gpus_per_unit=record.gpus_per_unit,
        valid_from=from_ms(record.valid_from_ms),
        valid_to=None if record.valid_to_ms is None else from_ms(record.valid_to_ms),
        note=record.note,
    )
