"""Parts every chart is made of: scales, ticks, time labels, the SVG frame.

Charts are drawn in percent across and pixels down, so that text keeps its size at any width: the frame is
100 % wide, axis labels hang out to its left (CSS and the rasteriser leave the margin). Colours are classes of
``templates/static/charts.css``; nothing here knows a colour.
"""

from collections.abc import Sequence
from math import ceil, floor, log10
from typing import Final

from markupsafe import Markup

from api.text import escape
from core.clock import from_ms
from core.evidence import Window
from core.units import DAY_MS, HOUR_MS, MINUTE_MS

AXIS_PX: Final = 14
"""Room for the labels below the plot."""

TIME_STEPS_MS: Final = (
    MINUTE_MS,
    2 * MINUTE_MS,
    5 * MINUTE_MS,
    10 * MINUTE_MS,
    15 * MINUTE_MS,
    30 * MINUTE_MS,
    HOUR_MS,
    2 * HOUR_MS,
    3 * HOUR_MS,
    6 * HOUR_MS,
    12 * HOUR_MS,
    DAY_MS,
    2 * DAY_MS,
    5 * DAY_MS,
    10 * DAY_MS,
    30 * DAY_MS,
)


def nice_ticks(highest: float, count: int = 3) -> list[float]:
    """Round tick values from 0 to at least ``highest`` in steps of 1, 2 or 5 times a power of ten."""
    if highest <= 0:
        return [0.0, 1.0]
    rough = highest / count
    size = 10.0 ** floor(log10(rough))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= rough * (1 - 1e-9))
    return [round(step * i, 10) for i in range(ceil(highest / step - 1e-9) + 1)]


def time_ticks(window: Window, count: int = 5) -> list[int]:
    """Round instants (UTC) inside the window, at most about ``count``."""
    length = window.to_ms - window.from_ms
    step = next((s for s in TIME_STEPS_MS if length / s <= count), TIME_STEPS_MS[-1])
    first = -(-window.from_ms // step) * step
    return list(range(first, window.to_ms + 1, step))


def time_label(ts_ms: int, window: Window) -> str:
    """``14:05`` inside a day; over days ``3 Nov`` where one begins."""
    at = from_ms(ts_ms)
    if window.to_ms - window.from_ms <= 36 * HOUR_MS or ts_ms % DAY_MS:
        return f"{at:%H:%M}"
    return f"{at.day} {at:%b}"


def share(part: float, whole: float) -> str:
    """``part / whole`` as an SVG percentage, short."""
    return f"{100 * part / whole:.3f}".rstrip("0").rstrip(".") + "%"


def px(value: float) -> str:
    """Pixels, short."""
    return f"{value:.1f}".rstrip("0").rstrip(".")


def frame(body: str, *, label: str, height: float, kind: str = "") -> Markup:
    """The chart's outer SVG with its accessible name."""
    classes = f"chart {kind}".strip()
    return Markup(  # noqa: S704 - callers escape every word in the body
        f'<svg class="{classes}" role="img" aria-label="{escape(label)}" width="100%" height="{px(height)}"'
        f' overflow="visible" xmlns="http://www.w3.org/2000/svg">{body}</svg>'
    )


def y_axis(ticks: Sequence[float], labels: Sequence[str], *, plot_px: float) -> str:
    """Grid lines with their labels to the left of the frame."""
    top = ticks[-1]
    parts = []
    for value, text in zip(ticks, labels, strict=True):
        y = px(plot_px * (1 - value / top))
        parts.append(
            f'<line class="grid" x1="0" x2="100%" y1="{y}" y2="{y}"/>'
            f'<text x="-7" y="{px(float(y) + 4)}" text-anchor="end">{escape(text)}</text>'
        )
    return "".join(parts)


def x_time_axis(window: Window, *, plot_px: float) -> str:
    """Time labels (UTC) below the plot."""
    length = window.to_ms - window.from_ms
    parts = []
    for ts_ms in time_ticks(window):
        at = (ts_ms - window.from_ms) / length
        anchor = "start" if at < 0.04 else "end" if at > 0.96 else "middle"
        parts.append(
            f'<text x="{share(at, 1)}" y="{px(plot_px + AXIS_PX)}" text-anchor="{anchor}">'
            f"{time_label(ts_ms, window)}</text>"
        )
    return "".join(parts)


def x_value_axis(window: Window, unit: str, *, plot_px: float) -> str:
    """First and last value of an axis that is no time, and between them what it counts."""
    y = px(plot_px + AXIS_PX)
    return (
        f'<text x="0" y="{y}" text-anchor="start">{window.from_ms:,}</text>'
        f'<text x="50%" y="{y}" text-anchor="middle">{escape(unit)}</text>'
        f'<text x="100%" y="{y}" text-anchor="end">{window.to_ms:,}</text>'
    )
