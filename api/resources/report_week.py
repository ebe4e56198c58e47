"""What a weekly report rests on, of one audience: money, budgets, advice, what was done and proven. Never raw samples."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from api.resources import budgets, forecast, funnel
from api.resources.advise import last_run, last_totals
from api.resources.budgets import BudgetView
from api.resources.by import By
from api.resources.forecast import ForecastBy, ForecastRow
from api.resources.gpu_bills import GpuBills, covers, gpu_bills
from api.resources.overview import AMOUNTS, WAITING, days, money_of, previous
from api.resources.overview_model import Overview
from api.resources.owner_advice import others_of, own_advice, totals_of
from api.resources.report import Question, gpu_label, report
from api.resources.report_filters import NO_FILTERS, Filters
from api.resources.report_sum import LineSum, merged, ratio
from api.resources.scope import Scope
from core.clock import from_ms
from core.evidence import Window
from core.finding import Status, Totals
from core.money import usd
from core.ownership import Owner
from core.units import DAY_MS, HOUR_MS, J_PER_KWH
from core.user_budget import BudgetScope
from store.known import KnownGpu, known_gpus
from store.queries import advice_life, meta, owners, recommendations, verifications
from store.queries.advice_life import LifeStep
from store.queries.hours import bounds
from store.queries.recommendations import Recommendation
from store.queries.verifications import KeptVerification

ADVICE_DAYS: Final = 30
"""How far the rules look back, where no run of theirs is recorded."""
SILENT_MS: Final = HOUR_MS
"""A GPU without a sample for so long while others have some is silent."""
DECIDED: Final = frozenset(
    {Status.CLAIMED, Status.DONE, Status.VERIFIED, Status.REOPENED, Status.SNOOZED, Status.DISMISSED}
)
"""Steps that people or verification took; what the rules open and close by themselves is not one."""


@dataclass(frozen=True, slots=True)
class HostMoney:
    """One host's part of the week; ``host`` None: no source names it."""

    host: str | None
    gpus: int
    sums: LineSum


@dataclass(frozen=True, slots=True)
class Week:
    """One week of one audience.

    Attributes:
        audience: None: the whole fleet.
        view: the figures of the week; its ``recommendations`` are all that wait, best or not.
        parts: the audience's share of the GPUs of a recommendation by its id, where it is not all.
        veiled: ids of recommendations that are told in the rule's words alone.
        advice: what waits, against which savings may be added up (``bills``).
        budgets: those that concern the audience. outlook: without any, where the month ends at this pace.
        steps: what was decided in the week, with its recommendation. verified: comparisons of the week with a figure.
        hosts: the audience's, most idle money first. silent: its GPUs that sent nothing at the end.
    """

    audience: Owner | None
    view: Overview
    parts: Mapping[int, float]
    veiled: frozenset[int]
    bills: GpuBills
    budgets: tuple[BudgetView, ...]
    outlook: ForecastRow | None
    steps: tuple[tuple[LifeStep, Recommendation], ...]
    verified: tuple[tuple[KeptVerification, Recommendation], ...]
    hosts: tuple[HostMoney, ...]
    labels: Mapping[str, str]
    host_of: Mapping[str, str | None]
    silent: tuple[str, ...]

    def is_partly(self, recommendation_id: int) -> bool:
        """Others paid for a part of it, or are touched by it."""
        return recommendation_id in self.parts or recommendation_id in self.veiled

    def totals(self, found: Sequence[Recommendation]) -> Totals:
        """What some of its recommendations come to, after overlap."""
        return totals_of([item.finding for item in found], self.bills, self.audience)


def filters_of(audience: Owner | None) -> Filters:
    """The lines that an audience pays for."""
    if audience is None:
        return NO_FILTERS
    return Filters(owner=(audience.team,), project=(audience.project,) if audience.project else ())


def week(scope: Scope, audience: Owner | None, *, adds_up: bool = True) -> Week:
    """Read the scope's window for an audience; ``adds_up`` False: nobody will ask for totals of a part of the advice."""
    session = scope.session
    filters = filters_of(audience)
    by_gpu = report(scope, Question((By.GPU,), AMOUNTS, money=True, filters=filters))
    sums = {key[0] or "": one for key, one in by_gpu.items()}
    gpus = [gpu for gpu in known_gpus(session.connection()) if gpu.identity.gpu_uuid in sums]
    whole = merged(sums.values())
    seen = whole if audience is None else _of_gpus(scope, sums)
    newest = bounds(session)
    bills = GpuBills(scope.window)
    if adds_up or audience is not None:
        bills = gpu_bills(replace(scope, window=_advice_window(scope)))
    found_budgets = _budgets(scope, audience)
    labels = {gpu.identity.gpu_uuid: gpu_label(gpu.identity) for gpu in gpus}
    every = {item.id: item for item in recommendations.listing(session, brief=True)}
    mine, totals, parts, veiled = _mine(scope, audience, list(every.values()), bills, labels)
    waiting = tuple(item for item in mine.values() if item.status in WAITING)
    last = last_totals(session, waiting) if audience is None else None
    hosts = _hosts(gpus, sums)
    return Week(
        audience=audience,
        view=Overview(
            window=scope.window,
            now_ms=scope.now_ms,
            simulated=scope.settings.simulated or meta.simulated(session),
            has_data=whole.whole("covered_ms") > 0,
            freshness_s=None if newest is None else max(0.0, (scope.now_ms - newest.to_ms) / 1000),
            coverage_ratio=ratio(seen.whole("covered_ms"), seen.whole("known_ms")),
            host_count=len([one for one in hosts if one.host is not None]),
            gpu_count=len(gpus),
            money=money_of(whole),
            previous=previous(scope, whole, filters),
            price_note=whole.basis or "no price is known",
            energy_kwh=None if whole.energy_j is None else whole.energy_j / J_PER_KWH,
            site_kwh=whole.site_kwh,
            carbon_g=whole.carbon_g,
            carbon_note=carbon_note(whole),
            funnel=tuple(funnel.steps(whole)),
            days=days(scope, filters),
            totals=(None if last is None else last[0]) if audience is None else totals,
            recommendations=waiting,
            open_count=len(waiting),
            not_evaluated_count=None if last is None else last[1],
        ),
        parts=parts,
        veiled=veiled,
        bills=bills,
        budgets=found_budgets,
        outlook=None if found_budgets else _outlook(scope, audience),
        steps=tuple(
            (step, mine[step.recommendation_id])
            for step in advice_life.steps(session, scope.window.from_ms, scope.window.to_ms)
            if step.status in DECIDED and step.recommendation_id in mine
        ),
        verified=tuple(
            (one, mine[one.recommendation_id])
            for one in verifications.listing(session)
            if one.verification.verdict.is_measured
            and scope.window.from_ms <= one.checked_ms < scope.window.to_ms
            and one.recommendation_id in mine
        ),
        hosts=hosts,
        labels=labels,
        host_of={gpu.identity.gpu_uuid: gpu.identity.host for gpu in gpus},
        silent=tuple(
            labels[gpu.identity.gpu_uuid]
            for gpu in gpus
            if newest is not None and (gpu.seen_until_ms or 0) < newest.to_ms - SILENT_MS
        ),
    )


def _mine(
    scope: Scope,
    audience: Owner | None,
    every: Sequence[Recommendation],
    bills: GpuBills,
    labels: Mapping[str, str],
) -> tuple[dict[int, Recommendation], Totals, Mapping[int, float], frozenset[int]]:
    """Recommendations of any status that are the audience's, totals of those that wait, shares, and what is veiled."""
    if audience is None:
        return {item.id: item for item in every}, Totals(None, None, None, None), {}, frozenset()
    found = own_advice(every, bills, audience, others=others_of(scope, bills, audience), label_of=labels)
    mine = {item.id: item for item in found.recommendations}
    waiting = [item.finding for item in mine.values() if item.status in WAITING]
    return mine, totals_of(waiting, bills, audience), found.parts, found.veiled


def _of_gpus(scope: Scope, gpu_uuids: Collection[str]) -> LineSum:
    """All time of these GPUs, whoever held them: a gap has no holder, so an owner's lines cannot tell of it."""
    question = Question((By.KIND,), ("known_ms", "covered_ms"), filters=Filters(gpu=tuple(gpu_uuids)))
    return merged(report(scope, question).values()) if gpu_uuids else LineSum()


def _advice_window(scope: Scope) -> Window:
    last = last_run(scope.session)
    if last is not None and last.window.to_ms > scope.window.from_ms:
        return last.window
    return Window(scope.window.to_ms - ADVICE_DAYS * DAY_MS, scope.window.to_ms)


def carbon_note(whole: LineSum) -> str:
    """Code, year and method of the grid factors behind the carbon, for people."""
    grid = whole.grid
    if grid.code is None:
        return "no grid factor: grid_code is not in the table"
    year = "" if grid.year is None else f", {grid.year}"
    return f"{grid.code}{year}, {grid.method}, location-based"


def _hosts(gpus: Sequence[KnownGpu], sums: Mapping[str, LineSum]) -> tuple[HostMoney, ...]:
    by_host: dict[str | None, list[LineSum]] = {}
    for gpu in gpus:
        by_host.setdefault(gpu.identity.host, []).append(sums[gpu.identity.gpu_uuid])
    rows = [HostMoney(host, len(of), merged(of)) for host, of in by_host.items()]
    return tuple(
        sorted(
            rows,
            key=lambda row: (-(row.sums.usd("idle_cost_usd") or usd(0)), row.host is None, row.host or ""),
        )
    )


def _month(scope: Scope) -> str:
    """The month that the week ends in."""
    return forecast.month_of(scope.settings, scope.window.to_ms - 1, None).key


def _budgets(scope: Scope, audience: Owner | None) -> tuple[BudgetView, ...]:
    found = budgets.rows(scope.session, scope.settings, scope.now_ms, _month(scope))
    if audience is None:
        return tuple(found)
    kind, value = (
        (BudgetScope.PROJECT, audience.project) if audience.project else (BudgetScope.TEAM, audience.team)
    )
    # A project's name may be another team's too, and its budget is of both: then it is not told.
    if kind is BudgetScope.PROJECT and not _is_alone(scope, audience):
        return ()
    return tuple(one for one in found if (one.scope_kind, one.scope_value) == (kind, value))


def _is_alone(scope: Scope, audience: Owner) -> bool:
    return all(
        covers(audience, rule.owner)
        for rule in owners.listing(scope.session)
        if rule.owner.project == audience.project
    )


def _outlook(scope: Scope, audience: Owner | None) -> ForecastRow | None:
    """Where the month ends; None where another audience's spend would be in it."""
    by, key = ForecastBy.ALL, "all"
    if audience is not None:
        by, key = (
            (ForecastBy.PROJECT, audience.project) if audience.project else (ForecastBy.OWNER, audience.team)
        )
        if audience.project and not _is_alone(scope, audience):
            return None
    rows = forecast.rows(scope.session, scope.settings, scope.now_ms, by, _month(scope), only=key)
    return next((row for row in rows if row.key == key), None)


def period_of(window: Window) -> str:
    """Key of a report's days: the first and the last one."""
    return f"{from_ms(window.from_ms):%Y-%m-%d}/{from_ms(window.to_ms - 1):%Y-%m-%d}"
