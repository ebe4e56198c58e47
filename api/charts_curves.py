"""Curves over a number: cost by use, cost by GPUs owned, rate by batch; with bands, crossings and the point where one stands."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from api import formats
from api.charts import px2
from api.charts_parts import AXIS_PX, frame, nice_ticks, px, y_axis
from api.charts_scatter import ABOVE_PX, Upright, name_rows, upright_line
from api.text import escape

Point = tuple[float, float]
DOT_PX: Final = 4.5
WIDE: Final = 1000


@dataclass(frozen=True, slots=True)
class Curve:
    """One curve: CSS class, its points by x, and where it has one its band as two more curves over the same x."""

    key: str
    points: tuple[Point, ...]
    low: tuple[Point, ...] = ()
    high: tuple[Point, ...] = ()


@dataclass(frozen=True, slots=True)
class Mark:
    """A point that matters. ``low_x``, ``high_x``: how far it may lie to either side. ``text`` is its tooltip."""

    x: float
    y: float
    text: str
    low_x: float | None = None
    high_x: float | None = None


def curves(
    drawn: Sequence[Curve],
    *,
    label: str,
    x_unit: str,
    marks: Sequence[Mark] = (),
    uprights: Sequence[Upright] = (),
    x_to: float | None = None,
    y_to: float | None = None,
    x_text: Callable[[float], str] = formats.short,
    axis_text: Callable[[float], str] = formats.short,
    height: float = 260,
) -> Markup:
    """The chart; curves that leave it above are cut off there.

    Args:
        drawn: in order, the last on top. label: the sentence for who does not see it. x_unit: what the x axis counts.
        marks, uprights: points and values that matter; uprights are named above the plot.
        x_to, y_to: where the axes should end at least; None: where the figures end.
        x_text, axis_text: how values read on the axes. height: pixels, labels included.
    """
    points = [point for one in drawn for point in one.points]
    x_ticks = nice_ticks(x_to if x_to is not None else max((x for x, _ in points), default=1.0), count=5)
    highest = y_to if y_to is not None else max((y for _, y in points), default=1.0)
    y_ticks = nice_ticks(max(highest, *(mark.y for mark in marks)) if marks else highest)
    widest, top_value = x_ticks[-1], y_ticks[-1]
    uprights = [one if one.x <= widest else Upright(widest, f"{one.text} →") for one in uprights]
    rows = name_rows(uprights, widest)
    top = ABOVE_PX * (max(rows, default=-1) + 1) + 4
    plot = height - AXIS_PX - 18 - top
    parts = [y_axis(y_ticks, [axis_text(value) for value in y_ticks], plot_px=plot)]

    def place(point: Point) -> str:
        return f"{px(WIDE * point[0] / widest)} {px(plot * (1 - point[1] / top_value))}"

    paths = []
    for one in drawn:
        if one.low and one.high:
            edge = [place(point) for point in (*one.high, *reversed(one.low))]
            paths.append(f'<path class="band-of {one.key}" d="M{"L".join(edge)}Z"/>')
    for one in drawn:
        if one.points:
            line = "L".join(place(point) for point in one.points)
            paths.append(f'<path class="line {one.key}" d="M{line}" vector-effect="non-scaling-stroke"/>')
    parts.append(
        f'<svg aria-hidden="true" width="100%" height="{px(plot)}" viewBox="0 0 {WIDE} {px(plot)}"'
        f' preserveAspectRatio="none" overflow="hidden">{"".join(paths)}</svg>'
    )
    parts += [upright_line(one, row, widest, plot, top) for one, row in zip(uprights, rows, strict=True)]
    parts += [_mark(one, widest, plot, top_value) for one in marks]
    for value in x_ticks:
        anchor = "start" if value == 0 else "end" if value == widest else "middle"
        parts.append(
            f'<text x="{px2(100 * value / widest)}%" y="{px(plot + AXIS_PX)}" text-anchor="{anchor}">'
            f"{escape(x_text(value))}</text>"
        )
    parts.append(f'<text x="50%" y="{px(plot + AXIS_PX + 15)}" text-anchor="middle">{escape(x_unit)}</text>')
    body = f'<svg aria-hidden="true" y="{px(top)}" overflow="visible" width="100%" height="{px(plot)}">{"".join(parts)}</svg>'
    return frame(body, label=label, height=height, kind="axis curves")


def _mark(one: Mark, widest: float, plot: float, highest: float) -> str:
    y = px(plot * (1 - one.y / highest))
    said = f"<title>{escape(one.text)}</title>"
    span = ""
    if one.low_x is not None and one.high_x is not None:
        span = (
            f'<line class="whisker" x1="{px2(100 * one.low_x / widest)}%" x2="{px2(100 * min(one.high_x, widest) / widest)}%"'
            f' y1="{y}" y2="{y}">{said}</line>'
        )
    return f'{span}<circle class="here" cx="{px2(100 * one.x / widest)}%" cy="{y}" r="{DOT_PX:g}">{said}</circle>'
