"""Marks of days whose ledger lines no longer hold: by whoever changes a price, a tariff, an owner rule, a host's facts."""

from collections.abc import Collection
from secrets import randbits

from sqlalchemy import BigInteger, bindparam, func, select, text
from sqlalchemy.orm import Session

from core.days import day_of
from store.models.ledger_pending import LedgerPendingRow


def mark(session: Session, from_ms: int, to_ms: int | None, gpu_uuids: Collection[str] | None = None) -> None:
    """Mark the UTC days from ``from_ms`` (inclusive) to ``to_ms`` (exclusive; None: all later ones) of GPUs.

    One statement over the days there are, in the caller's transaction: lines and what they depend on change together.
    ``gpu_uuids`` None: every GPU.
    """
    only = "" if gpu_uuids is None else "AND day.gpu_id IN (SELECT id FROM gpu WHERE gpu_uuid IN :uuids) "
    statement = text(
        "INSERT INTO ledger_pending (gpu_id, day_ms, mark) "
        "SELECT day.gpu_id, day.day_ms, CAST(:mark AS bigint) FROM gpu_day AS day "
        f"WHERE day.day_ms >= :from_ms AND day.day_ms < :to_ms {only}"
        "ON CONFLICT (gpu_id, day_ms) DO UPDATE SET mark = excluded.mark"
    ).bindparams(bindparam("mark", type_=BigInteger))
    values: dict[str, object] = {
        "mark": randbits(62),
        "from_ms": day_of(max(0, from_ms)),
        "to_ms": 2**62 if to_ms is None else to_ms,
    }
    if gpu_uuids is not None:
        statement = statement.bindparams(bindparam("uuids", expanding=True))
        values["uuids"] = list(gpu_uuids)
    session.execute(statement, values)


def count(session: Session) -> int:
    """Marks left."""
    return session.execute(select(func.count()).select_from(LedgerPendingRow)).scalar_one()
