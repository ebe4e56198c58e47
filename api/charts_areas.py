"""Stacked areas over time: who held how much. A gap breaks every layer; below 0 there is nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from api import formats
from api.charts_parts import AXIS_PX, frame, nice_ticks, px, x_time_axis, y_axis
from api.text import escape
from core.evidence import Window


@dataclass(frozen=True, slots=True)
class Area:
    """One layer: CSS class, name for people, one value a step; None where nothing is known."""

    key: str
    name: str
    values: tuple[float | None, ...]


Span = tuple[int, int]
"""From and to of a step (UTC ms)."""


def stacked_areas(
    spans: Sequence[Span],
    areas: Sequence[Area],
    *,
    window: Window,
    label: str,
    axis_text: Callable[[float], str] = formats.short,
    threshold: float | None = None,
    threshold_text: str = "",
    height: float = 150,
) -> Markup:
    """Layers over time, the first at the bottom, as steps: each value stands for the whole of its span.

    Args:
        spans: the steps, by time. areas: each with one value a step.
        window: what the axis spans.
        label: the sentence for who does not see it.
        axis_text: how axis values read.
        threshold: drawn dashed, with its text.
        height: pixels, labels included.
    """
    plot = height - AXIS_PX - 4
    sums = [sum(area.values[i] or 0.0 for area in areas) for i in range(len(spans))]
    ticks = nice_ticks(max([*sums, threshold or 0.0], default=0.0))
    parts = [y_axis(ticks, [axis_text(value) for value in ticks], plot_px=plot)]
    length = window.to_ms - window.from_ms

    def x(ts_ms: int) -> str:
        return px(1000 * min(max((ts_ms - window.from_ms) / length, 0.0), 1.0))

    below = [0.0] * len(spans)
    shapes = []
    for area in areas:
        path = []
        for run in _runs(spans, area.values):
            upper, lower = [], []
            for i in run:
                top, bottom = (
                    px(plot * (1 - level / ticks[-1]))
                    for level in (below[i] + (area.values[i] or 0.0), below[i])
                )
                left, right = x(spans[i][0]), x(spans[i][1])
                upper += [f"{left} {top}", f"{right} {top}"]
                lower += [f"{left} {bottom}", f"{right} {bottom}"]
            path.append(f"M{'L'.join(upper)}L{'L'.join(reversed(lower))}Z")
        if path:
            hatch = ' fill="url(#hatch)"' if area.key == "a-unknown" else ""
            shapes.append(
                f'<path class="area {area.key}"{hatch} d="{"".join(path)}"><title>{escape(area.name)}</title></path>'
            )
        below = [level + (value or 0.0) for level, value in zip(below, area.values, strict=True)]
    parts.append(
        f'<svg width="100%" height="{px(plot)}" viewBox="0 0 1000 {px(plot)}" preserveAspectRatio="none">'
        f"{''.join(shapes)}</svg>"
    )
    if threshold is not None:
        y = px(plot * (1 - threshold / ticks[-1]))
        parts.append(f'<line class="threshold" x1="0" x2="100%" y1="{y}" y2="{y}"/>')
        if threshold_text:
            at = float(y) + (13 if float(y) < 14 else -4)
            parts.append(
                f'<text class="name" x="100%" y="{px(at)}" text-anchor="end">{escape(threshold_text)}</text>'
            )
    parts.append(x_time_axis(window, plot_px=plot))
    return frame("".join(parts), label=label, height=height, kind="axis")


def _runs(spans: Sequence[Span], values: Sequence[float | None]) -> list[list[int]]:
    """Steps with something to draw, in stretches that touch."""
    runs: list[list[int]] = []
    for i, value in enumerate(values):
        if not value or value <= 0:
            continue
        if runs and runs[-1][-1] == i - 1 and spans[i][0] <= spans[i - 1][1]:
            runs[-1].append(i)
        else:
            runs.append([i])
    return runs
