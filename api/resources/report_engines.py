"""Lines of hours in which engines were seen on a GPU, as parts of each engine: those seen together share evenly."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from api.resources.report_cuts import evenly
from api.resources.report_parts import Amounts, Need, Part
from api.resources.report_sum import LineSum
from api.resources.scope import Scope
from core.units import HOUR_MS
from ledger.calendar import Calendar
from store.queries import ledger_sums


def by_engine(
    scope: Scope, need: Need, found: Iterable[tuple[Part, Amounts]]
) -> Iterator[tuple[Part, Amounts]]:
    """Parts of each engine of ``found``; what no engine had comes as it is.

    What engines share is added up first and divided once, so that it is the same however a window is read.
    """
    engines = ledger_sums.engines(scope.session)
    common = _common(scope, need)
    shared: dict[tuple[Any, ...], tuple[Part, LineSum]] = {}
    for part, amounts in found:
        match part.engines:
            case ():
                yield part, amounts
            case (alone,):
                yield part._replace(engines=(), engine=engines[alone]), amounts
            case _:
                key = common(part)
                if key not in shared:
                    shared[key] = part, LineSum()
                shared[key][1].add(Part(), amounts)
    for part, whole in shared.values():
        told = sorted(engines[one] for one in part.engines)
        amounts = {name: whole.amounts.get(name) for name in need.amounts}
        for engine, share in zip(told, evenly(amounts, len(told)), strict=True):
            yield part._replace(engines=(), engine=engine), share


def _common(scope: Scope, need: Need) -> Callable[[Part], tuple[Any, ...]]:
    """What parts have in common that are one for the question: parts may be finer than it (``Need``)."""
    calendar = Calendar(scope.settings.accounting_time_zone)
    cards = [name for name in ("host", "model") if need.has(name) and not need.has("gpu")]
    times = [name for name in ("hour", "day", "week", "month") if need.has(name)]
    spans = {"week": calendar.week_at, "month": calendar.month_at}
    starts: dict[int, int] = {}

    def start(at_ms: int) -> int:
        if times not in (["week"], ["month"]):
            return at_ms
        if at_ms not in starts:
            starts[at_ms] = spans[times[0]](at_ms + -at_ms % HOUR_MS).start_ms
        return starts[at_ms]

    def common(part: Part) -> tuple[Any, ...]:
        at_ms = None if part.at_ms is None else start(part.at_ms)
        if not cards or part.gpu is None:
            return part._replace(at_ms=at_ms)
        return (*part._replace(at_ms=at_ms, gpu=None), *(getattr(part.gpu, name) for name in cards))

    return common
