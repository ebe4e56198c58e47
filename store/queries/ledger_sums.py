"""Stored lines of the ledger added up by the database: whole days, by what a report groups on.

Where nothing asks for single GPUs or workloads, days that are added up already (``ledger_total``) are read instead of
their lines; both say the same.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.activity import Activity
from core.money import from_micro
from core.ownership import Owner
from store.ledger_totals import IS_CORRECTION, KEY, METHOD
from store.models.ledger_place import LedgerPlaceRow
from store.models.ledger_rate import LedgerRateRow
from store.models.ledger_total_day import LedgerTotalDayRow
from store.models.owner import OwnerRow

MOST_TERMS: Final = 5_000
"""More GPUs and days to leave out are left out one by one."""
MS_BY_ACTIVITY: Final = tuple(f"{activity.value}_ms" for activity in Activity)
USD_BY_ACTIVITY: Final = tuple(f"{activity.value}_usd" for activity in Activity)


@dataclass(frozen=True, slots=True)
class Only:
    """Lines of these only: GPUs and workloads by their keys, owners by their teams; None: all."""

    gpu_ids: frozenset[int] | None = None
    teams: frozenset[str] | None = None
    workload_ids: frozenset[int] | None = None


class Rate(NamedTuple):
    """Whose price it is, and micro-dollars per GPU-hour."""

    basis: str
    micro_usd_per_hour: int


class Grid(NamedTuple):
    """Where the carbon of a line is from; all None: nowhere."""

    code: str | None
    year: int | None
    method: str | None


ALL: Final = Only()


def line_sums(
    session: Session,
    span: tuple[int, int],
    keys: Sequence[str],
    amounts: Sequence[str],
    *,
    without: Collection[tuple[int, int]] = (),
    only: Only = ALL,
) -> Iterator[tuple[Any, ...]]:
    """Rows of keys, then amounts, of accounting days that begin in a span; corrections among them.

    Args:
        session: as ever.
        span: starts of accounting days, inclusive and exclusive.
        keys: columns of ``ledger_day`` and ``is_correction``. A combination may come more than once.
        amounts: columns of whole numbers to add up, and ``energy_method`` (joined). NULL: unknown in all of them.
        without: GPU and accounting day of lines to leave out.
        only: which lines.
    """
    asked = _Asked(keys, amounts, _only(session, only))
    days = _added_up(session, span, {day for _, day in without}) if _may_use_totals(keys, only) else []
    left = []
    if days:
        totals = f"day_ms IN ({_listed(days)})"
        yield from _rows(session, "ledger_total", asked, [totals])
        left = [f"NOT {totals}"]
        if not _any_left(session, span, left[0]):
            return
    yield from _of_lines(session, asked, [*_between(span), *left], without)


@dataclass(frozen=True, slots=True)
class _Asked:
    keys: Sequence[str]
    amounts: Sequence[str]
    where: Sequence[str]


def rates(session: Session) -> dict[int, Rate]:
    """Every rate that a line may name."""
    row = LedgerRateRow
    return {
        key: Rate(basis, _micro(usd))
        for key, basis, usd in session.execute(select(row.id, row.basis, row.usd_per_gpu_hour))
    }


def grids(session: Session) -> dict[int, Grid]:
    """Where the carbon of every place that a line may name is from."""
    row = LedgerPlaceRow
    return {
        key: Grid(code, year, method)
        for key, code, year, method in session.execute(
            select(row.id, row.carbon_code, row.carbon_year, row.carbon_method)
        )
    }


def owners(session: Session) -> dict[int, Owner]:
    """Every owner that a line may name."""
    row = OwnerRow
    found = session.execute(select(row.id, row.team, row.project, row.cost_centre))
    return {key: Owner(team, project, centre) for key, team, project, centre in found}


def _micro(usd: Decimal) -> int:
    return int(usd / from_micro(1))


def _may_use_totals(keys: Sequence[str], only: Only) -> bool:
    return only.gpu_ids is None and only.workload_ids is None and set(keys) <= set(KEY)


def _added_up(session: Session, span: tuple[int, int], without: Collection[int]) -> list[int]:
    day_ms = LedgerTotalDayRow.day_ms
    statement = select(day_ms).where(day_ms >= span[0], day_ms < span[1]).order_by(day_ms)
    return [day for day in session.execute(statement).scalars() if day not in without]


def _between(span: tuple[int, int]) -> list[str]:
    return [f"day_ms >= {int(span[0])}", f"day_ms < {int(span[1])}"]


def _any_left(session: Session, span: tuple[int, int], left: str) -> bool:
    where = " AND ".join([*_between(span), left])
    return (
        session.connection().exec_driver_sql(f"SELECT 1 FROM ledger_day WHERE {where} LIMIT 1").first()
        is not None
    )


def _of_lines(
    session: Session, asked: "_Asked", where: Sequence[str], without: Collection[tuple[int, int]]
) -> Iterator[tuple[Any, ...]]:
    out = _left_out(without)
    if out is not None:
        yield from _rows(session, "ledger_day", asked, [*where, *out])
        return
    skipped = frozenset(without)
    by_gpu = _Asked(["gpu_id", "day_ms", *asked.keys], asked.amounts, asked.where)
    for gpu_id, day_ms, *row in _rows(session, "ledger_day", by_gpu, where):
        if (gpu_id, day_ms) not in skipped:
            yield tuple(row)


def _left_out(without: Collection[tuple[int, int]]) -> list[str] | None:
    """Conditions that leave GPUs' days out: days of the same GPUs together; None where that is too long."""
    by_day: dict[int, set[int]] = {}
    for gpu_id, day_ms in without:
        by_day.setdefault(day_ms, set()).add(gpu_id)
    together: dict[frozenset[int], list[int]] = {}
    for day_ms, gpu_ids in by_day.items():
        together.setdefault(frozenset(gpu_ids), []).append(day_ms)
    if sum(len(gpu_ids) + len(days) for gpu_ids, days in together.items()) > MOST_TERMS:
        return None
    return [
        f"NOT (day_ms IN ({_listed(days)}) AND gpu_id IN ({_listed(gpu_ids)}))"
        for gpu_ids, days in together.items()
    ]


def _only(session: Session, only: Only) -> list[str]:
    teams = None
    if only.teams is not None:
        teams = {key for key, owner in owners(session).items() if owner.team in only.teams}
    columns = {"gpu_id": only.gpu_ids, "owner_id": teams, "workload_id": only.workload_ids}
    return [f"{name} IN ({_listed(ids)})" for name, ids in columns.items() if ids is not None]


def _listed(ids: Iterable[int]) -> str:
    """Our own whole numbers; 0 is no key."""
    return ", ".join(str(int(one)) for one in sorted(ids)) or "0"


def _rows(session: Session, table: str, asked: "_Asked", where: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    is_added_up = table == "ledger_total" and set(asked.keys) == set(KEY)
    named = list(asked.keys)
    if table == "ledger_day":
        named = [IS_CORRECTION if name == "is_correction" else name for name in named]
    for name in asked.amounts:
        if is_added_up:
            named.append(name)
        else:
            named.append(METHOD if name == "energy_method" else f"CAST(sum({name}) AS bigint)")
    group = ""
    if asked.keys and not is_added_up:
        group = f" GROUP BY {', '.join(str(at + 1) for at in range(len(asked.keys)))}"
    sql = f"SELECT {', '.join(named)} FROM {table} WHERE {' AND '.join([*where, *asked.where])}{group}"
    raw: Any = session.connection().connection.driver_connection
    # Straight from the driver: there may be a row for each GPU and day, and the values are plain.
    cursor = raw.cursor() if session.get_bind().dialect.name == "sqlite" else raw.cursor(binary=True)
    try:
        cursor.execute(sql)
        yield from cursor.fetchall()
    finally:
        cursor.close()
