"""The overview: spend and idle, the funnel, days, the fleet and what to do first. Reads hours, never raw samples."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from api.resources import funnel
from api.resources.advise import last_run
from api.resources.by import By
from api.resources.overview_model import Day, FleetLine, Money, Overview, Previous
from api.resources.places import place_lookup
from api.resources.pricing import price_lookup, spec_of
from api.resources.report import Question, report
from api.resources.report_parts import MONEY, SPENT_USD, USAGE
from api.resources.report_sum import LineSum, Sums, merged, ratio
from api.resources.scope import Scope
from core.activity import Activity
from core.clock import from_ms, to_ms
from core.evidence import Price, Window
from core.finding import Status
from core.units import HOUR_MS, J_PER_KWH
from ledger.calendar import Calendar
from ledger.carbon import Carbon
from store.queries import fleet, meta, recommendations
from store.queries.fleet import FleetGpu
from store.queries.hour_sums import Stretches, gpu_sums
from store.queries.hours import bounds
from store.queries.recommendations import Recommendation

AMOUNTS: Final = tuple(dict.fromkeys([*MONEY, *USAGE, *SPENT_USD]))
BEST: Final = 5
STRIP_HOURS: Final = 24
ENOUGH_OF_BEFORE: Final = 0.9
"""A change is only stated against a period whose time was nearly all there."""
WAITING: Final = (Status.OPEN, Status.REOPENED, Status.CLAIMED)
"""Statuses that still ask for something."""


def overview(scope: Scope) -> Overview:
    """Everything the overview and the weekly report say of the scope's window."""
    by_gpu = {key[0] or "": one for key, one in _report(scope, By.GPU).items()}
    known = [gpu for gpu in fleet.gpus(scope.session) if gpu.identity.gpu_uuid in by_gpu]
    prices = _Prices(scope)
    whole = merged(by_gpu.values())
    waiting = sorted(recommendations.listing(scope.session, WAITING), key=_rank)
    newest = bounds(scope.session)
    last = last_run(scope.session)
    return Overview(
        window=scope.window,
        now_ms=scope.now_ms,
        simulated=scope.settings.simulated or meta.simulated(scope.session),
        has_data=whole.whole("covered_ms") > 0,
        freshness_s=None if newest is None else max(0.0, (scope.now_ms - newest.to_ms) / 1000),
        coverage_ratio=ratio(whole.whole("covered_ms"), whole.whole("known_ms")),
        host_count=len({gpu.identity.host for gpu in known if gpu.identity.host is not None}),
        gpu_count=len(known),
        money=_money(whole),
        previous=_previous(scope, whole),
        price_note=price_note(known, prices),
        energy_kwh=None if whole.energy_j is None else whole.energy_j / J_PER_KWH,
        site_kwh=whole.site_kwh,
        carbon_g=whole.carbon_g,
        carbon_note=carbon_note(
            place_lookup(scope.session, scope.settings).common_terms(scope.window.to_ms - 1).carbon
        ),
        funnel=tuple(funnel.steps(whole)),
        days=days(scope),
        totals=None if last is None else last.totals,
        recommendations=tuple(waiting[:BEST]),
        open_count=len(waiting),
        not_evaluated_count=None if last is None else len(last.not_evaluated),
        fleet=_fleet(known, by_gpu, prices, waiting, strip_of=strips(scope, by_gpu)),
    )


def _report(scope: Scope, by: By) -> Sums:
    return report(scope, Question((by,), AMOUNTS, money=True))


class _Prices:
    """Price of a GPU in the last hour that was known of it in the window."""

    def __init__(self, scope: Scope) -> None:
        self._lookup = price_lookup(scope.session, scope.settings)
        self._to_ms = scope.window.to_ms

    def price(self, gpu: FleetGpu) -> Price | None:
        """None: unpriced."""
        until_ms = self._to_ms if gpu.last_seen_ms is None else min(self._to_ms, gpu.last_seen_ms)
        return self._lookup(gpu.identity, self.gpu_key(gpu), until_ms - 1)

    def gpu_key(self, gpu: FleetGpu) -> str | None:
        """Its row in the GPU catalogue; None where the name resolves to none."""
        spec = spec_of(gpu.identity)
        return None if spec is None else spec.gpu_key


def _money(whole: LineSum) -> Money:
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


def _previous(scope: Scope, now: LineSum) -> Previous | None:
    """The same length of time before; None when its data do not fill it."""
    length = scope.window.to_ms - scope.window.from_ms
    window = Window(scope.window.from_ms - length, scope.window.from_ms)
    data = bounds(scope.session)
    if data is None or window.to_ms - max(window.from_ms, data.from_ms) < ENOUGH_OF_BEFORE * length:
        return None
    before = merged(_report(replace(scope, window=window), By.KIND).values())
    then, spend = before.spend_usd, now.spend_usd
    change = float((spend - then) / then) if then and spend is not None else None
    return Previous(window, then, before.usd("idle_cost_usd"), change)


def price_note(known: Sequence[FleetGpu], prices: _Prices) -> str:
    """Whose prices the figures rest on, of when, and whether they had aged by then, for people."""
    found: set[str] = set()
    unpriced: set[str] = set()
    for gpu in known:
        price = prices.price(gpu)
        if price is None:
            unpriced.add(prices.gpu_key(gpu) or gpu.identity.model or "a GPU of unknown model")
        else:
            found.add(price.basis)
    said = sorted(found)
    said += [f"no price for {model}" for model in sorted(unpriced)]
    return "; ".join(said) or "no prices: no GPUs"


def carbon_note(factor: Carbon | None) -> str:
    """Code, year and method of the grid factor, for people."""
    if factor is None:
        return "no grid factor: grid_code is not in the table"
    year = "" if factor.year is None else f", {factor.year}"
    return f"{factor.g_per_kwh:g} gCO2e/kWh: {factor.code}{year}, {factor.method}, location-based"


def days(scope: Scope) -> tuple[Day, ...]:
    """Cost and time of each accounting day by activity, oldest first; a day without lines is there, empty."""
    sums = _report(scope, By.DAY)
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


def _fleet(
    known: Sequence[FleetGpu],
    by_gpu: Mapping[str, LineSum],
    prices: _Prices,
    waiting: Sequence[Recommendation],
    *,
    strip_of: Mapping[str, tuple[Activity | None, ...]],
) -> tuple[FleetLine, ...]:
    advice: dict[str, Recommendation] = {}
    for item in waiting:
        for gpu_uuid in item.finding.gpu_uuids:
            advice.setdefault(gpu_uuid, item)
    lines = []
    for gpu in known:
        identity, latest = gpu.identity, gpu.latest
        one = by_gpu[identity.gpu_uuid]
        price = prices.price(gpu)
        lines.append(
            FleetLine(
                gpu_uuid=identity.gpu_uuid,
                host=identity.host,
                index=identity.index,
                model=identity.model,
                activity=None if latest is None else latest.activity,
                busy_ratio=None if latest is None else latest.values.get("busy_ratio"),
                power_w=None if latest is None else latest.values.get("power_w"),
                last_sample_at=None if gpu.last_seen_ms is None else from_ms(gpu.last_seen_ms),
                active_ratio=ratio(one.whole("active_ms"), one.named_ms),
                coverage_ratio=ratio(one.whole("covered_ms"), one.whole("known_ms")),
                cost_usd=one.spend_usd,
                idle_usd=one.usd("idle_cost_usd"),
                price_usd_per_hour=None if price is None else price.usd_per_gpu_hour,
                strip=strip_of[identity.gpu_uuid],
                advice=advice.get(identity.gpu_uuid),
            )
        )
    return tuple(sorted(lines, key=lambda line: (line.host or "~", line.index or 0, line.gpu_uuid)))


def strips(scope: Scope, gpu_uuids: Iterable[str]) -> dict[str, tuple[Activity | None, ...]]:
    """The activity with most time in each of the window's last 24 clock hours, by GPU; None without samples."""
    end = scope.window.to_ms + -scope.window.to_ms % HOUR_MS
    grid = range(end - STRIP_HOURS * HOUR_MS, end, HOUR_MS)
    main: dict[tuple[str, int], Activity] = {}
    for row in gpu_sums(scope.session, Window(grid.start, grid.stop), Stretches(HOUR_MS)):
        if row.seconds:
            main[row.gpu_uuid, row.from_ms] = max(row.seconds, key=row.seconds.__getitem__)
    return {gpu_uuid: tuple(main.get((gpu_uuid, at)) for at in grid) for gpu_uuid in gpu_uuids}


def _rank(item: Recommendation) -> tuple[float, float, float, int]:
    """Most money first, then capacity, then energy."""
    saving = item.finding.saving
    figures = (saving.cash_usd_month, saving.capacity_gpu_h_month, saving.energy_kwh_month)
    cash, capacity, energy = (0.0 if figure is None else -figure.p50 for figure in figures)
    return cash, capacity, energy, item.id
