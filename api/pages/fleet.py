"""Fleet: every GPU by host, what it does now, its last day, its idle money and advice; sorted and filtered by the server."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from api import formats
from api.charts_bands import activity_band
from api.deps import ScopeDep
from api.overview_parts import anchor, strip_columns, strip_window
from api.pages.frame import DEFAULT_PERIOD, Frame, PeriodLink, build_frame, period_links
from api.resources.overview import overview
from api.resources.overview_model import FleetLine, Overview
from api.resources.scope import Scope
from api.templating import render
from api.words import ACTIVITY, activity_name
from core.activity import Activity
from core.errors import UsageError
from core.evidence import Window

router = APIRouter(include_in_schema=False)

SORTS: Final[dict[str, tuple[str, Callable[[FleetLine], Any]]]] = {
    "host": ("by host", lambda line: (line.host or "~", line.index if line.index is not None else 1 << 20)),
    "idle": ("most idle money", lambda line: -(line.idle_usd or Decimal(-1))),
    "busy": ("least busy now", lambda line: 2.0 if line.busy_ratio is None else line.busy_ratio),
    "power": ("most power now", lambda line: -(line.power_w if line.power_w is not None else -1.0)),
}


@dataclass(frozen=True, slots=True)
class GpuLine:
    """One GPU of the table."""

    line: FleetLine
    name: str
    href: str
    strip: Markup


@dataclass(frozen=True, slots=True)
class Group:
    """GPUs under one heading: a host when sorted by host, else all of them under none.

    ``model`` is theirs when they share one and have a heading; else each row says its own.
    """

    name: str
    model: str | None
    anchor: str
    idle_usd: Decimal | None
    gpus: tuple[GpuLine, ...]


@dataclass(frozen=True, slots=True)
class FleetPage:
    """Everything the page prints."""

    frame: Frame
    headline: str
    groups: tuple[Group, ...]
    sorts: tuple[PeriodLink, ...]
    filters: tuple[PeriodLink, ...]
    strip_activities: tuple[Activity, ...]
    strip_text: str
    shown: int
    total: int


def headline(lines: Sequence[FleetLine]) -> str:
    """What the fleet does now, as a sentence."""
    if not lines:
        return "No GPU has been seen yet."
    idle = sum(line.activity in {Activity.EMPTY, Activity.PARKED} for line in lines)
    unknown = sum(line.activity in {None, Activity.UNKNOWN} for line in lines)
    noun = "GPU" if len(lines) == 1 else "GPUs"
    said = f"{len(lines) - idle - unknown} of {len(lines)} {noun} work, {idle} do nothing"
    return said + (f", {unknown} cannot be told" if unknown else "")


def page_of(
    view: Overview, frame: Frame, *, since: str, sort: str = "host", activity: Activity | None = None
) -> FleetPage:
    """Lay out the fleet; pure."""
    window = strip_window(view)
    chosen = [line for line in view.fleet if activity is None or line.activity is activity]
    ordered = sorted(chosen, key=SORTS[sort][1])
    groups: list[Group] = []
    if sort == "host":
        for host in dict.fromkeys(line.host or "host unknown" for line in ordered):
            inside = [line for line in ordered if (line.host or "host unknown") == host]
            groups.append(_group(host, inside, window))
    elif ordered:
        groups.append(_group("", ordered, window))
    here = {"since": since}
    occurring = {line.activity for line in view.fleet if line.activity is not None}
    in_strips = {a for line in chosen for a in line.strip}
    filters = [PeriodLink("all", f"/fleet?{urlencode({**here, 'sort': sort})}", activity is None)]
    filters += [
        PeriodLink(
            f"{activity_name(a)} {sum(line.activity is a for line in view.fleet)}",
            f"/fleet?{urlencode({**here, 'sort': sort, 'activity': a.value})}",
            a is activity,
        )
        for a in ACTIVITY
        if a in occurring
    ]
    keep = here if activity is None else {**here, "activity": activity.value}
    return FleetPage(
        frame=frame,
        headline=headline(view.fleet),
        groups=tuple(groups),
        sorts=tuple(
            PeriodLink(name, f"/fleet?{urlencode({**keep, 'sort': key})}", key == sort)
            for key, (name, _) in SORTS.items()
        ),
        filters=tuple(filters),
        strip_activities=tuple(a for a in ACTIVITY if a in in_strips),
        strip_text=f"{formats.minute(window.from_ms)} – {formats.minute(window.to_ms)} UTC",
        shown=len(chosen),
        total=len(view.fleet),
    )


def _group(host: str, lines: Sequence[FleetLine], window: Window) -> Group:
    idle = [line.idle_usd for line in lines if line.idle_usd is not None]
    models = {line.model for line in lines}
    return Group(
        name=host,
        model=next(iter(models)) if host and len(models) == 1 else None,
        anchor=anchor(host),
        idle_usd=sum(idle, Decimal(0)) if idle else None,
        gpus=tuple(_gpu(line, window, with_host=not host) for line in lines),
    )


def _gpu(line: FleetLine, window: Window, *, with_host: bool) -> GpuLine:
    name = f"GPU {line.index}" if line.index is not None else line.gpu_uuid
    if with_host and line.host:
        name += f" on {line.host}"
    return GpuLine(
        line,
        name,
        f"/gpus/{line.gpu_uuid}",
        activity_band(strip_columns([line], window), window=window, label=f"{name}, last 24 hours"),
    )


def build_fleet(scope: Scope, *, since: str, sort: str, activity: str | None) -> FleetPage:
    """The page over the scope's window.

    Raises:
        UsageError: a sort or an activity that does not exist.
    """
    if sort not in SORTS:
        raise UsageError(f"sort is {sort!r}: use one of {', '.join(SORTS)}")
    if activity is not None and activity not in set(Activity):
        raise UsageError(f"activity is {activity!r}: use one of {', '.join(Activity)}")
    keep = {"sort": sort} | ({} if activity is None else {"activity": activity})
    frame = build_frame(
        scope, active="fleet", title="Fleet", periods=period_links("/fleet", since, keep=keep)
    )
    return page_of(
        overview(scope),
        frame,
        since=since,
        sort=sort,
        activity=None if activity is None else Activity(activity),
    )


Word = Annotated[str | None, Query(max_length=40)]


@router.get("/fleet", response_class=HTMLResponse)
def fleet_page(
    scope: ScopeDep, since: str = DEFAULT_PERIOD, sort: str = "host", activity: Word = None
) -> str:
    """The fleet as HTML."""
    return render("pages/fleet.html", build_fleet(scope, since=since, sort=sort, activity=activity))
