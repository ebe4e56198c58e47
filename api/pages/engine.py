"""One LLM engine: the throughput curve, its hours, what it is set to, its GPUs, what a million tokens costs, its advice."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from api import formats
from api.links import gpu_path, host_path
from api.pages.advice_on import advice_rows
from api.pages.engine_charts import (
    OverTime,
    curve_basis,
    curve_chart,
    curve_title,
    dots_of,
    latency,
    over_time,
)
from api.pages.frame import Frame, build_frame
from api.pages.period import period_bar
from api.pages.view import Address, View, ViewDep
from api.problems import NotFoundError
from api.rec_row import RecommendationRow
from api.resources.engine_detail import EngineDetail, Law, detail
from api.resources.report import gpu_label
from api.templating import render
from api.words import EVENT
from core.evidence import Window
from store.queries.engine_hours import HourOutline

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class CurveRow:
    """Hours at one batch: hours, tokens a second as measured, and by the law."""

    batch: float
    hours: int
    rate: float
    by_law: float | None


@dataclass(frozen=True, slots=True)
class EnginePage:
    """Everything the page prints. ``gpus``: address and name. ``changes``: when, what, what was said."""

    frame: Frame
    of: EngineDetail
    name: str
    headline: str
    title: str
    basis: str
    curve: Markup | None
    curve_rows: tuple[CurveRow, ...]
    charts: tuple[OverTime, ...]
    quiet: str
    settings: tuple[tuple[str, str], ...]
    gpus: tuple[tuple[str, str], ...]
    changes: tuple[tuple[int, str, str], ...]
    advice: tuple[RecommendationRow, ...]
    money_href: str
    host_href: str


LATENCIES: Final[tuple[tuple[str, str, Callable[[HourOutline], float | None]], ...]] = (
    ("First token", "mean time to the first token", lambda hour: hour.ttft_s),
    ("Between tokens", "mean time between tokens", lambda hour: hour.itl_s),
)


def headline(of: EngineDetail) -> str:
    """Who it is and what it does, as a sentence."""
    name = (of.identity.model or of.identity.kind).rstrip("/").rsplit("/", 1)[-1]
    row = of.row
    if row is None:
        return f"{name}: no data in this period"
    if row.tokens_per_s is None:
        return f"{name}: never busy in this period, as far as its figures tell"
    text = f"{name} makes {formats.short(row.tokens_per_s)} tokens a second while busy"
    if row.usd_per_million_tokens is not None:
        text += f", at {formats.money(row.usd_per_million_tokens)} a million"
    return text


def curve_rows(hours: Sequence[HourOutline], law: Law) -> Iterator[CurveRow]:
    """The points of the curve by batch, for the table below it."""
    found: dict[float, list[float]] = {}
    for dot in dots_of(hours):
        found.setdefault(round(dot.x) if dot.x >= 10 else round(dot.x, 1), []).append(dot.y)
    for batch, rates in sorted(found.items()):
        by_law = None if law.step is None or batch <= 0 else law.step.tokens_per_s(batch)
        yield CurveRow(batch, len(rates), sum(rates) / len(rates), by_law)


def charts_of(hours: Sequence[HourOutline], window: Window) -> Iterator[OverTime | None]:
    """Load, rate, cache with preemptions, and latency over time."""
    queues = [hour.waiting for hour in hours if hour.waiting is not None]
    waited = sum(1 for waiting in queues if waiting >= 1)
    busy = sum(1 for hour in hours if hour.busy_s > 0)
    if waited:
        queue = f"Requests waited in {waited} of {busy} busy hours"
    else:
        queue = "Hardly a request waited" if queues else "Requests at once; how many waited is not told"
    yield over_time(
        hours,
        window,
        queue,
        "requests running (dark) and waiting, mean while busy",
        [
            ("busy", "running", lambda hour: hour.running, formats.short),
            ("faint", "waiting", lambda hour: hour.waiting, formats.short),
        ],
    )
    rates = [rate for hour in hours if (rate := hour.tokens_per_s) is not None]
    yield over_time(
        hours,
        window,
        f"{formats.short(max(rates))} tokens a second in its best hour" if rates else "Tokens a second",
        "generated tokens per second of busy time",
        [("busy", "tokens/s", lambda hour: hour.tokens_per_s, formats.short)],
    )
    full = max((hour.kv_max for hour in hours if hour.kv_max is not None), default=None)
    preempted = sum(hour.preemption_count or 0.0 for hour in hours)
    knows = any(hour.preemption_count is not None for hour in hours)
    thrown = f"{formats.figure(preempted)} preemptions" if knows else "preemptions not told"
    yield over_time(
        hours,
        window,
        f"The KV cache was {formats.percent(full)} full at most; {thrown}",
        "highest share of the KV cache in use",
        [
            ("memory", "KV cache", lambda hour: hour.kv_max, formats.percent),
        ],
        highest=True,
        top=1.0,
        axis_text=lambda value: formats.percent(value, 0),
    )
    if preempted:
        worst = max(hours, key=lambda hour: hour.preemption_count or 0.0)
        yield over_time(
            hours,
            window,
            f"Most preemptions in one hour: {formats.figure(worst.preemption_count)}, {formats.minute(worst.hour_ms)} UTC",
            "preempted requests an hour: the cache had no room, their work was done again",
            [("busy", "preempted", lambda hour: hour.preemption_count, formats.figure)],
            highest=True,
        )
    for name, what, of in LATENCIES:
        known = [value for hour in hours if (value := of(hour)) is not None]
        if known:
            yield over_time(
                hours,
                window,
                f"{name}: {latency(max(known))} in the slowest hour",
                what,
                [("busy", name.lower(), of, latency)],
                axis_text=lambda value: latency(value) if value else "0",
            )


def page_of(
    frame: Frame,
    of: EngineDetail,
    advice: Sequence[RecommendationRow],
    address: Address,
    window: Window,
) -> EnginePage:
    """Lay out one engine; pure."""
    row = of.row
    running, rate = (None, None) if row is None else (row.running_mean, row.tokens_per_s)
    title = curve_title(of.law, running, rate)
    drawn = [chart for chart in charts_of(of.hours, window) if chart is not None]
    return EnginePage(
        frame=frame,
        of=of,
        name=of.identity.engine,
        headline=headline(of),
        title=title,
        basis=curve_basis(of.law),
        curve=curve_chart(of.law, of.hours, title),
        curve_rows=tuple(curve_rows(of.hours, of.law)),
        charts=tuple(drawn),
        quiet="" if drawn else "It was not busy in this period: nothing to draw.",
        settings=tuple(sorted(of.identity.settings.items())),
        gpus=tuple((address.link(gpu_path(gpu.gpu_uuid)), gpu_label(gpu.identity)) for gpu in of.gpus)
        or tuple((address.link(gpu_path(uuid)), uuid) for uuid in of.identity.gpu_uuids),
        changes=tuple(
            (event.ts_ms, EVENT[event.kind][1].name if event.kind in EVENT else event.kind, event.message)
            for event in of.changes
        ),
        advice=tuple(advice),
        money_href=address.href(money="all") + "#money",
        host_href="" if of.identity.host is None else address.link(host_path(of.identity.host)),
    )


def build_engine(view: View, name: str) -> EnginePage:
    """The page of one engine. Raises ``NotFoundError`` where there never was one of that name."""
    scope, address = view.scope, view.address
    of = detail(scope, name, money=address.get("money") == "all")
    if of is None:
        raise NotFoundError(f"no engine {name!r} in this database: the page Engines lists them")
    hosts: Mapping[str, str | None] = dict.fromkeys(of.identity.gpu_uuids, of.identity.host)
    advice = advice_rows(
        scope.session,
        lambda found: (
            (found.subject.kind == "engine" and found.subject.id == name)
            or not hosts.keys().isdisjoint(found.gpu_uuids)
        ),
        hosts,
    )
    frame = build_frame(view, active="engines", title=of.identity.model or name, periods=period_bar(view))
    return page_of(frame, of, advice, address, scope.window)


@router.get("/engines/{name:name}", response_class=HTMLResponse)
def engine_page(view: ViewDep, name: str) -> str:
    """One engine as HTML."""
    return render("pages/engine.html", build_engine(view, name))
