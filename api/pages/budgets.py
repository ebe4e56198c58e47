"""Budgets: what each part of the fleet may cost a month, how the month goes against it, and forms to change that."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from api import formats
from api.pages.breakdown_rows import short_name
from api.pages.form_routes import Fields, FormRoutes
from api.pages.forms import FormState, given
from api.pages.frame import Frame, build_frame
from api.pages.month_ahead import DayLine, chart_of, days_of
from api.pages.period import PeriodLink
from api.pages.view import Address, View, ViewDep
from api.resources import budgets as resource
from api.resources.budgets import BudgetStanding, BudgetView
from api.resources.forecast import hosts_of, month_of
from api.templating import render
from api.words import Mark
from core.ownership import HostFacts
from core.user_budget import OWNED, BudgetScope, month_before
from ledger.calendar import Calendar
from store.known import known_gpus
from store.queries import budgets as kept
from store.queries import ledger_sums
from store.queries.host_facts import host_facts
from store.queries.hours import bounds

router = APIRouter(include_in_schema=False)
PAGE: Final = "/budgets"
TEMPLATE: Final = "pages/budgets.html"

SCOPES: Final = {
    BudgetScope.ALL: "everything",
    BudgetScope.TEAM: "a team",
    BudgetScope.PROJECT: "a project",
    BudgetScope.COST_CENTRE: "a cost centre",
    BudgetScope.LABEL: "hosts with a label (key=value)",
    BudgetScope.CLUSTER: "a cluster",
    BudgetScope.HOST: "a host",
}
STATE: Final = {"ok": "On track", "at_risk": "At risk", "over": "Over"}
MARK: Final = {"ok": Mark.GOOD, "at_risk": Mark.WARN, "over": Mark.BAD}
MOST_MONTHS: Final = 6
MOST_HOSTS: Final = 30
"""More in an address would be longer than what everybody takes."""
ADDED: Final = ("name", "scope_kind", "scope_value", "amount_usd", "from_month", "to_month", "note")
CHANGED: Final = ("amount_usd", "since_month", "note")


@dataclass(frozen=True, slots=True)
class BudgetLine:
    """One budget: its state in words, its chart, the months before; ``costs_href``: the costs that it is about."""

    view: BudgetView
    what: str
    state: str
    mark: Mark
    said: str
    chart: Markup | None
    days: tuple[DayLine, ...]
    standing: BudgetStanding
    costs_href: str


@dataclass(frozen=True, slots=True)
class BudgetsPage:
    """Everything the page prints.

    Attributes:
        headline: how many are over or at risk. month, month_name: which one. months: others to look at.
        scopes, teams, hosts: what a budget can be for. form: a form that was refused.
        first_month: the month that forms begin with: that of now.
    """

    frame: Frame
    headline: str
    month: str
    month_name: str
    months: tuple[PeriodLink, ...]
    lines: tuple[BudgetLine, ...]
    scopes: tuple[tuple[str, str], ...]
    known: tuple[str, ...]
    form: FormState
    first_month: str
    kept: int


def month_name(key: str) -> str:
    """``October 2026``."""
    return f"{date.fromisoformat(f'{key}-01'):%B %Y}"


def day_name(iso: str | None) -> str:
    """``5 October``; empty: none."""
    if iso is None:
        return ""
    day = date.fromisoformat(iso)
    return f"{day.day} {day:%B}"


def said(view: BudgetView) -> str:
    """How the month goes, in a sentence."""
    amount = formats.money(view.amount_usd)
    if view.status is None:
        return f"Nothing is known yet: {view.why}." if view.why else "Nothing is known of this month yet."
    spent = formats.money(view.spent_usd)
    if view.status == "over":
        over = formats.money((view.spent_usd or Decimal(0)) - view.amount_usd)
        return f"{spent} is spent, {over} above the {amount}; it was crossed on {day_name(view.breaks_on)}."
    if view.is_over:
        return f"The month came to {spent} of {amount}."
    if view.p50_usd is None:
        return f"{spent} of {amount} is spent. No forecast: {view.why}."
    ends = f"Expected to end at {formats.money(view.p50_usd)} of {amount}"
    if view.status == "at_risk":
        when = (
            f"crossing it on {day_name(view.breaks_on)}"
            if view.breaks_on
            else f"perhaps crossing it from {day_name(view.breaks_earliest)} on"
        )
        return f"{ends}, {when}."
    return f"{ends}; {formats.money(view.left_usd_per_day)} a day may still be spent."


def headline(lines: Sequence[BudgetLine], name: str) -> str:
    """What was found."""
    if not lines:
        return f"No budget for {name}"
    over = sum(line.view.status == "over" for line in lines)
    risk = sum(line.view.status == "at_risk" for line in lines)
    count = f"{len(lines)} budget{'s' if len(lines) != 1 else ''}"
    if all(line.view.status is None for line in lines):
        return f"{count} for {name}, of which nothing is known yet"
    if not over and not risk:
        return f"{count} for {name}, none at risk"
    parts = [f"{n} {word}" for n, word in ((over, "over"), (risk, "at risk")) if n]
    return f"{' and '.join(parts)} of {count} for {name}"


def costs_href(view: BudgetView, facts: Mapping[str, HostFacts]) -> str:
    """Where the month's costs of what a budget is for are; of hosts that are nowhere any more, and of many, all hosts'."""
    kind, month = BudgetScope(view.scope_kind), view.month
    costs = Address("/costs")
    if kind is BudgetScope.ALL:
        return costs.href(month=month)
    if kind is BudgetScope.TEAM:
        return costs.href(owner=view.scope_value, month=month)
    if kind in OWNED and not view.spent_usd:
        return costs.href(by=kind.value, month=month)
    if kind in OWNED:
        return Address("/costs/parts").href(by=kind.value, key=view.scope_value, month=month)
    hosts = sorted(hosts_of(kind, view.scope_value, facts))
    return costs.href(by="host", host=hosts if len(hosts) <= MOST_HOSTS else None, month=month)


def line_of(standing: BudgetStanding, facts: Mapping[str, HostFacts]) -> BudgetLine:
    """A budget as the page prints it; pure."""
    view = standing.view
    what = SCOPES[BudgetScope(view.scope_kind)]
    days = days_of(date.fromisoformat(f"{view.month}-01"), standing.after, standing.outlook)
    sentence = said(view).replace(formats.NBSP, " ")
    state = STATE.get(view.status or "", "Not known")
    if view.is_over and view.status == "ok":
        state = "Kept"
    return BudgetLine(
        view,
        what if view.scope_kind == BudgetScope.ALL else f"{what.removeprefix('a ')} {view.scope_value}",
        state,
        MARK.get(view.status or "", Mark.NOTE),
        sentence,
        chart_of(days, label=f"{short_name(view.name)}: {sentence}", limit=view.amount_usd),
        days,
        standing,
        costs_href(view, facts),
    )


def page_of(
    frame: Frame,
    standings: Sequence[BudgetStanding],
    *,
    month: str,
    months: tuple[PeriodLink, ...] = (),
    known: Sequence[str] = (),
    form: FormState | None = None,
    first_month: str = "",
    count: int = 0,
    facts: Mapping[str, HostFacts] | None = None,
) -> BudgetsPage:
    """Lay out the budgets; pure. ``facts``: what is said of hosts."""
    order = {"over": 0, "at_risk": 1, "ok": 2}
    lines = sorted(
        (line_of(one, facts or {}) for one in standings),
        key=lambda line: order.get(line.view.status or "", 3),
    )
    name = month_name(month)
    return BudgetsPage(
        frame=frame,
        headline=headline(lines, name),
        month=month,
        month_name=name,
        months=months,
        lines=tuple(lines),
        scopes=tuple((kind.value, text) for kind, text in SCOPES.items()),
        known=tuple(known),
        form=form or FormState(),
        first_month=first_month or month,
        kept=count,
    )


def build_budgets(view: View, form: FormState | None = None) -> BudgetsPage:
    """The page over the month that is asked for, or that of now."""
    scope, session = view.scope, view.scope.session
    span = month_of(scope.settings, scope.now_ms, view.address.get("month") or None)
    return page_of(
        build_frame(view, active="budgets", title="Budgets", window_text=""),
        resource.standings(session, scope.settings, scope.now_ms, span.key),
        month=span.key,
        months=_months(view, span.key),
        known=_known(view),
        form=form,
        first_month=month_of(scope.settings, scope.now_ms, None).key,
        count=len(kept.listing(session)),
        facts=host_facts(session),
    )


def _months(view: View, shown: str) -> tuple[PeriodLink, ...]:
    """Months with data, the newest first, and the one in progress."""
    scope = view.scope
    now = month_of(scope.settings, scope.now_ms, None).key
    data = bounds(scope.session)
    calendar = Calendar(scope.settings.accounting_time_zone)
    found = {now, shown}
    if data is not None:
        found |= {span.key for span in calendar.months(data.from_ms, data.to_ms)}
    keys = sorted(found, reverse=True)[:MOST_MONTHS]
    page = Address(PAGE)
    return tuple(
        PeriodLink(month_name(key), page.href(month=None if key == now else key), key == shown)
        for key in keys
    )


def _known(view: View) -> list[str]:
    """Names that a budget may be for, to choose from while typing."""
    session = view.scope.session
    owners = ledger_sums.owners(session).values()
    names = {name for owner in owners for name in (owner.team, owner.project, owner.cost_centre) if name}
    return sorted(
        names | {gpu.identity.host for gpu in known_gpus(session.connection()) if gpu.identity.host}
    )


FORMS: Final = FormRoutes(
    router, PAGE, lambda view, form: render(TEMPLATE, build_budgets(view, form)), ("month",)
)


@router.get(PAGE, response_class=HTMLResponse)
def budgets_page(view: ViewDep) -> str:
    """The budgets as HTML."""
    return render(TEMPLATE, build_budgets(view))


@FORMS.post("add", form="add", said="added")
def add_budget(view: View, fields: Fields) -> None:
    """Keep a budget."""
    body = resource.parsed({"name": "", **given(fields, ADDED)})
    resource.add(view.scope.session, view.scope.settings, body, view.scope.now_ms)


@FORMS.post_row("{id_}/change", form="change-{id_}", said="saved")
def change_budget(view: View, id_: int, fields: Fields) -> None:
    """Another amount, from a month on or for all of them."""
    typed = given(fields, CHANGED)
    budget = kept.get(view.scope.session, id_)
    if budget is not None and typed.get("since_month") == budget.from_month:
        typed.pop("since_month")  # from its first month on is all of it
    _change(view, id_, typed)


@FORMS.post_row("{id_}/end", form="end-{id_}", said="ended")
def end_budget(view: View, id_: int, fields: Fields) -> None:
    """A last month; what it said of earlier ones stays."""
    now = month_of(view.scope.settings, view.scope.now_ms, None).key
    _change(view, id_, {"to_month": fields.get("to_month", "").strip() or month_before(now)})


@FORMS.post_row("{id_}/remove", form="remove-{id_}", said="removed")
def remove_budget(view: View, id_: int, _fields: Fields) -> None:
    """As if it had never been given."""
    resource.remove(view.scope.session, id_)


def _change(view: View, id_: int, typed: Fields) -> None:
    scope = view.scope
    resource.change(scope.session, scope.settings, id_, resource.change_of(typed), scope.now_ms)
