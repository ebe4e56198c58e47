"""One GPU: what it is and costs, its activity, power, busy share and memory over time, who held it, its advice."""

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Annotated
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Depends, Query
from fastapi.responses import HTMLResponse, JSONResponse

from api.charts_bands import seconds_by_activity
from api.deps import ScopeDep
from api.pages.frame import OPEN, Frame, PeriodLink, build_frame
from api.pages.gpu_charts import Charts, TableRow, as_json, draw, table_rows
from api.pages.gpu_health import MOST_EVENTS, EventLine, HealthBlock, Said, alarms, event_lines, health_block
from api.pages.gpu_series import RAW_UP_TO_MS, GpuSeries, from_hours, from_samples
from api.problems import NotFoundError
from api.rec_row import RecommendationRow, row_of
from api.resources import costs, usage
from api.resources.by import By
from api.resources.pricing import price_lookup, spec_of
from api.resources.report_filters import Filters
from api.resources.scope import Scope, in_hours, parse_time
from api.templating import render
from api.words import workload_kind
from core.activity import IDLE, Activity
from core.clock import iso
from core.errors import UsageError
from core.evidence import Price, Window
from core.samples import GpuSample, ProcessSample
from core.units import DAY_MS, HOUR_MS, MINUTE_MS
from store.queries import fleet, hours, recommendations, samples
from store.queries.events import gpu_events
from store.queries.fleet import FleetGpu
from store.queries.health import gpu_health

router = APIRouter(include_in_schema=False)

SPANS = (
    ("10m", "10 min", 10 * MINUTE_MS),
    ("1h", "1 h", HOUR_MS),
    ("6h", "6 h", 6 * HOUR_MS),
    ("24h", "24 h", DAY_MS),
    ("7d", "7 days", 7 * DAY_MS),
    ("30d", "30 days", 30 * DAY_MS),
)
DEFAULT_SPAN = "24h"
SHORTEST_MS = MINUTE_MS
LONGEST_MS = 400 * DAY_MS


@dataclass(frozen=True, slots=True)
class Holder:
    """One workload that held the GPU in the window, by its most memory; ``kind`` in words."""

    name: str
    kind: str
    user: str | None
    memory_max_bytes: float | None
    first_ms: int
    last_ms: int


@dataclass(frozen=True, slots=True)
class GpuMoney:
    """Figures of one GPU that come from hours.

    Attributes:
        widened: they are of whole clock hours, as the table of costs, and those are more than the charts' window.
        price: now.
        cost_usd: of clock time. idle_usd, unseen_usd: parts of it. All None unpriced. idle_h: empty or parked.
    """

    widened: bool
    price: Price | None
    cost_usd: Decimal | None
    idle_usd: Decimal | None
    unseen_usd: Decimal | None
    idle_h: float


@dataclass(frozen=True, slots=True)
class GpuPage:
    """Everything the page prints; charts are of ``window``, money of the clock hours around it."""

    frame: Frame
    gpu: FleetGpu
    name: str
    latest: GpuSample | None
    limit_w: float | None
    window: Window
    from_at: str
    to_at: str
    series_href: str
    earlier: str
    later: str | None
    series: GpuSeries
    charts: Charts
    activities: tuple[Activity, ...]
    covered_ratio: float | None
    money: GpuMoney
    alarms: tuple[Said, ...]
    health: HealthBlock
    events: tuple[EventLine, ...]
    events_left_out: int
    holders: tuple[Holder, ...]
    recommendations: tuple[RecommendationRow, ...]
    rows: tuple[TableRow, ...]
    rows_left_out: int


def find(scope: Scope, gpu_uuid: str) -> FleetGpu:
    """The GPU of that UUID. Raises ``NotFoundError``."""
    for gpu in fleet.gpus(scope.session):
        if gpu.identity.gpu_uuid == gpu_uuid:
            return gpu
    raise NotFoundError(f"no GPU {gpu_uuid[:80]!r} in this database: the fleet page lists all of them")


def chart_window(gpu: FleetGpu, now_ms: int, since: str | None, until: str | None) -> Window:
    """The window of the charts; it ends at the GPU's newest sample unless told otherwise.

    Raises:
        UsageError: a time that cannot be read, or a window shorter than a minute or turned around.
    """
    newest = gpu.last_seen_ms if gpu.last_seen_ms is not None else now_ms
    to_ms = newest if until is None else parse_time(until, back_from_ms=now_ms, flag="until")
    from_ms = parse_time(since or DEFAULT_SPAN, back_from_ms=to_ms, flag="since")
    if not SHORTEST_MS <= to_ms - from_ms <= LONGEST_MS:
        raise UsageError(
            "the window of a GPU's charts is from one minute to 400 days: correct since or until"
        )
    return Window(from_ms, to_ms)


def read_series(scope: Scope, gpu_uuid: str) -> GpuSeries:
    """The GPU's series over the scope's window: samples where there are any and the window is near, else hours."""
    window = scope.window
    if window.to_ms - window.from_ms <= RAW_UP_TO_MS:
        raw = samples.gpu_samples(scope.session, gpu_uuid, window)
        if raw:
            return from_samples(raw, window)
    return from_hours(hours.gpu_hours(scope.session, window, [gpu_uuid]), window)


def money(scope: Scope, gpu: FleetGpu) -> GpuMoney:
    """What ``costs --by gpu`` says of this GPU over the scope's window, and its price now."""
    uuid = gpu.identity.gpu_uuid
    window = in_hours(scope.window, hours.bounds(scope.session))
    hourly = replace(scope, window=window)
    only = Filters(gpu=(uuid,))
    row = next(iter(costs.rows(hourly, By.GPU, only)), None)
    used = next(iter(usage.rows(hourly, By.GPU, only)), None)
    prices = price_lookup(scope.session, scope.settings)
    spec = spec_of(gpu.identity)
    return GpuMoney(
        widened=window.from_ms < scope.window.from_ms or window.to_ms > scope.window.to_ms,
        price=prices(gpu.identity, spec.gpu_key if spec else None, scope.now_ms),
        cost_usd=None if row is None else row.cost_usd,
        idle_usd=None if row is None else row.idle_cost_usd,
        unseen_usd=None if row is None else row.unseen_cost_usd,
        idle_h=0.0 if used is None else sum(used.seconds_by_activity.get(a, 0.0) for a in IDLE) / 3600,
    )


def holders(rows: list[ProcessSample]) -> tuple[Holder, ...]:
    """Who held the GPU, most memory first."""
    by_key: dict[tuple[str, str], Holder] = {}
    for row in rows:
        key = (row.workload.kind, row.workload.key)
        known = by_key.get(key)
        end = row.ts_ms + row.span_ms
        if known is None:
            by_key[key] = Holder(
                row.workload.name,
                workload_kind(row.workload),
                row.workload.user,
                row.memory_used_bytes,
                row.ts_ms,
                end,
            )
            continue
        memory = [m for m in (known.memory_max_bytes, row.memory_used_bytes) if m is not None]
        by_key[key] = replace(
            known,
            memory_max_bytes=max(memory, default=None),
            first_ms=min(known.first_ms, row.ts_ms),
            last_ms=max(known.last_ms, end),
        )
    return tuple(sorted(by_key.values(), key=lambda h: -(h.memory_max_bytes or 0.0)))


def power_limit_w(gpu: FleetGpu) -> float | None:
    """Limit in force in the newest sample, else the card's default."""
    limit = gpu.latest.values.get("power_limit_w") if gpu.latest else None
    return gpu.identity.power_limit_default_w if limit is None else limit


def build_gpu(scope: Scope, gpu: FleetGpu, *, chosen: str, pinned: bool) -> GpuPage:
    """The page over the scope's window; ``pinned``: the window's end was asked for, so it stays in the links."""
    window, uuid = scope.window, gpu.identity.gpu_uuid
    series = read_series(scope, uuid)
    limit = power_limit_w(gpu)
    rows, left_out = table_rows(series)
    path = f"/gpus/{quote(uuid, safe='')}"
    name = f"GPU {gpu.identity.index}" if gpu.identity.index is not None else uuid
    name += f" on {gpu.identity.host}" if gpu.identity.host else ""
    length = window.to_ms - window.from_ms
    known_s = (window.to_ms - max(window.from_ms, gpu.first_seen_ms or window.from_ms)) / 1000
    covered_s = sum(sum(point.seconds.values()) for point in series.points)
    newest = gpu.last_seen_ms or window.to_ms
    found = [rec for rec in recommendations.listing(scope.session, OPEN) if uuid in rec.finding.gpu_uuids]
    events = gpu_events(scope.session, window, uuid)
    happened = event_lines(events)
    health = health_block(gpu_health(scope.session, uuid).get(uuid), scope.now_ms)
    process_rows = samples.processes(scope.session, uuid, window) if length <= RAW_UP_TO_MS else []
    return GpuPage(
        frame=build_frame(
            scope,
            active="fleet",
            title=name,
            window_text="",
            periods=_periods(path, chosen, iso(window.to_ms) if pinned else None),
        ),
        gpu=gpu,
        name=name,
        latest=gpu.latest,
        limit_w=limit,
        window=window,
        from_at=iso(window.from_ms) or "",
        to_at=iso(window.to_ms) or "",
        series_href=f"{path}/series.json",
        earlier=_href(path, length, window.from_ms),
        later=_href(path, length, min(window.to_ms + length, newest)) if window.to_ms < newest else None,
        series=series,
        charts=draw(series, gpu.identity.memory_total_bytes, limit),
        activities=tuple(seconds_by_activity(series.columns)),
        covered_ratio=min(1.0, covered_s / known_s) if known_s > 0 else None,
        money=money(scope, gpu),
        alarms=alarms(health, events) if window.to_ms >= newest else (),
        health=health,
        events=happened[:MOST_EVENTS],
        events_left_out=max(0, len(happened) - MOST_EVENTS),
        holders=holders(process_rows),
        recommendations=tuple(row_of(str(rec.id), rec.finding, rec.status) for rec in found),
        rows=rows,
        rows_left_out=left_out,
    )


def _href(path: str, length_ms: int, to_ms: int) -> str:
    return f"{path}?{urlencode({'since': iso(to_ms - length_ms), 'until': iso(to_ms)})}"


def _periods(path: str, chosen: str, until: str | None) -> tuple[PeriodLink, ...]:
    keep = {} if until is None else {"until": until}
    return tuple(
        PeriodLink(text, f"{path}?{urlencode({'since': key, **keep})}", key == chosen)
        for key, text, _ in SPANS
    )


Time = Annotated[str | None, Query(max_length=40)]


@dataclass(frozen=True, slots=True)
class Question:
    """One GPU, over which window, as asked."""

    scope: Scope
    gpu: FleetGpu
    since: str | None
    until: str | None


def question(gpu_uuid: str, scope: ScopeDep, since: Time = None, until: Time = None) -> Question:
    """The GPU of the address and the window of its charts."""
    gpu = find(scope, gpu_uuid)
    return Question(replace(scope, window=chart_window(gpu, scope.now_ms, since, until)), gpu, since, until)


QuestionDep = Annotated[Question, Depends(question, scope="function")]


@router.get("/gpus/{gpu_uuid}", response_class=HTMLResponse)  # noqa: FAST003 - read by question()
def gpu_page(asked: QuestionDep) -> str:
    """One GPU as HTML."""
    chosen = asked.since or DEFAULT_SPAN
    return render(
        "pages/gpu.html", build_gpu(asked.scope, asked.gpu, chosen=chosen, pinned=asked.until is not None)
    )


@router.get("/gpus/{gpu_uuid}/series.json")  # noqa: FAST003 - read by question()
def gpu_series(asked: QuestionDep) -> JSONResponse:
    """What the page's script draws."""
    series = read_series(asked.scope, asked.gpu.identity.gpu_uuid)
    total = asked.gpu.identity.memory_total_bytes
    return JSONResponse(as_json(series, total, power_limit_w(asked.gpu)))
