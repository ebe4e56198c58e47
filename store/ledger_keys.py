"""Keys of what lines were priced with: rates, places, owners and sets of engines, each kept once and for good."""

import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, insert, select, text

from core.evidence import Price
from core.money import to_micro
from core.ownership import Owner
from core.place import Place
from store.models.ledger_engine_set import LedgerEngineSetRow
from store.models.ledger_place import LedgerPlaceRow
from store.models.ledger_rate import LedgerRateRow
from store.models.owner import OwnerRow


def rate_ids(connection: Connection, prices: Sequence[Price]) -> list[int]:
    """Keys in ``ledger_rate``, in the order of ``prices``."""
    return _kept(connection, LedgerRateRow, prices, _rate)


def place_ids(connection: Connection, places: Sequence[Place]) -> list[int]:
    """Keys in ``ledger_place``, in the order of ``places``; one by time of use is kept without the price of an hour."""
    return _kept(connection, LedgerPlaceRow, places, _place)


def owner_ids(connection: Connection, owners: Sequence[Owner]) -> list[int]:
    """Keys in ``owner``, in the order of ``owners``."""
    statement = text(
        "INSERT INTO owner (team, project, cost_centre) VALUES (:team, :project, :cost_centre) ON CONFLICT DO NOTHING"
    )
    if not owners:
        return []
    connection.execute(
        statement,
        [{"team": o.team, "project": o.project, "cost_centre": o.cost_centre} for o in owners],
    )
    row = OwnerRow
    found = connection.execute(select(row.team, row.project, row.cost_centre, row.id)).all()
    keys = {Owner(team, project, cost_centre): key for team, project, cost_centre, key in found}
    return [keys[owner] for owner in owners]


def engine_set_ids(connection: Connection, sets: Sequence[tuple[int, ...]]) -> list[int]:
    """Keys in ``ledger_engine_set``, in the order of ``sets``: keys of engines, ascending."""
    if not sets:
        return []
    row = LedgerEngineSetRow
    told = [json.dumps(engine_ids) for engine_ids in sets]
    keys = select(row.engine_ids, row.id).where(row.engine_ids.in_(told))
    found: dict[str, int] = dict(connection.execute(keys).all())
    new = [{"engine_ids": one} for one in told if one not in found]
    if new:
        connection.execute(insert(row), new)
        found = dict(connection.execute(keys).all())
    return [found[one] for one in told]


def _rate(price: Price) -> dict[str, Any]:
    return {
        "usd_per_gpu_hour": price.usd_per_gpu_hour,
        "list_usd_per_gpu_hour": price.list_usd_per_gpu_hour,
        "billing": price.billing,
        "basis": price.basis,
        "as_of": price.as_of,
        "from_user": price.from_user,
        "gpus_per_unit": price.gpus_per_unit,
        "price_id": price.price_id,
        "commitment": price.commitment,
    }


def _place(place: Place) -> dict[str, Any]:
    return {
        "site": place.site,
        "tariff": place.tariff,
        "usd_per_kwh": None if place.is_time_of_use else place.usd_per_kwh,
        "pue": place.pue,
        "host_share_ratio": place.host_share_ratio,
        "host_share_method": place.host_share_method,
        "carbon_g_per_kwh": place.carbon_g_per_kwh,
        "carbon_code": place.carbon_code,
        "carbon_year": place.carbon_year,
        "carbon_method": place.carbon_method,
        "pays_for_power": place.pays_for_power,
    }


def _kept(
    connection: Connection, model: Any, things: Sequence[Any], values: Callable[[Any], dict[str, Any]]
) -> list[int]:
    """Whoever writes lines holds the ledger's lock, so nobody else adds the same meanwhile."""
    rows = [values(thing) for thing in things]
    digests = [_digest(row) for row in rows]
    keys = _keys(connection, model, digests)
    new = {digest: row for digest, row in zip(digests, rows, strict=True) if digest not in keys}
    if new:
        connection.execute(insert(model), [row | {"digest": digest} for digest, row in new.items()])
        keys |= _keys(connection, model, list(new))
    return [keys[digest] for digest in digests]


def _keys(connection: Connection, model: Any, digests: Sequence[str]) -> dict[str, int]:
    if not digests:
        return {}
    found = select(model.digest, model.id).where(model.digest.in_(digests))
    return dict(connection.execute(found).all())


def _digest(values: Mapping[str, Any]) -> str:
    # Money as it is kept: 2.5 and 2.50 are the same price.
    told = "\n".join(
        f"{name}={to_micro(value) if isinstance(value, Decimal) else repr(value)}"
        for name, value in values.items()
    )
    return sha256(told.encode()).hexdigest()[:32]
