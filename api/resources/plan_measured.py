"""What the calculators take from measurement: who was wanted when, what it drew, what it costs now and where it stands.

Window: 13 weeks of data unless asked otherwise, because a purchase is judged by a quarter rather than by a month.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from enum import StrEnum
from statistics import quantiles
from typing import Final

from sqlalchemy.orm import Session

from api.resources.places import PlaceLookup, place_lookup, site_of
from api.resources.pricing import price_lookup, spec_of
from api.resources.scope import Scope, in_hours, scope_of
from core.errors import UsageError
from core.evidence import Price, Site, Window
from core.settings import Settings
from core.units import DAY_MS, HOUR_MS
from ledger.calendar import Calendar
from ledger.demand import Demand, HourOfGpus, demand_of, present_ms_by_hour
from ledger.prices import catalogue_price
from store.known import KnownGpu, known_gpus
from store.queries.demand import Drawn, DrawnByState, HourOfMany, drawn_by_state, hours_of
from store.queries.hours import bounds

SPAN_MS: Final = 13 * 7 * DAY_MS
FEW_DAYS: Final = 4
"""Fewer days than quartiles need give no range of use."""
LEAST_METERED_S: Final = 3_600.0
"""An hour of one GPU: less tells no mean power."""
BY_USE: Final = frozenset({"on_demand"})
"""Billings that end with the use."""
RENTED: Final = frozenset({"on_demand", "reserved", "committed", "spot"})
"""What somebody pays for a machine of his own is no rent."""


class Wanted(StrEnum):
    """When a GPU counts as wanted."""

    ALLOCATED = "allocated"
    """A workload holds it: nobody else can have it, so a rented one could not be handed back."""
    ACTIVE = "active"
    """Work runs on it: what would be wanted if parked GPUs were released."""


@dataclass(frozen=True, slots=True)
class Group:
    """GPUs of one model; ``gpu_key`` None where the catalogue has none, then ``name`` is what the driver says.

    ``models`` are what the driver says where the group has every GPU of them; None: it has some alone.
    """

    name: str
    gpu_key: str | None
    gpus: tuple[KnownGpu, ...]
    hours: tuple[HourOfMany, ...]
    models: frozenset[str | None] | None = None


@dataclass(frozen=True, slots=True)
class Power:
    """What a machine draws, kW; ``basis`` says whether that is measured."""

    idle_kw: float
    active_kw: float
    basis: str


def plan_scope(
    session: Session, settings: Settings, now_ms: int, since: str | None = None, until: str | None = None
) -> Scope:
    """A scope over 13 weeks of data, unless another start is asked for."""
    scope = scope_of(session, settings, now_ms, since, until)
    if since is not None:
        return scope
    end = scope.window.to_ms
    return replace(scope, window=in_hours(Window(end - SPAN_MS, end), bounds(session)))


def groups(scope: Scope, gpu_model: str | None = None, host: str | None = None) -> list[Group]:
    """GPUs that were there in the window with their hours, by model.

    Args:
        scope: where and when.
        gpu_model: the driver's name or the catalogue's key of the only model to look at, case ignored.
        host: the only host to look at.

    Raises:
        UsageError: no GPU of that model or host.
    """
    gpus: dict[str, list[KnownGpu]] = defaultdict(list)
    keys: dict[str, str | None] = {}
    models: dict[str, set[str | None]] = defaultdict(set)
    for gpu in known_gpus(scope.session.connection()):
        spec = spec_of(gpu.identity)
        key = None if spec is None else spec.gpu_key
        models[key or gpu.identity.model or "model unknown"].add(gpu.identity.model)
        names = {name.casefold() for name in (gpu.identity.model, key) if name is not None}
        if (
            gpu.identity.is_slice
            or not _was_there(gpu, scope.window)
            or (gpu_model is not None and gpu_model.casefold() not in names)
            or (host is not None and gpu.identity.host != host)
        ):
            continue
        name = key or gpu.identity.model or "model unknown"
        gpus[name].append(gpu)
        keys[name] = key
    if not gpus and (gpu_model is not None or host is not None):
        of = "" if gpu_model is None else f" of model {gpu_model!r}"
        on = "" if host is None else f" on host {host!r}"
        raise UsageError(f"no GPU{of} was seen{on} in this window: gpus lists those there are")
    return [
        _group(scope, name, keys[name], gpus[name], None if host is not None else _whole(models, name))
        for name in sorted(gpus)
    ]


def _whole(models: Mapping[str, set[str | None]], name: str) -> frozenset[str | None] | None:
    """Models of a group of which no other group has any GPU; None where another has."""
    own = models[name]
    shared = any(own & others for other, others in models.items() if other != name)
    return None if shared else frozenset(own)


def _group(
    scope: Scope,
    name: str,
    gpu_key: str | None,
    gpus: Sequence[KnownGpu],
    models: frozenset[str | None] | None,
) -> Group:
    hours = hours_of(scope.session, scope.window, [gpu.id for gpu in gpus], models)
    return Group(name, gpu_key, tuple(gpus), tuple(hours), models)


def _was_there(gpu: KnownGpu, window: Window) -> bool:
    first, last = gpu.first_sample_ms, gpu.seen_until_ms
    return first is not None and last is not None and first < window.to_ms and last > window.from_ms


def demand(chosen: Iterable[Group], window: Window, wanted: Wanted) -> Demand:
    """GPUs wanted at once, by whole hours of the window."""
    of_groups = list(chosen)
    spans = [
        (gpu.first_sample_ms, gpu.seen_until_ms)
        for group in of_groups
        for gpu in group.gpus
        if gpu.first_sample_ms is not None and gpu.seen_until_ms is not None
    ]
    first, last = window.from_ms + -window.from_ms % HOUR_MS, window.to_ms - window.to_ms % HOUR_MS
    wanted_ms: dict[int, int] = defaultdict(int)
    known_ms: dict[int, int] = defaultdict(int)
    for group in of_groups:
        for hour in group.hours:
            wanted_ms[hour.hour_ms] += _wanted_ms(hour, wanted)
            known_ms[hour.hour_ms] += hour.known_ms
    present = present_ms_by_hour(spans, first, last)
    return demand_of(
        HourOfGpus(hour_ms, wanted_ms[hour_ms], known_ms[hour_ms], there)
        for hour_ms, there in present.items()
    )


def use_by_day(chosen: Iterable[Group], wanted: Wanted, zone: str) -> tuple[float, float] | None:
    """p25 and p75 of the use over accounting days; None with fewer than four."""
    calendar = Calendar(zone)
    sums: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for group in chosen:
        for hour in group.hours:
            day = sums[calendar.day_at(hour.hour_ms).from_ms]
            day[0] += _wanted_ms(hour, wanted)
            day[1] += hour.known_ms
    shares = [min(1.0, used / known) for used, known in sums.values() if known > 0]
    if len(shares) < FEW_DAYS:
        return None
    low, _, high = quantiles(shares, n=4, method="inclusive")
    return low, high


def _wanted_ms(hour: HourOfMany, wanted: Wanted) -> int:
    return hour.allocated_ms if wanted is Wanted.ALLOCATED else hour.active_ms


def rent_of(scope: Scope, group: Group, billings: Collection[str]) -> Price | None:
    """What GPUs like these rent for: the price in force at the window's end, else the catalogue's on-demand median.

    Args:
        scope, group: of which GPUs, and when.
        billings: prices of these billings count; several count by their mean.
    """
    found = [price for price in prices_now(scope, group) if price is not None and price.billing in billings]
    return mean_price(found) or catalogue_price(group.gpu_key, scope.window.to_ms - 1)


def mean_price(found: Sequence[Price]) -> Price | None:
    """One price for all: theirs where they have the same, else the mean; None without any."""
    distinct = sorted(set(found), key=lambda price: (price.usd_per_gpu_hour, price.basis))
    if len(distinct) < 2:
        return distinct[0] if distinct else None
    return replace(
        distinct[0],
        usd_per_gpu_hour=_mean(found),
        basis=f"mean of the prices of {len(found)} GPUs: {'; '.join(sorted({one.basis for one in found}))}",
        as_of=min(price.as_of for price in found),
    )


def prices_now(scope: Scope, group: Group) -> list[Price | None]:
    """The price of each GPU in force at the window's end; None: unpriced."""
    lookup = price_lookup(scope.session, scope.settings)
    at_ms = scope.window.to_ms - 1
    return [lookup(gpu.identity, group.gpu_key, at_ms) for gpu in group.gpus]


def paid_now(scope: Scope, group: Group) -> Decimal | None:
    """What each GPU costs now on average, USD per hour; None where one has no price."""
    found = prices_now(scope, group)
    known = [price for price in found if price is not None]
    return _mean(known) if known and len(known) == len(found) else None


def _mean(prices: Sequence[Price]) -> Decimal:
    total = sum((price.usd_per_gpu_hour for price in prices), Decimal(0))
    return (total / len(prices)).quantize(Decimal("0.000001"))


def site_for(scope: Scope, chosen: Iterable[Group]) -> Site:
    """Tariff, PUE and all that is said of owning, where these GPUs stand; the site's own where they stand in several."""
    lookup, at_ms = place_lookup(scope.session, scope.settings), scope.window.to_ms - 1
    found = {site_of(lookup.terms(host, at_ms), scope.settings, at_ms) for host in _hosts(chosen)}
    if len(found) == 1:
        return found.pop()
    return site_of(lookup.terms(None, at_ms), scope.settings, at_ms)


def _hosts(chosen: Iterable[Group]) -> set[str | None]:
    return {gpu.identity.host for group in chosen for gpu in group.gpus}


def power(scope: Scope, chosen: Sequence[Group], wanted: Wanted, site: Site, gpu_count: int) -> Power:
    """Draw of a machine with ``gpu_count`` GPUs while nobody wants it and while it is wanted.

    Measured at these GPUs, plus the host's share; a figure that is set in the settings wins, and one that is neither
    measured nor set is the default.
    """
    share = _host_share(place_lookup(scope.session, scope.settings), chosen, scope.window.to_ms - 1)
    unwanted, working = _drawn(scope, chosen, wanted)
    idle = None if _is_set(scope.settings, "own_idle_kw") else _kw(unwanted, gpu_count, share)
    active = None if _is_set(scope.settings, "own_active_kw") else _kw(working, gpu_count, share)
    if idle is not None and active is not None and active < idle:
        idle = active = None
    said = [
        _said("idle", idle, unwanted, "while nobody wants it"),
        _said("active", active, working, "while it is wanted"),
    ]
    if idle is None and active is None:
        return Power(site.own_idle_kw, site.own_active_kw, "settings of the site, not measured")
    said.append(f"each × {gpu_count} GPUs × {1 + share:.2f} for the host")
    if idle is None:
        idle = min(site.own_idle_kw, active or 0.0)
    return Power(idle, max(site.own_active_kw, idle) if active is None else active, "; ".join(said))


def _is_set(settings: Settings, name: str) -> bool:
    default = next(field.default for field in fields(Settings) if field.name == name)
    return bool(getattr(settings, name) != default)


def _host_share(lookup: PlaceLookup, chosen: Iterable[Group], at_ms: int) -> float:
    hosts = [gpu.identity.host for group in chosen for gpu in group.gpus]
    ratios = [lookup(host, at_ms - at_ms % HOUR_MS).host_share_ratio for host in hosts or [None]]
    return sum(ratios) / len(ratios)


def _drawn(scope: Scope, chosen: Iterable[Group], wanted: Wanted) -> tuple[Drawn, Drawn]:
    """What was drawn while nobody wanted a GPU, and while it was wanted."""
    nothing = Drawn(0.0, 0.0)
    found = DrawnByState(nothing, nothing, nothing)
    for group in chosen:
        ids = [gpu.id for gpu in group.gpus]
        found += drawn_by_state(scope.session, scope.window, ids, group.models)
    if wanted is Wanted.ALLOCATED:
        return found.empty, found.parked + found.working
    return found.empty + found.parked, found.working


def _kw(drawn: Drawn, gpu_count: int, host_share: float) -> float | None:
    if drawn.seconds < LEAST_METERED_S or drawn.joules <= 0:
        return None
    return round(drawn.joules / drawn.seconds * gpu_count * (1 + host_share) / 1000, 4)


def _said(name: str, kw: float | None, drawn: Drawn, when: str) -> str:
    if kw is None:
        return f"{name}: setting, not measured"
    watts, hours = drawn.joules / drawn.seconds, drawn.seconds / 3600
    return f"{name}: {watts:.0f} W a GPU measured over {hours:,.0f} GPU-h {when}"
