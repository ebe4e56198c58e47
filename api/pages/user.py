"""One user: GPU-hours and money by day, jobs, and the teams that pay for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from api import formats
from api.links import owner_path
from api.pages.frame import Frame, build_frame
from api.pages.period import period_bar
from api.pages.use_days import UseDay, cost_chart, days_of, hours_chart
from api.pages.use_rows import UseTable, table_of
from api.pages.view import Address, View, ViewDep
from api.problems import NotFoundError
from api.resources.report_filters import Filters
from api.resources.who_used import Group, Level, WhoUsed, who_used
from api.templating import inert, render
from store.queries.workload_choices import has_user

router = APIRouter(include_in_schema=False)
MOST: Final = 50


@dataclass(frozen=True, slots=True)
class UserPage:
    """Everything the page prints."""

    frame: Frame
    user: str
    headline: str
    whole: Group
    teams: tuple[tuple[str, str], ...]
    days: tuple[UseDay, ...]
    cost: Markup | None
    hours: Markup | None
    jobs: UseTable
    jobs_href: str


def headline(user: str, whole: Group) -> str:
    """What the user held and what it cost."""
    text = f"{inert(user)[:120]} held {formats.gpu_hours(whole.use.held_h)}"
    spent = whole.total.spend_usd
    return text if spent is None else f"{text} for {formats.money(spent)}"


def page_of(frame: Frame, user: str, jobs: WhoUsed, days: Sequence[UseDay], address: Address) -> UserPage:
    """Lay out one user; pure."""
    teams = sorted({team for row in jobs.rows for team in row.teams})
    return UserPage(
        frame=frame,
        user=user,
        headline=headline(user, jobs.total),
        whole=jobs.total,
        teams=tuple((team, address.link(owner_path(team))) for team in teams),
        days=tuple(days),
        cost=cost_chart(days),
        hours=hours_chart(days),
        jobs=table_of(jobs, Level.JOB, address, part=slice(0, MOST)),
        jobs_href=address.link("/workloads", user=user),
    )


def build_user(view: View, user: str) -> UserPage:
    """The page of one user. Raises ``NotFoundError`` where no workload ever was of that user."""
    scope = view.scope
    if not has_user(scope.session, user):
        raise NotFoundError(f"no workload of a user {user!r} was ever seen: the page Workloads lists users")
    filters = Filters(user=(user,))
    jobs = who_used(scope, Level.JOB, filters)
    frame = build_frame(view, active="workloads", title=user, periods=period_bar(view))
    return page_of(frame, user, jobs, days_of(scope, filters), view.address)


@router.get("/users/{user:name}", response_class=HTMLResponse)
def user_page(view: ViewDep, user: str) -> str:
    """One user as HTML."""
    return render("pages/user.html", build_user(view, user))
