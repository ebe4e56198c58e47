"""Fleet: a thousand GPUs on one page, by host or as one list: what each does now, its day, its money, its advice."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from api import formats
from api.charts_strips import activity_strip
from api.links import gpu_path, host_path
from api.overview_parts import Tile
from api.pages.filters import FilterBar, filter_bar
from api.pages.frame import Frame, build_frame
from api.pages.period import PeriodLink, period_bar
from api.pages.sorting import Column, SortLink, sort_rows
from api.pages.view import Address, View, ViewDep
from api.resources.fleet_rows import (
    SILENT,
    FleetFilters,
    FleetGpu,
    FleetHost,
    StateCounts,
    by_host,
    fitting,
    read_fleet,
    state_counts,
    state_of,
    strip_window,
    summed,
)
from api.templating import environment, render
from api.words import ACTIVITY, activity_name
from core.activity import Activity
from core.errors import UsageError
from core.evidence import Window
from core.units import GIB

router = APIRouter(include_in_schema=False)

LISTS: Final = (("host", "by host"), ("none", "one list"))
MOST_CHOICES: Final = 300
"""Of one filter: a longer list is searched instead (``find``)."""
FILTERS: Final = ("owner", "host", "model", "label", "engine", "activity", "find")


def _place(row: FleetGpu) -> tuple[object, ...]:
    now = row.now
    return (now.host is None, now.host or "", now.gpu_index is None, now.gpu_index or 0, now.gpu_uuid)


_ORDER: Final = {activity: at for at, activity in enumerate(ACTIVITY)}
COLUMNS: Final = {
    "gpu": Column("GPU", _place, down=False),
    "now": Column("Now", lambda row: None if row.activity is None else _ORDER[row.activity], down=False),
    "busy": Column("Busy", lambda row: row.now.busy_ratio),
    "power": Column("Power", lambda row: row.now.power_w),
    "memory": Column("Memory", lambda row: row.now.memory_used_bytes),
    "sm": Column("SM", lambda row: row.now.sm_active_ratio),
    "dram": Column("DRAM", lambda row: row.now.dram_active_ratio),
    "cost": Column("Cost", lambda row: row.total.cost_usd),
    "idle": Column("Idle", lambda row: row.total.idle_usd),
    "seen": Column("Seen", lambda row: row.total.coverage_ratio, down=False),
    "team": Column("Team", lambda row: None if row.owner is None else row.owner.team, down=False),
}


@dataclass(frozen=True, slots=True)
class GpuLine:
    """One GPU of the table: what does not print by a filter is markup already, of which a fleet repeats most.

    Attributes:
        name: its place on its host, with the host where no heading says it. activity: with its swatch.
        limit, memory: what power and memory are measured against; empty: not known. advice: title of the best.
    """

    row: FleetGpu
    name: Markup
    href: str
    model: Markup
    activity: Markup
    strip: Markup
    limit: Markup
    memory: Markup
    team: Markup
    advice: Markup


@dataclass(frozen=True, slots=True)
class Group:
    """GPUs under one heading: a host's, or all of them under none.

    ``model`` and ``team`` are theirs when they share one; ``href`` is the host's page.
    """

    host: FleetHost | None
    href: str | None
    model: str | None
    team: str | None
    lines: tuple[GpuLine, ...]


@dataclass(frozen=True, slots=True)
class FleetPage:
    """Everything the page prints.

    Attributes:
        total: GPUs before filters. shown: after them. listed: as hosts, or as one list.
        states: counts by activity as links, of what fits the other filters. live: newest samples are of now.
        csv: address of the GPUs that fit as CSV. find: what was searched for; ``find_hidden`` goes along with that form.
    """

    frame: Frame
    headline: str
    tiles: tuple[Tile, ...]
    groups: tuple[Group, ...]
    sort: dict[str, SortLink]
    filters: FilterBar
    listed: tuple[PeriodLink, ...]
    states: tuple[PeriodLink, ...]
    strip_activities: tuple[Activity, ...]
    strip_text: str
    shown: int
    total: int
    live: bool
    csv: str
    find: str
    find_hidden: tuple[tuple[str, str], ...]


def headline(counts: StateCounts) -> str:
    """What GPUs do now, as a sentence."""
    if not counts.all:
        return "No GPU has been seen yet."
    noun = "GPU" if counts.all == 1 else "GPUs"
    said = [f"{formats.figure(counts.work)} of {formats.figure(counts.all)} {noun} work"]
    said.append(f"{formats.figure(counts.idle)} do nothing")
    if counts.unknown:
        said.append(f"{formats.figure(counts.unknown)} cannot be told")
    if counts.silent:
        said.append(f"{formats.figure(counts.silent)} {'is' if counts.silent == 1 else 'are'} silent")
    return ", ".join(said)


def tiles(rows: Sequence[FleetGpu], counts: StateCounts, window_text: str) -> tuple[Tile, ...]:
    """Work, idle, unknown, silent, and the money of the period."""

    def share(count: int) -> str:
        return formats.percent(count / counts.all) if counts.all else formats.UNKNOWN

    by = counts.by_activity
    empty, parked = by.get(Activity.EMPTY, 0), by.get(Activity.PARKED, 0)
    cost, idle = summed(row.total.cost_usd for row in rows), summed(row.total.idle_usd for row in rows)
    part = f"{formats.percent(float(idle / cost))} of " if idle is not None and cost else "of "
    return (
        Tile("At work now", formats.figure(counts.work), share(counts.work)),
        Tile(
            "Idle now",
            formats.figure(counts.idle),
            f"{share(counts.idle)} · empty {formats.figure(empty)}, parked {formats.figure(parked)}"
            if counts.idle
            else "nothing empty, nothing parked",
            idle=bool(counts.idle),
        ),
        Tile("Cannot be told", formats.figure(counts.unknown), "samples without the readings it takes"),
        Tile("Silent", formats.figure(counts.silent), "no sample for 3 min while others have some"),
        Tile(
            "Idle money",
            formats.money(idle),
            f"{part}{formats.money(cost)} in {window_text}" if cost is not None else "no price known",
            idle=bool(idle),
        ),
    )


def asked(address: Address) -> FleetFilters:
    """The filters of the address.

    Raises:
        UsageError: an activity that does not exist.
    """
    for one in address.every("activity"):
        if one not in {*Activity, SILENT}:
            raise UsageError(f"activity is {one!r}: use one of {', '.join(Activity)}, {SILENT}")
    values = {name: address.every(name) for name in FILTERS if name != "find"}
    return FleetFilters(**values, find=address.get("find"))


def choices(rows: Iterable[FleetGpu]) -> dict[str, list[str]]:
    """Values of each filter that occur; of what there is only one of, none."""
    found: dict[str, set[str]] = {name: set() for name in ("owner", "host", "model", "label", "engine")}
    for row in rows:
        found["owner"].add(row.team)
        found["host"].add(row.now.host or "")
        found["model"].add(row.now.model or "")
        found["label"].update(row.labels)
        found["engine"].update(one.model or one.engine for one in row.engines)
    return {
        name: sorted(values - {""}) if 1 < len(values) <= MOST_CHOICES else []
        for name, values in found.items()
    }


def page_of(rows: Sequence[FleetGpu], frame: Frame, *, address: Address, window: Window) -> FleetPage:
    """Lay out the fleet; pure.

    Raises:
        UsageError: a filter, a column or a kind of list that does not exist.
    """
    listed = address.get("list") or "host"
    if listed not in dict(LISTS):
        raise UsageError(f"list is {listed!r}: use one of {', '.join(dict(LISTS))}")
    filters = asked(address)
    candidates = fitting(rows, replace(filters, activity=()))
    chosen = fitting(candidates, FleetFilters(activity=filters.activity))
    ordered, sort = sort_rows(address, chosen, COLUMNS, "gpu")
    link = _Links(address)
    counts = state_counts(chosen)
    hours = strip_window(window)
    in_strips = {activity for row in chosen for activity in row.strip}
    return FleetPage(
        frame=frame,
        headline=headline(counts) if chosen or not rows else "No GPU fits these filters",
        tiles=tiles(chosen, counts, formats.days(window.from_ms, window.to_ms)) if chosen else (),
        groups=_groups(ordered, link, by=listed),
        sort=sort,
        filters=filter_bar(address, choices(rows), also=("activity", "find")),
        listed=tuple(
            PeriodLink(name, address.href(list=None if key == "host" else key), key == listed)
            for key, name in LISTS
        ),
        states=_states(candidates, address, filters.activity),
        strip_activities=tuple(a for a in ACTIVITY if a in in_strips),
        strip_text=f"24 h to {formats.minute(hours.to_ms)}",
        shown=len(chosen),
        total=len(rows),
        live=not frame.stale and frame.newest_ms is not None,
        csv=address.link("/api/v1/gpus", **{name: address.every(name) for name in FILTERS}, format="csv"),
        find=filters.find,
        find_hidden=address.hidden("find"),
    )


class _Links:
    """Addresses of hosts and GPUs over the page's period: the period is written once, not a thousand times."""

    def __init__(self, address: Address) -> None:
        self._period = address.link("")

    def gpu(self, gpu_uuid: str) -> str:
        return f"{gpu_path(gpu_uuid)}{self._period}"

    def host(self, name: str | None) -> str:
        return f"/hosts{self._period}" if name is None else f"{host_path(name)}{self._period}"


def _states(rows: Sequence[FleetGpu], address: Address, chosen: Sequence[str]) -> tuple[PeriodLink, ...]:
    counts: dict[str, int] = {}
    for row in rows:
        counts[state_of(row)] = counts.get(state_of(row), 0) + 1
    links = [PeriodLink(f"all {formats.figure(len(rows))}", address.href(activity=None), not chosen)]
    for key in (*(activity.value for activity in ACTIVITY), SILENT):
        if key in counts or key in chosen:
            name = SILENT if key == SILENT else activity_name(key)
            links.append(
                PeriodLink(
                    f"{name} {formats.figure(counts.get(key, 0))}", address.href(activity=key), key in chosen
                )
            )
    return tuple(links)


def _groups(rows: Sequence[FleetGpu], link: _Links, *, by: str) -> tuple[Group, ...]:
    if not rows:
        return ()
    if by != "host":
        return (
            Group(None, None, _shared(rows, "model"), None, tuple(_line(row, link, True) for row in rows)),
        )
    return tuple(
        Group(
            host,
            link.host(host.host),
            _shared(host.gpus, "model"),
            _shared(host.gpus, "team"),
            tuple(_line(row, link, False) for row in host.gpus),
        )
        for host in by_host(rows)
    )


def _shared(rows: Sequence[FleetGpu], what: str) -> str | None:
    values = {row.now.model if what == "model" else row.team for row in rows}
    return values.pop() if len(values) == 1 else None


def fleet_lines(rows: Sequence[FleetGpu], address: Address) -> tuple[GpuLine, ...]:
    """Rows of a table of GPUs under one heading, as other pages print them too; pure."""
    link = _Links(address)
    return tuple(_line(row, link, False) for row in rows)


def _line(row: FleetGpu, link: _Links, with_host: bool) -> GpuLine:
    now = row.now
    name = f"GPU {now.gpu_index}" if now.gpu_index is not None else now.gpu_uuid
    if with_host and now.host:
        name = f"{now.host} · {now.gpu_index if now.gpu_index is not None else now.gpu_uuid}"
    return GpuLine(
        row=row,
        name=_text(name, 48),
        href=link.gpu(now.gpu_uuid),
        model=_text(now.model or "model unknown", 40),
        activity=_activity(row.activity),
        strip=activity_strip(tuple(row.strip)),
        limit=_of(now.power_limit_w),
        memory=_of(None if now.memory_total_bytes is None else now.memory_total_bytes / GIB),
        team=_text(row.team, 24),
        advice=_text(row.advice[0].finding.title, 120) if row.advice else Markup(),
    )


# A thousand rows repeat a few hundred texts: each is made once, and calling a macro for each would double the page's time.
@lru_cache(maxsize=8_192)
def _text(text: str, most: int) -> Markup:
    parts: Any = environment().get_template("macros/parts.html").module
    return Markup(parts.text(text, most))  # noqa: S704 - the macro escapes


@lru_cache(maxsize=32)
def _activity(activity: Activity | None) -> Markup:
    parts: Any = environment().get_template("macros/parts.html").module
    return Markup(str(parts.activity(activity)).strip())  # noqa: S704 - the macro escapes


@lru_cache(maxsize=1_024)
def _of(whole: float | None) -> Markup:
    return Markup() if not whole else Markup("<small> / {}</small>").format(formats.figure(whole))


def build_fleet(view: View) -> FleetPage:
    """The page over the scope's window."""
    frame = build_frame(view, active="fleet", title="Fleet", periods=period_bar(view))
    return page_of(read_fleet(view.scope), frame, address=view.address, window=view.scope.window)


@router.get("/fleet", response_class=HTMLResponse)
def fleet_page(view: ViewDep) -> str:
    """The fleet as HTML."""
    return render("pages/fleet.html", build_fleet(view))
