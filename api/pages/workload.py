"""One workload: when it ran on which GPU, its hours and money by day with the price behind them, who shared its GPUs."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from api import formats
from api.charts_bands import Column, activity_band, seconds_by_activity
from api.links import gpu_path, host_path, owner_path, user_path, workload_path
from api.pages.frame import Frame, build_frame
from api.pages.period import period_bar
from api.pages.use_days import UseDay, cost_chart, days_of, hours_chart
from api.pages.view import Address, View, ViewDep
from api.problems import NotFoundError
from api.resources.report import gpu_label
from api.resources.report_filters import Filters, workload_text
from api.resources.scope import Scope
from api.resources.who_used import Group, Level, who_used
from api.templating import inert, render
from api.words import workload_kind
from core.activity import Activity
from core.clock import iso
from core.evidence import Window
from core.readings import GpuIdentity, WorkloadKey
from core.units import HOUR_MS
from store.known import known_gpus
from store.queries.workload_hours import (
    HeldHour,
    Neighbour,
    held_hours,
    neighbours,
    workload_by_id,
    workload_of,
)

router = APIRouter(include_in_schema=False)
MOST_STRIPS: Final = 32
MOST_COLUMNS: Final = 240
METHODS: Final = {
    "whole": "alone on the GPU, which is all its own",
    "memory_time": "by memory × time",
    "sm_time": "by time with a kernel of its own",
    "mig_slice": "by its MIG slices' share of the card",
    "even": "evenly: a figure to divide by was missing, or that is the setting",
}


@dataclass(frozen=True, slots=True)
class Strip:
    """One GPU while the workload held it."""

    name: str
    href: str
    hours: str
    band: Markup


@dataclass(frozen=True, slots=True)
class NeighbourLine:
    """Who else was on its GPUs."""

    name: str
    href: str
    user: str
    hours: int
    gpu_h: float


@dataclass(frozen=True, slots=True)
class PriceLine:
    """GPU-hours at one price, what they cost, and on which days (first and last)."""

    gpu_h: float
    rate: Decimal
    cost: Decimal
    basis: str
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class WorkloadPage:
    """Everything the page prints. ``months``: of its life in the window, for axis and words."""

    frame: Frame
    workload: WorkloadKey
    headline: str
    kind: str
    user_href: str
    host_href: str
    teams: tuple[tuple[str, str], ...]
    whole: Group
    first_ms: int | None
    last_ms: int | None
    strips: tuple[Strip, ...]
    strips_left: int
    seen: tuple[Activity, ...]
    days: tuple[UseDay, ...]
    cost: Markup | None
    hours: Markup | None
    prices: tuple[PriceLine, ...]
    methods: tuple[tuple[str, str, float], ...]
    neighbours: tuple[NeighbourLine, ...]
    attributes: tuple[tuple[str, str], ...]


def find(scope: Scope, asked: str) -> tuple[int, WorkloadKey]:
    """The workload of a number, or of a text as ``by=workload`` has it. Raises ``NotFoundError``."""
    if asked.isdecimal() and len(asked) < 10:
        by_id = workload_by_id(scope.session, int(asked))
        if by_id is not None:
            return int(asked), by_id
    kind, _, rest = asked.partition("/")
    host, _, key = rest.partition("/")
    found = workload_of(scope.session, kind, host or None, key)
    if found is None:
        raise NotFoundError(f"no workload {asked[:200]!r} in this database: the page Workloads lists them")
    return found


def columns_of(hours: Sequence[HeldHour], span: Window) -> list[Column]:
    """Hours of one GPU as columns of its strip: so many hours together that a screen shows each."""
    size = max(1, -(-((span.to_ms - span.from_ms) // HOUR_MS) // MOST_COLUMNS)) * HOUR_MS
    groups: dict[int, list[HeldHour]] = {}
    for hour in hours:
        groups.setdefault(hour.hour_ms - (hour.hour_ms - span.from_ms) % size, []).append(hour)
    columns = []
    for start, of in sorted(groups.items()):
        seconds: dict[Activity, float] = {}
        for hour in of:
            for activity, spent in hour.seconds.items():
                seconds[activity] = seconds.get(activity, 0.0) + spent
        end = min(start + size, span.to_ms)
        columns.append(Column(start, end, seconds, (end - start) / 1000))
    return columns


def span_of(hours: Sequence[HeldHour], window: Window) -> Window | None:
    """From its first to the end of its last hour in the window; None without any."""
    if not hours:
        return None
    first = min(hour.hour_ms for hour in hours)
    last = max(hour.hour_ms for hour in hours) + HOUR_MS
    return Window(max(first, window.from_ms), max(min(last, window.to_ms), first + 1))


def headline(workload: WorkloadKey, whole: Group, gpus: int) -> str:
    """What it held and what that cost."""
    text = f"{inert(workload.name[:120])} held {gpus} GPU{'s' if gpus != 1 else ''} for {formats.gpu_hours(whole.use.held_h)}"
    spent = whole.total.spend_usd
    return text if spent is None else f"{text}, {formats.money(spent)}"


def prices_of(days: Sequence[UseDay]) -> tuple[PriceLine, ...]:
    """Days of one price together, in the order in which prices came."""
    found: dict[tuple[Decimal, str], PriceLine] = {}
    for day in days:
        for gpu_h, rate, cost, basis in day.prices:
            before = found.get((rate, basis))
            found[rate, basis] = PriceLine(
                gpu_h + (before.gpu_h if before else 0.0),
                rate,
                cost + (before.cost if before else Decimal(0)),
                basis,
                before.first if before else day.key,
                day.key,
            )
    return tuple(found.values())


def methods_of(hours: Sequence[HeldHour]) -> tuple[tuple[str, str, float], ...]:
    """How its share of each GPU was found: method, in words, GPU-hours."""
    sums: dict[str, float] = {}
    for hour in hours:
        sums[hour.share_method] = sums.get(hour.share_method, 0.0) + hour.allocated_s / 3600
    return tuple(
        (method, METHODS.get(method, method), gpu_h)
        for method, gpu_h in sorted(sums.items(), key=lambda item: -item[1])
    )


def strips_of(hours: Sequence[HeldHour], span: Window, gpus: dict[int, GpuIdentity]) -> list[Strip]:
    """A strip for each GPU, in the order of hosts and indexes."""
    by_gpu: dict[int, list[HeldHour]] = {}
    for hour in hours:
        by_gpu.setdefault(hour.gpu_id, []).append(hour)
    found = []
    for gpu_id, of in by_gpu.items():
        identity = gpus[gpu_id]
        name = gpu_label(identity)
        life = span_of(of, span) or span
        href = Address(gpu_path(identity.gpu_uuid)).href(since=iso(life.from_ms), until=iso(life.to_ms))
        band = activity_band(
            columns_of(of, span), window=span, label=name, height=16, blank="not held, or no samples"
        )
        held = sum(hour.allocated_s for hour in of) / 3600
        found.append(
            (identity.host or "", identity.index or 0, Strip(name, href, formats.gpu_hours(held), band))
        )
    return [strip for _, _, strip in sorted(found, key=lambda item: item[:2])]


def page_of(  # noqa: PLR0917 - the parts of a page
    frame: Frame,
    workload: WorkloadKey,
    whole: Group,
    hours: Sequence[HeldHour],
    days: Sequence[UseDay],
    others: Sequence[Neighbour],
    gpus: dict[int, GpuIdentity],
    window: Window,
    address: Address,
) -> WorkloadPage:
    """Lay out one workload; pure."""
    span = span_of(hours, window)
    strips = [] if span is None else strips_of(hours, span, gpus)
    seen = [] if span is None else list(seconds_by_activity(columns_of(hours, span)))
    return WorkloadPage(
        frame=frame,
        workload=workload,
        headline=headline(workload, whole, len(strips)),
        kind=workload_kind(workload),
        user_href="" if not workload.user else address.link(user_path(workload.user)),
        host_href="" if not workload.host else address.link(host_path(workload.host)),
        teams=tuple((team, address.link(owner_path(team))) for team in sorted(whole.teams)),
        whole=whole,
        first_ms=None if span is None else span.from_ms,
        last_ms=None if span is None else span.to_ms,
        strips=tuple(strips[:MOST_STRIPS]),
        strips_left=max(0, len(strips) - MOST_STRIPS),
        seen=tuple(seen),
        days=tuple(days),
        cost=cost_chart(days),
        hours=hours_chart(days),
        prices=prices_of(days),
        methods=methods_of(hours),
        neighbours=tuple(
            NeighbourLine(
                one.workload.name,
                address.link(workload_path(workload_text(one.workload))),
                one.workload.user or "",
                one.hours,
                one.allocated_s / 3600,
            )
            for one in others
        ),
        attributes=tuple(sorted(dict(workload.attributes).items())),
    )


def build_workload(view: View, asked: str) -> WorkloadPage:
    """The page of one workload."""
    scope = view.scope
    id_, workload = find(scope, asked)
    hours = held_hours(scope.session, scope.window, id_)
    gpus = {gpu.id: gpu.identity for gpu in known_gpus(scope.session.connection(), {h.gpu_id for h in hours})}
    # The ledger finds lines by GPU at once, by workload only among all lines of the days.
    held = tuple(identity.gpu_uuid for identity in gpus.values())
    filters = Filters(workload=(workload_text(workload),), gpu=held)
    used = who_used(scope, Level.RUN, filters)
    whole = used.rows[0] if used.rows else Group("")
    frame = build_frame(view, active="workloads", title=workload.name[:120], periods=period_bar(view))
    return page_of(
        frame,
        workload,
        whole,
        hours,
        days_of(scope, filters, with_prices=True),
        neighbours(scope.session, scope.window, id_),
        gpus,
        scope.window,
        view.address,
    )


@router.get("/workloads/{asked:name}", response_class=HTMLResponse)
def workload_page(view: ViewDep, asked: str) -> str:
    """One workload as HTML."""
    return render("pages/workload.html", build_workload(view, asked))
