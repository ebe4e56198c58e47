"""Any grouping × time, for pages of money and of energy: what was asked for, the stacked chart, the table behind it.

The largest groups get a layer each, the rest one together: what is left of the total, so that layers add up to it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from markupsafe import Markup

from api import formats, words
from api.charts import Layer, stacked_bars
from api.pages.breakdown_largest import AT_ONCE, largest
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
from api.templating import inert
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
LAYERS: Final = 7
MOST_HOURS: Final = 8 * 24
"""A longer period has too many hours to tell apart."""
MOST_GPU_HOURS: Final = 5_000
"""Hours are priced when asked for, some 20 µs each: beyond this a day is the first choice."""
MOST_DAYS: Final = 100
FIRST_DAYS: Final = 62
"""Of a longer period a week is the first choice: so many bars can be told apart."""
MOST_KEYS: Final = 200
"""More of them in a question cost more than lines that are not asked for."""
OTHERS: Final = "others"
Figure = Callable[[LineSum], Decimal | float | None]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a page was asked to break down, and how; ``filters`` as reports take them."""

    by: By
    per: By
    idle: IdlePolicy
    filters: Filters


@dataclass(frozen=True, slots=True)
class Bucket:
    """A stretch of time: a bar of the chart, a row of the table; ``is_whole``: the period holds all of it."""

    key: str
    name: str
    from_ms: int
    to_ms: int
    is_whole: bool
    is_closed: bool = False


@dataclass(frozen=True, slots=True)
class Layered:
    """One layer: CSS class, name, group of the table (None: others), its figure by bucket, and their sum."""

    key: str
    name: str
    group: "Row | None"
    values: tuple[Decimal | float | None, ...]
    total: Decimal | float | None


@dataclass(frozen=True, slots=True)
class Row:
    """One group: groups that people cannot tell apart are one, with the ``keys`` of all of them."""

    label: str
    keys: tuple[str | None, ...]
    is_nobody: bool
    lines: LineSum

    @property
    def count(self) -> int:
        """Groups in it."""
        return len(self.keys)

    @property
    def key(self) -> str | None:
        """Its key; None: nobody, or several."""
        return self.keys[0] if len(self.keys) == 1 else None

    @property
    def name(self) -> tuple[bool, str]:
        """``name_of`` it."""
        return name_of(None if self.is_nobody else "", self.label)

    def parameters(self) -> dict[str, str | None]:
        """How an address names it."""
        if self.is_nobody:
            return {"key": None, "label": None, "nobody": "1"}
        if self.count > 1 or self.key is None:
            return {"key": None, "label": self.label, "nobody": None}
        return {"key": self.key, "label": None, "nobody": None}


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
        shown = _in_stack_order(shown)
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


def short_name(label: str, most: int = 40) -> str:
    """A group's name in a sentence or a picture: cut, and without marks that turn direction."""
    plain = inert(label[: most + 1])
    return plain if len(label) <= most else f"{plain[: most - 1]}…"


def name_of(key: str | None, label: str) -> tuple[bool, str]:
    """What groups of two periods have in common: what people see; nobody's group is one, whatever it is called."""
    return (True, "") if key is None else (False, label)


def rows_of(found: Sums, figure: Figure) -> list[Row]:
    """Groups with those of one label together (runs of one program), the largest first, unknown ones last."""
    together: dict[tuple[bool, str], list[tuple[str | None, LineSum]]] = {}
    for key, one in found.items():
        together.setdefault((key[0] is None, one.label), []).append((key[0], one))
    rows = []
    for (is_nobody, label), of in together.items():
        lines = of[0][1] if len(of) == 1 else merged(one for _, one in of)
        lines.label = label
        rows.append(Row(label, tuple(key for key, _ in of), is_nobody, lines))

    def place(row: Row) -> tuple[bool, float, str]:
        value = figure(row.lines)
        return value is None, -float(value or 0), row.label

    return sorted(rows, key=place)


def layers_of(
    shown: Sequence[Row],
    top: Sums,
    buckets: Sequence[Bucket],
    totals: Sequence[LineSum | None],
    figure: Figure,
    *,
    by: By,
) -> tuple[Layered, ...]:
    """A layer for each group that is shown, then what is left of the totals."""
    by_label: dict[tuple[bool, str], dict[str, list[LineSum]]] = {}
    for (key, time), one in ((key, one) for key, one in top.items()):
        label = one.label.rpartition(" · ")[0]
        by_label.setdefault(name_of(key, label), {}).setdefault(time or "", []).append(one)
    left = [None if total is None else figure(total) for total in totals]
    found = []
    for n, row in enumerate(shown):
        of = by_label.get(row.name, {})
        values: list[Decimal | float | None] = []
        for at, bucket in enumerate(buckets):
            lines = of.get(bucket.key)
            value = figure(merged(lines)) if lines else None
            values.append(value)
            if value is not None and left[at] is not None:
                left[at] = left[at] - value  # type: ignore[operator]
        found.append(Layered(_colour(by, row, n), row.label, row, tuple(values), figure(row.lines)))
    rest = [value if value is not None and float(value) > REST_FROM else None for value in left]
    if any(value is not None for value in rest):
        known = [value for value in rest if value is not None]
        found.append(Layered("c-rest", OTHERS, None, tuple(rest), sum(known[1:], known[0])))
    return tuple(found)


def _in_stack_order(rows: Sequence[Row]) -> list[Row]:
    """Activities as every other chart stacks them."""
    order = [activity.value for activity in words.ACTIVITY]
    return sorted(rows, key=lambda row: order.index(row.key) if row.key in order else len(order))


def _colour(by: By, row: Row, n: int) -> str:
    """CSS class of the ``n``-th layer; an activity has one colour on all pages, and gaps are hatched."""
    if row.label == "gap":
        return "a-unknown"
    if by is By.ACTIVITY:
        return f"a-{row.key or 'unknown'}"
    return f"c-{n}" if n < LAYERS else "c-rest"


REST_FROM: Final = 5e-7
"""Less than a micro-dollar is what adding floats leaves."""


def chart_of(
    found: Breakdown,
    *,
    label: str,
    text_of: Callable[[float], str] = formats.money,
    axis_text: Callable[[float], str] = formats.money_axis,
) -> Markup | None:
    """The stacked chart; None where no figure is known."""
    if not found.layers:
        return None
    layers = [
        Layer(
            layer.key,
            short_name(layer.name),
            tuple(None if value is None else float(value) for value in layer.values),
        )
        for layer in found.layers
    ]
    names = [bucket.name for bucket in found.buckets]
    return stacked_bars(names, layers, label=label, text_of=text_of, axis_text=axis_text, height=230)


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
