"""Fleet: a thousand GPUs on one page, by host or as one list: what each does now, its day, its money, its advice."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from api import formats
from api.overview_parts import Tile
from api.pages.filters import FilterBar, filter_bar
from api.pages.fleet_lines import GpuLine, Links, gpu_lines
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
    cost_usd,
    fitting,
    idle_usd,
    labels_of,
    read_fleet,
    state_counts,
    state_of,
    strip_window,
    team_of,
)
from api.templating import render
from api.words import ACTIVITY, activity_name
from core.activity import Activity
from core.errors import UsageError
from core.evidence import Window

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
    cost, idle = cost_usd(rows), idle_usd(rows)
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
    rows = list(rows)
    # Each thing once: what it is called takes longer than to see that it is the same.
    facts = {id(row.facts): row.facts for row in rows if row.facts is not None}
    found = {
        "owner": {team_of(owner) for owner in {row.owner for row in rows}},
        "host": {row.now.host or "" for row in rows},
        "model": {row.now.model or "" for row in rows},
        "label": {label for one in facts.values() for label in labels_of(one)},
        "engine": {one.model or one.engine for one in {one for row in rows for one in row.engines}},
    }
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
    counts = state_counts(chosen)
    hours = strip_window(window)
    in_strips = set().union(*{id(row.strip): row.strip for row in chosen}.values())
    return FleetPage(
        frame=frame,
        headline=headline(counts) if chosen or not rows else "No GPU fits these filters",
        tiles=tiles(chosen, counts, formats.days(window.from_ms, window.to_ms)) if chosen else (),
        groups=_groups(ordered, Links(address), frame.now_ms, by=listed),
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


def _states(rows: Sequence[FleetGpu], address: Address, chosen: Sequence[str]) -> tuple[PeriodLink, ...]:
    counts = Counter([state_of(row) for row in rows])
    links = [PeriodLink(f"all {formats.figure(len(rows))}", address.href(activity=None), not chosen)]
    for key in (*(activity.value for activity in ACTIVITY), SILENT):
        if key in counts or key in chosen:
            name = SILENT if key == SILENT else activity_name(key)
            links.append(
                PeriodLink(f"{name} {formats.figure(counts[key])}", address.href(activity=key), key in chosen)
            )
    return tuple(links)


def _groups(rows: Sequence[FleetGpu], link: Links, now_ms: int, *, by: str) -> tuple[Group, ...]:
    if not rows:
        return ()
    if by != "host":
        model = _shared(row.now.model for row in rows)
        lines = gpu_lines(rows, link, now_ms=now_ms, with_model=not model, with_host=True)
        return (Group(None, None, model, None, lines),)
    return tuple([_of_host(host, link, now_ms) for host in by_host(rows)])


def _of_host(host: FleetHost, link: Links, now_ms: int) -> Group:
    model = _shared(gpu.now.model for gpu in host.gpus)
    lines = gpu_lines(host.gpus, link, now_ms=now_ms, with_model=not model)
    return Group(host, link.host(host.host), model, _shared(gpu.team for gpu in host.gpus), lines)


def _shared(values: Iterable[str | None]) -> str | None:
    """The one value that all of them have."""
    found = set(values)
    return found.pop() if len(found) == 1 else None


def build_fleet(view: View) -> FleetPage:
    """The page over the scope's window."""
    frame = build_frame(view, active="fleet", title="Fleet", periods=period_bar(view))
    return page_of(read_fleet(view.scope), frame, address=view.address, window=view.scope.window)


@router.get("/fleet", response_class=HTMLResponse)
def fleet_page(view: ViewDep) -> str:
    """The fleet as HTML."""
    return render("pages/fleet.html", build_fleet(view))
