"""Rows of any grouping, and the layers of their chart: the largest groups get one each, the rest one together.

The rest is what is left of the total, so that layers add up to it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from markupsafe import Markup

from api import formats, words
from api.charts import Layer, stacked_bars
from api.resources.by import By
from api.resources.report_sum import LineSum, Sums, merged
from api.templating import inert

LAYERS: Final = 7
REST_FROM: Final = 5e-7
"""Less than a micro-dollar is what adding floats leaves."""
OTHERS: Final = "others"
Figure = Callable[[LineSum], Decimal | float | None]


@dataclass(frozen=True, slots=True)
class Bucket:
    """A stretch of time: a bar of the chart, a row of the table; ``is_whole``: the period holds all of it."""

    key: str
    name: str
    from_ms: int
    to_ms: int
    is_whole: bool


def whole_of(buckets: Sequence[Bucket]) -> Bucket:
    """All of them as one."""
    return Bucket("", "All", buckets[0].from_ms, buckets[-1].to_ms, is_whole=True)


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


def in_stack_order(rows: Sequence[Row]) -> list[Row]:
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


def chart_of(
    layers: Sequence[Layered],
    buckets: Sequence[Bucket],
    *,
    label: str,
    text_of: Callable[[float], str] = formats.money,
    axis_text: Callable[[float], str] = formats.money_axis,
) -> Markup | None:
    """The stacked chart; None where no figure is known."""
    if not layers:
        return None
    drawn = [
        Layer(
            layer.key,
            short_name(layer.name),
            tuple(None if value is None else float(value) for value in layer.values),
        )
        for layer in layers
    ]
    names = [bucket.name for bucket in buckets]
    return stacked_bars(names, drawn, label=label, text_of=text_of, axis_text=axis_text, height=230)
