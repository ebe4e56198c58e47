"""The overview: spend and idle, the funnel, days, hosts and what to do first. Reads sums of the ledger, never raw samples."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

from api.ranking import rank
from api.resources import funnel
from api.resources.advise import last_totals
from api.resources.by import By
from api.resources.gpu_totals import GpuTotal, gpu_totals
from api.resources.overview_model import Day, HostLine, Money, Overview, Previous, Proven
from api.resources.places import place_lookup
from api.resources.report import Question, report
from api.resources.report_filters import NO_FILTERS, Filters
from api.resources.report_parts import MONEY, SPENT_USD, USAGE
from api.resources.report_sum import LineSum, Sums, merged, ratio
from api.resources.scope import Scope
from api.resources.waste import waste
from core.activity import Activity
from core.clock import to_ms
from core.evidence import Window
from core.finding import Status
from core.units import HOUR_MS, J_PER_KWH
from core.verification import Ledger
from ledger.calendar import Calendar
from ledger.carbon import Carbon
from store.queries import meta, recommendations, verifications
from store.queries.gpu_now import GpuNow, gpus_now
from store.queries.gpu_strips import Strip, main_activities
from store.queries.hours import bounds
from store.queries.recommendations import Recommendation
from store.queries.verifications import KeptVerification

AMOUNTS: Final = tuple(dict.fromkeys([*MONEY, *USAGE, *SPENT_USD]))
BEST: Final = 5
HOSTS_SHOWN: Final = 15
STRIP_HOURS: Final = 24
ENOUGH_OF_BEFORE: Final = 0.9
"""A change is only stated against a period whose time was nearly all there."""
WAITING: Final = (Status.OPEN, Status.REOPENED, Status.CLAIMED)
"""Statuses that still ask for something."""


def overview(scope: Scope) -> Overview:
    """Everything the overview says of the scope's window; sums only, so that a thousand GPUs cost little more than ten."""
    session = scope.session
    by_day = _report(scope, By.DAY)
    whole = merged(by_day.values())
    totals = gpu_totals(scope)
    cards = [one for one in gpus_now(session) if one.id in totals]
    waiting = recommendations.listing(session, WAITING, brief=True)
    waiting.sort(key=lambda item: (rank(item.finding), item.id))
    newest = bounds(session)
    last = last_totals(session, waiting)
    lines = _host_lines(scope, cards, totals, waiting)
    unpriced = {card.model or "a GPU of unknown model" for card in cards if totals[card.id].cost_usd is None}
    return Overview(
        window=scope.window,
        now_ms=scope.now_ms,
        simulated=scope.settings.simulated or meta.simulated(session),
        has_data=whole.whole("covered_ms") > 0,
        freshness_s=None if newest is None else max(0.0, (scope.now_ms - newest.to_ms) / 1000),
        coverage_ratio=ratio(whole.whole("covered_ms"), whole.whole("known_ms")),
        host_count=len({card.host for card in cards if card.host is not None}),
        gpu_count=len(cards),
        money=money_of(whole),
        previous=previous(scope, whole),
        price_note=price_note(whole, unpriced),
        energy_kwh=None if whole.energy_j is None else whole.energy_j / J_PER_KWH,
        site_kwh=whole.site_kwh,
        carbon_g=whole.carbon_g,
        carbon_note=carbon_note(
            place_lookup(session, scope.settings).common_terms(scope.window.to_ms - 1).carbon
        ),
        funnel=tuple(funnel.steps(whole)),
        days=days_of(scope, by_day),
        totals=None if last is None else last[0],
        recommendations=tuple(waiting),
        open_count=len(waiting),
        not_evaluated_count=None if last is None else last[1],
        waste=waste(whole),
        proven=proven(verifications.listing(session)),
        hosts=lines,
        days_zone=scope.settings.accounting_time_zone,
    )


def _report(scope: Scope, by: By, filters: Filters = NO_FILTERS) -> Sums:
    return report(scope, Question((by,), AMOUNTS, money=True, filters=filters))


def money_of(whole: LineSum) -> Money:
    """Spend, idle part, energy of lines added up."""
    return Money(
        spend_usd=whole.spend_usd,
        idle_usd=whole.usd("idle_cost_usd"),
        empty_usd=whole.idle_part_usd(Activity.EMPTY),
        parked_usd=whole.idle_part_usd(Activity.PARKED),
        unseen_usd=whole.unseen_usd,
        energy_usd=whole.usd("energy_usd"),
        energy_in_spend="billed_energy_usd" in whole.amounts,
        priced_ratio=ratio(whole.priced_ms, whole.whole("covered_ms")),
    )


def previous(scope: Scope, now: LineSum, filters: Filters = NO_FILTERS) -> Previous | None:
    """The same length of time before; None when its data do not fill it."""
    length = scope.window.to_ms - scope.window.from_ms
    window = Window(scope.window.from_ms - length, scope.window.from_ms)
    data = bounds(scope.session)
    if data is None or window.to_ms - max(window.from_ms, data.from_ms) < ENOUGH_OF_BEFORE * length:
        return None
    before = merged(_report(replace(scope, window=window), By.KIND, filters).values())
    then, spend = before.spend_usd, now.spend_usd
    change = float((spend - then) / then) if then and spend is not None else None
    return Previous(window, then, before.usd("idle_cost_usd"), change)


def price_note(whole: LineSum, unpriced: Collection[str]) -> str:
    """Whose prices the figures rest on, of when, and which models have none, for people."""
    said = [] if whole.basis is None else whole.basis.split("; ")
    said += [f"no price for {model}" for model in sorted(unpriced)]
    return "; ".join(said) or "no prices: no GPUs"


def carbon_note(factor: Carbon | None) -> str:
    """Code, year and method of the grid factor, for people."""
    if factor is None:
        return "no grid factor: grid_code is not in the table"
    year = "" if factor.year is None else f", {factor.year}"
    return f"{factor.g_per_kwh:g} gCO2e/kWh: {factor.code}{year}, {factor.method}, location-based"


def days(scope: Scope, filters: Filters = NO_FILTERS) -> tuple[Day, ...]:
    """Cost and time of each accounting day by activity, oldest first; a day without lines is there, empty."""
    return days_of(scope, _report(scope, By.DAY, filters))


def days_of(scope: Scope, sums: Sums) -> tuple[Day, ...]:
    """The same of lines that are added up by day already."""
    found = []
    for day in Calendar(scope.settings.accounting_time_zone).days(scope.window.from_ms, scope.window.to_ms):
        one = sums.get((day.key,), LineSum())
        found.append(
            Day(
                day=day.key,
                from_ms=to_ms(datetime.fromisoformat(day.key).replace(tzinfo=UTC)),
                cost_by_activity=one.usd_by_activity(),
                seconds_by_activity=one.seconds_by_activity(),
                unseen_usd=one.unseen_usd,
                unseen_s=one.gap_ms / 1000,
            )
        )
    return tuple(found)


def _host_lines(
    scope: Scope, cards: Sequence[GpuNow], totals: Mapping[int, GpuTotal], waiting: Sequence[Recommendation]
) -> tuple[HostLine, ...]:
    """Hosts, those with most idle money first; the first few with their strips."""
    by_host: dict[str | None, list[GpuNow]] = {}
    for card in cards:
        by_host.setdefault(card.host, []).append(card)
    best: dict[str, Recommendation] = {}
    for item in waiting:
        for gpu_uuid in item.finding.gpu_uuids:
            best.setdefault(gpu_uuid, item)
    lines = [
        HostLine(
            host=host,
            gpus=len(inside),
            cost_usd=_sum(totals[card.id].cost_usd for card in inside),
            idle_usd=_sum(totals[card.id].idle_usd for card in inside),
            advice=min(
                (best[card.gpu_uuid] for card in inside if card.gpu_uuid in best),
                key=lambda item: (rank(item.finding), item.id),
                default=None,
            ),
        )
        for host, inside in by_host.items()
    ]
    lines.sort(key=lambda line: (-(line.idle_usd or Decimal(0)), line.host is None, line.host or ""))
    shown = lines[:HOSTS_SHOWN]
    ids = [card.id for line in shown for card in by_host[line.host]]
    strips = main_activities(scope.session, strip_window(scope.window), ids)
    drawn = [
        replace(line, hours=_hours([strips[card.id] for card in by_host[line.host] if card.id in strips]))
        for line in shown
    ]
    return (*drawn, *lines[HOSTS_SHOWN:])


def _hours(strips: Sequence[Strip]) -> tuple[Mapping[Activity, int], ...]:
    """GPUs by main activity in each clock hour of their strips."""
    return tuple(Counter(one for one in hour if one is not None) for hour in zip(*strips, strict=True))


def strip_window(window: Window) -> Window:
    """The last 24 clock hours of a window."""
    end = window.to_ms + -window.to_ms % HOUR_MS
    return Window(end - STRIP_HOURS * HOUR_MS, end)


def proven(cases: Iterable[KeptVerification]) -> tuple[Proven, ...]:
    """Verified savings added up, each kind on its own; a refusal has no figure and is in none. Pure."""
    found = []
    for ledger in Ledger:
        made = [one.verification for one in cases if one.verification.ledger is ledger]
        saved = [one.saving.p50 for one in made if one.saving is not None]
        if saved:
            claimed = [
                one.predicted_p50 for one in made if one.saving is not None and one.predicted_p50 is not None
            ]
            found.append(Proven(ledger, sum(saved), sum(claimed) if claimed else None, len(saved)))
    return tuple(found)


def _sum(amounts: Iterable[Decimal | None]) -> Decimal | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known, Decimal(0)) if known else None
