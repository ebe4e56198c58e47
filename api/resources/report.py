"""Reports: the ledger of a window by one or two keys. Usage, energy, costs, funnel, workloads and pages are made of it."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar, overload

from api.resources.by import By, Keys
from api.resources.report_cuts import divided, energy_by_activity, time_by_activity
from api.resources.report_engines import by_engine
from api.resources.report_filters import NO_FILTERS, Filters, namespace_of, workload_text
from api.resources.report_parts import SPENT_MS, SPENT_USD, Amounts, Need, Part, bare, of_gpus, parts
from api.resources.report_sum import LineSum, Sums, in_order
from api.resources.scope import Scope
from api.words import ACTIVITY, workload_kind
from core.activity import Activity
from core.clock import from_ms
from core.readings import GpuIdentity, WorkloadKey
from core.units import HOUR_MS
from ledger.calendar import Calendar
from store.known import known_gpus
from store.queries.activity_power import watts_by_activity

UNOWNED: Final = "unowned"
"""Label of what no owner rule claims; its key is null."""
NOT_ATTRIBUTED: Final = "not attributed"
NOT_HELD: Final = "not held"
HOLDER_UNKNOWN: Final = "held, by whom is not known"
GAP: Final = "gap"
NO_USER: Final = "no known user"
NO_NAMESPACE: Final = "no namespace"
"""Labels of time that nobody held and of time whose holder has none: one group, its key is null."""
KINDS: Final = {"workload": "held", "unattributed": HOLDER_UNKNOWN, "idle": NOT_HELD, "gap": GAP}
DIMENSION: Final = {
    By.GPU: "gpu",
    By.HOST: "host",
    By.MODEL: "model",
    By.WORKLOAD: "workload",
    By.USER: "workload",
    By.NAMESPACE: "workload",
    By.ENGINE: "engine",
    By.OWNER: "owner",
    By.PROJECT: "owner",
    By.COST_CENTRE: "owner",
    By.KIND: "kind",
    By.ACTIVITY: "activity",
    By.HOUR: "hour",
    By.DAY: "day",
    By.WEEK: "week",
    By.MONTH: "month",
}
Name = tuple[str | None, str]
"""A key and its label; key None: cannot be said."""
Each = Callable[[tuple[str | None, ...], Part, Amounts], None]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of the ledger.

    Attributes:
        keys: to group on. amounts: columns to add up. money: with prices, grids, gaps, corrections.
        extra: further dimensions that ``each`` wants told apart.
    """

    keys: Keys
    amounts: tuple[str, ...]
    money: bool = False
    filters: Filters = NO_FILTERS
    extra: frozenset[str] = frozenset()


def report(scope: Scope, question: Question, each: Each | None = None) -> Sums:
    """The window's lines by the keys, in order; ``each`` is told every part with its keys."""
    names = [_namer(key, Calendar(scope.settings.accounting_time_zone)) for key in question.keys]
    sums: Sums = {}
    for part, amounts, activity in _cut(scope, question):
        named = [name(part, activity) for name in names]
        key = tuple(one[0] for one in named)
        found = sums.get(key)
        if found is None:
            found = sums[key] = LineSum(" · ".join(one[1] for one in named))
        found.add(part, amounts)
        if each is not None:
            each(key, part, amounts)
    if question.keys == (By.WORKLOAD,) and (None,) in sums:
        nobody = sums[None,]
        nobody.label = KINDS[next(iter(nobody.kinds))] if len(nobody.kinds) == 1 else NOT_ATTRIBUTED
    return {key: sums[key] for key in in_order(list(sums))}


R = TypeVar("R")


class Rows(Sequence[R]):
    """Rows of a report, each made when it is looked at: of a long report a page needs few."""

    def __init__(self, sums: Sums, row_of: Callable[[tuple[str | None, ...], LineSum], R]) -> None:
        self._sums = list(sums.items())
        self._row_of = row_of

    def __len__(self) -> int:
        return len(self._sums)

    @overload
    def __getitem__(self, at: int) -> R: ...
    @overload
    def __getitem__(self, at: slice) -> list[R]: ...
    def __getitem__(self, at: int | slice) -> R | list[R]:
        if isinstance(at, slice):
            return [self._row_of(key, one) for key, one in self._sums[at]]
        return self._row_of(*self._sums[at])


def _cut(scope: Scope, question: Question) -> Iterator[tuple[Part, Amounts, Activity | None]]:
    keys = set(question.keys)
    dimensions = {DIMENSION[key] for key in keys} | question.extra
    if question.money:
        dimensions.add("money")
    need = Need(frozenset(dimensions), question.amounts, question.filters.only(scope.session))
    if By.ACTIVITY in keys:
        yield from _cut_by_activity(scope, question, need)
        return
    for part, values in _parts(scope, need):
        yield part, values, None


def _parts(scope: Scope, need: Need) -> Iterator[tuple[Part, Amounts]]:
    found = parts(scope, need)
    return by_engine(scope, need, found) if need.has("engine") else found


def _cut_by_activity(
    scope: Scope, question: Question, need: Need
) -> Iterator[tuple[Part, Amounts, Activity | None]]:
    """Time and money from all lines together, energy from those of each GPU: what it is divided by is its own."""
    spent = (*SPENT_MS, *SPENT_USD) if question.money else SPENT_MS
    time = replace(need, dimensions=need.dimensions | {"kind"}, amounts=spent)
    if not _EFFECTIVE.isdisjoint(need.amounts):
        # What of mixed and busy time was effective is told of each GPU.
        time = replace(time, dimensions=time.dimensions | {"gpu"}, amounts=(*spent, *_WITH_TIME))
    seen: set[Activity] = set()
    for part, values in _settled(_parts(scope, time)):
        for activity, cut in time_by_activity(part, values):
            seen.add(activity)
            yield part, cut, activity
    if "energy_mj" not in need.amounts:
        return
    energy = replace(need, dimensions=need.dimensions | {"kind", "gpu"}, amounts=divided(seen))
    of_each = bare(_parts(scope, energy), energy.amounts) if energy.has("engine") else of_gpus(scope, energy)
    watts = watts_by_activity(scope.session, scope.window, seen)
    gpus: dict[str, GpuIdentity] = {}
    if not {"gpu", "host", "model"}.isdisjoint(need.dimensions):
        gpus = {gpu.identity.gpu_uuid: gpu.identity for gpu in known_gpus(scope.session.connection())}
    asked = frozenset(need.amounts)
    for uuid, at_ms, rest, activity, cut in energy_by_activity(of_each, watts, seen, by_gpu=bool(gpus)):
        part = rest._replace(at_ms=at_ms, gpu=gpus.get(uuid))
        yield part, {name: value for name, value in cut.items() if name in asked}, activity


_EFFECTIVE: Final = frozenset({"effective_ms", "effective_unknown_ms"})
_WITH_TIME: Final = ("allocated_ms", "active_ms", *sorted(_EFFECTIVE))


def _settled(found: Iterator[tuple[Part, Amounts]]) -> Iterator[tuple[Part, Amounts]]:
    """Corrections counted into the lines that they correct, so that time is never below 0."""
    sums: dict[Part, LineSum] = defaultdict(LineSum)
    for part, values in found:
        sums[part._replace(is_correction=False)].add(Part(), values)
    for part, one in sums.items():
        yield part, one.amounts


def _namer(by: By, calendar: Calendar) -> Callable[[Part, Activity | None], Name]:
    """Key and label of a part, each worked out once."""
    match by:
        case By.ACTIVITY:
            return lambda _, activity: _ACTIVITY_NAMES[activity]
        case By.ENGINE:
            return lambda part, _: part.engine or (None, NOT_ATTRIBUTED)
        case By.HOUR | By.DAY | By.WEEK | By.MONTH:
            return _time_namer(by, calendar)
    attribute, name = _NAMES[by]
    known: dict[Any, Name] = {}

    def named(part: Part, _: Activity | None) -> Name:
        thing = getattr(part, attribute)
        if thing not in known:
            known[thing] = name(thing)
        return known[thing]

    return named


def _time_namer(by: By, calendar: Calendar) -> Callable[[Part, Activity | None], Name]:
    known: dict[int | None, Name] = {}

    def named(part: Part, _: Activity | None) -> Name:
        found = known.get(part.at_ms)
        if found is None:
            key = time_key(part.at_ms or 0, by, calendar)
            found = known[part.at_ms] = (key, key)
        return found

    return named


def time_key(at_ms: int, by: By, calendar: Calendar) -> str:
    """Start of the hour as ISO 8601 UTC, or its day, ISO week or month in the accounting time zone."""
    # A day may begin within an hour: the hour that begins in it is the first of the day.
    hour_ms = at_ms + -at_ms % HOUR_MS
    match by:
        case By.HOUR:
            return f"{from_ms(at_ms):%Y-%m-%dT%H:00:00Z}"
        case By.DAY:
            return calendar.day_at(hour_ms).key
        case By.WEEK:
            return calendar.week_at(hour_ms).key
        case By.MONTH:
            return calendar.month_at(hour_ms).key
    raise ValueError(f"{by} is no length of time")


def gpu_label(identity: GpuIdentity) -> str:
    """A GPU for people: ``GPU 3 on node-07``, else its UUID."""
    if identity.index is None:
        return identity.gpu_uuid
    return f"GPU {identity.index}" + (f" on {identity.host}" if identity.host else "")


def workload_label(workload: WorkloadKey) -> str:
    """A workload for people: ``train.py · process``."""
    return f"{workload.name} · {workload_kind(workload)}"


def _or(text: str | None, nothing: str) -> Name:
    return text or None, text or nothing


_ACTIVITY_NAMES: Final[Mapping[Activity | None, Name]] = {
    activity: (activity.value, word.name) for activity, word in ACTIVITY.items()
}
_NAMES: Final[Mapping[By, tuple[str, Callable[[Any], Name]]]] = {
    By.GPU: ("gpu", lambda gpu: (gpu.gpu_uuid, gpu_label(gpu))),
    By.HOST: ("gpu", lambda gpu: _or(gpu.host, "host unknown")),
    By.MODEL: ("gpu", lambda gpu: _or(gpu.model, "model unknown")),
    By.OWNER: ("owner", lambda owner: (None, UNOWNED) if owner is None else (owner.team, owner.team)),
    By.PROJECT: ("owner", lambda owner: _or(owner and owner.project, "no project")),
    By.COST_CENTRE: ("owner", lambda owner: _or(owner and owner.cost_centre, "no cost centre")),
    By.KIND: ("kind", lambda kind: (kind, KINDS[kind])),
    By.WORKLOAD: (
        "workload",
        lambda w: (None, NOT_ATTRIBUTED) if w is None else (workload_text(w), workload_label(w)),
    ),
    By.USER: ("workload", lambda w: _or(w and w.user, NO_USER)),
    By.NAMESPACE: ("workload", lambda w: _or(w and namespace_of(w), NO_NAMESPACE)),
}
