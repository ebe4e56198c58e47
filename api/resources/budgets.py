"""The user's budgets: checked, kept, changed, and how the month goes against each."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from sqlalchemy.orm import Session

from api.refusals import validated
from api.resources.columns import about
from api.resources.forecast import Cell, MonthSpend, fitting, hosts_of, month_of, read_month
from api.resources.price_specs import decimal_of
from api.text import Storable
from core.clock import from_ms
from core.errors import NotFoundError, UsageError
from core.ownership import HostFacts
from core.settings import Settings
from core.user_budget import LARGEST, OWNED, Budget, BudgetScope, checked, month_before
from ledger.budgets import Outlook, standing
from ledger.calendar import Span
from store.queries import budgets as kept
from store.queries import owners
from store.queries.host_facts import host_facts

Amount = Annotated[Decimal, Field(strict=False), BeforeValidator(decimal_of(LARGEST, 2))]
NAMED_AT_MOST: Final = 10


class BudgetBody(BaseModel):
    """A budget to keep."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: Storable = Field(max_length=255, description="In your own words.")
    scope_kind: str = Field("all", description=f"What it is for: {', '.join(BudgetScope)}.")
    scope_value: Storable = Field(
        "", max_length=255, description="Which; of a host label key=value; empty for all."
    )
    amount_usd: Amount = Field(description="Dollars a month, as a decimal string or a number.")
    from_month: str | None = Field(
        None, max_length=20, description="First month, such as 2026-10. Default: the one of now."
    )
    to_month: str | None = Field(
        None, max_length=20, description="Last month (that one included). Default: still."
    )
    note: Storable = Field("", max_length=2_000, description="In your own words.")


class BudgetChange(BaseModel):
    """What to change of a budget; what is left out stays."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: Storable | None = Field(None, max_length=255, description="In your own words.")
    amount_usd: Amount | None = Field(None, description="Dollars a month.")
    since_month: str | None = Field(
        None,
        max_length=20,
        description="From this month on only: the months before keep what they had. Default: all its months.",
    )
    from_month: str | None = Field(None, max_length=20, description="Its first month.")
    to_month: str | None = Field(
        None, max_length=20, description="Its last month (included); empty: it goes on."
    )
    note: Storable | None = Field(None, max_length=2_000, description="In your own words.")


@dataclass(frozen=True, slots=True)
class BudgetView:
    """A budget, and how one month of it goes."""

    id: Annotated[int, about("Its key.")]
    name: Annotated[str, about("In your own words.")]
    scope_kind: Annotated[str, about("all, team, project, cost_centre, label, cluster or host.")]
    scope_value: Annotated[str, about("Which; empty for all.")]
    amount_usd: Annotated[Decimal, about("A month.")]
    from_month: Annotated[str, about("First month of it.")]
    to_month: Annotated[str | None, about("Last month of it, included; null: still.")]
    note: Annotated[str, about("In your own words.")]
    month: Annotated[str, about("The month that the rest is about.")]
    status: Annotated[
        str | None,
        about(
            "over: more is spent; at_risk: p90_usd is above the amount; ok: neither; null: nothing is known."
        ),
    ]
    spent_usd: Annotated[Decimal | None, about("So far; null: nothing is known, or nothing has a price.")]
    spent_ratio: Annotated[float | None, about("Of the amount; null: not known, or an amount of 0.")]
    p10_usd: Annotated[Decimal | None, about("At the month's end; one in ten is below. Null: see why.")]
    p50_usd: Annotated[Decimal | None, about("At the month's end; as likely above as below.")]
    p90_usd: Annotated[Decimal | None, about("At the month's end; one in ten is above.")]
    breaks_on: Annotated[
        str | None,
        about("Day (2026-10-05) on which it was or, at p50, will be exceeded; null: not in this month."),
    ]
    breaks_earliest: Annotated[str | None, about("The same at p90; null: not even then.")]
    breaks_latest: Annotated[str | None, about("The same at p10; null: not at that pace.")]
    left_usd: Annotated[Decimal | None, about("Amount less spent; below 0 where it is over.")]
    left_usd_per_day: Annotated[Decimal | None, about("For each day left, the one in progress included.")]
    days_left: Annotated[int, about("Days left, the one in progress included.")]
    is_over: Annotated[bool, about("The month's days are all known: the figures are what it came to.")]
    data_until: Annotated[datetime | None, about("End of the newest sample, UTC.")]
    history_days: Annotated[int, about("Whole days that the forecast rests on.")]
    left_out_days: Annotated[
        Mapping[str, int], about("Days it leaves out, by why: partial, gap (few samples), unpriced.")
    ]
    why: Annotated[str | None, about("Why there is no forecast; null: there is one.")]


@dataclass(frozen=True, slots=True)
class FormerMonth:
    """A whole month before: what was spent, and the budget of then; None: there was none."""

    month: str
    spent_usd: Decimal
    amount_usd: Decimal | None


@dataclass(frozen=True, slots=True)
class BudgetStanding:
    """A budget with its month day by day (``after``: first day of the next one), and the months before, newest first."""

    view: BudgetView
    outlook: Outlook
    after: date
    former: tuple[FormerMonth, ...]


def parsed(given: Mapping[str, Any]) -> BudgetBody:
    """A budget from named values. Raises ``UsageError`` that names field and value."""
    return validated(BudgetBody, given, "budget")


def change_of(given: Mapping[str, Any]) -> BudgetChange:
    """A change from named values. Raises ``UsageError`` that names field and value."""
    return validated(BudgetChange, given, "budget")


def rows(session: Session, settings: Settings, now_ms: int, month: str | None = None) -> list[BudgetView]:
    """Budgets of a month (default: that of now), those for all first, then by scope and name."""
    span = month_of(settings, now_ms, month)
    found = _in_order(one for one in kept.listing(session) if one.holds_in(span.key))
    if not found:
        return []
    return _views(found, _spend(session, settings, now_ms, span, found))


def _in_order(found: Iterable[Budget]) -> list[Budget]:
    order = list(BudgetScope)
    return sorted(
        found, key=lambda one: (order.index(BudgetScope(one.scope_kind)), one.scope_value, one.name, one.id)
    )


def standings(
    session: Session, settings: Settings, now_ms: int, month: str | None = None
) -> list["BudgetStanding"]:
    """The same with what they were made of: the month day by day, and whole months before it."""
    span = month_of(settings, now_ms, month)
    kept_ones = kept.listing(session)
    found = _in_order(one for one in kept_ones if one.holds_in(span.key))
    if not found:
        return []
    spend = _spend(session, settings, now_ms, span, found)
    return [
        BudgetStanding(view, outlook, spend.after, _former(budget, kept_ones, spend))
        for budget, view, outlook in _with_outlooks(found, spend)
    ]


def _former(budget: Budget, known: Sequence[Budget], spend: MonthSpend) -> tuple["FormerMonth", ...]:
    """Whole months before, the newest first, each against what a budget of that name and scope was then."""
    fits = fitting(BudgetScope(budget.scope_kind), budget.scope_value, spend.facts)
    sums = spend.whole_months([cell for cell in spend.cells if fits(cell)])
    alike = [
        one
        for one in known
        if (one.name, one.scope_kind, one.scope_value) == (budget.name, budget.scope_kind, budget.scope_value)
    ]
    return tuple(
        FormerMonth(month, spent, next((one.amount_usd for one in alike if one.holds_in(month)), None))
        for month, spent in sorted(sums.items(), reverse=True)
    )


def add(session: Session, settings: Settings, body: BudgetBody, now_ms: int) -> BudgetView:
    """Keep a budget. Raises ``UsageError`` where it could not be watched: which field, and what to do."""
    values = body.model_dump()
    values["from_month"] = body.from_month or month_of(settings, now_ms, None).key
    made = _budget(values)
    _check(session, made)
    return _view(session, settings, kept.add(session, made), now_ms)


def change(session: Session, settings: Settings, id_: int, body: BudgetChange, now_ms: int) -> BudgetView:
    """Change a budget: for all its months, or from one on (then the months before are kept as one of their own).

    Raises:
        NotFoundError: there is none of that key. UsageError: it could not be watched so.
    """
    old = _get(session, id_)
    values: dict[str, Any] = {
        name: value
        for name in ("name", "amount_usd", "from_month", "note")
        if (value := getattr(body, name)) is not None
    }
    if body.to_month is not None:
        values["to_month"] = body.to_month or None
    since = body.since_month
    if not values:
        raise UsageError(
            f"nothing is given that could change budget {id_}: give an amount, a month, a name or a note"
        )
    if since is None:
        made = _budget(_values(old) | values)
        _check(session, made)
        return _view(session, settings, kept.change(session, made), now_ms)
    if body.from_month is not None:
        raise UsageError("since_month and from_month both say where it begins: give one")
    if not old.holds_in(_month("since_month", since)) or since == old.from_month:
        last = f" to {old.to_month}" if old.to_month else ""
        raise UsageError(
            f"since_month is {since!r}: budget {id_} is of {old.from_month}{last}; give a later month of it, "
            "or leave it out to change all of them"
        )
    made = _budget(_values(old) | values | {"id": 0, "from_month": since})
    kept.change(session, replace(old, to_month=month_before(since)))
    _check(session, made)
    return _view(session, settings, kept.add(session, made), now_ms)


def remove(session: Session, id_: int) -> None:
    """Remove a budget, as if it had never been given. Raises ``NotFoundError`` when there is none of that key."""
    _get(session, id_)
    kept.delete(session, id_)


def _get(session: Session, id_: int) -> Budget:
    found = kept.get(session, id_)
    if found is None:
        raise NotFoundError(f"no budget {id_}: budgets lists them")
    return found


def _values(budget: Budget) -> dict[str, Any]:
    return {name: getattr(budget, name) for name in Budget.__dataclass_fields__}


def _budget(values: Mapping[str, Any]) -> Budget:
    try:
        return Budget(**{"id": 0} | dict(values))
    except ValueError as error:
        raise UsageError(str(error)) from error


def _month(name: str, month: str) -> str:
    try:
        return checked(name, month)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _check(session: Session, made: Budget) -> None:
    """Refuse what nothing is called, and a second budget of a name."""
    for other in kept.listing(session):
        if other.id != made.id and other.name == made.name and other.overlaps(made):
            raise UsageError(
                f"name is {made.name!r}, and budget {other.id} of that name has months in common: "
                "end that one first, change it, or give another name"
            )
    scope, value = BudgetScope(made.scope_kind), made.scope_value
    if scope is BudgetScope.ALL:
        return
    if scope in OWNED:
        known = {getattr(rule.owner, scope.value) for rule in owners.listing(session)} - {""}
        what, where = scope.value.replace("_", " "), "gpuwise owners rules"
        if value in known:
            return
    else:
        facts = host_facts(session)
        if hosts_of(scope, value, facts):
            return
        known = {name for of in facts.values() for name in _names(scope, of)}
        what = "host with the label" if scope is BudgetScope.LABEL else scope.value
        where = "gpuwise hosts"
    raise UsageError(
        f"scope_value is {value!r}, and there is no {what} of that name: {_those(sorted(known), where)}"
    )


def _names(scope: BudgetScope, facts: HostFacts) -> list[str]:
    """What a host could be asked for by."""
    if scope is BudgetScope.HOST:
        return [facts.host]
    if scope is BudgetScope.CLUSTER:
        return [] if facts.cluster is None else [facts.cluster]
    return [f"{name}={text}" for name, text in facts.named.items()]


def _those(known: Sequence[str], where: str) -> str:
    if not known:
        return f"none is known yet ({where})"
    more = f" … ({where} lists them)" if len(known) > NAMED_AT_MOST else ""
    return f"there are {', '.join(known[:NAMED_AT_MOST])}{more}"


def _view(session: Session, settings: Settings, budget: Budget, now_ms: int) -> BudgetView:
    """In the month of now where it holds then, else in its first one."""
    span = month_of(settings, now_ms, None)
    if not budget.holds_in(span.key):
        span = month_of(settings, now_ms, budget.from_month)
    (view,) = _views([budget], _spend(session, settings, now_ms, span, [budget]))
    return view


def _spend(
    session: Session, settings: Settings, now_ms: int, span: Span, found: Sequence[Budget]
) -> MonthSpend:
    by_host = any(budget.scope_kind not in {BudgetScope.ALL, *OWNED} for budget in found)
    return read_month(session, settings, now_ms, span, by_host=by_host)


def _views(found: Sequence[Budget], spend: MonthSpend) -> list[BudgetView]:
    return [view for _, view, _ in _with_outlooks(found, spend)]


def _with_outlooks(
    found: Sequence[Budget], spend: MonthSpend
) -> Iterator[tuple[Budget, BudgetView, Outlook]]:
    outlooks: dict[tuple[str, str], Outlook] = {}
    for budget in found:
        key = (budget.scope_kind, budget.scope_value)
        if key not in outlooks:
            scope = BudgetScope(budget.scope_kind)
            fits = fitting(scope, budget.scope_value, spend.facts)
            cells: list[Cell] = [cell for cell in spend.cells if fits(cell)]
            outlooks[key] = spend.outlook(cells, of_hosts=scope not in OWNED)
        yield budget, _as_view(budget, spend, outlooks[key]), outlooks[key]


def _as_view(budget: Budget, spend: MonthSpend, of: Outlook) -> BudgetView:
    found = standing(of, budget.amount_usd)
    end = of.month_end
    return BudgetView(
        **_values(budget),
        month=spend.month.key,
        status=None if found.status is None else found.status.value,
        spent_usd=of.spent_usd,
        spent_ratio=None
        if of.spent_usd is None or not budget.amount_usd
        else float(of.spent_usd / budget.amount_usd),
        p10_usd=None if end is None else end.p10,
        p50_usd=None if end is None else end.p50,
        p90_usd=None if end is None else end.p90,
        breaks_on=_day(found.breaks_on),
        breaks_earliest=_day(found.earliest),
        breaks_latest=_day(found.latest),
        left_usd=found.left_usd,
        left_usd_per_day=found.left_usd_per_day,
        days_left=of.days_left,
        is_over=of.is_over,
        data_until=None if spend.data_until_ms is None else from_ms(spend.data_until_ms),
        history_days=of.history_days,
        left_out_days=of.left_out,
        why=of.why,
    )


def _day(of: date | None) -> str | None:
    return None if of is None else of.isoformat()
