"""What each part of the fleet will cost by the end of a month: days of the ledger, added up and carried on.

Spend is the GPU's price and, where the site pays for power apart, what its energy costs: the figure of ``costs``. A day
counts for the forecast when it is over, its samples are there and its time has a price (``ledger.forecast``).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Final

from sqlalchemy.orm import Session

from api.resources.columns import about
from api.resources.report_parts import Need, parts
from api.resources.scope import Scope
from core.clock import from_ms
from core.errors import UsageError
from core.evidence import Window
from core.money import from_micro
from core.ownership import HostFacts, Owner
from core.settings import Settings
from core.units import MINUTE_MS
from core.user_budget import OWNED, BudgetScope, checked
from ledger.budgets import Outlook, outlook
from ledger.calendar import Calendar, Span
from ledger.forecast import MAX_HISTORY_DAYS, DaySpend
from store.queries.host_facts import host_facts
from store.queries.ledger_lines import span_of_samples

ONE_DAY: Final = timedelta(days=1)
SLACK_MS: Final = 15 * MINUTE_MS
"""A day whose last samples are no older is whole: 1 % of it may be on its way."""
AMOUNTS: Final = ("known_ms", "covered_ms", "cost_usd", "billed_energy_usd")
Cell = tuple[str | None, Owner | None]
"""Host and owner of spend."""


class ForecastBy(StrEnum):
    """What ``forecast?by=`` takes; ``owner`` is the team."""

    ALL = "all"
    OWNER = "owner"
    PROJECT = "project"
    COST_CENTRE = "cost_centre"
    CLUSTER = "cluster"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class ForecastRow:
    """Spend of one group in one month, so far and at its end."""

    key: Annotated[str | None, about("Group; null: owned by nobody, or no host or cluster is named.")]
    label: Annotated[str, about("The group for people.")]
    month: Annotated[str, about("Month of the accounting time zone, such as 2026-10.")]
    spent_usd: Annotated[Decimal | None, about("So far; null: nothing is known, or nothing has a price.")]
    p10_usd: Annotated[Decimal | None, about("At the month's end; one in ten is below. Null: see why.")]
    p50_usd: Annotated[Decimal | None, about("At the month's end; as likely above as below.")]
    p90_usd: Annotated[Decimal | None, about("At the month's end; one in ten is above.")]
    is_over: Annotated[bool, about("The month's days are all known: the figures are what it came to.")]
    data_until: Annotated[datetime | None, about("End of the newest sample, UTC.")]
    history_days: Annotated[int, about("Whole days that the forecast rests on.")]
    left_out_days: Annotated[
        Mapping[str, int], about("Days it leaves out, by why: partial, gap (few samples), unpriced.")
    ]
    why: Annotated[str | None, about("Why there is no forecast; null: there is one.")]


@dataclass(slots=True)
class _Amounts:
    known_ms: int = 0
    covered_ms: int = 0
    priced_ms: int = 0
    micro_usd: int = 0


@dataclass(slots=True)
class MonthSpend:
    """Spend by day, host and owner: a month and what a forecast wants of the time before.

    Attributes:
        month: which. after: first day of the next. first: first day that is not over, as far as data tell.
        data_until_ms: end of the newest sample; None: there is none.
        facts: what is said of hosts, as it stands now.
    """

    month: Span
    after: date
    first: date
    data_until_ms: int | None
    facts: Mapping[str, HostFacts]
    _dates: list[tuple[date, bool]]
    _days: dict[date, dict[Cell, _Amounts]] = field(default_factory=dict)
    _seen: dict[date, float | None] = field(default_factory=dict)

    def add(self, day: date, cell: Cell, amounts: tuple[int, int, int, int]) -> None:
        """Count known, covered and priced milliseconds, and micro-dollars."""
        total = self._days.setdefault(day, {}).setdefault(cell, _Amounts())
        known_ms, covered_ms, priced_ms, micro_usd = amounts
        total.known_ms += known_ms
        total.covered_ms += covered_ms
        total.priced_ms += priced_ms
        total.micro_usd += micro_usd

    @property
    def cells(self) -> set[Cell]:
        """Every host and owner with spend."""
        return {cell for of in self._days.values() for cell, total in of.items() if total.known_ms > 0}

    def outlook(self, cells: Collection[Cell], *, of_hosts: bool) -> Outlook:
        """The month of some of them. A gap has no holder: days of an owner count where the *fleet* was seen (``of_hosts`` false)."""
        month = date.fromisoformat(f"{self.month.key}-01")
        return outlook(list(self._spend(cells, of_hosts)), month, self.after, self.first)

    def whole_months(self, cells: Collection[Cell]) -> dict[str, Decimal]:
        """Spend of some of them in the months before that are all there, of those read for the forecast."""
        found: dict[str, int] = {}
        whole = {day for day, is_whole in self._dates if is_whole}
        for day in sorted(whole):
            key = f"{day:%Y-%m}"
            if day.day == 1 and key < self.month.key:
                found[key] = 0
            if key in found:
                there = self._days.get(day, {})
                found[key] += sum(there[cell].micro_usd for cell in cells if cell in there)
        ends = {key: date.fromisoformat(f"{key}-01") + 31 * ONE_DAY for key in found}
        last = {key: after.replace(day=1) - ONE_DAY for key, after in ends.items()}
        return {key: from_micro(micro) for key, micro in found.items() if last[key] in whole}

    def _spend(self, cells: Collection[Cell], of_hosts: bool) -> Iterator[DaySpend]:
        for day, is_whole in self._dates:
            there = self._days.get(day, {})
            own = [there[cell] for cell in cells if cell in there]
            if not of_hosts and day not in self._seen:
                self._seen[day] = _ratio(there.values(), "covered_ms")
            yield DaySpend(
                day,
                from_micro(sum(total.micro_usd for total in own)),
                _ratio(own, "covered_ms") if of_hosts else self._seen[day],
                _ratio(own, "priced_ms"),
                is_whole,
            )


def _ratio(totals: Iterable[_Amounts], name: str) -> float | None:
    known = part = 0
    for total in totals:
        known += total.known_ms
        part += getattr(total, name)
    return part / known if known > 0 else None


def month_of(settings: Settings, now_ms: int, month: str | None) -> Span:
    """The month asked for; default the one of now. Raises ``UsageError`` for what is none."""
    calendar = Calendar(settings.accounting_time_zone)
    if month is None:
        return calendar.month_at(now_ms)
    try:
        return calendar.month(checked("month", month))
    except ValueError as error:
        raise UsageError(str(error)) from error


def read_month(
    session: Session, settings: Settings, now_ms: int, month: Span, *, by_host: bool = True
) -> MonthSpend:
    """The days that a forecast of the month looks at; ``by_host`` False: nobody asks for hosts, which is quicker."""
    calendar = Calendar(settings.accounting_time_zone)
    start = date.fromisoformat(f"{month.key}-01")
    after = (start + 31 * ONE_DAY).replace(day=1)
    data = span_of_samples(session)
    facts = host_facts(session)
    if data is None:
        return MonthSpend(month, after, start, None, facts, [])
    since_ms, until_ms = data[0], min(data[1], max(now_ms, data[0]))
    first = date.fromisoformat(calendar.day_at(until_ms + SLACK_MS).key)
    window = Window(
        max(since_ms, _midnight(calendar, min(first, start) - MAX_HISTORY_DAYS * ONE_DAY)),
        min(until_ms, month.to_ms),
    )
    if window.to_ms <= window.from_ms:
        return MonthSpend(month, after, first, until_ms, facts, [])
    spans = calendar.days(window.from_ms, window.to_ms)
    dates = {span.start_ms: date.fromisoformat(span.key) for span in spans}
    found = MonthSpend(
        month,
        after,
        first,
        until_ms,
        facts,
        [(day, day < first and spans[at].from_ms >= since_ms) for at, day in enumerate(dates.values())],
    )
    wanted = {"day", "owner", "money", "gpu"} if by_host else {"day", "owner", "money"}
    for part, amounts in parts(Scope(session, settings, now_ms, window), Need(frozenset(wanted), AMOUNTS)):
        if part.at_ms in dates:
            known, covered = amounts["known_ms"] or 0, amounts["covered_ms"] or 0
            paid = (amounts["cost_usd"] or 0) + (amounts["billed_energy_usd"] or 0)
            is_priced = part.rate is not None
            host = None if part.gpu is None else part.gpu.host
            found.add(
                dates[part.at_ms],
                (host, part.owner),
                (known, covered, known if is_priced else 0, paid if is_priced else 0),
            )
    return found


def _midnight(calendar: Calendar, day: date) -> int:
    """Start of the first hour of a day."""
    first = calendar.month(f"{day:%Y-%m}")
    return next(
        span.from_ms for span in calendar.days(first.from_ms, first.to_ms) if span.key >= day.isoformat()
    )


def fitting(scope: BudgetScope, value: str, facts: Mapping[str, HostFacts]) -> Callable[[Cell], bool]:
    """Whether spend of a host and an owner belongs to a scope."""
    if scope is BudgetScope.ALL:
        return lambda _: True
    if scope in OWNED:
        return lambda cell: cell[1] is not None and getattr(cell[1], scope.value) == value
    hosts = hosts_of(scope, value, facts)
    return lambda cell: cell[0] in hosts


def hosts_of(scope: BudgetScope, value: str, facts: Mapping[str, HostFacts]) -> set[str]:
    """Hosts of a cluster, a label or of one name."""
    if scope is BudgetScope.HOST:
        return {value} & set(facts)
    name, wanted = ("cluster", value) if scope is BudgetScope.CLUSTER else value.split("=", 1)
    return {host for host, of in facts.items() if of.named.get(name) == wanted}


def rows(
    session: Session,
    settings: Settings,
    now_ms: int,
    by: ForecastBy,
    month: str | None = None,
    *,
    only: str | None = None,
) -> list[ForecastRow]:
    """Every group with spend in the days read (or the one of key ``only``), by name; what nobody owns comes last."""
    by_host = by in {ForecastBy.CLUSTER, ForecastBy.HOST}
    spend = read_month(session, settings, now_ms, month_of(settings, now_ms, month), by_host=by_host)
    groups: dict[str | None, list[Cell]] = {"all": []} if by is ForecastBy.ALL else {}
    for cell in spend.cells:
        groups.setdefault(_key(cell, by, spend.facts), []).append(cell)
    of_hosts = by_host or by is ForecastBy.ALL
    return [
        _row(key, by, spend, spend.outlook(groups[key], of_hosts=of_hosts))
        for key in sorted(groups, key=lambda key: (key is None, key or ""))
        if only is None or key == only
    ]


def _key(cell: Cell, by: ForecastBy, facts: Mapping[str, HostFacts]) -> str | None:
    host, owner = cell
    match by:
        case ForecastBy.ALL:
            return "all"
        case ForecastBy.HOST:
            return host
        case ForecastBy.CLUSTER:
            return None if host is None or host not in facts else facts[host].cluster
        case ForecastBy.OWNER:
            return None if owner is None else owner.team
        case _:
            return (getattr(owner, by.value) or None) if owner is not None else None


_NOBODY: Final = {
    ForecastBy.OWNER: "unowned",
    ForecastBy.PROJECT: "no project",
    ForecastBy.COST_CENTRE: "no cost centre",
    ForecastBy.CLUSTER: "no cluster",
    ForecastBy.HOST: "host unknown",
}


def _row(key: str | None, by: ForecastBy, spend: MonthSpend, of: Outlook) -> ForecastRow:
    end = of.month_end
    return ForecastRow(
        key=key,
        label=_NOBODY[by] if key is None else "everything" if by is ForecastBy.ALL else key,
        month=spend.month.key,
        spent_usd=of.spent_usd,
        p10_usd=None if end is None else end.p10,
        p50_usd=None if end is None else end.p50,
        p90_usd=None if end is None else end.p90,
        is_over=of.is_over,
        data_until=None if spend.data_until_ms is None else from_ms(spend.data_until_ms),
        history_days=of.history_days,
        left_out_days=of.left_out,
        why=of.why,
    )
