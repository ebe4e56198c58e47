"""Measured points under a law: rate against batch, with the batches that matter as upright lines."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from api import formats
from api.charts import px2
from api.charts_parts import AXIS_PX, frame, nice_ticks, px, y_axis
from api.text import escape

ABOVE_PX: Final = 15
"""Room for one line of names above the plot."""
LETTER_PX: Final = 6.4
"""About the width of a letter of a label, for a chart as narrow as a phone's."""
NARROW_PX: Final = 300
DOT_PX: Final = 2.7


@dataclass(frozen=True, slots=True)
class Dot:
    """One measured point. ``text`` is its tooltip."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Upright:
    """A value of the horizontal axis that matters, with its name: ``limit 256``."""

    x: float
    text: str


@dataclass(frozen=True, slots=True)
class Curve:
    """A law to draw. ``solid_to``: as far as its data reach; beyond it is drawn faint and dashed."""

    at: Callable[[float], float]
    solid_to: float
    name: str


def scatter(
    dots: Sequence[Dot],
    *,
    label: str,
    x_unit: str,
    curve: Curve | None = None,
    uprights: Sequence[Upright] = (),
    axis_text: Callable[[float], str] = formats.short,
    to: float | None = None,
    height: float = 260,
) -> Markup:
    """Dots over a law.

    Args:
        dots: measured points.
        label: the sentence for who does not see it.
        x_unit: what the horizontal axis counts.
        curve: the law; None: none is honest.
        uprights: drawn dashed from top to bottom, named above the plot.
        axis_text: how values of the vertical axis read.
        to: where the horizontal axis should end; uprights beyond it stand at its end with an arrow. None: all fit.
        height: pixels, labels included.
    """
    x_ticks = nice_ticks(
        max([*(dot.x for dot in dots), *([to] if to else (one.x for one in uprights))], default=1.0), count=5
    )
    widest = x_ticks[-1]
    uprights = [one if one.x <= widest else Upright(widest, f"{one.text} →") for one in uprights]
    rows = name_rows(uprights, widest)
    top = ABOVE_PX * (max(rows, default=-1) + 1) + 4
    plot = height - AXIS_PX - 18 - top
    heights = [dot.y for dot in dots]
    if curve is not None:
        heights.append(curve.at(widest))
    y_ticks = nice_ticks(max(heights, default=1.0))
    highest = y_ticks[-1]
    parts = [y_axis(y_ticks, [axis_text(value) for value in y_ticks], plot_px=plot)]
    parts += [upright_line(one, row, widest, plot, top) for one, row in zip(uprights, rows, strict=True)]
    if curve is not None:
        parts.append(_curve(curve, widest, highest, plot))
    for dot in dots:
        x, y = px2(100 * dot.x / widest), px(plot * (1 - dot.y / highest))
        parts.append(
            f'<circle class="dot" cx="{x}%" cy="{y}" r="{DOT_PX}"><title>{escape(dot.text)}</title></circle>'
        )
    for value in x_ticks:
        anchor = "start" if value == 0 else "end" if value == widest else "middle"
        parts.append(
            f'<text x="{px2(100 * value / widest)}%" y="{px(plot + AXIS_PX)}" text-anchor="{anchor}">{value:g}</text>'
        )
    parts.append(f'<text x="50%" y="{px(plot + AXIS_PX + 15)}" text-anchor="middle">{escape(x_unit)}</text>')
    body = f'<svg aria-hidden="true" y="{px(top)}" overflow="visible" width="100%" height="{px(plot)}">{"".join(parts)}</svg>'
    return frame(body, label=label, height=height, kind="axis")


def name_rows(uprights: Sequence[Upright], widest: float) -> list[int]:
    """A line of text for each name, so that none lies upon another even on a phone."""
    taken: list[list[tuple[float, float]]] = []
    rows = []
    for one in uprights:
        left, right = _span(one, widest)
        row = next(
            (at for at, spans in enumerate(taken) if all(right < a or left > b for a, b in spans)), len(taken)
        )
        if row == len(taken):
            taken.append([])
        taken[row].append((left, right))
        rows.append(row)
    return rows


def _anchor(one: Upright, widest: float) -> str:
    share = one.x / widest
    return "start" if share < 0.35 else "end" if share > 0.65 else "middle"


def _span(one: Upright, widest: float) -> tuple[float, float]:
    at, wide = NARROW_PX * one.x / widest, LETTER_PX * len(one.text) + 8
    match _anchor(one, widest):
        case "start":
            return at, at + wide
        case "end":
            return at - wide, at
    return at - wide / 2, at + wide / 2


def upright_line(one: Upright, row: int, widest: float, plot: float, top: float) -> str:
    """One value from top to bottom with its name above the plot."""
    x, y = px2(100 * one.x / widest), px(row * ABOVE_PX + 11 - top)
    return (
        f'<line class="threshold" x1="{x}%" x2="{x}%" y1="{px(row * ABOVE_PX + 15 - top)}" y2="{px(plot)}"/>'
        f'<text class="name" x="{x}%" y="{y}" text-anchor="{_anchor(one, widest)}">{escape(one.text)}</text>'
    )


def _curve(curve: Curve, widest: float, highest: float, plot: float) -> str:
    """Two paths: where the law was seen, and where it is stretched."""
    steps = 80
    solid_to = min(curve.solid_to, widest)
    solid = [(widest * i / steps, curve.at(widest * i / steps)) for i in range(steps + 1)]
    seen = [*(p for p in solid if p[0] <= solid_to), (solid_to, curve.at(solid_to))]
    beyond = [(solid_to, curve.at(solid_to)), *(p for p in solid if p[0] > solid_to)]
    paths = []
    for key, points in (("law", seen), ("law beyond", beyond)):
        if len(points) > 1:
            places = "L".join(f"{px(1000 * x / widest)} {px(plot * (1 - y / highest))}" for x, y in points)
            paths.append(f'<path class="{key}" d="M{places}" vector-effect="non-scaling-stroke"/>')
    return (
        f'<svg aria-hidden="true" width="100%" height="{px(plot)}" viewBox="0 0 1000 {px(plot)}"'
        f' preserveAspectRatio="none" overflow="visible">{"".join(paths)}</svg>'
    )
