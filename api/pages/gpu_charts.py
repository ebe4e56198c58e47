"""A GPU's series as drawings, as tables beneath them, and as JSON for the zoom: one list of charts for all three. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from api import formats
from api.charts_areas import Area, stacked_areas
from api.charts_bands import activity_band, say
from api.charts_lanes import Instant, Lane, Stretch, instants, lanes
from api.charts_lines import Line, line_chart
from api.pages import gpu_said
from api.pages.gpu_memory import Layers
from api.pages.gpu_series import GpuPoint, GpuSeries
from api.pages.gpu_slowed import LANES, REASONS, text_of_reasons
from core.readings import GpuIdentity
from core.units import GIB

MOST_ROWS: Final = 48


@dataclass(frozen=True, slots=True)
class GpuChart:
    """One chart: ``title`` says what it shows, ``note`` what it is; ``lines`` have one value a point, in ``unit``.

    ``stacked`` are layers that add up. ``highest``: least top of the axis. ``below``: a band under it.
    """

    name: str
    title: str
    note: str
    unit: str
    digits: int
    lines: tuple[Area, ...]
    svg: Markup
    highest: float | None = None
    threshold: float | None = None
    threshold_text: str = ""
    stacked: bool = False
    below: Markup | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """The same as a table: ``rows`` are start of the step and cells, the newest first."""

    heads: tuple[str, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class Drawing:
    """All that is drawn of one window. ``marks`` None: nothing happened."""

    said: str
    activity_title: str
    band: Markup
    marks: Markup | None
    charts: tuple[GpuChart, ...]
    missing: str


Of = Callable[[GpuPoint], float | None]


def _metric(name: str, scale: float = 1.0) -> Of:
    def of(point: GpuPoint) -> float | None:
        value = point.values.get(name)
        return None if value is None else value * scale

    return of


@dataclass(frozen=True, slots=True)
class _Plan:
    """How one chart is made: lines as class, name, metric, scale to its unit."""

    name: str
    note: str
    unit: str
    lines: tuple[tuple[str, str, str, float], ...]
    digits: int = 0
    height: float = 120
    highest: float | None = None


POWER: Final = _Plan(
    "power",
    "watts: mean of each step, its highest in grey",
    "W",
    (("faint", "highest", "power_max_w", 1.0), ("power", "mean", "power_w", 1.0)),
    height=150,
)
USE: Final = _Plan(
    "use",
    "share of the time a kernel ran (busy); share of cycles in which SMs, tensor cores and memory worked",
    "%",
    (
        ("busy", "busy", "busy_ratio", 100.0),
        ("sm", "SM active", "sm_active_ratio", 100.0),
        ("tensor", "tensor active", "tensor_active_ratio", 100.0),
        ("dram", "DRAM active", "dram_active_ratio", 100.0),
    ),
    height=150,
    highest=100.0,
)
CLOCKS: Final = _Plan(
    "clocks",
    "SM clock in MHz; below it what held clocks back",
    "MHz",
    (("clock", "SM", "sm_clock_hz", 1e-6),),
)
MEMORY_CLOCK: Final = _Plan(
    "memclock",
    "MHz; apart, because it is several times the SM clock on some cards",
    "MHz",
    (("memclock", "memory", "memory_clock_hz", 1e-6),),
    height=90,
)
TEMPERATURE: Final = _Plan(
    "temperature",
    "°C, highest of each step",
    "°C",
    (("faint", "memory", "memory_temperature_c", 1.0), ("temperature", "GPU", "temperature_c", 1.0)),
)
LINKS: Final = _Plan(
    "links",
    "GB/s, both directions together",
    "GB/s",
    (("pcie", "PCIe", "pcie_bytes_per_s", 1e-9), ("nvlink", "NVLink", "nvlink_bytes_per_s", 1e-9)),
    digits=1,
)
SLOW_LINKS: Final = _Plan(
    "links",
    "MB/s, both directions together",
    "MB/s",
    (("pcie", "PCIe", "pcie_bytes_per_s", 1e-6), ("nvlink", "NVLink", "nvlink_bytes_per_s", 1e-6)),
)


def draw(
    series: GpuSeries,
    card: GpuIdentity,
    limit_w: float | None,
    held: Layers,
    happened: Sequence[Instant] = (),
) -> Drawing:
    """The charts of a series; what was never measured has none."""
    window = series.window
    span = formats.span(window.from_ms, window.to_ms)
    max_mhz = card.max_sm_clock_hz / 1e6 if card.max_sm_clock_hz else None
    charts = [
        _lines(
            series,
            POWER,
            gpu_said.power(series, limit_w),
            threshold=limit_w,
            threshold_text=f"limit {formats.watts(limit_w)}",
        ),
        _lines(series, USE, gpu_said.use(series)),
        _memory(series, held, card.memory_total_bytes),
    ]
    if series.has("sm_clock_hz"):
        charts.append(
            _lines(
                series,
                CLOCKS,
                gpu_said.clocks(series),
                threshold=max_mhz,
                threshold_text=f"SM at most {formats.clock_mhz(card.max_sm_clock_hz)}",
                below=slowed_lanes(series),
                aside=gpu_said.steady_memory(series),
            )
        )
    if series.has("memory_clock_hz") and not gpu_said.is_steady(series, "memory_clock_hz"):
        charts.append(_lines(series, MEMORY_CLOCK, gpu_said.memory_clock(series)))
    if series.has("temperature_c"):
        charts.append(_lines(series, TEMPERATURE, gpu_said.temperature(series)))
    if series.has("pcie_bytes_per_s") or series.has("nvlink_bytes_per_s"):
        most = max(series.highest("pcie_bytes_per_s") or 0.0, series.highest("nvlink_bytes_per_s") or 0.0)
        charts.append(_lines(series, LINKS if most >= 2e9 else SLOW_LINKS, gpu_said.links(series)))
    return Drawing(
        said=f"{span} · {series.source}",
        activity_title=gpu_said.activity(series),
        band=activity_band(series.columns, window=window, label=f"Activity, {span}", height=22),
        marks=instants(happened, window=window, label=f"Events, {span}") if happened else None,
        charts=tuple(charts),
        missing="" if series.has("sm_active_ratio") or not series.points else gpu_said.NO_COUNTERS,
    )


def _lines(
    series: GpuSeries,
    plan: _Plan,
    title: str,
    *,
    threshold: float | None = None,
    threshold_text: str = "",
    below: Markup | None = None,
    aside: str = "",
) -> GpuChart:
    points = series.with_gaps()
    lines = tuple(
        Area(key, name, tuple(_metric(metric, scale)(p) for p in points))
        for key, name, metric, scale in plan.lines
        if series.has(metric)
    )
    middles = [p.ts_ms + p.span_ms // 2 for p in points]
    svg = line_chart(
        [Line(line.key, line.name, tuple(zip(middles, line.values, strict=True))) for line in lines],
        window=series.window,
        step_ms=None,
        label=f"{title}: {plan.note}",
        axis_text=lambda v: f"{v:,g}{formats.NBSP}{plan.unit}",
        highest=plan.highest,
        threshold=threshold,
        threshold_text=threshold_text,
        height=plan.height,
    )
    return GpuChart(
        plan.name,
        title,
        plan.note + aside,
        plan.unit,
        plan.digits,
        lines,
        svg,
        plan.highest,
        threshold,
        threshold_text,
        below=below,
    )


def _memory(series: GpuSeries, held: Layers, total_bytes: float | None) -> GpuChart:
    total_gib = total_bytes / GIB if total_bytes else None
    title = gpu_said.memory(series, held, total_bytes)
    note = "GiB by who holds it: mean of each step"
    text = f"the card has {formats.figure(total_gib)}{formats.NBSP}GiB" if total_gib else ""
    svg = stacked_areas(
        [(p.ts_ms, p.ts_ms + p.span_ms) for p in series.with_gaps()],
        held.areas,
        window=series.window,
        label=f"{title}: {note}",
        axis_text=lambda v: f"{v:,g}{formats.NBSP}GiB",
        threshold=total_gib,
        threshold_text=text,
    )
    return GpuChart(
        "memory",
        title,
        note,
        "GiB",
        1,
        held.areas,
        svg,
        threshold=total_gib,
        threshold_text=text,
        stacked=True,
    )


def slowed_lanes(series: GpuSeries) -> Markup | None:
    """What held clocks back: a row for each kind that occurs; None where nothing did."""
    found: dict[str, list[Stretch]] = {}
    for point in series.points:
        for key, seconds in point.slowed.items():
            words = REASONS[key].words
            share = formats.percent(min(seconds / point.covered_s, 1.0)) if point.covered_s else "part"
            stretches = found.setdefault(REASONS[key].lane, [])
            end = point.ts_ms + point.span_ms
            text = f"{words}, {share} of the time"
            last = stretches[-1] if stretches else None
            if last is not None and last.to_ms == point.ts_ms and last.text == text:
                stretches[-1] = Stretch(last.from_ms, end, text)
            else:
                stretches.append(Stretch(point.ts_ms, end, text))
    if not found:
        return None
    rows = [Lane(f"t-{lane}", name, tuple(found[lane])) for lane, name in LANES.items() if lane in found]
    said = ", ".join(row.name for row in rows)
    return lanes(rows, window=series.window, label=f"Clocks held back by: {said}")


Cell = Callable[[GpuPoint], str]


def steps_table(series: GpuSeries) -> Table:
    """The newest points, one column for everything that was measured."""
    columns: list[tuple[str, Cell]] = [
        ("Power", lambda p: formats.watts(p.values.get("power_w"))),
        ("Busy", lambda p: formats.percent(p.values.get("busy_ratio"))),
    ]
    optional: tuple[tuple[str, str, Callable[[float | None], str]], ...] = (
        ("SM", "sm_active_ratio", formats.percent),
        ("Tensor", "tensor_active_ratio", formats.percent),
        ("DRAM", "dram_active_ratio", formats.percent),
        ("Memory", "memory_used_bytes", formats.gib),
        ("SM clock", "sm_clock_hz", formats.clock_mhz),
        ("Temperature", "temperature_c", formats.celsius),
        ("PCIe", "pcie_bytes_per_s", formats.traffic),
        ("NVLink", "nvlink_bytes_per_s", formats.traffic),
    )
    for head, name, text in optional:
        if series.has(name):
            columns.append((head, lambda p, name=name, text=text: text(p.values.get(name))))  # type: ignore[misc]
    if any(point.told for point in series.points):
        columns.append(("Held back by", slowed_text))
    newest = list(reversed(series.points[-MOST_ROWS:]))
    doing = list(reversed(series.columns[-MOST_ROWS:]))
    rows = tuple(
        (p.ts_ms, (say([column]), *(cell(p) for _, cell in columns)))
        for p, column in zip(newest, doing, strict=True)
    )
    return Table(("Activity", *(head for head, _ in columns)), rows, len(series.points) - len(newest))


def slowed_text(point: GpuPoint) -> str:
    """What held clocks back in one step."""
    return (text_of_reasons(point.slowed) or "nothing") if point.told else formats.UNKNOWN


def memory_table(series: GpuSeries, held: Layers) -> Table:
    """The newest points by who held memory."""
    points = series.with_gaps()
    known = [i for i, point in enumerate(points) if point.covered_s > 0]
    shown = known[: -MOST_ROWS - 1 : -1]
    rows = tuple(
        (
            points[i].ts_ms,
            tuple(formats.gib(None if (v := area.values[i]) is None else v * GIB) for area in held.areas),
        )
        for i in shown
    )
    return Table(tuple(area.name for area in held.areas), rows, len(known) - len(rows))


def as_json(series: GpuSeries, drawing: Drawing) -> dict[str, Any]:
    """The drawing at the resolution of the window, null in gaps; bands as SVG; times in epoch seconds."""
    points = series.with_gaps()
    return {
        "from_s": series.window.from_ms / 1000,
        "to_s": series.window.to_ms / 1000,
        "step_s": series.step_ms / 1000,
        "said": drawing.said,
        "activity_title": drawing.activity_title,
        "t": [(p.ts_ms + p.span_ms / 2) / 1000 for p in points],
        "band_svg": str(drawing.band),
        "marks_svg": "" if drawing.marks is None else str(drawing.marks),
        "charts": [
            {
                "name": chart.name,
                "title": chart.title,
                "unit": chart.unit,
                "digits": chart.digits,
                "highest": chart.highest,
                "threshold": chart.threshold,
                "stacked": chart.stacked,
                "below_svg": "" if chart.below is None else str(chart.below),
                "lines": [
                    {
                        "key": line.key,
                        "name": line.name,
                        "values": [_rounded(v, chart.digits) for v in line.values],
                    }
                    for line in chart.lines
                ],
            }
            for chart in drawing.charts
        ],
    }


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits + 1)
