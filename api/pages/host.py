"""One host: its GPUs side by side over time, what they cost and did for whom, the machine, its events and advice."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final
from urllib.parse import urlencode

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from api import formats
from api.links import engine_path, gpu_path, host_path, owner_path, workload_path
from api.overview_parts import Tile
from api.pages import breakdown_rows
from api.pages.fleet_lines import GpuLine, Links, gpu_lines
from api.pages.frame import Frame, build_frame
from api.pages.gpu_health import EventLine, event_lines
from api.pages.host_heat import METRICS, Heat, read_heat
from api.pages.period import PeriodLink, period_bar
from api.pages.view import Address, View, ViewDep
from api.rec_row import RecommendationRow, rows_of
from api.resources.host_detail import HostDetail, HostUse, host_detail
from api.resources.report_sum import Sums, ratio
from api.templating import render
from core.activity import Activity
from core.errors import UsageError
from core.units import HOUR_MS

router = APIRouter(include_in_schema=False)

MOST_USES: Final = 10
WORTH_SAYING: Final = 0.005
"""A smaller idle share of the money is not worth a reader's time."""
MOST_EVENTS: Final = 20


@dataclass(frozen=True, slots=True)
class UseLine:
    """One row of who used the host, runs of one program together; ``href`` None: nobody to link to."""

    label: str
    runs: int
    href: str | None
    cost_usd: Decimal | None
    gpu_h: float
    active_ratio: float | None
    share: float | None


@dataclass(frozen=True, slots=True)
class HostEvent:
    """Something that happened to one of its GPUs."""

    gpu: str
    href: str
    line: EventLine


@dataclass(frozen=True, slots=True)
class HostPage:
    """Everything the page prints.

    Attributes:
        name: of the host; None: of no known one. models: of its GPUs with how many of each. facts: what it is, pairs of name and text.
        shown: what strips show, as links. uses, events: the first ones; ``more_uses``, ``more_events``: how many more.
    """

    frame: Frame
    name: str | None
    headline: str
    lede: str
    tiles: tuple[Tile, ...]
    heat: Heat
    shown: tuple[PeriodLink, ...]
    lines: tuple[GpuLine, ...]
    models: tuple[tuple[str | None, int], ...]
    uses: tuple[UseLine, ...]
    more_uses: int
    costs_href: str
    engines: tuple[tuple[str, str, str], ...]
    teams: tuple[tuple[str, str | None, Decimal | None], ...]
    facts: tuple[tuple[str, str], ...]
    labels: tuple[tuple[str, str], ...]
    advice: tuple[RecommendationRow, ...]
    more_advice: int
    advice_href: str
    events: tuple[HostEvent, ...]
    more_events: int
    live: bool


def headline(detail: HostDetail) -> str:
    """What of the host's money did nothing, else what it does now: a sentence without its name."""
    counts, whole = detail.group.counts, detail.whole
    if not counts.all:
        return "no GPU was seen in this period"
    cost, idle = whole.spend_usd, whole.usd("idle_cost_usd")
    if cost and idle is not None:
        share = float(idle / cost)
        if share >= WORTH_SAYING:
            return f"{formats.percent(share)} of {formats.money(cost)} bought hours in which nothing ran"
        return f"nearly all of {formats.money(cost)} bought hours of work"
    return f"{counts.work} of {counts.all} GPUs work, {counts.idle} do nothing"


def lede(detail: HostDetail) -> str:
    """What its GPUs do now."""
    counts = detail.group.counts
    said = [f"now {counts.work} at work, {counts.idle} idle"]
    if counts.unknown:
        said.append(f"{counts.unknown} cannot be told")
    if counts.silent:
        said.append(f"{counts.silent} silent")
    return ", ".join(said)


def tiles(detail: HostDetail) -> tuple[Tile, ...]:
    """Money, idle, work, energy, share of samples."""
    whole = detail.whole
    cost, idle = whole.spend_usd, whole.usd("idle_cost_usd")
    notes = []
    for price, count in detail.prices:
        what = "no price known" if price is None else f"{formats.money_rate(price.usd_per_gpu_hour)} a GPU"
        notes.append(what if len(detail.prices) == 1 else f"{count} × {what}")
    unseen = whole.unseen_usd
    if unseen:
        notes.append(f"{formats.money(unseen)} of it not seen")
    empty, parked = whole.idle_part_usd(Activity.EMPTY), whole.idle_part_usd(Activity.PARKED)
    work = ratio(whole.whole("active_ms"), whole.named_ms + 0) if whole.named_ms > 0 else None
    energy = None if whole.energy_j is None else whole.energy_j / 3_600_000
    return (
        Tile("Cost of the period", formats.money(cost), " · ".join(notes) or "no price known"),
        Tile(
            "Idle",
            formats.money(idle),
            f"empty {formats.money(empty)}, parked {formats.money(parked)}"
            if idle
            else "nothing empty, nothing parked"
            if idle is not None
            else "no price known",
            idle=bool(idle),
        ),
        Tile("Work ran in", formats.percent(work), "of the GPU time whose activity is known"),
        Tile(
            "Energy",
            formats.kwh(energy),
            f"at the GPUs · {whole.method.value}" if whole.method else "not measured",
        ),
        Tile(
            "Samples received",
            formats.percent(detail.group.coverage_ratio),
            "of the time since each GPU was first seen",
        ),
    )


def uses_of(uses: Sequence[HostUse], host: str | None, address: Address) -> tuple[UseLine, ...]:
    """Who used it, the most expensive first; pure."""
    cost = sum((one.total.spend_usd or Decimal(0) for one in uses), Decimal(0))
    sums: Sums = {(one.key,): replace(one.total, label=one.label) for one in uses}
    rows = breakdown_rows.rows_of(sums, lambda lines: lines.spend_usd)
    return tuple(_use(row, cost, host, address) for row in rows)


def _use(row: breakdown_rows.Row, whole: Decimal, host: str | None, address: Address) -> UseLine:
    total = row.lines
    spend = total.spend_usd
    href = None if row.key is None else address.link(workload_path(row.key))
    if row.count > 1:
        href = address.link("/workloads", by="run", host=host, name=row.label.rpartition(" · ")[0])
    held = total.whole("known_ms") if row.is_nobody else total.whole("allocated_ms")
    return UseLine(
        label=f"nobody known ({row.label})" if row.is_nobody else row.label,
        runs=row.count,
        href=href,
        cost_usd=spend,
        gpu_h=held / HOUR_MS,
        active_ratio=ratio(total.whole("active_ms"), held),
        share=float(spend / whole) if spend is not None and whole else None,
    )


def facts_of(detail: HostDetail) -> tuple[tuple[str, str], ...]:
    """What the machine is, as far as anybody says."""
    facts, machine = detail.facts, detail.machine
    found: list[tuple[str, str | None]] = [
        ("Cluster", facts.cluster),
        ("Instance type", facts.instance_type),
        ("Region", facts.region),
    ]
    if machine is not None:
        latest = {} if machine.latest is None else machine.latest.values
        used, total = latest.get("host_memory_used_bytes"), machine.identity.memory_total_bytes
        memory = None if total is None else formats.gib(total)
        if used is not None and memory is not None:
            memory = f"{formats.gib(used)} of {memory} in use"
        busy = latest.get("cpu_busy_ratio")
        cpus = machine.identity.cpu_count
        found += [
            (
                "Processors",
                None
                if cpus is None
                else f"{cpus}, {formats.percent(busy)} busy now"
                if busy is not None
                else f"{cpus}",
            ),
            ("Memory", memory),
            (
                "Power of the machine now",
                formats.watts(latest["host_power_w"]) if "host_power_w" in latest else None,
            ),
            ("Agent", machine.identity.agent_version),
        ]
    found.append(("Driver", ", ".join(detail.drivers)))
    for price, count in detail.prices:
        said = (
            f"{formats.money_rate(price.usd_per_gpu_hour)}, {price.basis}"
            if price is not None
            else "no price known"
        )
        found.append(("Price of a GPU now", said if len(detail.prices) == 1 else f"{count} GPUs: {said}"))
    return tuple((name, text) for name, text in found if text)


def page_of(detail: HostDetail, heat: Heat, frame: Frame, *, address: Address, what: str) -> HostPage:
    """Lay out the host; pure."""
    all_uses = uses_of(detail.uses, detail.host, address)
    happened = [
        HostEvent(
            f"GPU {gpu.now.gpu_index}" if gpu.now.gpu_index is not None else gpu.now.gpu_uuid,
            address.link(gpu_path(gpu.now.gpu_uuid)),
            line,
        )
        for gpu in detail.gpus
        for line in event_lines([event for of, event in detail.events if of is gpu])
    ]
    happened.sort(key=lambda one: -one.line.ts_ms)
    engines = {one.engine: one for gpu in detail.gpus for one in gpu.engines}
    models = Counter(gpu.now.model for gpu in detail.gpus)
    return HostPage(
        frame=frame,
        name=detail.host,
        headline=headline(detail),
        lede=lede(detail),
        tiles=tiles(detail),
        heat=heat,
        shown=tuple(
            PeriodLink(metric.name, address.href(show=None if key == "activity" else key), key == what)
            for key, metric in METRICS.items()
        ),
        lines=gpu_lines(detail.gpus, Links(address), now_ms=frame.now_ms, with_model=len(models) > 1),
        models=tuple(models.most_common()),
        uses=all_uses[:MOST_USES],
        more_uses=max(0, len(all_uses) - MOST_USES),
        costs_href=address.link("/costs", by="workload", host=detail.host or None),
        engines=tuple(
            (
                one.model or one.engine,
                f"{one.kind} · {one.engine}",
                address.link(engine_path(one.engine)),
            )
            for one in engines.values()
        ),
        teams=tuple(
            (
                key or "unowned",
                None if key is None else address.link(owner_path(key)),
                one.spend_usd,
            )
            for key, one in detail.teams
        ),
        facts=facts_of(detail),
        labels=detail.facts.labels,
        more_advice=len(detail.group.advice) - len(detail.advice),
        advice_href="/recommendations"
        if detail.host is None
        else f"/recommendations?{urlencode({'host': detail.host})}",
        advice=rows_of(detail.advice, {gpu.now.gpu_uuid: detail.host for gpu in detail.gpus}),
        events=tuple(happened[:MOST_EVENTS]),
        more_events=max(0, len(happened) - MOST_EVENTS),
        live=not frame.stale and frame.newest_ms is not None,
    )


def build_host(view: View, name: str | None) -> HostPage:
    """The page over the scope's window.

    Raises:
        NotFoundError: no such host. UsageError: ``show`` is nothing that strips can show.
    """
    what = view.address.get("show") or "activity"
    if what not in METRICS:
        raise UsageError(f"show is {what!r}: use one of {', '.join(METRICS)}")
    # The path as it is written in links: a host may have any letters in its name.
    path = "/hosts" if name is None else host_path(name)
    view = replace(view, address=replace(view.address, path=path))
    detail = host_detail(view.scope, name)

    def link(gpu_uuid: str) -> str:
        return view.address.link(gpu_path(gpu_uuid))

    heat = read_heat(view.scope, detail.gpus, name, what, link)
    frame = build_frame(view, active="fleet", title=name or "No known host", periods=period_bar(view))
    return page_of(detail, heat, frame, address=view.address, what=what)


@router.get("/hosts", response_class=HTMLResponse)
def hosts_page(view: ViewDep) -> Response:
    """GPUs whose host no source names; where there are none, the fleet."""
    page = build_host(view, None)
    if not page.lines:
        return RedirectResponse(view.address.link("/fleet"), status_code=303)
    return HTMLResponse(render("pages/host.html", page))


@router.get("/hosts/{name:name}", response_class=HTMLResponse)
def host_page(view: ViewDep, name: str) -> str:
    """One host as HTML."""
    return render("pages/host.html", build_host(view, name))
