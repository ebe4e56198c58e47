"""The user's tariffs: written, listed, ended, removed. What an hour costs under one is the ledger's to say."""

import json
from dataclasses import replace
from decimal import Decimal

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.errors import StoreError
from core.user_tariff import Period, Tariff
from store.models.tariff import TariffRow


def listing(session: Session) -> list[Tariff]:
    """Every tariff, by name and start."""
    found = [_tariff(row) for row in session.scalars(select(TariffRow))]
    return sorted(found, key=lambda tariff: (tariff.name, tariff.valid_from_ms, tariff.id))


def get(session: Session, tariff_id: int) -> Tariff | None:
    """One tariff; None when there is none of that key."""
    row = session.get(TariffRow, tariff_id)
    return None if row is None else _tariff(row)


def add(session: Session, given: Tariff) -> Tariff:
    """Keep a tariff; its ``id`` is new."""
    row = TariffRow(
        name=given.name,
        time_zone=given.time_zone,
        usd_per_kwh=given.usd_per_kwh,
        periods=_text(given.periods) if given.periods else None,
        valid_from_ms=given.valid_from_ms,
        valid_to_ms=given.valid_to_ms,
        note=given.note or None,
    )
    session.add(row)
    session.flush()
    return replace(given, id=row.id)


def end(session: Session, tariff_id: int, valid_to_ms: int) -> None:
    """Let a tariff end; what it priced before stays priced. Raises ``StoreError`` when there is none of that key."""
    row = session.get(TariffRow, tariff_id)
    if row is None:
        raise StoreError(f"there is no tariff {tariff_id}: list them for their numbers")
    row.valid_to_ms = valid_to_ms
    session.flush()


def delete(session: Session, tariff_id: int) -> bool:
    """Remove a tariff, as if it had never been given; False when there is none of that key."""
    row = session.get(TariffRow, tariff_id)
    if row is None:
        return False
    session.delete(row)
    session.flush()
    return True


def _text(periods: tuple[Period, ...]) -> str:
    return json.dumps(
        [
            {
                "weekdays": period.weekdays,
                "from_hour": period.from_hour,
                "to_hour": period.to_hour,
                "usd_per_kwh": str(period.usd_per_kwh),
            }
            for period in periods
        ],
        separators=(",", ":"),
    )


def _tariff(row: TariffRow) -> Tariff:
    return Tariff(
        id=row.id,
        name=row.name,
        time_zone=row.time_zone,
        usd_per_kwh=row.usd_per_kwh,
        periods=tuple(
            Period(
                tuple(found["weekdays"]), found["from_hour"], found["to_hour"], Decimal(found["usd_per_kwh"])
            )
            for found in json.loads(row.periods or "[]")
        ),
        valid_from_ms=row.valid_from_ms,
        valid_to_ms=row.valid_to_ms,
        note=row.note or "",
    )
