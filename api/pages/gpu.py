"""One GPU: what it did and cost, its counters, memory, clocks and events over time, who held it, its advice and health."""

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends
from fastapi.responses import HTMLResponse, JSONResponse

from api.charts_bands import seconds_by_activity
from api.charts_lanes import Instant
from api.links import gpu_path
from api.pages import gpu_said
from api.pages.frame import OPEN, Frame, build_frame
from api.pages.gpu_charts import Drawing, Table, as_json, draw, memory_table, steps_table
from api.pages.gpu_health import MOST_EVENTS, EventLine, HealthBlock, Said, alarms, event_lines, health_block
from api.pages.gpu_holders import Holder, holders
from api.pages.gpu_memory import Layers, layers
from api.pages.gpu_money import GpuMoney, hourly_scope, money
from api.pages.gpu_series import METRICS, RAW_UP_TO_MS, GpuSeries, from_hours, from_samples
from api.pages.gpu_slice import slices_of
from api.pages.period import PeriodBar, links_of
from api.pages.view import View, ViewDep
from api.problems import NotFoundError
from api.rec_row import RecommendationRow, row_of
from api.resources.scope import Scope, parse_time
from api.templating import render
from api.text import clipped
from core.activity import Activity
from core.clock import iso
from core.errors import UsageError
from core.evidence import Window
from core.readings import WorkloadKey
from core.samples import GpuEvent, GpuSample
from core.units import DAY_MS, HOUR_MS, MINUTE_MS
from store.queries import gpu_trace, hours
from store.queries.events import gpu_events
from store.queries.fleet import FleetGpu
from store.queries.gpu_trace import Held
from store.queries.health import gpu_health
from store.queries.workloads import workload_keys

router = APIRouter(include_in_schema=False)

SPANS = (
    ("10m", "10 min"),
    ("1h", "1 h"),
    ("6h", "6 h"),
    ("24h", "24 h"),
    ("7d", "7 days"),
    ("30d", "30 days"),
    ("90d", "90 days"),
)
DEFAULT_SPAN = "24h"
SHORTEST_MS = MINUTE_MS
LONGEST_MS = 400 * DAY_MS
MOST_MARKS = 200
"""Marks on the axis; more would be one smear."""


@dataclass(frozen=True, slots=True)
class Close:
    """One GPU as a question finds it: its key, its card, the window of its charts, its address."""

    view: View
    gpu_id: int
    gpu: FleetGpu

    @property
    def scope(self) -> Scope:
        """Over the window of the charts."""
        return self.view.scope

    @property
    def uuid(self) -> str:
        """As the driver gives it."""
        return self.gpu.identity.gpu_uuid

    @property
    def path(self) -> str:
        """Address of its page."""
        return gpu_path(self.uuid)

    @property
    def name(self) -> str:
        """For people: ``GPU 0 on node-1``, of a MIG slice ``Slice of GPU 0 on node-1``."""
        card = self.gpu.identity
        name = f"GPU {card.index}" if card.index is not None else clipped(card.gpu_uuid)
        if card.is_slice and card.index is not None:
            name = f"Slice of {name}"
        return name + (f" on {clipped(card.host)}" if card.host else "")


@dataclass(frozen=True, slots=True)
class Go:
    """Where the links above the charts lead without a script; None: there is nothing more that way."""

    earlier: str
    later: str | None
    closer: str | None
    wider: str | None


@dataclass(frozen=True, slots=True)
class GpuPage:
    """Everything the page prints; charts are of ``window``, money of the clock hours around it. ``slices``: address and UUID."""

    frame: Frame
    gpu: FleetGpu
    name: str
    headline: str
    aside: str
    latest: GpuSample | None
    limit_w: float | None
    window: Window
    from_at: str
    to_at: str
    newest_at: str
    path: str
    parts_href: str
    reload_href: str
    go: Go
    series: GpuSeries
    drawing: Drawing
    steps: Table
    memory: Table
    activities: tuple[Activity, ...]
    covered_ratio: float | None
    money: GpuMoney
    alarms: tuple[Said, ...]
    health: HealthBlock
    events: tuple[EventLine, ...]
    events_left_out: int
    holders: tuple[Holder, ...]
    holders_left_out: int
    recommendations: tuple[RecommendationRow, ...]
    slices: tuple[tuple[str, str], ...] = ()


def close_up(view: View, gpu_uuid: str) -> Close:
    """The GPU of that UUID. Raises ``NotFoundError``."""
    found = gpu_trace.one_gpu(view.scope.session, gpu_uuid)
    if found is None:
        raise NotFoundError(f"no GPU {gpu_uuid[:80]!r} in this database: the fleet page lists all of them")
    return Close(view, *found)


def chart_window(view: View, gpu: FleetGpu) -> Window:
    """The window of the charts; it ends at the GPU's newest sample unless told otherwise.

    Raises:
        UsageError: a time that cannot be read, or a window shorter than a minute, longer than 400 days or turned around.
    """
    address, now_ms = view.address, view.scope.now_ms
    newest = gpu.last_seen_ms if gpu.last_seen_ms is not None else now_ms
    since, until = address.get("since"), address.get("until")
    through, month = address.get("through"), address.get("month")
    if month:
        asked = view.scope.asked or view.scope.window
        return Window(asked.from_ms, min(asked.to_ms, max(newest, asked.from_ms + HOUR_MS)))
    if through:
        last = parse_time(through, back_from_ms=now_ms, flag="through")
        to_ms = last - last % DAY_MS + DAY_MS
    else:
        to_ms = parse_time(until, back_from_ms=now_ms, flag="until") if until else newest
    from_ms = parse_time(since or DEFAULT_SPAN, back_from_ms=to_ms, flag="since")
    if not SHORTEST_MS <= to_ms - from_ms <= LONGEST_MS:
        raise UsageError(
            "the window of a GPU's charts is from one minute to 400 days: correct since or until"
        )
    return Window(from_ms, to_ms)


def read_series(close: Close) -> GpuSeries:
    """The GPU's series over the window: samples where there are any and the window is near, else hours."""
    scope, window = close.scope, close.scope.window
    if window.to_ms - window.from_ms <= RAW_UP_TO_MS:
        raw = gpu_trace.slim_samples(scope.session, close.gpu_id, close.uuid, window, METRICS)
        if raw:
            return from_samples(raw, window)
    return from_hours(hours.gpu_hours(scope.session, window, [close.uuid]), window)


def read_held(close: Close, series: GpuSeries) -> list[Held]:
    """What each workload held of the memory, at the steps of the series."""
    read = gpu_trace.memory_by_step if series.near else gpu_trace.memory_by_hour
    return read(close.scope.session, close.gpu_id, close.scope.window, series.step_ms)


def memory_layers(series: GpuSeries, held: list[Held], names: dict[int, WorkloadKey]) -> Layers:
    """The memory chart's layers."""
    return layers(series, held, {key: workload.name for key, workload in names.items()})


def marks(events: list[GpuEvent]) -> tuple[Instant, ...]:
    """Events as marks on the time axis, the newest ones."""
    lines = event_lines(events[-MOST_MARKS:])
    return tuple(
        Instant(line.ts_ms, line.mark, f"{line.word.name}: {line.message}", "#events") for line in lines
    )


def power_limit_w(gpu: FleetGpu) -> float | None:
    """Limit in force in the newest sample, else the card's default."""
    limit = gpu.latest.values.get("power_limit_w") if gpu.latest else None
    return gpu.identity.power_limit_default_w if limit is None else limit


def build_gpu(close: Close) -> GpuPage:
    """The page over the window."""
    view, gpu, scope = close.view, close.gpu, close.scope
    session, window, address = scope.session, close.scope.window, close.view.address
    series = read_series(close)
    held = read_held(close, series)
    whole = hourly_scope(scope)
    uses = gpu_trace.uses(session, close.gpu_id, whole.window)
    present = gpu_trace.presences(session, close.gpu_id, window) if series.near else []
    ids = {one.workload_id for one in held} | {use.workload_id for use in uses}
    names = workload_keys(session, ids | {one.workload_id for one in present})
    events = gpu_events(session, window, close.uuid)
    found_layers = memory_layers(series, held, names)
    paid = money(view, gpu, close.path)
    covered_s = sum(point.covered_s for point in series.points)
    lines, more = holders(
        uses,
        present,
        names,
        money=paid.paid,
        covered_s=(paid.clock_h * 3600) or covered_s,
        address=address,
    )
    known_s = (window.to_ms - max(window.from_ms, gpu.first_seen_ms or window.from_ms)) / 1000
    newest = gpu.last_seen_ms or window.to_ms
    found = gpu_trace.advice(session, close.uuid, OPEN)
    happened = event_lines(events)
    health = health_block(gpu_health(session, close.uuid).get(close.uuid), scope.now_ms)
    headline, aside = gpu_said.headline(close.name, series, paid.cost_usd, paid.idle_usd)
    limit = power_limit_w(gpu)
    chosen = (
        ""
        if {"until", "through", "month"} & set(dict(address.period))
        else address.get("since", DEFAULT_SPAN)
    )
    return GpuPage(
        frame=build_frame(
            view,
            active="fleet",
            title=close.name,
            window_text="",
            periods=PeriodBar(links_of(address, SPANS, chosen)),
        ),
        gpu=gpu,
        name=close.name,
        headline=headline,
        aside=aside,
        latest=gpu.latest,
        limit_w=limit,
        window=window,
        from_at=iso(window.from_ms) or "",
        to_at=iso(window.to_ms) or "",
        newest_at=iso(newest) or "",
        path=close.path,
        parts_href=address.link("/costs/parts", by="gpu", key=close.uuid),
        reload_href=address.href(),
        go=links(close.path, window, newest),
        series=series,
        drawing=draw(series, gpu.identity, limit, found_layers, marks(events)),
        steps=steps_table(series),
        memory=memory_table(series, found_layers),
        activities=tuple(seconds_by_activity(series.columns)),
        covered_ratio=min(1.0, covered_s / known_s) if known_s > 0 else None,
        money=paid,
        alarms=alarms(health, events) if window.to_ms >= newest else (),
        health=health,
        events=happened[:MOST_EVENTS],
        events_left_out=max(0, len(happened) - MOST_EVENTS),
        holders=lines,
        holders_left_out=more,
        recommendations=tuple(row_of(str(rec.id), rec.finding, rec.status) for rec in found),
        slices=tuple(
            (address.link(gpu_path(uuid)), uuid) for uuid in slices_of(session, close.uuid, window.from_ms)
        ),
    )


def links(path: str, window: Window, newest: int) -> Go:
    """Shift by a whole window, halve it, double it; never past the newest sample."""
    length = window.to_ms - window.from_ms
    middle = (window.from_ms + window.to_ms) // 2
    closer = Window(middle - length // 4, middle + length // 4)
    wide_to = max(min(middle + length, newest), window.to_ms)
    wider = Window(wide_to - 2 * length, wide_to)
    return Go(
        earlier=_href(path, Window(window.from_ms - length, window.from_ms)),
        later=_href(path, Window(min(window.to_ms, newest - length), min(window.to_ms + length, newest)))
        if window.to_ms < newest
        else None,
        closer=_href(path, closer) if length // 2 >= SHORTEST_MS else None,
        wider=_href(path, wider) if 2 * length <= LONGEST_MS else None,
    )


def _href(path: str, window: Window) -> str:
    return f"{path}?{urlencode({'since': iso(window.from_ms), 'until': iso(window.to_ms)})}"


def question(gpu_uuid: str, view: ViewDep) -> Close:
    """The GPU of the address and the window of its charts."""
    close = close_up(view, gpu_uuid)
    return Close(view.over(chart_window(view, close.gpu)), close.gpu_id, close.gpu)


QuestionDep = Annotated[Close, Depends(question, scope="function")]


@router.get("/gpus/{gpu_uuid:path}/series.json")  # noqa: FAST003 - read by question()
def gpu_series(asked: QuestionDep) -> JSONResponse:
    """What the page's script draws."""
    series = read_series(asked)
    held = read_held(asked, series)
    session = asked.scope.session
    names = workload_keys(session, {one.workload_id for one in held})
    events = gpu_events(session, asked.scope.window, asked.uuid)
    drawing = draw(
        series,
        asked.gpu.identity,
        power_limit_w(asked.gpu),
        memory_layers(series, held, names),
        marks(events),
    )
    return JSONResponse(as_json(series, drawing), headers={"Cache-Control": "no-store"})


@router.get("/gpus/{gpu_uuid:path}", response_class=HTMLResponse)  # noqa: FAST003 - read by question()
def gpu_page(asked: QuestionDep) -> str:
    """One GPU as HTML."""
    return render("pages/gpu.html", build_gpu(asked))
