"""The overview: spend and idle, the funnel, days, the fleet and what to do first. Reads hours, never raw samples."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Final

from api.resources import funnel
from api.resources.advise import last_run
from api.resources.book import Book, book_for, read_book
from api.resources.by import By
from api.resources.costs import CostSum, add_up
from api.resources.overview_model import Day, FleetLine, Money, Overview, Previous
from api.resources.places import place_lookup, site_of
from api.resources.scope import Scope
from api.resources.slices import slices, time_key
from api.resources.usage import UsageSum
from api.resources.usage import add_up as add_up_usage
from catalog.gpu_prices import STALE_DAYS, age_days
from core.activity import IDLE, Activity
from core.clock import from_ms
from core.evidence import Price, Site, Window
from core.finding import Status
from core.units import DAY_MS, HOUR_MS, J_PER_KWH
from ledger.carbon import Carbon, carbon_g
from ledger.energy import site_kwh
from store.queries import meta, recommendations
from store.queries.hour_sums import Stretches, gpu_sums
from store.queries.hours import bounds
from store.queries.recommendations import Recommendation

BEST: Final = 5
STRIP_HOURS: Final = 24
ENOUGH_OF_BEFORE: Final = 0.9
"""A change is only stated against a period whose time was nearly all there."""
WAITING: Final = (Status.OPEN, Status.REOPENED, Status.CLAIMED)
"""Statuses that still ask for something."""


def overview(scope: Scope) -> Overview:
    """Everything the overview and the weekly report say of the scope's window."""
    book = read_book(scope)
    at_ms = scope.window.to_ms - 1
    terms = place_lookup(scope.session, scope.settings).common_terms(at_ms)
    place, factor = site_of(terms, scope.settings, at_ms), terms.carbon
    parts = list(slices(scope, book, By.GPU))
    by_gpu = add_up(book, parts)
    usage = add_up_usage(parts)
    whole = merged(by_gpu.values())
    known_s, covered_s = (sum(getattr(u, name) for u in usage.values()) for name in ("known_s", "covered_s"))
    waiting = sorted(recommendations.listing(scope.session, WAITING), key=_rank)
    newest = bounds(scope.session)
    last = last_run(scope.session)
    return Overview(
        window=scope.window,
        now_ms=scope.now_ms,
        simulated=scope.settings.simulated or meta.simulated(scope.session),
        has_data=bool(book.sums),
        freshness_s=None if newest is None else max(0.0, (scope.now_ms - newest.to_ms) / 1000),
        coverage_ratio=covered_s / known_s if known_s > 0 else None,
        host_count=len({gpu.identity.host for gpu in book.gpus.values() if gpu.identity.host is not None}),
        gpu_count=len(book.gpus),
        money=_money(whole, place),
        previous=_previous(scope, whole, place),
        price_note=price_note(book, scope.now_ms),
        energy_kwh=None if whole.energy.energy_j is None else whole.energy.energy_j / J_PER_KWH,
        site_kwh=None if whole.energy.energy_j is None else site_kwh(whole.energy.energy_j, place),
        carbon_g=carbon_g(whole.energy.energy_j, place),
        carbon_note=carbon_note(factor),
        funnel=tuple(funnel.rows(scope, book=book)),
        days=days(scope, book),
        totals=None if last is None else last.totals,
        recommendations=tuple(waiting[:BEST]),
        open_count=len(waiting),
        not_evaluated_count=None if last is None else len(last.not_evaluated),
        fleet=_fleet(book, by_gpu, usage, waiting, place, strip_of=strips(scope, book)),
    )


def merged(sums: Iterable[CostSum]) -> CostSum:
    """Several groups as one."""
    whole = CostSum()
    for part in sums:
        whole.merge(part)
    return whole


def _money(whole: CostSum, place: Site) -> Money:
    return Money(
        spend_usd=whole.spend_usd(place),
        idle_usd=whole.activity_usd(*IDLE),
        empty_usd=whole.activity_usd(Activity.EMPTY),
        parked_usd=whole.activity_usd(Activity.PARKED),
        unseen_usd=whole.known_unseen_usd,
        energy_usd=whole.energy_usd(place),
        energy_in_spend=place.pays_for_power,
        priced_ratio=whole.priced_s / whole.covered_s if whole.covered_s > 0 else None,
    )


def _previous(scope: Scope, now: CostSum, place: Site) -> Previous | None:
    """The same length of time before; None when its data do not fill it."""
    length = scope.window.to_ms - scope.window.from_ms
    window = Window(scope.window.from_ms - length, scope.window.from_ms)
    data = bounds(scope.session)
    if data is None or window.to_ms - max(window.from_ms, data.from_ms) < ENOUGH_OF_BEFORE * length:
        return None
    before_scope = replace(scope, window=window)
    book = book_for(before_scope, By.GPU)
    before = merged(add_up(book, slices(before_scope, book, By.GPU)).values())
    then, spend = before.spend_usd(place), now.spend_usd(place)
    change = float((spend - then) / then) if then and spend is not None else None
    return Previous(window, then, before.activity_usd(*IDLE), change)


def price_note(book: Book, now_ms: int) -> str:
    """Whose prices the figures rest on and how old they are, for people."""
    found: set[Price] = set()
    unpriced: set[str] = set()
    for gpu_uuid, span in book.spans.items():
        price = book.price(gpu_uuid, span.to_ms - 1)
        if price is None:
            unpriced.add(
                book.gpu_keys[gpu_uuid] or book.gpus[gpu_uuid].identity.model or "a GPU of unknown model"
            )
        else:
            found.add(price)
    today = from_ms(now_ms).date()
    said = sorted(_with_age(price, today) for price in found)
    said += [f"no price for {model}" for model in sorted(unpriced)]
    return "; ".join(said) or "no prices: no GPUs"


def _with_age(price: Price, today: date) -> str:
    """Where a price comes from, and that it has aged where it is the catalogue's: the user's hold until changed."""
    age = 0 if price.from_user else age_days(price.as_of, today)
    return price.basis + (f" ({age} days old: check it)" if age > STALE_DAYS else "")


def carbon_note(factor: Carbon | None) -> str:
    """Code, year and method of the grid factor, for people."""
    if factor is None:
        return "no grid factor: grid_code is not in the table"
    year = "" if factor.year is None else f", {factor.year}"
    return f"{factor.g_per_kwh:g} gCO2e/kWh: {factor.code}{year}, {factor.method}, location-based"


def days(scope: Scope, book: Book) -> tuple[Day, ...]:
    """Cost and time of each UTC day by activity, oldest first; a day before or after all samples is there, empty."""
    parts = list(slices(scope, book, By.DAY))
    sums, usage = add_up(book, parts), add_up_usage(parts)
    found = []
    for from_ms_ in range(book.window.from_ms - book.window.from_ms % DAY_MS, book.window.to_ms, DAY_MS):
        key = time_key(from_ms_, By.DAY)
        cost, used = sums.get(key, CostSum()), usage.get(key, UsageSum())
        found.append(
            Day(
                day=key,
                from_ms=from_ms_,
                cost_by_activity=dict(cost.by_activity),
                seconds_by_activity=dict(used.seconds),
                unseen_usd=cost.known_unseen_usd,
                unseen_s=used.gap_s,
            )
        )
    return tuple(found)


def _fleet(
    book: Book,
    costs: Mapping[str | None, CostSum],
    usage: Mapping[str | None, UsageSum],
    waiting: Sequence[Recommendation],
    place: Site,
    *,
    strip_of: Mapping[str, tuple[Activity | None, ...]],
) -> tuple[FleetLine, ...]:
    advice: dict[str, Recommendation] = {}
    for item in waiting:
        for gpu_uuid in item.finding.gpu_uuids:
            advice.setdefault(gpu_uuid, item)
    lines = []
    for gpu_uuid, gpu in book.gpus.items():
        identity, latest = gpu.identity, gpu.latest
        cost, used = costs.get(gpu_uuid, CostSum()), usage.get(gpu_uuid, UsageSum())
        price = book.price(gpu_uuid, book.spans[gpu_uuid].to_ms - 1)
        lines.append(
            FleetLine(
                gpu_uuid=gpu_uuid,
                host=identity.host,
                index=identity.index,
                model=identity.model,
                activity=None if latest is None else latest.activity,
                busy_ratio=None if latest is None else latest.values.get("busy_ratio"),
                power_w=None if latest is None else latest.values.get("power_w"),
                last_sample_at=None if gpu.last_seen_ms is None else from_ms(gpu.last_seen_ms),
                active_ratio=used.active_s / used.named_s if used.named_s > 0 else None,
                coverage_ratio=used.covered_s / used.known_s if used.known_s > 0 else None,
                cost_usd=cost.spend_usd(place),
                idle_usd=cost.activity_usd(*IDLE),
                price_usd_per_hour=None if price is None else price.usd_per_gpu_hour,
                strip=strip_of[gpu_uuid],
                advice=advice.get(gpu_uuid),
            )
        )
    return tuple(sorted(lines, key=lambda line: (line.host or "~", line.index or 0, line.gpu_uuid)))


def strips(scope: Scope, book: Book) -> dict[str, tuple[Activity | None, ...]]:
    """The activity with most time in each of the window's last 24 clock hours, by GPU; None without samples."""
    end = book.window.to_ms + -book.window.to_ms % HOUR_MS
    grid = range(end - STRIP_HOURS * HOUR_MS, end, HOUR_MS)
    main: dict[tuple[str, int], Activity] = {}
    for row in gpu_sums(scope.session, Window(grid.start, grid.stop), Stretches(HOUR_MS)):
        if row.seconds:
            main[row.gpu_uuid, row.from_ms] = max(row.seconds, key=row.seconds.__getitem__)
    return {gpu_uuid: tuple(main.get((gpu_uuid, at)) for at in grid) for gpu_uuid in book.gpus}


def _rank(item: Recommendation) -> tuple[float, float, float, int]:
    """Most money first, then capacity, then energy."""
    saving = item.finding.saving
    figures = (saving.cash_usd_month, saving.capacity_gpu_h_month, saving.energy_kwh_month)
    cash, capacity, energy = (0.0 if figure is None else -figure.p50 for figure in figures)
    return cash, capacity, energy, item.id
