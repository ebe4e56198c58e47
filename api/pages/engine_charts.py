"""Charts of one LLM engine: the throughput curve with its points, and its hours over time. Values in, SVG out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from api import formats
from api.charts_lines import Line, Point, line_chart
from api.charts_scatter import Curve, Dot, Upright, scatter
from api.resources.engine_detail import Law
from core.evidence import Window
from core.units import DAY_MS, HOUR_MS
from store.queries.engine_hours import HourOutline

MOST_DOTS: Final = 800
MOST_COLUMNS: Final = 400
"""Points of a line: more than a screen shows only weigh."""
LEAST_BUSY_S: Final = 120.0
"""Of an hour, for its point: shorter is start and end."""


@dataclass(frozen=True, slots=True)
class OverTime:
    """One chart over time: its conclusion, what it is, the drawing, columns and rows of the same as a table."""

    title: str
    what: str
    chart: Markup
    columns: tuple[str, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...]


def dots_of(hours: Sequence[HourOutline]) -> list[Dot]:
    """A point for each hour with enough work, thinned evenly where there are too many."""
    known = [
        (hour, hour.running, rate)
        for hour in hours
        if hour.busy_s >= LEAST_BUSY_S and hour.running and (rate := hour.tokens_per_s) is not None
    ]
    every = -(-len(known) // MOST_DOTS) or 1
    return [
        Dot(
            running,
            rate,
            f"{formats.minute(hour.hour_ms)} UTC: {formats.short(running)} running, {formats.short(rate)} tokens/s",
        )
        for hour, running, rate in known[::every]
    ]


def curve_title(law: Law, running: float | None, rate: float | None) -> str:
    """What the curve concludes."""
    step = law.step
    if step is None or running is None:
        return "No honest curve for this engine"
    share, half = step.saturation(running), formats.figure(step.half_batch)
    text = f"At {formats.short(running)} requests it makes {formats.percent(share)} of its reachable rate; {half} would make half"
    reachable = law.reachable_batch
    if reachable is not None and rate:
        # What is reached is measured against the law's own rate, so that the error of the law cancels.
        most = step.tokens_per_s(max(reachable, running)) / step.tokens_per_s(running)
        if most >= 1.15 and (step.reach is None or reachable <= step.reach):
            text += f", its limit of {formats.figure(reachable)} {formats.short(most)} times as much as now"
    return text


def curve_basis(law: Law) -> str:
    """What the line is, in the small print."""
    step = law.step
    if step is None:
        return f"No line is drawn: {law.refusal}."
    time = f"step time = {formats.short(step.fixed_s * 1e3)} ms + {formats.short(step.sequence_s * 1e3)} ms × batch"
    if step.basis == "fit":
        return f"Fitted on its own hours: {time}, ±{formats.percent(step.half_width)}; dashed beyond twice the largest batch seen."
    how = (
        "The formula for its model and GPU"
        if step.basis == "formula"
        else "The formula's slope through its measured step"
    )
    return f"{how}, ±{formats.percent(step.half_width)}: {time}. Not fitted on its own hours, because {law.refusal}."


def curve_chart(law: Law, hours: Sequence[HourOutline], title: str) -> Markup | None:
    """Measured points on the law; None without any point."""
    dots = dots_of(hours)
    if not dots:
        return None
    step, uprights = law.step, []
    seen = max(dot.x for dot in dots)
    if step is not None:
        uprights.append(Upright(step.half_batch, f"half rate {formats.figure(step.half_batch)}"))
    if law.promise_batch is not None and law.promise_s is not None:
        uprights.append(
            Upright(
                law.promise_batch,
                f"promise {formats.milliseconds(law.promise_s)}: {formats.figure(law.promise_batch)}",
            )
        )
    if law.limit is not None:
        uprights.append(Upright(law.limit, f"limit {formats.figure(law.limit)}"))
    curve = None
    if step is not None:
        solid = step.reach if step.basis == "fit" and step.reach is not None else 0.0
        curve = Curve(lambda batch: step.tokens_per_s(batch) if batch > 0 else 0.0, solid, "law")
    said = "; ".join(one.text for one in sorted(uprights, key=lambda one: one.x))
    return scatter(
        dots,
        label=f"Tokens per second by requests running, {len(dots)} hours: {title}. {said}",
        x_unit="requests running",
        curve=curve,
        uprights=sorted(uprights, key=lambda one: one.x),
        to=max(1.5 * seen, 0.0 if step is None else 1.4 * step.half_batch),
    )


def _folded(
    hours: Sequence[HourOutline], of: Callable[[HourOutline], float | None], window: Window, *, highest: bool
) -> tuple[list[Point], int]:
    """Points at most so many: the mean of neighbouring hours, or the highest; and their step."""
    length = max(1, (window.to_ms - window.from_ms) // HOUR_MS)
    size = -(-length // MOST_COLUMNS)
    groups: dict[int, list[float]] = {}
    for hour in hours:
        value = of(hour)
        if value is not None:
            groups.setdefault(hour.hour_ms - hour.hour_ms % (size * HOUR_MS), []).append(value)
    points: list[Point] = [
        (at, max(values) if highest else sum(values) / len(values)) for at, values in sorted(groups.items())
    ]
    return points, size * HOUR_MS


def latency(seconds: float | None) -> str:
    """Milliseconds, seconds from ten of them on."""
    if seconds is None or seconds < 10:
        return formats.milliseconds(seconds)
    return f"{formats.short(seconds)}{formats.NBSP}s"


Series = tuple[str, str, Callable[[HourOutline], float | None], Callable[[float | None], str]]
"""CSS class, name, value of an hour, and how it reads."""


def over_time(
    hours: Sequence[HourOutline],
    window: Window,
    title: str,
    what: str,
    series: Sequence[Series],
    *,
    highest: bool = False,
    top: float | None = None,
    axis_text: Callable[[float], str] = formats.short,
) -> OverTime | None:
    """Some figures of its hours over time; None where no hour knows any."""
    lines, step = [], HOUR_MS
    for key, name, of, _ in series:
        points, step = _folded(hours, of, window, highest=highest)
        if points:
            lines.append(Line(key, name, tuple(points)))
    if not lines:
        return None
    chart = line_chart(
        lines, window=window, label=f"{title}. {what}", step_ms=step, highest=top, axis_text=axis_text
    )
    return OverTime(
        title,
        what,
        chart,
        tuple(name for _, name, _, _ in series),
        tuple(_by_day(hours, series, highest=highest)),
    )


def _by_day(
    hours: Sequence[HourOutline], series: Sequence[Series], *, highest: bool
) -> list[tuple[int, tuple[str, ...]]]:
    """A row a day: means of its busy hours, or the highest."""
    days: dict[int, list[HourOutline]] = {}
    for hour in hours:
        days.setdefault(hour.hour_ms - hour.hour_ms % DAY_MS, []).append(hour)
    rows = []
    for day, of_day in sorted(days.items(), reverse=True):
        cells = []
        for _, _, of, text in series:
            known = [value for hour in of_day if (value := of(hour)) is not None]
            cells.append(text((max(known) if highest else sum(known) / len(known)) if known else None))
        rows.append((day, tuple(cells)))
    return rows
