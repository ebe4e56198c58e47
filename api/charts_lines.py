"""Charts over time: lines with a threshold, sparklines. A pause longer than one and a half steps breaks the line."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from api import formats
from api.charts_parts import AXIS_PX, frame, nice_ticks, px, share, x_time_axis, x_value_axis, y_axis
from api.text import escape
from core.evidence import Window

GAP_STEPS = 1.6
"""Points further apart than this many steps are not joined."""

Point = tuple[int, float | None]


@dataclass(frozen=True, slots=True)
class Line:
    """One line: CSS class, name for people, points by time (UTC ms), None where unknown."""

    key: str
    name: str
    points: tuple[Point, ...]


def runs(points: Sequence[Point], step_ms: int | None) -> list[list[tuple[int, float]]]:
    """Points in unbroken stretches: split at None and at pauses longer than ``GAP_STEPS`` steps."""
    found: list[list[tuple[int, float]]] = []
    last: int | None = None
    for ts_ms, value in points:
        if value is None:
            last = None
            continue
        if last is None or (step_ms is not None and ts_ms - last > GAP_STEPS * step_ms):
            found.append([])
        found[-1].append((ts_ms, value))
        last = ts_ms
    return found


def line_chart(
    lines: Sequence[Line],
    *,
    window: Window,
    label: str,
    step_ms: int | None,
    axis_text: Callable[[float], str] = formats.short,
    highest: float | None = None,
    threshold: float | None = None,
    threshold_text: str = "",
    height: float = 150,
    x_unit: str = "",
) -> Markup:
    """Lines over time with grid, time axis (UTC) and an optional threshold.

    Args:
        lines: drawn in order, the last on top.
        window: what the axis spans.
        label: the sentence for who does not see it.
        step_ms: distance of neighbouring points; decides what a gap is.
        axis_text: how axis values read.
        highest: least top of the axis (1.0 for ratios).
        threshold: drawn dashed, with its text.
        height: pixels, labels included.
        x_unit: what the horizontal axis counts where it is no time (batch size, hour of the week).
    """
    plot = height - AXIS_PX - 4
    known = [value for line in lines for _, value in line.points if value is not None]
    ticks = nice_ticks(max([*known, highest or 0.0, threshold or 0.0], default=0.0))
    parts = [y_axis(ticks, [axis_text(value) for value in ticks], plot_px=plot)]
    length = window.to_ms - window.from_ms
    paths = []
    for line in lines:
        steps = []
        for run in runs(line.points, step_ms):
            places = [
                f"{px(1000 * (t - window.from_ms) / length)} {px(plot * (1 - v / ticks[-1]))}" for t, v in run
            ]
            # A lone point has no length: a hair of a line with round caps shows it.
            steps.append("M" + "L".join(places) + ("h.1" if len(places) == 1 else ""))
        if steps:
            paths.append(
                f'<path class="line {line.key}" d="{"".join(steps)}" vector-effect="non-scaling-stroke"/>'
            )
    parts.append(
        f'<svg aria-hidden="true" width="100%" height="{px(plot)}" viewBox="0 0 1000 {px(plot)}" preserveAspectRatio="none"'
        f' overflow="visible">{"".join(paths)}</svg>'
    )
    if threshold is not None:
        y = px(plot * (1 - threshold / ticks[-1]))
        parts.append(f'<line class="threshold" x1="0" x2="100%" y1="{y}" y2="{y}"/>')
        if threshold_text:
            below = float(y) < 14
            parts.append(
                f'<text class="name" x="100%" y="{px(float(y) + (13 if below else -4))}" text-anchor="end">{escape(threshold_text)}</text>'
            )
    parts.append(x_value_axis(window, x_unit, plot_px=plot) if x_unit else x_time_axis(window, plot_px=plot))
    return frame("".join(parts), label=label, height=height, kind="axis")


def sparkline(
    points: Sequence[Point],
    *,
    unit: str,
    threshold: float | None = None,
    key: str = "",
    width: int = 130,
    height: int = 34,
) -> Markup:
    """A small line with its threshold; the name says first, last, highest and threshold."""
    known = [(ts_ms, value) for ts_ms, value in points if value is not None]
    if not known:
        return Markup("")
    last, highest = known[-1][1], max(value for _, value in known)
    points = thinned(points, most=width)
    known = [(ts_ms, value) for ts_ms, value in points if value is not None]
    values = [value for _, value in known]
    top = max([*values, threshold or 0.0]) or 1.0
    start, end = known[0][0], known[-1][0]
    gaps = sorted(b - a for (a, _), (b, _) in pairwise(known))
    step = gaps[len(gaps) // 2] if gaps else None
    steps = []
    for run in runs(points, step):
        places = [
            f"{px(width * (t - start) / max(end - start, 1))} {px(2 + (height - 4) * (1 - v / top))}"
            for t, v in run
        ]
        steps.append("M" + "L".join(places) + ("h.1" if len(places) == 1 else ""))
    said = f"{unit}: last {formats.short(last)}, highest {formats.short(highest)}"
    body = f'<path class="line {key}" d="{"".join(steps)}"/>'
    if len(values) == 1:
        y = px(2 + (height - 4) * (1 - values[0] / top))
        body = f'<circle class="point" cx="{px(width / 2)}" cy="{y}" r="2.6"/>'
    if threshold is not None:
        said += f", threshold {formats.short(threshold)}"
        y = px(2 + (height - 4) * (1 - threshold / top))
        body = f'<line class="threshold" x1="0" x2="{width}" y1="{y}" y2="{y}"/>' + body
    return Markup(  # noqa: S704 - numbers and escaped words only
        f'<svg class="spark" role="img" aria-label="{escape(said)}" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" overflow="visible" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{escape(said)}</title>{body}</svg>"
    )


def thinned(points: Sequence[Point], most: int) -> list[Point]:
    """At most about ``most`` points: neighbours become their mean; an unknown one among them stays a gap."""
    size = -(-len(points) // most)
    if size <= 1:
        return list(points)
    found: list[Point] = []
    for i in range(0, len(points), size):
        part = points[i : i + size]
        known = [value for _, value in part if value is not None]
        mean = sum(known) / len(known) if len(known) == len(part) else None
        found.append((part[0][0], mean))
    return found


def meter(part: float | None, *, label: str, key: str = "", mark: float | None = None) -> Markup:
    """A thin bar of a ratio 0–1, with a mark where it should reach; only its track when unknown."""
    tick = "" if mark is None else f'<rect class="mark" x="{share(mark, 1)}" width="1.5" y="-2" height="10"/>'
    bar = (
        ""
        if part is None
        else f'<rect class="bar {key}" width="{share(min(max(part, 0.0), 1.0), 1)}" height="6" rx="2"/>'
    )
    return Markup(  # noqa: S704 - numbers and escaped words only
        f'<svg class="meter" role="img" aria-label="{escape(label)}" width="100%" height="6" overflow="visible" xmlns="http://www.w3.org/2000/svg">'
        f'<rect class="track" width="100%" height="6" rx="2"/>{bar}{tick}</svg>'
    )
