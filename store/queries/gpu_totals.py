"""Time, energy and money of single GPUs over accounting days, by owner: added up by the database from the ledger.

Weeks and days that are added up already (``ledger_week``, ``ledger_gpu_total``) are read instead of their lines; all say the same.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from store import ledger_weeks
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
Source = tuple[str, list[str]]
"""A table, and conditions on its rows."""


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
    where = [] if gpu_ids is None else [f"gpu_id IN ({_listed(gpu_ids)})"]
    every = days_of_lines(session, span)
    weeks = _weeks(session, span, touched)
    there = {day for day in every if not any(start <= day < end for start, end in weeks)}
    sources = []
    if weeks:
        sources.append(("ledger_week", [*where, f"day_ms IN ({_listed(start for start, _ in weeks)})"]))
    for first, last in _runs(every, there & hold - touched):
        sources.append(("ledger_gpu_total", [*where, f"day_ms >= {first}", f"day_ms <= {last}"]))
    if others := there - hold - touched:
        sources.append(("ledger_day", [*where, f"day_ms IN ({_listed(others)})"]))
    if sources:
        yield from map(GpuPart._make, _rows(session, sources))
    yield from _one_by_one(session, "ledger_gpu_total", where, there & hold & touched, skipped)
    yield from _one_by_one(session, "ledger_day", where, there & touched - hold, skipped)


def _weeks(session: Session, span: tuple[int, int], touched: Collection[int]) -> list[tuple[int, int]]:
    """Weeks within the span whose sums hold, without those of which some GPU is left out."""
    return [
        (start, end)
        for start, end in ledger_weeks.held(session.connection())
        if start >= span[0] and end <= span[1] and not any(start <= day < end for day in touched)
    ]


def _runs(days: Collection[int], wanted: set[int]) -> list[tuple[int, int]]:
    """First and last of each run of wanted days between which there is no other day: a span walks the key, a list hops."""
    runs = [list(run) for is_wanted, run in groupby(sorted(days), key=wanted.__contains__) if is_wanted]
    return [(run[0], run[-1]) for run in runs]


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
    source = (table, [*where, f"day_ms IN ({_listed(days)})"])
    for day_ms, *values in _rows(session, [source], "day_ms"):
        if (values[0], day_ms) not in skipped:
            yield GpuPart._make(values)


def _rows(session: Session, sources: Sequence[Source], *also: str) -> Iterable[tuple[Any, ...]]:
    """Sums of all sources together by the keys ``also``, GPU and owner: a row comes once."""
    keys = [*also, "gpu_id", "owner_id"]
    sums = [f"CAST(sum({name}) AS bigint)" for name in AMOUNTS]
    sql = (
        f"SELECT {', '.join([*keys, *sums])} FROM ({' UNION ALL '.join(map(_lines, sources))}) AS part "
        f"GROUP BY {', '.join(keys)}"
    )
    raw: Any = session.connection().connection.driver_connection
    # Straight from the driver: there is a row for each GPU, and the values are plain.
    cursor = raw.cursor() if session.get_bind().dialect.name == "sqlite" else raw.cursor(binary=True)
    try:
        cursor.execute(sql)
        return cursor.fetchall()  # type: ignore[no-any-return]
    finally:
        cursor.close()


def _lines(source: Source) -> str:
    """SQL for the rows of one source, named alike whatever the table."""
    table, where = source
    if table == "ledger_gpu_total":
        owner, amounts = "owner_id", list(AMOUNTS)
    else:
        owner = "COALESCE(owner_id, 0) AS owner_id"
        amounts = [f"{OF_SOME_LINES[name]} AS {name}" if name in OF_SOME_LINES else name for name in AMOUNTS]
    columns = ", ".join(["gpu_id", "day_ms", owner, *amounts])
    if table == "ledger_week":  # it has no key by GPU, and nearly all of it is wanted
        return f"SELECT {columns} FROM ledger_week WHERE {' AND '.join(where)}"
    # GPU by GPU through the key: from the index of days SQLite looks up every row by itself, four times as long.
    walk = ["part.gpu_id = gpu.id", *where]
    return f"SELECT {columns} FROM gpu CROSS JOIN {table} AS part WHERE {' AND '.join(walk)}"


def _listed(ids: Iterable[int]) -> str:
    """Our own whole numbers; 0 is no key."""
    return ", ".join(str(int(one)) for one in sorted(ids)) or "0"
