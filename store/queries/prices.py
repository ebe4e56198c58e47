"""The user's prices: written, listed, ended, removed. Which one is in force is the ledger's to say.

Whatever changes a price marks the days that it prices, in the same transaction.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

from sqlalchemy import Row, insert, select, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from core.errors import StoreError
from core.user_price import Scope, UserPrice
from store.engine import begin_write
from store.models.gpu import GpuRow
from store.models.host import HostRow
from store.models.price import PriceRow
from store.queries import ledger_pending

MOST_NAMED: Final = 500
"""GPUs and hosts named one by one in a statement; a file with more of them is about the fleet."""


def listing(session: Session) -> list[UserPrice]:
    """Every price, in the order they were given."""
    columns = tuple(PriceRow.__table__.columns)
    return [_price(row) for row in session.execute(select(*columns).order_by(PriceRow.id))]


def get(session: Session, price_id: int) -> UserPrice | None:
    """One price; None when there is none of that key."""
    row = session.get(PriceRow, price_id)
    return None if row is None else _price(row)


def lock(session: Session) -> None:
    """Let nobody else write prices or exchange rates until this transaction ends: whoever checks before it writes calls it first."""
    connection = session.connection()
    begin_write(connection)
    if connection.dialect.name == "postgresql":
        session.execute(text("LOCK TABLE price, exchange_rate IN SHARE ROW EXCLUSIVE MODE"))


def insert_all(session: Session, prices: Sequence[UserPrice]) -> list[UserPrice]:
    """Keep prices; returns them with their keys.

    Raises:
        StoreError: scope, billing, amount or time of one is out of bounds; says which check refused it.
    """
    if not prices:
        return []
    statement = insert(PriceRow).returning(PriceRow.id, sort_by_parameter_order=True)
    try:
        with session.begin_nested():
            keys = session.execute(statement, [_values(price) for price in prices]).scalars().all()
    except IntegrityError as error:
        raise _refused(error) from error
    made = [replace(price, id=key) for price, key in zip(prices, keys, strict=True)]
    spans: dict[tuple[int, int | None], list[UserPrice]] = defaultdict(list)
    for price in made:
        spans[price.valid_from_ms, price.valid_to_ms].append(price)
    for (from_ms, to_ms), alike in spans.items():
        _mark(session, alike, from_ms, to_ms)
    return made


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
) -> UserPrice:
    """Keep a price in dollars. Raises as ``insert_all`` does."""
    try:
        price = UserPrice(
            id=0,
            scope_kind=scope_kind,
            scope_value=scope_value,
            amount_per_gpu_hour=usd_per_gpu_hour,
            billing=billing,
            gpus_per_unit=gpus_per_unit,
            valid_from_ms=valid_from_ms,
            valid_to_ms=valid_to_ms,
            note=note,
        )
    except ValueError as error:
        raise StoreError(f"the price is refused: {error}") from error
    return insert_all(session, [price])[0]


def end(session: Session, price_id: int, valid_to_ms: int) -> UserPrice:
    """Let a price end; what it priced before stays priced.

    Raises:
        StoreError: there is no such price, or it would end before it starts.
    """
    row = session.get(PriceRow, price_id)
    if row is None:
        raise StoreError(f"there is no price {price_id}: list them for their numbers")
    before = row.valid_to_ms
    try:
        ended = replace(_price(row), valid_to_ms=valid_to_ms)
    except ValueError as error:
        raise StoreError(f"price {price_id} is refused: {error}") from error
    row.valid_to_ms = valid_to_ms
    session.flush()
    _mark(
        session,
        [ended],
        valid_to_ms if before is None else min(before, valid_to_ms),
        None if before is None else max(before, valid_to_ms),
    )
    return ended


def delete(session: Session, price_id: int) -> bool:
    """Remove a price, as if it had never been given; False when there is none of that key."""
    row = session.get(PriceRow, price_id)
    if row is None:
        return False
    price = _price(row)
    session.delete(row)
    session.flush()
    _mark(session, [price], price.valid_from_ms, price.valid_to_ms)
    return True


def _mark(session: Session, prices: Sequence[UserPrice], from_ms: int, to_ms: int | None) -> None:
    """Mark the days that may now be priced otherwise; only of the GPUs that the prices are for where they say which."""
    uuids = {price.scope_value for price in prices if price.scope_kind == Scope.GPU}
    hosts = {price.scope_value for price in prices if price.scope_kind == Scope.HOST}
    named = all(price.scope_kind in {Scope.GPU, Scope.HOST} for price in prices)
    if not named or len(uuids) + len(hosts) > MOST_NAMED:
        ledger_pending.mark(session, from_ms, to_ms)
        return
    if hosts:
        of_host = select(GpuRow.gpu_uuid).join(HostRow, HostRow.id == GpuRow.host_id)
        uuids.update(session.scalars(of_host.where(HostRow.name.in_(hosts))))
    if uuids:
        ledger_pending.mark(session, from_ms, to_ms, sorted(uuids))


def _refused(error: IntegrityError) -> StoreError:
    return StoreError(f"the price is refused ({error.orig}): correct scope, billing, amount or time")


def _values(price: UserPrice) -> dict[str, object]:
    return {
        "scope_kind": price.scope_kind,
        "scope_value": price.scope_value or None,
        "amount_per_gpu_hour": price.amount_per_gpu_hour,
        "currency": price.currency,
        "billing": price.billing,
        "gpus_per_unit": price.gpus_per_unit,
        "valid_from_ms": price.valid_from_ms,
        "valid_to_ms": price.valid_to_ms,
        "commitment": price.commitment,
        "committed_gpus": price.committed_gpus,
        "upfront": price.upfront,
        "inputs": None if price.inputs is None else json.dumps(dict(price.inputs), sort_keys=True),
        "note": price.note or None,
    }


def _price(row: PriceRow | Row[Any]) -> UserPrice:
    return UserPrice(
        id=row.id,
        scope_kind=row.scope_kind,
        scope_value=row.scope_value or "",
        amount_per_gpu_hour=row.amount_per_gpu_hour,
        billing=row.billing,
        gpus_per_unit=row.gpus_per_unit,
        valid_from_ms=row.valid_from_ms,
        valid_to_ms=row.valid_to_ms,
        note=row.note or "",
        currency=row.currency,
        commitment=row.commitment,
        committed_gpus=row.committed_gpus,
        upfront=row.upfront,
        inputs=None if row.inputs is None else json.loads(row.inputs),
    )
