"""Before and after an action: what was measured, what the load would have been before, and when it was done."""

from collections.abc import Callable, Sequence
from typing import Final

from markupsafe import Markup

from api import formats
from api.charts_lines import runs
from api.charts_parts import AXIS_PX, frame, nice_ticks, px, share, x_time_axis, y_axis
from core.evidence import Window
from core.units import DAY_MS
from core.verification import TraceDay

HEIGHT: Final = 220
NOON_MS: Final = DAY_MS // 2


def verification_chart(
    days: Sequence[TraceDay],
    action_ms: int,
    *,
    label: str,
    axis_text: Callable[[float], str] = formats.short,
) -> Markup | None:
    """The days around an action; None with less than two.

    A day stands at its noon. The band is p10 to p90 of how days before the action lay around the baseline.
    """
    if len(days) < 2:
        return None
    window = Window(days[0].day_ms, days[-1].day_ms + DAY_MS)
    plot = HEIGHT - AXIS_PX - 4
    tops = [
        value
        for day in days
        for value in (day.measured, day.expected, day.high, day.peers)
        if value is not None
    ]
    ticks = nice_ticks(max(tops))

    def x(ts_ms: int) -> str:
        return px(1000 * (ts_ms - window.from_ms) / (window.to_ms - window.from_ms))

    def y(value: float) -> str:
        return px(plot * (1 - max(value, 0.0) / ticks[-1]))

    body = [_band(days, x, y)]
    lines: tuple[tuple[str, list[float | None]], ...] = (
        ("faint", [day.peers for day in days]),
        ("expected", [day.expected for day in days]),
        ("busy", [day.measured for day in days]),
    )
    for key, values in lines:
        steps = []
        points = [(day.day_ms + NOON_MS, value) for day, value in zip(days, values, strict=True)]
        for run in runs(points, DAY_MS):
            places = [f"{x(at)} {y(value)}" for at, value in run]
            steps.append("M" + "L".join(places) + ("h.1" if len(places) == 1 else ""))
        if steps:
            body.append(f'<path class="line {key}" d="{"".join(steps)}" vector-effect="non-scaling-stroke"/>')
    at = share(action_ms - window.from_ms, window.to_ms - window.from_ms)
    is_late = 2 * (action_ms - window.from_ms) > window.to_ms - window.from_ms
    anchor, shift = ("end", "-6") if is_late else ("start", "6")
    return frame(
        y_axis(ticks, [axis_text(value) for value in ticks], plot_px=plot)
        + f'<svg aria-hidden="true" width="100%" height="{px(plot)}" viewBox="0 0 1000 {px(plot)}"'
        f' preserveAspectRatio="none" overflow="visible">{"".join(body)}</svg>'
        + f'<line class="threshold" x1="{at}" x2="{at}" y1="-12" y2="{px(plot)}"/>'
        + f'<text class="name" x="{at}" dx="{shift}" y="-4" text-anchor="{anchor}">done {formats.day(action_ms)}</text>'
        + x_time_axis(window, plot_px=plot),
        label=label,
        height=HEIGHT,
        kind="axis",
    )


def _band(days: Sequence[TraceDay], x: Callable[[int], str], y: Callable[[float], str]) -> str:
    """The p10–p90 band, in pieces where days are missing."""
    pieces = []
    run: list[TraceDay] = []
    for day in [*days, None]:
        if day is not None and day.low is not None and (not run or day.day_ms - run[-1].day_ms == DAY_MS):
            run.append(day)
            continue
        if len(run) > 1:
            top = [f"{x(one.day_ms + NOON_MS)} {y(one.high or 0.0)}" for one in run]
            low = [f"{x(one.day_ms + NOON_MS)} {y(one.low or 0.0)}" for one in reversed(run)]
            pieces.append(f"M{'L'.join(top + low)}Z")
        run = [day] if day is not None and day.low is not None else []
    return f'<path class="forecast" d="{"".join(pieces)}"/>' if pieces else ""
