"""One team: its money by day, its users, projects, jobs and GPUs, what to do on them, its budgets with forecast."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from api import formats
from api.pages.advice_on import advice_rows
from api.pages.frame import Frame, build_frame
from api.pages.period import period_bar
from api.pages.use_days import UseDay, cost_chart, days_of, hours_chart
from api.pages.use_rows import UseTable, table_of
from api.pages.view import Address, View, ViewDep
from api.problems import NotFoundError
from api.rec_row import RecommendationRow
from api.resources import budgets
from api.resources.budgets import BudgetView
from api.resources.report_filters import Filters
from api.resources.who_used import Group, Level, WhoUsed, by_user, who_used
from api.templating import inert, render
from core.readings import GpuIdentity
from core.user_budget import BudgetScope
from store.known import known_gpus
from store.queries import ledger_sums, owners

router = APIRouter(include_in_schema=False)
MOST: Final = 12
"""Rows of each table; the rest is a click away."""


@dataclass(frozen=True, slots=True)
class OwnerPage:
    """Everything the page prints."""

    frame: Frame
    team: str
    headline: str
    whole: Group
    days: tuple[UseDay, ...]
    cost: Markup | None
    hours: Markup | None
    users: UseTable
    projects: UseTable
    jobs: UseTable
    gpus: UseTable
    advice: tuple[RecommendationRow, ...]
    budgets: tuple[BudgetView, ...]
    jobs_href: str
    mail_href: str


@dataclass(frozen=True, slots=True)
class TeamUse:
    """What a team used, level by level."""

    users: WhoUsed
    projects: WhoUsed
    jobs: WhoUsed
    gpus: WhoUsed


def headline(team: str, whole: Group) -> str:
    """What the team paid and what of it did nothing."""
    spent, idle = whole.total.spend_usd, whole.total.usd("idle_cost_usd")
    if spent is None:
        return f"{inert(team)} held {formats.gpu_hours(whole.use.held_h)}"
    text = f"{inert(team)} paid {formats.money(spent)}"
    return f"{text}; {formats.money(idle)} of it bought hours in which nothing ran" if idle else text


def page_of(  # noqa: PLR0917 - the parts of a page
    frame: Frame,
    team: str,
    used: TeamUse,
    days: Sequence[UseDay],
    advice: Sequence[RecommendationRow],
    known: Sequence[BudgetView],
    address: Address,
    gpus: dict[str, GpuIdentity],
) -> OwnerPage:
    """Lay out one team; pure."""
    whole = used.gpus.total
    first = slice(0, MOST)
    return OwnerPage(
        frame=frame,
        team=team,
        headline=headline(team, whole),
        whole=whole,
        days=tuple(days),
        cost=cost_chart(days),
        hours=hours_chart(days),
        users=table_of(used.users, Level.USER, address, part=first, parameter="users"),
        projects=table_of(used.projects, Level.PROJECT, address, part=first, parameter="projects"),
        jobs=table_of(used.jobs, Level.JOB, address, part=first, parameter="jobs"),
        gpus=table_of(used.gpus, Level.GPU, address, part=first, parameter="gpus", gpus=gpus),
        advice=tuple(advice),
        budgets=tuple(known),
        jobs_href=address.link("/workloads", owner=team),
        mail_href=Address("/report").href(owner=team),
    )


def build_owner(view: View, team: str) -> OwnerPage:
    """The page of one team. Raises ``NotFoundError`` where no rule and no line names it."""
    scope, address = view.scope, view.address
    if not any(one.team == team for one in ledger_sums.owners(scope.session).values()) and not any(
        rule.owner.team == team for rule in owners.listing(scope.session)
    ):
        raise NotFoundError(f"no team {team!r}: the page Teams lists them, Settings › Owners has the rules")
    filters = Filters(owner=(team,))
    projects, jobs, gpu_rows = (
        who_used(scope, level, filters) for level in (Level.PROJECT, Level.JOB, Level.GPU)
    )
    used = TeamUse(by_user(jobs), projects, jobs, gpu_rows)
    gpus = {gpu.identity.gpu_uuid: gpu.identity for gpu in known_gpus(scope.session.connection())}
    told = {uuid: identity.host for uuid, identity in gpus.items()}
    mine = {group.key for group in used.gpus.rows}
    advice = advice_rows(scope.session, lambda found: not mine.isdisjoint(found.gpu_uuids), told)
    known = [
        one
        for one in budgets.rows(scope.session, scope.settings, scope.now_ms)
        if (one.scope_kind == BudgetScope.TEAM and one.scope_value == team)
        or (one.scope_kind == BudgetScope.PROJECT and one.scope_value in used.gpus.total.projects)
    ]
    frame = build_frame(view, active="workloads", title=team, periods=period_bar(view))
    return page_of(frame, team, used, days_of(scope, filters), advice, known, address, gpus)


@router.get("/owners/{team:name}", response_class=HTMLResponse)
def owner_page(view: ViewDep, team: str) -> str:
    """One team as HTML."""
    return render("pages/owner.html", build_owner(view, team))
