"""What reports add up: the ledger's lines of a window with all that they are grouped on.

Whole days come from the database, added up there as far as the question allows; parts of days, days that wait to be
priced and questions by the hour from their hours (``api.resources.ledger_reading``). Both give the same whole numbers.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from api.resources.ledger_hours import PricedLine, priced_lines
from api.resources.ledger_reading import Reading, lines_on_the_fly, reading
from api.resources.scope import Scope
from core.money import to_micro
from core.ownership import Owner
from core.readings import GpuIdentity, WorkloadKey
from core.samples import EnergyMethod
from core.units import HOUR_MS
from ledger.calendar import Calendar
from ledger.line import ACTIVITIES
from store.known import known_gpus
from store.ledger_reader import EnginesByHour, engines_by_hour
from store.queries import ledger_sums
from store.queries.gpu_uuids import gpu_uuids
from store.queries.ledger_sums import ALL, ENGINES, MS_BY_ACTIVITY, STRETCH, USD_BY_ACTIVITY, Grid, Only, Rate
from store.queries.workloads import workload_keys

TIME: Final = ("known_ms", "covered_ms")
SPENT_MS: Final = MS_BY_ACTIVITY
SPENT_USD: Final = USD_BY_ACTIVITY
USAGE: Final = (*TIME, "allocated_ms", "active_ms", "effective_ms", "effective_unknown_ms", *SPENT_MS)
ENERGY: Final = ("known_ms", "energy_mj", "energy_covered_ms", "energy_method")
MONEY: Final = (
    *TIME,
    "energy_mj",
    "energy_covered_ms",
    "site_energy_mj",
    "cost_usd",
    "idle_cost_usd",
    "energy_usd",
    "billed_energy_usd",
    "carbon_ug",
)
"""Columns of the ledger that usage, energy and costs are made of."""
Amounts = dict[str, Any]
"""Whole numbers by column; None: unknown. ``energy_method`` among them is a text."""


class Part(NamedTuple):
    """What the lines of a sum have in common; None also where nobody asked.

    Attributes:
        at_ms: start of the accounting day (of a longer stretch: of one in it), or of the hour. gpu: the card (of a host
            or a model: one of its cards). kind: of the line.
        rate: None where ``detail`` was asked: unpriced. grid: where its carbon is from.
        is_correction: booked after its month was closed. engines: keys of those seen in its hours, which share it;
            ``api.resources.report_engines`` makes a part for each of them: engine, its name and label.
    """

    at_ms: int | None = None
    gpu: GpuIdentity | None = None
    kind: str | None = None
    workload: WorkloadKey | None = None
    owner: Owner | None = None
    rate: Rate | None = None
    grid: Grid | None = None
    is_correction: bool = False
    engines: tuple[int, ...] = ()
    engine: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Need:
    """What a question wants told apart, and the columns it adds up.

    Attributes:
        dimensions: of ``gpu``, ``host``, ``model``, ``kind``, ``workload``, ``owner``, ``day``, ``week``, ``month``,
            ``hour``, ``engine``, ``money`` (rate, place, kind, correction). Parts may be finer: a host's or a model's is of one of
            its GPUs, a week's of a day in it.
    """

    dimensions: frozenset[str]
    amounts: tuple[str, ...]
    only: Only = ALL

    def has(self, dimension: str) -> bool:
        """Whether lines are told apart by it."""
        return dimension in self.dimensions


def parts(scope: Scope, need: Need) -> Iterator[tuple[Part, Amounts]]:
    """Sums of the window's lines; one part may come more than once."""
    if need.has("hour"):
        yield from hourly(scope, need)
        return
    found = _narrowed(reading(scope, by_engine=need.has("engine")), need.only)
    if found.stored is not None:
        yield from _stored(scope, found, need)
    seen = _engines_seen(scope, need, found.on_the_fly)
    yield from _added(scope, need, _fitting(lines_on_the_fly(scope, found), need.only), seen)


def hourly(scope: Scope, need: Need) -> Iterator[tuple[Part, Amounts]]:
    """The same, all priced on the fly, by the hour."""
    window = scope.window
    start_ms = window.from_ms - window.from_ms % HOUR_MS
    lines = priced_lines(scope, start_ms, window.to_ms, gpu_ids=need.only.gpu_ids)
    seen = _engines_seen(scope, need, [(start_ms, window.to_ms, need.only.gpu_ids)])
    yield from _added(scope, need, _fitting(lines, need.only), seen)


def _engines_seen(
    scope: Scope, need: Need, spans: Iterable[tuple[int, int, frozenset[int] | None]]
) -> Mapping[int, EnginesByHour]:
    """Engines seen in spans of hours of GPUs (None: all), by GPU and hour; nothing where they are not asked for."""
    found: dict[int, dict[int, tuple[int, ...]]] = {}
    for start_ms, end_ms, gpu_ids in spans if need.has("engine") else ():
        for gpu_id, of in engines_by_hour(scope.session.connection(), gpu_ids, start_ms, end_ms).items():
            found.setdefault(gpu_id, {}).update(of)
    return found


def _narrowed(found: Reading, only: Only) -> Reading:
    """Without GPUs that nobody asked for."""
    if only.gpu_ids is None:
        return found
    kept = [
        (start, end, only.gpu_ids if gpu_ids is None else only.gpu_ids & gpu_ids)
        for start, end, gpu_ids in found.on_the_fly
    ]
    return replace(found, on_the_fly=tuple(one for one in kept if one[2]))


def _fitting(lines: Iterable[PricedLine], only: Only) -> Iterator[PricedLine]:
    """Lines of the owners and workloads that were asked for."""
    for one in lines:
        if not only.pays(one.owner):
            continue
        if only.workload_ids is None or one.line.workload in only.workload_ids:
            yield one


def _stored(scope: Scope, found: Reading, need: Need) -> Iterator[tuple[Part, Amounts]]:
    keys, rows = _rows(scope, found, need)
    names = _Names(scope, rows, keys)
    width = len(keys)
    for row in rows:
        yield names.part(row), dict(zip(need.amounts, row[width:], strict=True))


def _rows(
    scope: Scope, found: Reading, need: Need, *, apart: bool = False
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Keys of stored sums (or of stored rows ``apart``), and rows of these and of the amounts."""
    assert found.stored is not None
    keys = _keys(need)
    rows = ledger_sums.line_sums(
        scope.session,
        found.stored,
        keys,
        need.amounts,
        without=found.without,
        only=need.only,
        stretches=_stretches(scope, need, found.stored) if STRETCH in keys else (),
        apart=apart,
    )
    width = len(keys)
    return keys, [row for row in rows if row[width] is not None]  # None: a sum over no line at all


OfGpu = tuple[str, int | None, Part, Sequence[Any]]
"""A GPU's UUID, ``at_ms`` where time is told apart, what else its lines have in common, and their amounts in order."""


def of_gpus(scope: Scope, need: Need) -> Iterator[OfGpu]:
    """The same as ``parts`` for a need of ``gpu``, bare: a fleet has tens of thousands of them. One may come many times.

    Corrections are not told from what they correct. What has the same in common comes with the same object for it.
    """
    found = reading(scope)
    common: dict[Part, Part] = {}
    if found.stored is not None:
        keys, rows = _rows(scope, found, need, apart=need.has("day") or need.has("week"))
        first, width = keys.index("gpu_id"), len(keys)
        names = _Names(scope, rows, [*keys[:first], "", *keys[first + 1 :]])
        uuids = gpu_uuids(scope.session)
        known: dict[Sequence[Any], Part] = {}
        for row in rows:
            rest = known.get(row[first + 1 : width])
            if rest is None:
                rest = known[row[first + 1 : width]] = _without_gpu(names.part(row), common)
            yield uuids[row[first]], row[0] if first else None, rest, row[width:]
    lines = _fitting(lines_on_the_fly(scope, _narrowed(found, need.only)), need.only)
    yield from bare(_added(scope, need, lines, {}), need.amounts, common)


def bare(
    found: Iterable[tuple[Part, Amounts]], names: Sequence[str], common: dict[Part, Part] | None = None
) -> Iterator[OfGpu]:
    """Parts of GPUs as ``of_gpus`` gives them."""
    known: dict[Part, Part] = {} if common is None else common
    for part, amounts in found:
        uuid = "" if part.gpu is None else part.gpu.gpu_uuid
        yield uuid, part.at_ms, _without_gpu(part, known), [amounts[name] for name in names]


def _without_gpu(part: Part, common: dict[Part, Part]) -> Part:
    rest = part._replace(at_ms=None, gpu=None, is_correction=False)
    return common.setdefault(rest, rest)


_COLUMNS: Final = (
    ("kind", ("kind",)),
    ("workload", ("workload_id", "kind")),
    ("owner", ("owner_id",)),
    ("engine", (ENGINES,)),
    ("money", ("kind", "rate_id", "place_id", "is_correction")),
)
"""Columns that tell lines apart, by what was asked."""


_TIMES: Final = ("day", "week", "month")
_CARDS: Final = {"gpu": "gpu_id", "host": "gpu_of_host", "model": "gpu_of_model"}


def _keys(need: Need) -> list[str]:
    """Columns that tell the lines apart; what asks for two lengths of time, or for host and model, gets days and GPUs."""
    times = [name for name in _TIMES if need.has(name)]
    cards = [name for name in _CARDS if need.has(name)]
    keys = []
    if times:
        keys.append("day_ms" if len(times) > 1 or times == ["day"] else STRETCH)
    if cards:
        keys.append("gpu_id" if len(cards) > 1 else _CARDS[cards[0]])
    keys += [column for dimension, columns in _COLUMNS for column in columns if need.has(dimension)]
    return list(dict.fromkeys(keys))


def _stretches(scope: Scope, need: Need, span: tuple[int, int]) -> list[int]:
    """Where the weeks or months of a span of accounting days begin; not before the span does."""
    calendar = Calendar(scope.settings.accounting_time_zone)
    spans = calendar.weeks if need.has("week") else calendar.months
    return [max(one.start_ms, span[0]) for one in spans(span[0], span[1])]


class _Names:
    """From keys of the database to what they stand for."""

    def __init__(self, scope: Scope, rows: Sequence[Sequence[Any]], keys: Sequence[str]) -> None:
        session = scope.session
        at = {name: keys.index(name) for name in keys}
        self._places: list[tuple[int, int, Mapping[Any, Any] | None]] = []
        for column, attribute in _ATTRIBUTES.items():
            if column not in at:
                continue
            table: Mapping[Any, Any] | None = None
            match column:
                case "gpu_id" | "gpu_of_host" | "gpu_of_model":
                    table = {gpu.id: gpu.identity for gpu in known_gpus(session.connection())}
                case "workload_id":
                    table = _workloads(scope, sorted({row[at[column]] for row in rows} - {None}))
                case "owner_id":
                    table = ledger_sums.owners(session)
                case "rate_id":
                    table = ledger_sums.rates(session)
                case "place_id":
                    table = ledger_sums.grids(session)
                case "engine_set_id":
                    table = ledger_sums.engine_sets(session)
            self._places.append((at[column], Part._fields.index(attribute), table))

    def part(self, row: Sequence[Any]) -> Part:
        """What the keys of a row stand for."""
        told: list[Any] = [*_NOTHING]
        for at, place, table in self._places:
            key = row[at]
            if key is not None:
                told[place] = key if table is None else table.get(key)
        return Part._make(told)


_NOTHING: Final = Part()
_ATTRIBUTES: Final = {
    "day_ms": "at_ms",
    STRETCH: "at_ms",
    "kind": "kind",
    "is_correction": "is_correction",
    "gpu_id": "gpu",
    "gpu_of_host": "gpu",
    "gpu_of_model": "gpu",
    "workload_id": "workload",
    "owner_id": "owner",
    "rate_id": "rate",
    "place_id": "grid",
    ENGINES: "engines",
}
"""Columns, and what of a part they tell."""
IDS_AT_ONCE: Final = 10_000


def _workloads(scope: Scope, ids: Sequence[int]) -> dict[int, WorkloadKey]:
    found: dict[int, WorkloadKey] = {}
    for first in range(0, len(ids), IDS_AT_ONCE):
        found |= workload_keys(scope.session, ids[first : first + IDS_AT_ONCE])
    return found


@dataclass(slots=True)
class _Told:
    """Rates and grids of prices and places that came by, by identity: hashing them costs more than adding a line."""

    rates: dict[int, tuple[Any, Rate]] = field(default_factory=dict)
    grids: dict[int, tuple[Any, Grid]] = field(default_factory=dict)

    def rate(self, price: Any) -> Rate | None:
        if price is None:
            return None
        if id(price) not in self.rates:
            told = Rate(price.basis, to_micro(price.usd_per_gpu_hour), price.billing, price.price_id)
            self.rates[id(price)] = (price, told)
        return self.rates[id(price)][1]

    def grid(self, place: Any) -> Grid:
        if id(place) not in self.grids:
            told = Grid(
                place.carbon_code,
                place.carbon_year,
                place.carbon_method,
                place.site,
                place.tariff,
                place.pue,
                place.host_share_ratio,
                place.host_share_method,
                place.pays_for_power,
            )
            self.grids[id(place)] = (place, told)
        return self.grids[id(place)][1]


def _added(
    scope: Scope, need: Need, lines: Iterable[PricedLine], seen: Mapping[int, EnginesByHour]
) -> Iterator[tuple[Part, Amounts]]:
    """Lines priced on the fly, added up as far as the question allows; ``seen``: engines of GPUs where they are asked for."""
    calendar = Calendar(scope.settings.accounting_time_zone)
    told = _Told()
    plain = [name for name in need.amounts if name not in _SPENT]
    spent = [(name, *_SPENT[name]) for name in need.amounts if name in _SPENT]
    sums: dict[Part, Amounts] = defaultdict(lambda: dict.fromkeys(need.amounts))
    day, gpu = any(need.has(name) for name in _TIMES), any(need.has(name) for name in _CARDS)
    hour, workload = need.has("hour"), need.has("workload")
    owner, money = need.has("owner"), need.has("money")
    kind = need.has("kind") or workload or money
    for one in lines:
        part = Part(
            one.hour_ms if hour else calendar.day_at(one.hour_ms).start_ms if day else None,
            one.gpu.identity if gpu else None,
            one.line.kind if kind else None,
            one.workload if workload else None,
            one.owner if owner else None,
            told.rate(one.price) if money else None,
            told.grid(one.place) if money else None,
            engines=seen[one.gpu.id].get(one.hour_ms, ()) if one.gpu.id in seen else (),
        )
        amounts = sums[part]
        for name in plain:
            value = getattr(one.line, name)
            if value is not None:
                known = amounts[name]
                amounts[name] = value if known is None else added(name, known, value)
        for name, number, at in spent:
            for of in one.line.spent:
                figure = of[at]
                if of[0] == number and figure is not None:
                    amounts[name] = (amounts[name] or 0) + figure
    yield from sums.items()


_SPENT: Final = {name: (number, 1) for number, name in enumerate(SPENT_MS)} | {
    name: (number, 2) for number, name in enumerate(SPENT_USD)
}
assert len(ACTIVITIES) == len(SPENT_MS)


def added(name: str, one: Any, other: Any) -> Any:
    """Two known amounts of a column as one."""
    if name != "energy_method":
        return one + other
    return one if one == other else EnergyMethod.MIXED.value
