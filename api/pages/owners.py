"""Teams: what each paid for, how well it was used, its budget and its mail; what nobody owns is a row of its own."""

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from api import formats
from api.links import owner_path
from api.pages.frame import Frame, build_frame
from api.pages.period import PeriodLink, period_bar
from api.pages.use_rows import UseTable, table_of
from api.pages.view import Address, View, ViewDep
from api.pages.workloads import csv_href, idle_links, idle_policy, levels_of
from api.resources import budgets
from api.resources.budgets import BudgetView
from api.resources.idle_sharing import IdlePolicy
from api.resources.who_used import Level, WhoUsed, who_used
from api.templating import render
from core.user_budget import BudgetScope

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class TeamLine:
    """What else there is of a team: cost centres, its budgets, its mail."""

    name: str
    href: str
    centres: str
    budgets: tuple[BudgetView, ...]
    mail: str


@dataclass(frozen=True, slots=True)
class OwnersPage:
    """Everything the page prints."""

    frame: Frame
    headline: str
    levels: tuple[PeriodLink, ...]
    idle: tuple[PeriodLink, ...]
    table: UseTable
    teams: tuple[TeamLine, ...]
    has_teams: bool
    bases: str
    csv: str


def headline(found: WhoUsed) -> str:
    """What is whose, as a sentence."""
    count = len(found.rows)
    if not count:
        return "No GPU time is owned yet"
    spent = found.total.total.spend_usd
    text = f"{count} team{'s' if count != 1 else ''}"
    text += " paid for GPU time" if spent is None else f" paid {formats.money(spent)}"
    nobody = None if found.nobody is None else found.nobody.total.spend_usd
    return f"{text}; {formats.money(nobody)} is nobody's" if nobody else text


def page_of(  # noqa: PLR0917 - the parts of a page
    frame: Frame,
    found: WhoUsed,
    address: Address,
    idle: IdlePolicy,
    known: Sequence[BudgetView],
    csv: str,
) -> OwnersPage:
    """Lay out the teams; pure."""
    extra = () if found.nobody is None else (found.nobody,)
    whole = found.total.total.basis or ""
    return OwnersPage(
        frame=frame,
        headline=headline(found),
        levels=levels_of(address, "owner"),
        idle=idle_links(address, idle),
        table=table_of(found, Level.OWNER, address, extra=extra),
        teams=tuple(
            TeamLine(
                one.key or "",
                address.link(owner_path(one.key or "")),
                ", ".join(sorted(one.centres)),
                tuple(
                    view
                    for view in known
                    if view.scope_kind == BudgetScope.TEAM and view.scope_value == one.key
                ),
                Address("/report").href(owner=one.key),
            )
            for one in sorted(found.rows, key=lambda one: one.key or "")
        ),
        has_teams=bool(found.rows),
        bases=whole,
        csv=csv,
    )


def build_owners(view: View) -> OwnersPage:
    """The page over the scope's window."""
    scope, address = view.scope, view.address
    idle = idle_policy(address)
    found = who_used(scope, Level.OWNER, idle=idle)
    known = budgets.rows(scope.session, scope.settings, scope.now_ms) if found.rows else []
    frame = build_frame(view, active="workloads", title="Teams", periods=period_bar(view))
    more = {} if idle is IdlePolicy.KEEP else {"idle": idle.value}
    csv = csv_href("costs", scope, Address("/owners"), by="owner", **more)
    return page_of(frame, found, address, idle, known, csv)


@router.get("/owners", response_class=HTMLResponse)
def owners_page(view: ViewDep) -> str:
    """The teams as HTML."""
    return render("pages/owners.html", build_owners(view))
