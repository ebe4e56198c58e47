"""Any grouping × time, for pages of money and of energy: what was asked for, the stacked chart, the table behind it.

Everything is read here; ``breakdown_rows`` makes rows and layers of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from api import formats
from api.pages.breakdown_largest import AT_ONCE, largest
from api.pages.breakdown_rows import (
    LAYERS,
    Bucket,
    Figure,
    Layered,
    Row,
    in_stack_order,
    layers_of,
    name_of,
    rows_of,
)
from api.pages.filters import report_filters
from api.pages.previous_period import previous
from api.pages.view import Address, View
from api.resources.by import By
from api.resources.cost_parts import NARROWS
from api.resources.idle_sharing import SHARED_BY, IdlePolicy, Sharing
from api.resources.report import Question, report
from api.resources.report_filters import Filters
from api.resources.report_sum import LineSum, Sums, by_first_key, merged
from api.resources.scope import Scope
from core.clock import from_ms
from core.errors import UsageError
from core.evidence import Window
from core.units import DAY_MS, HOUR_MS
from ledger.calendar import Calendar
from store.queries import owners
from store.queries.fleet_state import fleet_state

GROUPS: Final = (
    (By.OWNER, "team"),
    (By.PROJECT, "project"),
    (By.COST_CENTRE, "cost centre"),
    (By.USER, "user"),
    (By.NAMESPACE, "namespace"),
    (By.WORKLOAD, "workload"),
    (By.ENGINE, "engine"),
    (By.HOST, "host"),
    (By.GPU, "GPU"),
    (By.MODEL, "GPU model"),
    (By.ACTIVITY, "activity"),
    (By.KIND, "held or not"),
)
STEPS: Final = ((By.HOUR, "hour"), (By.DAY, "day"), (By.WEEK, "week"), (By.MONTH, "month"))
NAME: Final = dict(GROUPS)
MOST_HOURS: Final = 8 * 24
"""A longer period has too many hours to tell apart."""
MOST_GPU_HOURS: Final = 5_000
"""Hours are priced when asked for, some 20 µs each: beyond this a day is the first choice."""
MOST_DAYS: Final = 100
FIRST_DAYS: Final = 62
"""Of a longer period a week is the first choice: so many bars can be told apart."""
MOST_KEYS: Final = 200
"""More of them in a question cost more than lines that are not asked for."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a page was asked to break down, and how; ``filters`` as reports take them."""

    by: By
    per: By
    idle: IdlePolicy
    filters: Filters


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Everything of a grouping over time.

    Attributes:
        rows: groups, the largest first. whole: all of them. before: figure of each label in the period before;
            None: data do not reach over it. buckets, totals: the time, and all groups by it. layers: the chart's.
        left_out: smaller groups that are in ``whole`` and ``totals``, and in no row.
    """

    asked: Asked
    rows: tuple[Row, ...]
    whole: LineSum
    before: Mapping[tuple[bool, str], LineSum] | None
    buckets: tuple[Bucket, ...]
    totals: tuple[LineSum | None, ...]
    layers: tuple[Layered, ...]
    left_out: int = 0


def asked_of(view: View) -> Asked:
    """What the address asks for. Raises ``UsageError`` for what is no choice, and what to choose from."""
    address, scope = view.address, view.scope
    chosen = _chosen(address, "by", By, [key for key, _ in GROUPS])
    by = By(chosen) if chosen else _default_by(scope)
    idle = IdlePolicy(_chosen(address, "idle", IdlePolicy, list(IdlePolicy)) or IdlePolicy.KEEP)
    allowed = steps_of(scope.window)
    wanted = _chosen(address, "per", By, [key for key, _ in STEPS])
    # A step that a longer period has too many of is not refused: the links to other periods keep it.
    per = By(wanted) if wanted in allowed else _default_per(scope, allowed)
    return Asked(by, per, idle if by in SHARED_BY else IdlePolicy.KEEP, report_filters(address))


def breakdown(
    view: View, asked: Asked, amounts: tuple[str, ...], figure: Figure, *, money: bool = True
) -> Breakdown:
    """Read it: the groups, the time, the largest groups by time.

    Args:
        amounts: columns of the ledger to add up. figure: what makes a group large.
        money: with prices, gaps and grids.
    """
    scope = view.scope
    is_shared = asked.idle is not IdlePolicy.KEEP
    may_cut = not is_shared and not view.address.get("sort")
    kept = largest(scope, asked.by, asked.filters, figure) if may_cut else None
    of = asked if kept is None else replace(asked, filters=kept[0])
    at_once = kept is None and asked.by in AT_ONCE and not is_shared
    top = _sums(scope, (asked.by, asked.per), asked, amounts, money=money) if at_once else None
    found = _sums(scope, (asked.by,), of, amounts, money=money) if top is None else by_first_key(top)
    rows = rows_of(found, figure)
    by_time = _sums(scope, (asked.per,), replace(asked, idle=IdlePolicy.KEEP), amounts, money=money)
    buckets = buckets_of(scope, asked.per)
    totals = tuple(by_time.get((bucket.key,)) for bucket in buckets)
    shown = [row for row in rows if figure(row.lines)]
    if asked.by is By.ACTIVITY:
        shown = in_stack_order(shown)
    elif len(shown) > LAYERS + 1:
        shown = shown[:LAYERS]
    top = top or _by_time(scope, asked, shown, amounts, money=money)
    return Breakdown(
        asked=asked,
        rows=tuple(rows),
        # Groups and time add up to the same; of groups some may not have been read.
        whole=merged(one for one in (found.values() if kept is None else totals) if one is not None),
        before=_before(view, of, amounts, money=money),
        buckets=buckets,
        totals=totals,
        layers=layers_of(shown, top, buckets, totals, figure, by=asked.by),
        left_out=0 if kept is None else kept[1],
    )


def _by_time(
    scope: Scope, asked: Asked, shown: Sequence[Row], amounts: tuple[str, ...], *, money: bool
) -> Sums:
    """The groups that are shown, by time: no more lines are read than theirs, where filters can say so."""
    keys = (asked.by, asked.per)
    told = [row for row in shown if not row.is_nobody]
    filters = _narrowed(asked, told)
    if len(told) == len(shown) or filters is asked.filters or asked.by is not By.WORKLOAD:
        if len(told) < len(shown):
            filters = asked.filters  # nobody's lines cannot be asked for
        return _sums(scope, keys, replace(asked, filters=filters), amounts, money=money)
    found = _sums(scope, keys, replace(asked, filters=filters), amounts, money=money)
    # Time of no workload cannot be asked for either, but it is just the lines of other kinds.
    for (kind, time), one in _sums(scope, (By.KIND, asked.per), asked, amounts, money=money).items():
        if kind != "workload":
            label = f"{kind} · {time}"
            found[None, time] = merged([found[None, time], one]) if (None, time) in found else one
            found[None, time].label = label
    return found


def buckets_of(scope: Scope, per: By) -> tuple[Bucket, ...]:
    """The period cut into stretches, each at the borders that reports use."""
    window, calendar = scope.window, Calendar(scope.settings.accounting_time_zone)
    if per is By.HOUR:
        first = window.from_ms - window.from_ms % HOUR_MS
        return tuple(
            Bucket(
                f"{from_ms(at):%Y-%m-%dT%H:00:00Z}",
                f"{formats.day(at)} {from_ms(at):%H:%M}",
                at,
                at + HOUR_MS,
                True,
            )
            for at in range(first, window.to_ms, HOUR_MS)
        )
    spans = {By.DAY: calendar.days, By.WEEK: calendar.weeks, By.MONTH: calendar.months}[per]
    return tuple(
        Bucket(
            span.key,
            f"{from_ms(span.start_ms + DAY_MS):%b %Y}"
            if per is By.MONTH
            else formats.day(span.start_ms + DAY_MS // 2),
            max(span.from_ms, window.from_ms),
            min(span.to_ms, window.to_ms),
            span.from_ms >= window.from_ms and span.to_ms <= window.to_ms,
        )
        for span in spans(window.from_ms, window.to_ms)
    )


def _sums(scope: Scope, keys: tuple[By, ...], asked: Asked, amounts: tuple[str, ...], *, money: bool) -> Sums:
    if asked.idle is IdlePolicy.KEEP:
        return report(scope, Question(keys, amounts, money=money, filters=asked.filters))
    sharing = Sharing(keys, asked.idle)
    question = Question(keys, amounts, money=money, filters=asked.filters, extra=frozenset({"day"}))
    found = report(scope, question, sharing.note)
    sharing.apply(found)
    return found


def _narrowed(asked: Asked, told: Sequence[Row]) -> Filters:
    """Filters that leave other groups out, where there is such a filter; else those that were asked for."""
    keys = tuple(key for row in told for key in row.keys if key is not None)
    if asked.by not in NARROWS or not 0 < len(keys) <= MOST_KEYS or asked.idle is not IdlePolicy.KEEP:
        return asked.filters
    return replace(asked.filters, **{NARROWS[asked.by]: keys})


def _before(
    view: View, asked: Asked, amounts: tuple[str, ...], *, money: bool
) -> Mapping[tuple[bool, str], LineSum] | None:
    window = previous(view)
    if window is None:
        return None
    found = _sums(replace(view.scope, window=window), (asked.by,), asked, amounts, money=money)
    together: dict[tuple[bool, str], LineSum] = {}
    for key, one in found.items():
        at = name_of(key[0], one.label)
        together[at] = merged([together[at], one]) if at in together else one
    return together


def steps_of(window: Window) -> tuple[By, ...]:
    """Stretches that the period can be told apart by."""
    hours = (window.to_ms - window.from_ms) / HOUR_MS
    found = [By.HOUR] if hours <= MOST_HOURS else []
    found += [By.DAY] if hours <= MOST_DAYS * 24 else []
    found += [By.WEEK] if hours > 7 * 24 else []
    return (*found, *([By.MONTH] if hours > 31 * 24 else [])) or (By.MONTH,)


def _default_per(scope: Scope, allowed: Sequence[By]) -> By:
    hours = (scope.window.to_ms - scope.window.from_ms) / HOUR_MS
    if By.HOUR in allowed and hours <= 48 and hours * fleet_state(scope.session).gpus <= MOST_GPU_HOURS:
        return By.HOUR
    first = By.DAY if hours <= FIRST_DAYS * 24 else By.WEEK
    return first if first in allowed else allowed[0]


def _default_by(scope: Scope) -> By:
    """Teams where somebody said who owns what, else hosts."""
    return By.OWNER if owners.listing(scope.session) else By.HOST


def _chosen(address: Address, name: str, known: type[By] | type[IdlePolicy], allowed: Sequence[str]) -> str:
    """A parameter of the address, empty when it is not there. Raises ``UsageError`` for one that is no choice."""
    given = address.get(name)
    if given and given not in list(allowed):
        raise UsageError(f"{name} is {given!r}: use one of {', '.join(allowed)}")
    return known(given).value if given else ""
