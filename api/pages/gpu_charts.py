"""A GPU's series as drawings, as the table beneath them, and as JSON for the zoom. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from api import formats
from api.charts_bands import activity_band, say
from api.charts_lines import Line, Point, line_chart
from api.pages.gpu_series import GpuSeries
from core.units import GIB


@dataclass(frozen=True, slots=True)
class Charts:
    """The four drawings and the words beside them."""

    band: Markup
    power: Markup
    busy: Markup
    memory: Markup
    said: str


@dataclass(frozen=True, slots=True)
class TableRow:
    """One step of the table under the charts."""

    ts_ms: int
    doing: str
    power_w: float | None
    busy_ratio: float | None
    memory_used_bytes: float | None


def draw(series: GpuSeries, memory_total_bytes: float | None, power_limit_w: float | None) -> Charts:
    """The charts of a series; pure."""
    window = series.window
    span = formats.span(window.from_ms, window.to_ms)
    power = series.values("power_w")
    peak = series.values("power_max_w")
    memory = tuple((t, None if v is None else v / GIB) for t, v in series.values("memory_used_bytes"))
    total_gib = memory_total_bytes / GIB if memory_total_bytes else None
    return Charts(
        band=activity_band(series.columns, window=window, label=f"Activity, {span}", height=22),
        power=line_chart(
            [Line("faint", "highest", peak), Line("power", "mean", power)],
            window=window,
            step_ms=None,
            label=f"Power in watts, {span}: {_about(power, formats.watts)}",
            axis_text=lambda v: f"{v:g} W",
            threshold=power_limit_w,
            threshold_text=f"limit {formats.watts(power_limit_w)}" if power_limit_w else "",
        ),
        busy=line_chart(
            [Line("busy", "busy", series.values("busy_ratio"))],
            window=window,
            step_ms=None,
            label=f"Busy share, {span}: {_about(series.values('busy_ratio'), formats.percent)}",
            axis_text=lambda v: f"{v * 100:g} %",
            highest=1.0,
            height=120,
        ),
        memory=line_chart(
            [Line("memory", "memory held", memory)],
            window=window,
            step_ms=None,
            label=f"Memory held in GiB, {span}: {_about(memory, lambda v: f'{formats.short(v)} GiB')}",
            axis_text=lambda v: f"{v:g} GiB",
            threshold=total_gib,
            threshold_text=f"the card has {formats.figure(total_gib)} GiB" if total_gib else "",
            height=120,
        ),
        said=f"{span} · {series.source}",
    )


def _about(points: tuple[Point, ...], text: Callable[[float], str]) -> str:
    known = [value for _, value in points if value is not None]
    if not known:
        return "not measured"
    return f"from {text(min(known))} to {text(max(known))}, last {text(known[-1])}"


def table_rows(series: GpuSeries, most: int = 48) -> tuple[tuple[TableRow, ...], int]:
    """The newest points as a table, newest first, and how many older ones are left out."""
    newest = series.points[-most:]
    rows = tuple(
        TableRow(
            p.ts_ms,
            say([column]),
            p.power_w,
            p.busy_ratio,
            p.memory_used_bytes,
        )
        for p, column in zip(reversed(newest), reversed(series.columns[-most:]), strict=True)
    )
    return rows, len(series.points) - len(newest)


def as_json(
    series: GpuSeries, memory_total_bytes: float | None, power_limit_w: float | None
) -> dict[str, Any]:
    """Points at the resolution of the window, null in gaps, and the activity band as SVG; times in epoch seconds."""
    points = series.with_gaps()
    charts = draw(series, memory_total_bytes, power_limit_w)
    return {
        "from_s": series.window.from_ms / 1000,
        "to_s": series.window.to_ms / 1000,
        "step_s": series.step_ms / 1000,
        "said": charts.said,
        "t": [(p.ts_ms + p.span_ms / 2) / 1000 for p in points],
        "power_w": [p.power_w for p in points],
        "power_max_w": [p.power_max_w for p in points],
        "busy_percent": [None if p.busy_ratio is None else 100 * p.busy_ratio for p in points],
        "memory_gib": [None if p.memory_used_bytes is None else p.memory_used_bytes / GIB for p in points],
        "power_limit_w": power_limit_w,
        "memory_total_gib": memory_total_bytes / GIB if memory_total_bytes else None,
        "band_svg": str(charts.band),
    }
