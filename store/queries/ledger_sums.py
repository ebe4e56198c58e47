"""Stored lines of the ledger added up by the database: whole days, by what a report groups on.

Where nothing asks for single GPUs or workloads, days that are added up already (``ledger_total``) are read instead of
their lines; where nothing asks for single days, weeks that are (``ledger_week``). All of them say the same. What asks for
engines reads the days and weeks of GPUs on which one was seen from tables of their own (``TOLD_APART``), the others as ever.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.activity import Activity
from core.money import from_micro
from core.ownership import Owner
from store import ledger_weeks
from store.ledger_amounts import IS_CORRECTION, METHOD
from store.ledger_totals import KEY
from store.models.engine import EngineRow
from store.models.ledger_engine_set import LedgerEngineSetRow
from store.models.ledger_place import LedgerPlaceRow
from store.models.ledger_rate import LedgerRateRow
from store.models.ledger_total_day import LedgerTotalDayRow
from store.models.owner import OwnerRow
from store.queries.ledger_days import days_of_lines

MOST_TERMS: Final = 5_000
"""More GPUs and days to leave out are left out one by one."""
MS_BY_ACTIVITY: Final = tuple(f"{activity.value}_ms" for activity in Activity)
USD_BY_ACTIVITY: Final = tuple(f"{activity.value}_usd" for activity in Activity)


@dataclass(frozen=True, slots=True)
class Only:
    """Lines of these only: GPUs and workloads by their keys, owners by their teams and projects; None: all."""

    gpu_ids: frozenset[int] | None = None
    teams: frozenset[str] | None = None
    workload_ids: frozenset[int] | None = None
    projects: frozenset[str] | None = None

    def pays(self, owner: Owner | None) -> bool:
        """Whether lines of that owner were asked for."""
        if self.teams is not None and (owner is None or owner.team not in self.teams):
            return False
        return self.projects is None or (owner is not None and owner.project in self.projects)


class Rate(NamedTuple):
    """Whose price it is, micro-dollars per GPU-hour, how it is billed, and the user's price (None: the catalogue's)."""

    basis: str
    micro_usd_per_hour: int
    billing: str = "on_demand"
    price_id: int | None = None


class Grid(NamedTuple):
    """Where the carbon of a line is from (all None: nowhere), and the place's other energy terms."""

    code: str | None
    year: int | None
    method: str | None
    site: str = ""
    tariff: str | None = None
    pue: float | None = None
    host_share_ratio: float | None = None
    host_share_method: str = ""
    pays_for_power: bool = False


ALL: Final = Only()
OF_MANY: Final = {"gpu_of_host": "gpu.host_id", "gpu_of_model": "gpu.model"}
"""Keys that are one GPU for all of its host or model, and what those have in common."""
STRETCH: Final = "stretch"
"""Key that is the start of one of the ``stretches``."""
ENGINES: Final = "engine_set_id"
"""Key that is the set of engines seen in the hours of a line (``engine_sets``); NULL: none."""
TOLD_APART: Final = {"ledger_day": "ledger_engine_day", "ledger_week": "ledger_engine_week"}
"""Tables of lines, and where those of GPUs that served on that day or in that week are told apart by engines."""


def line_sums(
    session: Session,
    span: tuple[int, int],
    keys: Sequence[str],
    amounts: Sequence[str],
    *,
    without: Collection[tuple[int, int]] = (),
    only: Only = ALL,
    stretches: Sequence[int] = (),
    apart: bool = False,
) -> Iterator[tuple[Any, ...]]:
    """Rows of keys, then amounts, of accounting days that begin in a span; corrections among them.

    Args:
        session: as ever.
        span: starts of accounting days, inclusive and exclusive.
        keys: columns of ``ledger_day``, ``is_correction``, ``ENGINES``, and keys of ``OF_MANY``. A combination may come more than once.
        amounts: columns of whole numbers to add up, and ``energy_method`` (joined). NULL: unknown in all of them.
        without: GPU and accounting day of lines to leave out.
        only: which lines.
        stretches: starts of the stretches of days that the key ``stretch`` tells apart, ascending.
        apart: weeks and days as they are stored, for keys that leave hardly any to add up: half the time.
    """
    asked = _Asked(keys, amounts, _only(session, only), tuple(stretches), _walks(only), apart)
    table, starts, left = _kept(session, span, asked, only, {day for _, day in without})
    if starts:
        for source, also in _sources(table, asked):
            yield from _rows(session, source, asked, [f"day_ms IN ({_listed(starts)})", *also])
    if left is None:
        yield from _of_lines(session, asked, _between(span), without)
    elif left:
        yield from _of_lines(session, asked, [f"day_ms IN ({_listed(left)})"], without)


@dataclass(frozen=True, slots=True)
class _Asked:
    keys: Sequence[str]
    amounts: Sequence[str]
    where: Sequence[str]
    stretches: Sequence[int] = ()
    walks: bool = False
    apart: bool = False


def engine_sets(session: Session) -> dict[int, tuple[int, ...]]:
    """Keys of the engines of every set that a line may name."""
    row = LedgerEngineSetRow
    return {key: tuple(json.loads(told)) for key, told in session.execute(select(row.id, row.engine_ids))}


def engines(session: Session) -> dict[int, tuple[str, str]]:
    """Every engine: its name, and what people know it by: its model, where that is told."""
    row = EngineRow
    found = session.execute(select(row.id, row.engine, row.model))
    return {key: (name, model or name) for key, name, model in found}


def rates(session: Session) -> dict[int, Rate]:
    """Every rate that a line may name."""
    row = LedgerRateRow
    return {
        key: Rate(basis, _micro(usd), billing, price_id)
        for key, basis, usd, billing, price_id in session.execute(
            select(row.id, row.basis, row.usd_per_gpu_hour, row.billing, row.price_id)
        )
    }


def grids(session: Session) -> dict[int, Grid]:
    """Where the carbon of every place that a line may name is from, with its other terms."""
    row = LedgerPlaceRow
    terms = (row.site, row.tariff, row.pue, row.host_share_ratio, row.host_share_method, row.pays_for_power)
    return {
        key: Grid(*of)
        for key, *of in session.execute(
            select(row.id, row.carbon_code, row.carbon_year, row.carbon_method, *terms)
        )
    }


def owners(session: Session) -> dict[int, Owner]:
    """Every owner that a line may name."""
    row = OwnerRow
    found = session.execute(select(row.id, row.team, row.project, row.cost_centre))
    return {key: Owner(team, project, centre) for key, team, project, centre in found}


def _micro(usd: Decimal) -> int:
    return int(usd / from_micro(1))


def _kept(
    session: Session, span: tuple[int, int], asked: "_Asked", only: Only, touched: Collection[int]
) -> tuple[str, list[int], Collection[int] | None]:
    """Where sums are kept, of which days or weeks by their starts, and the days whose lines are left (None: the whole span)."""
    if only.gpu_ids is None and only.workload_ids is None and set(asked.keys) <= {*KEY, STRETCH}:
        days = _added_up(session, span, touched)
        return "ledger_total", days, days_of_lines(session, span) - set(days) if days else None
    if "day_ms" in asked.keys:
        return "", [], None
    weeks = [
        (start, end)
        for start, end in ledger_weeks.held(session.connection())
        if start >= span[0]
        and end <= span[1]
        and not any(start <= day < end for day in touched)
        and not any(start < border < end for border in asked.stretches)
    ]
    if not weeks:
        return "", [], None
    there = days_of_lines(session, span)
    left = {day for day in there if not any(start <= day < end for start, end in weeks)}
    return "ledger_week", [start for start, _ in weeks], left


def _walks(only: Only) -> bool:
    """Whether lines are read GPU by GPU: half the time of the index of days, whose rows lie all over the table."""
    return only.gpu_ids is None and only.teams is None and only.projects is None


def _added_up(session: Session, span: tuple[int, int], without: Collection[int]) -> list[int]:
    day_ms = LedgerTotalDayRow.day_ms
    statement = select(day_ms).where(day_ms >= span[0], day_ms < span[1]).order_by(day_ms)
    return [day for day in session.execute(statement).scalars() if day not in without]


def _between(span: tuple[int, int]) -> list[str]:
    return [f"day_ms >= {int(span[0])}", f"day_ms < {int(span[1])}"]


def _sources(table: str, asked: "_Asked") -> list[tuple[str, list[str]]]:
    """Tables that together say what ``table`` does, each with conditions of its own."""
    if ENGINES not in asked.keys:
        return [(table, [])]
    apart = TOLD_APART[table]
    told = f"SELECT 1 FROM {apart} AS told WHERE told.day_ms = part.day_ms AND told.gpu_id = part.gpu_id"
    return [(apart, []), (table, [f"NOT EXISTS ({told})"])]


def _of_lines(
    session: Session, asked: "_Asked", where: Sequence[str], without: Collection[tuple[int, int]]
) -> Iterator[tuple[Any, ...]]:
    out = _left_out(without)
    skipped = frozenset(without)
    by_gpu = replace(asked, keys=["gpu_id", "day_ms", *asked.keys])
    for source, also in _sources("ledger_day", asked):
        if out is not None:
            yield from _rows(session, source, asked, [*where, *out, *also])
            continue
        for gpu_id, day_ms, *row in _rows(session, source, by_gpu, [*where, *also]):
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
    paying = None
    if only.teams is not None or only.projects is not None:
        paying = {key for key, owner in owners(session).items() if only.pays(owner)}
    columns = {"gpu_id": only.gpu_ids, "owner_id": paying, "workload_id": only.workload_ids}
    return [f"{name} IN ({_listed(ids)})" for name, ids in columns.items() if ids is not None]


def _listed(ids: Iterable[int]) -> str:
    """Our own whole numbers; 0 is no key."""
    return ", ".join(str(int(one)) for one in sorted(ids)) or "0"


def _column(asked: "_Asked", table: str, name: str) -> tuple[str, str]:
    """A key as it is selected, and what rows are grouped on for it."""
    if name in OF_MANY:
        return "min(gpu_id)", OF_MANY[name]
    if name == STRETCH:
        name = _stretch(asked.stretches)
    elif name == ENGINES and table in TOLD_APART:
        name = "CAST(NULL AS integer)"
    elif name == "is_correction":
        name = _IS_CORRECTION.get(table, name)
    return name, name


_IS_CORRECTION: Final = {"ledger_day": IS_CORRECTION, "ledger_engine_day": "0"}
"""Where it is no column: what is told apart on a day is lines and corrections together."""


def _stretch(starts: Sequence[int]) -> str:
    """The last of the starts that is not after the day: by halves, a year has 53 weeks."""
    if len(starts) < 2:
        return str(int(starts[0])) if starts else "0"
    half = len(starts) // 2
    return f"CASE WHEN day_ms < {int(starts[half])} THEN {_stretch(starts[:half])} ELSE {_stretch(starts[half:])} END"


_WEEKS: Final = frozenset({"ledger_week", TOLD_APART["ledger_week"]})


def _rows(session: Session, table: str, asked: "_Asked", where: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    is_apart = asked.apart and (table in _WEEKS or "day_ms" in asked.keys)
    is_added_up = is_apart or (table == "ledger_total" and set(asked.keys) == set(KEY))
    columns = [_column(asked, table, name) for name in asked.keys]
    named = [column for column, _ in columns]
    for name in asked.amounts:
        if is_added_up:
            named.append(name)
        else:
            named.append(METHOD if name == "energy_method" else f"CAST(sum({name}) AS bigint)")
    group, source, conditions = "", f"{table} AS part", [*where, *asked.where]
    if asked.keys and not is_added_up:
        # By place in the list where it is there: PostgreSQL takes a lone number for such a place too.
        of = [common if column != common else str(at + 1) for at, (column, common) in enumerate(columns)]
        group = f" GROUP BY {', '.join(of)}"
    names_gpus = not OF_MANY.keys().isdisjoint(asked.keys)
    if table == "ledger_day" and (asked.walks or names_gpus):
        # CROSS: SQLite keeps that order of tables.
        source = "gpu CROSS JOIN ledger_day AS part"
        conditions.insert(0, "part.gpu_id = gpu.id")
    elif names_gpus:
        source = f"{table} AS part CROSS JOIN gpu"
        conditions.append("gpu.id = part.gpu_id")
    sql = f"SELECT {', '.join(named)} FROM {source} WHERE {' AND '.join(conditions)}{group}"
    raw: Any = session.connection().connection.driver_connection
    # Straight from the driver: there may be a row for each GPU and day, and the values are plain.
    cursor = raw.cursor() if session.get_bind().dialect.name == "sqlite" else raw.cursor(binary=True)
    try:
        cursor.execute(sql)
        yield from cursor.fetchall()
    finally:
        cursor.close()
