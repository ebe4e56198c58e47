"""A host's GPUs side by side over time: one strip each, coloured by activity or shaded by a figure; the same as a table."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from markupsafe import Markup
from sqlalchemy.orm import Session

from api import formats
from api.charts_parts import AXIS_PX, frame, x_time_axis
from api.charts_strips import Cell, heat_strip
from api.pages import host_heat_quarters
from api.resources.fleet_rows import FleetGpu
from api.resources.scope import Scope
from api.words import ACTIVITY, activity_name
from core.activity import Activity
from core.evidence import Window
from core.quarters import QUARTER_MS
from core.units import DAY_MS, HOUR_MS, MINUTE_MS
from store.queries import gpu_heat

STEPS_MS: Final = (QUARTER_MS, *(hours * HOUR_MS for hours in (1, 2, 3, 4, 6, 12, 24, 48, 168)))
MOST_CELLS: Final = 200
"""Two days of quarters, a week of hours, with room for borders; more would be finer than a screen shows."""


@dataclass(frozen=True, slots=True)
class Metric:
    """What strips can show.

    Attributes:
        name: for people. said: what a title says of its mean. column: of the hours; empty: activity.
        text_of: how a value reads.
        scale: from what is full, for a GPU; None: shares, full at 1. missing: what to say where nobody measured it.
    """

    name: str
    said: str
    column: str
    text_of: Callable[[float | None], str] = formats.percent
    scale: Callable[[FleetGpu], float | None] | None = None
    missing: str = ""


COUNTERS: Final = (
    "Not measured on this host in this period: it takes the profiling counters of the card (GPM from Hopper on, else "
    "dcgm-exporter's profiling metrics)."
)
METRICS: Final = {
    "activity": Metric("activity", "", ""),
    "busy": Metric("busy", "Busy {} of the time", "busy_ratio"),
    "power": Metric(
        "power", "{} a GPU on average", "power_w", formats.watts, lambda gpu: gpu.now.power_limit_w
    ),
    "memory": Metric(
        "memory",
        "{} held on a GPU on average",
        "memory_used_bytes",
        formats.gib,
        lambda gpu: gpu.now.memory_total_bytes,
    ),
    "sm": Metric("SM activity", "SMs at work {} of the time", "sm_active_ratio", missing=COUNTERS),
    "dram": Metric("DRAM activity", "Memory moving {} of the time", "dram_active_ratio", missing=COUNTERS),
    "tensor": Metric(
        "tensor activity", "Tensor cores at work {} of the time", "tensor_active_ratio", missing=COUNTERS
    ),
}


@dataclass(frozen=True, slots=True)
class Grid:
    """Even steps over a window: starts of the cells, all of one length."""

    first_ms: int
    step_ms: int
    count: int

    @property
    def window(self) -> Window:
        """From the first cell to the end of the last."""
        return Window(self.first_ms, self.first_ms + self.count * self.step_ms)

    def when(self, at: int) -> str:
        """Start of cell number ``at``."""
        return formats.minute(self.first_ms + at * self.step_ms)


@dataclass(frozen=True, slots=True)
class HeatRow:
    """One strip; ``cells`` are what the table says of each step."""

    name: str
    href: str
    strip: Markup
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Heat:
    """The strips of a host.

    Attributes:
        title: what they show, as a sentence. full: what the darkest shade stands for; empty for activity. missing: why there is nothing to show, or empty.
        starts: of the steps, for the table. step_text: length of a cell. whole_hours: cells are finer, and some hours of
            GPUs are shown whole.
    """

    metric: Metric
    title: str
    rows: tuple[HeatRow, ...]
    machine: tuple[HeatRow, ...]
    axis: Markup
    activities: tuple[Activity, ...]
    full: str
    missing: str
    starts: tuple[str, ...]
    step_text: str
    whole_hours: bool = False


def grid_of(window: Window) -> Grid:
    """The finest steps that a screen shows."""
    for step_ms in STEPS_MS:
        first = window.from_ms - window.from_ms % step_ms
        count = -(-(window.to_ms - first) // step_ms)
        if count <= MOST_CELLS:
            break
    return Grid(first, step_ms, max(1, count))


def read_heat(
    scope: Scope, gpus: Sequence[FleetGpu], host: str | None, name: str, link: Callable[[str], str]
) -> Heat:
    """The strips of some GPUs over the scope's window.

    Args:
        name: key of ``METRICS``. link: address of a GPU's page.
    """
    metric, grid = METRICS[name], grid_of(scope.window)
    # The data may begin within an hour, and that hour counts.
    window = Window(scope.window.from_ms - scope.window.from_ms % HOUR_MS, scope.window.to_ms)
    ids = [gpu.now.id for gpu in gpus]
    session, in_quarters = scope.session, grid.step_ms < HOUR_MS
    step_ms = max(grid.step_ms, HOUR_MS)
    fine = gpu_heat.gpu_quarters(session, window, ids) if in_quarters else {}
    cells: dict[int, dict[int, Cell]]
    if metric.column:
        values = gpu_heat.value_steps(session, window, step_ms, ids, metric.column)
        if in_quarters:
            values = host_heat_quarters.values(values, fine, metric.column)
        cells, title = value_cells(gpus, metric, values), value_title(metric, values)
    else:
        steps = gpu_heat.activity_steps(session, window, step_ms, ids)
        cells = activity_cells(host_heat_quarters.activities(steps, fine) if in_quarters else steps)
        title = activity_title(steps.values())
    told = {} if host is None else _told(session, window, grid, host)
    heat = heat_of(gpus, metric, grid, cells, told, title=title, link=link)
    return replace(heat, whole_hours=None in fine.values())


def _told(
    session: Session, window: Window, grid: Grid, host: str
) -> Mapping[int, Mapping[str, float | None]]:
    """The machine's own figures by start of the step."""
    hours = gpu_heat.host_steps(session, window, max(grid.step_ms, HOUR_MS), host)
    if grid.step_ms >= HOUR_MS:
        return hours
    return host_heat_quarters.machine(hours, gpu_heat.host_quarters(session, window, host))


def activity_cells(steps: Mapping[tuple[int, int], Mapping[Activity, float]]) -> dict[int, dict[int, Cell]]:
    """By GPU and start of the step the activity with most of its seconds; pure."""
    cells: dict[int, dict[int, Cell]] = {}
    for (gpu_id, from_ms), seconds in steps.items():
        if seconds:
            main = max(seconds, key=lambda one: seconds[one])
            cells.setdefault(gpu_id, {})[from_ms] = Cell(main, activity_name(main))
    return cells


def value_cells(
    gpus: Sequence[FleetGpu], metric: Metric, steps: Sequence[gpu_heat.Step]
) -> dict[int, dict[int, Cell]]:
    """By GPU and start of the step the value as a share of what is full; pure."""
    full = full_of(gpus, metric, [step.value for step in steps])
    cells: dict[int, dict[int, Cell]] = {}
    for step in steps:
        if step.value is not None and full:
            cells.setdefault(step.gpu_id, {})[step.from_ms] = Cell(
                step.value / full, metric.text_of(step.value)
            )
    return cells


def activity_title(steps: Iterable[Mapping[Activity, float]]) -> str:
    """The activity with most of the time, as a sentence; pure."""
    total: dict[Activity, float] = {}
    for seconds in steps:
        for activity, value in seconds.items():
            total[activity] = total.get(activity, 0.0) + value
    if not total:
        return "Activity"
    main = max(total, key=lambda one: total[one])
    name = activity_name(main)
    return f"{name[0].upper()}{name[1:]} for {formats.percent(total[main] / sum(total.values()))} of the time seen"


def value_title(metric: Metric, steps: Sequence[gpu_heat.Step]) -> str:
    """The mean over all steps, as a sentence; pure."""
    known = [step.value for step in steps if step.value is not None]
    if not known:
        return metric.name[0].upper() + metric.name[1:]
    return metric.said.format(metric.text_of(sum(known) / len(known)))


def full_of(gpus: Sequence[FleetGpu], metric: Metric, values: Sequence[float | None]) -> float | None:
    """What the darkest shade stands for: one scale for all GPUs of the host, the largest limit; else the largest value."""
    if metric.scale is None:
        return 1.0
    limits = [limit for gpu in gpus if (limit := metric.scale(gpu)) is not None]
    known = [value for value in values if value is not None]
    return max(limits or known, default=None)


def heat_of(
    gpus: Sequence[FleetGpu],
    metric: Metric,
    grid: Grid,
    cells: Mapping[int, Mapping[int, Cell]],
    machine: Mapping[int, Mapping[str, float | None]],
    *,
    title: str,
    link: Callable[[str], str],
) -> Heat:
    """Lay out the strips; pure."""
    starts = tuple(grid.first_ms + at * grid.step_ms for at in range(grid.count))
    blank = Cell(None, "")
    rows = []
    for gpu in gpus:
        now, mine = gpu.now, cells.get(gpu.now.id, {})
        name = f"GPU {now.gpu_index}" if now.gpu_index is not None else now.gpu_uuid
        of_gpu = [mine.get(start, blank) for start in starts]
        label = f"{name}: {metric.name} from {grid.when(0)} to {grid.when(grid.count)} UTC, as a table below"
        rows.append(
            HeatRow(name, link(now.gpu_uuid), heat_strip(of_gpu, label=label, when=grid.when), _texts(of_gpu))
        )
    has = {cell.shade for of in cells.values() for cell in of.values() if isinstance(cell.shade, Activity)}
    full = full_of(gpus, metric, []) if metric.column else None
    return Heat(
        metric=metric,
        title=title,
        rows=tuple(rows),
        machine=tuple(_machine_rows(machine, starts, grid)),
        axis=frame(
            x_time_axis(grid.window, plot_px=0), label="time, UTC", height=AXIS_PX + 4, kind="heat-axis"
        ),
        activities=tuple(a for a in ACTIVITY if a in has),
        full=metric.text_of(full) if metric.column and full else "",
        missing="" if cells else metric.missing or "No samples of this in this period.",
        starts=tuple(grid.when(at) for at in range(grid.count)),
        step_text=_length(grid.step_ms),
    )


def _length(step_ms: int) -> str:
    if step_ms < HOUR_MS:
        return f"{step_ms // MINUTE_MS}{formats.NBSP}min"
    if step_ms % DAY_MS:
        return f"{step_ms // HOUR_MS}{formats.NBSP}h"
    days = step_ms // DAY_MS
    return "a day" if days == 1 else f"{days}{formats.NBSP}days"


def _texts(cells: Sequence[Cell]) -> tuple[str, ...]:
    return tuple(cell.text or formats.UNKNOWN for cell in cells)


MACHINE: Final = (
    ("cpu_busy_ratio", "Processors busy"),
    ("cpu_busiest_ratio", "Busiest processor"),
    ("iowait_ratio", "Waiting for disk"),
)


def _machine_rows(
    told: Mapping[int, Mapping[str, float | None]], starts: Sequence[int], grid: Grid
) -> list[HeatRow]:
    """The machine's own strips, of what its agent measured."""
    rows = []
    for column, name in MACHINE:
        values = [told.get(start, {}).get(column) for start in starts]
        if all(value is None for value in values):
            continue
        cells = [Cell(None if v is None else v, "" if v is None else formats.percent(v)) for v in values]
        label = f"{name} from {grid.when(0)} to {grid.when(grid.count)} UTC, as a table below"
        rows.append(
            HeatRow(name, "", heat_strip(cells, label=label, when=grid.when, height=12), _texts(cells))
        )
    return rows
