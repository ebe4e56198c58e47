"""Time, energy and money of single GPUs over accounting days, by owner: added up by the database from the ledger.

Days that are added up already (``ledger_gpu_total``) are read instead of their lines; both say the same.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from store.ledger_totals import OF_SOME_LINES
from store.models.ledger_total_day import LedgerTotalDayRow
from store.queries.ledger_days import days_of_lines


class GpuPart(NamedTuple):
    """Part of one GPU's time that one owner pays for; money in micro-dollars, None: unpriced.

    Attributes:
        owner_id: 0: nobody's. known_ms: of it ``covered_ms`` with samples, ``empty_ms`` and ``parked_ms`` idle.
        cost_usd: of the GPU. paid_usd: what power adds to the bill of priced time.
    """

    gpu_id: int
    owner_id: int
    known_ms: int
    covered_ms: int
    empty_ms: int
    parked_ms: int
    active_ms: int
    energy_mj: int | None
    cost_usd: int | None
    idle_cost_usd: int | None
    paid_usd: int | None


AMOUNTS: Final = GpuPart._fields[2:]


def gpu_parts(
    session: Session,
    span: tuple[int, int],
    without: Collection[tuple[int, int]] = (),
    gpu_ids: Collection[int] | None = None,
) -> Iterator[GpuPart]:
    """Parts of stored accounting days that begin in a span; one GPU and owner may come more than once.

    Args:
        session: as ever.
        span: starts of accounting days, inclusive and exclusive.
        without: GPU and accounting day of lines to leave out.
        gpu_ids: of these GPUs only; default all.
    """
    row = LedgerTotalDayRow
    hold = set(
        session.execute(select(row.day_ms).where(row.day_ms >= span[0], row.day_ms < span[1])).scalars()
    )
    touched = {day for _, day in without}
    skipped = frozenset(without)
    there = days_of_lines(session, span)
    where = [f"day_ms >= {int(span[0])}", f"day_ms < {int(span[1])}"]
    if gpu_ids is not None:
        where.append(f"gpu_id IN ({_listed(gpu_ids)})")
    if hold:
        # Where every day holds, the bare span walks the key; a list of days would look each of them up.
        all_hold = not touched and there <= hold
        days = [] if all_hold else [f"day_ms IN ({_listed(hold - touched)})"]
        yield from map(GpuPart._make, _rows(session, "ledger_gpu_total", [*where, *days]))
        yield from _one_by_one(session, "ledger_gpu_total", where, hold & touched, skipped)
        if all_hold:
            return
    others = there - hold
    if others - touched:
        days = [f"day_ms IN ({_listed(others - touched)})"]
        yield from map(GpuPart._make, _rows(session, "ledger_day", [*where, *days]))
    yield from _one_by_one(session, "ledger_day", where, others & touched, skipped)


def _one_by_one(
    session: Session,
    table: str,
    where: list[str],
    days: Collection[int],
    skipped: Collection[tuple[int, int]],
) -> Iterator[GpuPart]:
    """Days of which some GPUs are left out."""
    if not days:
        return
    for day_ms, *values in _rows(session, table, [*where, f"day_ms IN ({_listed(days)})"], "day_ms"):
        if (values[0], day_ms) not in skipped:
            yield GpuPart._make(values)


def _rows(session: Session, table: str, where: list[str], *also: str) -> Iterable[tuple[Any, ...]]:
    is_lines = table == "ledger_day"
    owner = "COALESCE(owner_id, 0)" if is_lines else "owner_id"
    named = [OF_SOME_LINES.get(name, name) if is_lines else name for name in AMOUNTS]
    sums = [f"CAST(sum({name}) AS bigint)" for name in named]
    keys = [*also, "gpu_id", owner]
    group = ", ".join(str(at + 1) for at in range(len(keys)))
    # GPU by GPU through the key: from the index of days SQLite looks up every row by itself, four times as long.
    sql = (
        f"SELECT {', '.join([*keys, *sums])} FROM gpu CROSS JOIN {table} AS part "
        f"WHERE part.gpu_id = gpu.id AND {' AND '.join(where)} GROUP BY {group}"
    )
    raw: Any = session.connection().connection.driver_connection
    # Straight from the driver: there is a row for each GPU, and the values are plain.
    cursor = raw.cursor() if session.get_bind().dialect.name == "sqlite" else raw.cursor(binary=True)
    try:
        cursor.execute(sql)
        return cursor.fetchall()  # type: ignore[no-any-return]
    finally:
        cursor.close()


def _listed(ids: Iterable[int]) -> str:
    """Our own whole numbers; 0 is no key."""
    return ", ".join(str(int(one)) for one in sorted(ids)) or "0"
