"""Marks of days whose ledger lines no longer hold: by whoever changes a price, a tariff, an owner rule, a host's facts."""

from collections.abc import Collection
from secrets import randbits

from sqlalchemy import BigInteger, bindparam, func, select, text
from sqlalchemy.orm import Session

from core.days import day_of
from core.units import DAY_MS
from store.models.gpu import GpuRow
from store.models.gpu_day import GpuDayRow
from store.models.ledger_day import LedgerDayRow
from store.models.ledger_engine_day import LedgerEngineDayRow
from store.models.ledger_pending import LedgerPendingRow


def mark(session: Session, from_ms: int, to_ms: int | None, gpu_uuids: Collection[str] | None = None) -> None:
    """Mark the UTC days from ``from_ms`` (inclusive) to ``to_ms`` (exclusive; None: all later ones) of GPUs.

    One statement over the days there are, in the caller's transaction: lines and what they depend on change together.
    Days that have lines only (a GPU's gaps) are among them; days whose hours are past their age are not, because
    nothing could make their lines anew. A day that is marked already is marked anew: whoever works on it now works with
    what was. ``gpu_uuids`` None: every GPU; empty: none.
    """
    if gpu_uuids is not None and not gpu_uuids:
        return
    only = "" if gpu_uuids is None else "AND gpu_id IN (SELECT id FROM gpu WHERE gpu_uuid IN :uuids) "
    statement = text(
        "INSERT INTO ledger_pending (gpu_id, day_ms, mark) "
        "SELECT gpu_id, day_ms, CAST(:mark AS bigint) FROM ("
        "SELECT gpu_id, day_ms FROM gpu_day WHERE day_ms >= :from_ms AND day_ms < :to_ms "
        f"UNION SELECT gpu_id, from_ms - from_ms % {DAY_MS} FROM ledger_day "
        f"WHERE day_ms >= :from_ms - {2 * DAY_MS} AND day_ms < :to_ms AND kind = 'gap' "
        "AND from_ms >= (SELECT min(day_ms) FROM gpu_day) "
        "UNION SELECT gpu_id, day_ms FROM ledger_pending WHERE day_ms < :to_ms"
        f") AS day WHERE day_ms >= :from_ms - {DAY_MS} {only}"
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


def count(session: Session, before_ms: int | None = None) -> int:
    """Marks left; ``before_ms``: of days that began before."""
    statement = select(func.count()).select_from(LedgerPendingRow)
    if before_ms is not None:
        statement = statement.where(LedgerPendingRow.day_ms < before_ms)
    return session.execute(statement).scalar_one()


def known_days(session: Session) -> int:
    """UTC days of GPUs with hours: what there would be to mark."""
    return session.execute(select(func.count()).select_from(GpuDayRow)).scalar_one()


def last_stored(session: Session) -> dict[int, int]:
    """By GPU the start of the last accounting day that has lines; a GPU without any is left out."""
    last = select(func.max(LedgerDayRow.day_ms)).where(LedgerDayRow.gpu_id == GpuRow.id).scalar_subquery()
    statement = select(GpuRow.id, last)
    return {gpu_id: day_ms for gpu_id, day_ms in session.execute(statement) if day_ms is not None}


def told_apart(session: Session, from_day_ms: int, to_day_ms: int) -> set[tuple[int, int]]:
    """GPU and start of the accounting days in a span whose lines are told apart by engines."""
    row = LedgerEngineDayRow
    statement = select(row.gpu_id, row.day_ms).where(row.day_ms >= from_day_ms, row.day_ms < to_day_ms)
    return {(gpu_id, day_ms) for gpu_id, day_ms in session.execute(statement.distinct())}


def days(session: Session, from_ms: int, to_ms: int) -> list[tuple[int, int]]:
    """GPU and start of the marked UTC days that overlap a span."""
    row = LedgerPendingRow
    statement = select(row.gpu_id, row.day_ms).where(row.day_ms > from_ms - DAY_MS, row.day_ms < to_ms)
    return [(gpu_id, day_ms) for gpu_id, day_ms in session.execute(statement)]
