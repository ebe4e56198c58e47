"""System: whether gpuwise itself is well: what arrives, what agents cost, jobs, the database, and what to do where something is wrong."""

from dataclasses import dataclass
from typing import Final

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from api import formats
from api.charts_parts import px
from api.links import host_path
from api.pages.frame import Frame, build_frame
from api.pages.view import View, ViewDep
from api.resources.system import HostState, JobState, System, read_system
from api.templating import render
from api.text import escape
from store.queries.system import TableSize

router = APIRouter(include_in_schema=False)

HOSTS_SHOWN: Final = 200
"""Silent ones come first; the others of a larger fleet are on the fleet page."""
CELL_PX: Final = 9
GOOD: Final = 0.98
"""Share of samples of a day below which a cell is marked: half an hour is missing."""
POOR: Final = 0.5


@dataclass(frozen=True, slots=True)
class HostLine:
    """One host as the table shows it."""

    state: HostState
    name: str
    href: str
    days: Markup


@dataclass(frozen=True, slots=True)
class SystemPage:
    """Everything the page prints."""

    frame: Frame
    system: System
    headline: str
    hosts: tuple[HostLine, ...]
    hosts_left_out: int
    tables: tuple[TableSize, ...]
    silent: int
    first_day: str
    last_day: str
    raw_days: int
    hour_days: int
    database: str


def headline(system: System) -> str:
    """Whether all is well, as a sentence."""
    silent = sum(one.is_silent for one in system.hosts)
    if not system.hosts:
        return "No host has sent anything yet"
    if silent == len(system.hosts):
        return "Nothing arrives: every host is silent"
    failed = [job.name for job in system.jobs if job.last is not None and job.last.ok is False]
    said = []
    if silent:
        said.append(f"{silent} of {len(system.hosts)} hosts are silent")
    if failed:
        said.append(f"{'jobs' if len(failed) > 1 else 'the job'} {', '.join(failed)} failed")
    if not said:
        return (
            f"All {len(system.hosts)} hosts report, every job ran well"
            if _ran(system.jobs)
            else "All hosts report; no job has run yet"
        )
    text = " and ".join(said)
    return text[0].upper() + text[1:]


def _ran(jobs: tuple[JobState, ...]) -> bool:
    return any(job.last is not None for job in jobs)


def days_strip(state: HostState, days: tuple[str, ...]) -> Markup:
    """A cell a day: full, something missing, much missing, nothing known; with a sentence for who does not see it."""
    cells, words = [], []
    for at, (day, share) in enumerate(zip(days, state.by_day, strict=True)):
        kind = "none" if share is None else "good" if share >= GOOD else "fair" if share >= POOR else "poor"
        height = 13 if share is None else max(2.0, 13 * share)
        cells.append(
            f'<rect class="c-{kind}" x="{CELL_PX * at}" y="{px(13 - height)}" width="{CELL_PX - 1}" height="{px(height)}">'
            f"<title>{escape(day)}: {escape(formats.percent(share) if share is not None else 'not known')}</title></rect>"
        )
        if share is not None and share < GOOD:
            words.append(f"{day} {formats.percent(share)}")
    label = f"Samples received a day: {', '.join(words) if words else 'all of them'}"
    if all(share is None for share in state.by_day):
        label = "Samples received a day: not known"
    return Markup(  # noqa: S704 - numbers and escaped words only
        f'<svg class="daystrip" viewBox="0 0 {CELL_PX * len(days)} 13" width="{CELL_PX * len(days)}" height="13" role="img"'
        f' aria-label="{escape(label)}">{"".join(cells)}</svg>'
    )


def page_of(system: System, frame: Frame, *, raw_days: int, hour_days: int, database: str) -> SystemPage:
    """Lay out the state of things; pure."""
    shown = system.hosts[:HOSTS_SHOWN]
    return SystemPage(
        frame=frame,
        system=system,
        headline=headline(system),
        hosts=tuple(
            HostLine(one, one.host or "host unknown", host_path(one.host), days_strip(one, system.days))
            for one in shown
        ),
        hosts_left_out=len(system.hosts) - len(shown),
        tables=tuple(one for one in system.tables if one.rows is not None or one.size_bytes is not None),
        silent=sum(one.is_silent for one in system.hosts),
        first_day=system.days[0],
        last_day=system.days[-1],
        raw_days=raw_days,
        hour_days=hour_days,
        database=database,
    )


def build_system(view: View) -> SystemPage:
    """The page as of now."""
    scope = view.scope
    settings = scope.settings
    return page_of(
        read_system(scope),
        build_frame(view, active="system", title="System", window_text=""),
        raw_days=settings.raw_days,
        hour_days=settings.hour_days,
        database="PostgreSQL" if settings.database_url.startswith("postgres") else "SQLite",
    )


@router.get("/system", response_class=HTMLResponse)
def system_page(view: ViewDep) -> str:
    """The state of gpuwise as HTML."""
    return render("pages/system.html", build_system(view))
