"""The user's prices: written, listed, ended, removed. Which one is in force is the ledger's to say."""

from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from core.errors import StoreError
from store.models.price import PriceRow


@dataclass(frozen=True, slots=True)
class PriceRecord:
    """A price of one GPU-hour, with the fields of ``ledger.prices.PriceRow``.

    Attributes:
        id: its key. scope_kind: ``gpu_uuid``, ``host``, ``model`` or ``all``. scope_value: which; empty for ``all``.
        usd_per_gpu_hour: dollars. billing: ``on_demand``, ``reserved``, ``spot`` or ``owned``.
        gpus_per_unit: GPUs that can only be released together; None: all of a host.
        valid_from_ms, valid_to_ms: in force from (inclusive) to (exclusive; None: still).
        note: the user's own words.
    """

    id: int
    scope_kind: str
    scope_value: str
    usd_per_gpu_hour: Decimal
    billing: str
    gpus_per_unit: int | None
    valid_from_ms: int
    valid_to_ms: int | None
    note: str


def listing(session: Session) -> list[PriceRecord]:
    """Every price, in the order they were given."""
    return [_record(row) for row in session.scalars(select(PriceRow).order_by(PriceRow.id))]


def get(session: Session, price_id: int) -> PriceRecord | None:
    """One price; None when there is none of that key."""
    row = session.get(PriceRow, price_id)
    return None if row is None else _record(row)


def add(
    session: Session,
    *,
    scope_kind: str,
    scope_value: str,
    usd_per_gpu_hour: Decimal,
    billing: str,
    valid_from_ms: int,
    valid_to_ms: int | None = None,
    gpus_per_unit: int | None = None,
    note: str = "",
) -> PriceRecord:
    """Keep a price.

    Raises:
        StoreError: scope, billing, amount or time is out of bounds; says which check refused it.
    """
    row = PriceRow(
        scope_kind=scope_kind,
        scope_value=scope_value or None,
        usd_per_gpu_hour=usd_per_gpu_hour,
        billing=billing,
        gpus_per_unit=gpus_per_unit,
        valid_from_ms=valid_from_ms,
        valid_to_ms=valid_to_ms,
        note=note or None,
    )
    session.add(row)
    _flush(session)
    return _record(row)


def end(session: Session, price_id: int, valid_to_ms: int) -> PriceRecord:
    """Let a price end; what it priced before stays priced.

    Raises:
        StoreError: there is no such price, or it would end before it starts.
    """
    row = session.get(PriceRow, price_id)
    if row is None:
        raise StoreError(f"there is no price {price_id}: list them for their numbers")
    row.valid_to_ms = valid_to_ms
    _flush(session)
    return _record(row)


def delete(session: Session, price_id: int) -> bool:
    """Remove a price, as if it had never been given; False when there is none of that key."""
    row = session.get(PriceRow, price_id)
    if row is None:
        return False
    session.delete(row)
    session.flush()
    return True


def _flush(session: Session) -> None:
    try:
        session.flush()
    except IntegrityError as error:
        session.rollback()
        raise StoreError(
            f"the price is refused ({error.orig}): correct scope, billing, amount or time"
        ) from error


def _record(row: PriceRow) -> PriceRecord:
    return PriceRecord(
        id=row.id,
        scope_kind=row.scope_kind,
        scope_value=row.scope_value or "",
        usd_per_gpu_hour=row.usd_per_gpu_hour,
        billing=row.billing,
        gpus_per_unit=row.gpus_per_unit,
        valid_from_ms=row.valid_from_ms,
        valid_to_ms=row.valid_to_ms,
        note=row.note or "",
    )
