"""Workloads: who used what, by user, job or run, with filters, and the same as CSV."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from api import formats
from api.pages.filters import OF_WORKLOADS, FilterBar, filter_bar, report_filters
from api.pages.frame import Frame, build_frame
from api.pages.pager import Pager, pager
from api.pages.period import PeriodLink, period_bar
from api.pages.use_rows import UseTable, table_of
from api.pages.view import Address, View, ViewDep
from api.resources.idle_sharing import IdlePolicy
from api.resources.scope import Scope
from api.resources.who_used import Level, WhoUsed, who_used
from api.templating import render
from core.clock import iso
from core.errors import UsageError
from store.queries import ledger_sums
from store.queries.workload_choices import workload_choices

router = APIRouter(include_in_schema=False)
AT_ONCE: Final = 100
LEVELS: Final = ((Level.USER, "Users"), (Level.JOB, "Jobs"), (Level.RUN, "Single runs"))
IDLE: Final = (
    (IdlePolicy.KEEP, "kept apart"),
    (IdlePolicy.EVEN, "shared out evenly"),
    (IdlePolicy.PROPORTIONAL, "shared out by cost"),
)


@dataclass(frozen=True, slots=True)
class WorkloadsPage:
    """Everything the page prints."""

    frame: Frame
    headline: str
    levels: tuple[PeriodLink, ...]
    idle: tuple[PeriodLink, ...]
    level: str
    table: UseTable
    pager: Pager
    filters: FilterBar
    asked_q: str
    hidden_q: tuple[tuple[str, str], ...]
    nobody: str
    bases: str
    csv: str


def levels_of(address: Address, current: str) -> tuple[PeriodLink, ...]:
    """From teams down to single runs."""
    over = Address("/workloads", tuple(pair for pair in address.query if pair[0] not in {"page", "by"}))
    return (
        PeriodLink("Teams", address.link("/owners"), current == "owner"),
        *(PeriodLink(name, over.href(by=level.value), level.value == current) for level, name in LEVELS),
    )


def idle_links(address: Address, chosen: IdlePolicy) -> tuple[PeriodLink, ...]:
    """What may become of the idle cost of GPUs that nobody had."""
    return tuple(
        PeriodLink(
            name, address.href(idle=None if policy is IdlePolicy.KEEP else policy.value), policy is chosen
        )
        for policy, name in IDLE
    )


def idle_policy(address: Address) -> IdlePolicy:
    """What was asked for. Raises ``UsageError``."""
    asked = address.get("idle", IdlePolicy.KEEP.value)
    try:
        return IdlePolicy(asked)
    except ValueError as error:
        raise UsageError(f"idle is {asked!r}: use one of {', '.join(IdlePolicy)}") from error


def csv_href(resource: str, scope: Scope, address: Address, **more: str) -> str:
    """The same rows over REST, with the same period and filters."""
    window = scope.window
    pairs = [("format", "csv"), ("limit", "10000"), *more.items()]
    pairs += [("since", _time(window.from_ms)), ("until", _time(window.to_ms))]
    pairs += [(name, value) for name in OF_WORKLOADS for value in address.every(name)]
    return f"/api/v1/{resource}?{urlencode(pairs)}"


def _time(ts_ms: int) -> str:
    return iso(ts_ms) or ""


def headline(found: WhoUsed) -> str:
    """Who used what, as a sentence."""
    held = found.total.use
    if not found.rows:
        return "Nobody is known to have held a GPU"
    spent = found.total.total.spend_usd
    text = f"{formats.gpu_hours(held.held_h)} were held"
    if spent is not None:
        text += f" for {formats.money(spent)}"
    if held.active_h is not None and held.held_h > 0:
        text += f"; in {formats.percent(held.active_h / held.held_h)} of them something ran"
    return text


def nobody_of(found: WhoUsed) -> str:
    """What no workload held, in a sentence; empty where that is nothing or was not asked for."""
    nobody = found.nobody
    if nobody is None:
        return ""
    one = nobody.total
    text = f"Held by no known workload: {formats.gpu_hours(one.hours('known_ms'))}"
    if one.spend_usd is not None:
        text += f", {formats.money(one.spend_usd)}, of it {formats.money(one.usd('idle_cost_usd'))} idle"
    return f"{text}."


def page_of(  # noqa: PLR0917 - the parts of a page
    frame: Frame,
    found: WhoUsed,
    address: Address,
    level: Level,
    idle: IdlePolicy,
    choices: dict[str, list[str]],
    csv: str,
) -> WorkloadsPage:
    """Lay out one level; pure."""
    pages = pager(address, len(found.rows), AT_ONCE)
    return WorkloadsPage(
        frame=frame,
        headline=headline(found),
        levels=levels_of(address, level.value),
        idle=idle_links(address, idle),
        level=dict(LEVELS)[level],
        table=table_of(found, level, address, part=slice(pages.first, pages.last)),
        pager=pages,
        filters=filter_bar(address, choices, also=("project", "gpu", "workload", "name", "q")),
        asked_q=address.get("q"),
        hidden_q=address.hidden("q", "page"),
        nobody=nobody_of(found),
        bases=found.total.total.basis or "",
        csv=csv,
    )


def build_workloads(view: View) -> WorkloadsPage:
    """The page over the scope's window. Raises ``UsageError`` for a level that there is not."""
    scope, address = view.scope, view.address
    by, idle = address.get("by", Level.JOB.value), idle_policy(address)
    levels = {level.value: level for level, _ in LEVELS}
    if by not in levels:
        raise UsageError(f"by is {by!r}: use one of {', '.join(levels)}")
    found = who_used(scope, levels[by], report_filters(address, OF_WORKLOADS), idle=idle)
    teams = sorted({owner.team for owner in ledger_sums.owners(scope.session).values()})
    told = workload_choices(scope.session)
    choices = {"owner": teams, "user": told["user"], "namespace": list(found.namespaces)}
    choices |= {"host": told["host"], "model": told["model"], "kind": told["kind"]}
    if by == Level.USER.value:
        csv = csv_href(
            "costs", scope, address, by="user", **({} if idle is IdlePolicy.KEEP else {"idle": idle})
        )
    else:
        csv = csv_href("workloads", scope, address)
    frame = build_frame(view, active="workloads", title="Workloads", periods=period_bar(view))
    return page_of(frame, found, address, levels[by], idle, choices, csv)


@router.get("/workloads", response_class=HTMLResponse)
def workloads_page(view: ViewDep) -> str:
    """The workloads as HTML."""
    return render("pages/workloads.html", build_workloads(view))
