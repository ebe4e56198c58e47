"""Energy terms of a host at an hour, from the site profiles and tariffs in the store; else from the settings.

The advisor knows one site: figures on which all hosts agree, else those that hold where no host is named (the profile for
all, then the settings); a price by the hour is the mean of each hour of the day over a week.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Final

from sqlalchemy.orm import Session

from core.evidence import Site
from core.ownership import HostFacts
from core.place import Place
from core.settings import Settings
from core.user_site import Profile, Scope
from core.user_tariff import Tariff
from ledger.place import Terms, borders, terms_at
from ledger.tariff import hours_utc, usd_per_kwh
from store.queries import sites as site_queries
from store.queries import tariffs as tariff_queries
from store.queries.host_facts import host_facts
from store.queries.host_share import HostShares

_TOGETHER: Final = (
    ("tariff", "tariff_name"),
    ("pue",),
    ("host_share_ratio", "is_measured", "host_rest_ratio"),
    ("carbon",),
    ("pays_for_power",),
)
"""Fields of ``Terms`` by the figure they belong to."""


@dataclass(slots=True)
class ByTheHour:
    """Terms whose price changes by the hour."""

    terms: Terms
    measured_ratio: float | None
    tariff: Tariff
    prices: dict[int, Decimal]
    """Of the tariff's hours; shared by all that have it."""
    same: dict[Place, Place]
    """Equal places are the same object."""
    places: dict[Decimal, Place] = field(default_factory=dict)

    def at(self, hour_ms: int) -> Place:
        """The place in one hour."""
        price = self.prices.get(hour_ms)
        if price is None:
            price = self.prices[hour_ms] = usd_per_kwh(self.tariff, hour_ms)
        place = self.places.get(price)
        if place is None:
            made = self.terms.place(hour_ms, self.measured_ratio)
            place = self.places[price] = self.same.setdefault(made, made)
        return place


@dataclass(slots=True)
class PlaceLookup:
    """Place of a host at a time.

    ``borders`` (ascending): when terms change other than by a tariff's time of use, which ``Place.is_time_of_use`` says;
    where a host's share is measured, that is every day (UTC). Asked for every GPU-hour of a fleet, so what holds between
    two borders is worked out once, and equal places are the same object.

    Attributes:
        profiles, tariffs: all there are. settings: what no profile says. facts: what is known of the hosts, by name.
        shares: measured share of a host on the day of a time; None: not measured.
        share_days: days with measured shares, as borders.
    """

    profiles: Sequence[Profile]
    tariffs: Mapping[str, Sequence[Tariff]]
    settings: Settings
    facts: Mapping[str, HostFacts]
    shares: Callable[[str, int], float | None]
    share_days: Iterable[int] = ()
    borders: tuple[int, ...] = field(init=False)
    _given: tuple[int, ...] = field(init=False)
    _named: frozenset[str] = field(init=False)
    _stretches: dict[tuple[str | None, int], Place | ByTheHour] = field(init=False, default_factory=dict)
    _alike: dict[object, Place | ByTheHour] = field(init=False, default_factory=dict)
    _terms: dict[object, Terms] = field(init=False, default_factory=dict)
    _same: dict[Place, Place] = field(init=False, default_factory=dict)
    _prices: dict[int, dict[int, Decimal]] = field(init=False, default_factory=lambda: defaultdict(dict))

    def __post_init__(self) -> None:
        """Collect the times at which terms change, and the hosts that have profiles of their own."""
        given = borders(self.profiles, (one for of_name in self.tariffs.values() for one in of_name))
        measured = any(profile.host_share_measured for profile in self.profiles)
        self._given = tuple(sorted(given))
        self.borders = tuple(sorted(given.union(self.share_days))) if measured else self._given
        self._named = frozenset(one.scope_value for one in self.profiles if one.scope_kind == Scope.HOST)

    def __call__(self, host: str | None, hour_ms: int) -> Place:
        """Terms in force in the hour that begins at ``hour_ms``."""
        key = (host, bisect_right(self.borders, hour_ms))
        found = self._stretches.get(key)
        if found is None:
            found = self._stretches[key] = self._stretch(host, hour_ms)
        return found if isinstance(found, Place) else found.at(hour_ms)

    def terms(self, host: str | None, at_ms: int) -> Terms:
        """What holds for a host at an instant, and where each figure is from."""
        return self._found(host, at_ms)[1]

    def common_terms(self, at_ms: int) -> Terms:
        """What holds for the site as a whole: each figure on which all known hosts agree, else that of no host."""
        whole = self.terms(None, at_ms)
        found = list(
            {id(terms): terms for terms in (self.terms(host, at_ms) for host in self.facts)}.values()
        )
        if not found:
            return whole
        agreed = {
            name: getattr(found[0], name)
            for figure in _TOGETHER
            if all(getattr(one, name) == getattr(found[0], name) for one in found for name in figure)
            for name in figure
        }
        return replace(whole, **agreed)

    def measured_ratio(self, host: str | None, at_ms: int) -> float | None:
        """The host's measured share on that day (UTC); None: not measured."""
        return None if host is None else self.shares(host, at_ms)

    def _stretch(self, host: str | None, hour_ms: int) -> Place | ByTheHour:
        alike, terms = self._found(host, hour_ms)
        ratio = self.measured_ratio(host, hour_ms) if terms.is_measured else None
        found = self._alike.get((alike, ratio))
        if found is None:
            found = self._alike[alike, ratio] = self._new(terms, ratio, hour_ms)
        return found

    def _found(self, host: str | None, at_ms: int) -> tuple[object, Terms]:
        """Terms, and a key that hosts and times of the same terms share."""
        facts = None if host is None else self.facts.get(host) or HostFacts(host)
        whose = facts if facts is None or facts.host in self._named else (facts.cluster, facts.region)
        alike = (whose, bisect_right(self._given, at_ms))
        found = self._terms.get(alike)
        if found is None:
            found = self._terms[alike] = terms_at(self.profiles, self.tariffs, self.settings, facts, at_ms)
        return alike, found

    def _new(self, terms: Terms, ratio: float | None, hour_ms: int) -> Place | ByTheHour:
        tariff = terms.tariff
        if tariff is None or not tariff.periods:
            made = terms.place(hour_ms, ratio)
            return self._same.setdefault(made, made)
        return ByTheHour(terms, ratio, tariff, self._prices[tariff.id], self._same)


def place_lookup(session: Session, settings: Settings) -> PlaceLookup:
    """A lookup over profiles and tariffs as they are now; measured shares are read through ``session`` when asked for."""
    profiles = site_queries.listing(session)
    shares = HostShares(session)
    measured = any(profile.host_share_measured for profile in profiles)
    return PlaceLookup(
        profiles=profiles,
        tariffs=by_name(tariff_queries.listing(session)),
        settings=settings,
        facts=host_facts(session),
        shares=shares,
        share_days=shares.borders() if measured else (),
    )


def by_name(tariffs: Iterable[Tariff]) -> dict[str, list[Tariff]]:
    """Tariffs by what profiles call them."""
    found: dict[str, list[Tariff]] = {}
    for tariff in tariffs:
        found.setdefault(tariff.name, []).append(tariff)
    return found


def site(session: Session, settings: Settings, at_ms: int) -> Site:
    """What advice and calculators know of the site, as of a time."""
    return site_of(place_lookup(session, settings).common_terms(at_ms), settings, at_ms)


def site_of(terms: Terms, settings: Settings, at_ms: int) -> Site:
    """Terms of the site, with what the settings say of owning."""
    tariff = terms.tariff
    hours = None if tariff is None else hours_utc(tariff, at_ms)
    price = None if tariff is None else tariff.usd_per_kwh
    mean = price if hours is None else sum(hours, Decimal(0)) / len(hours)
    return Site(
        tariff_usd_per_kwh=None if mean is None else float(mean),
        pue=terms.pue,
        host_share_ratio=terms.host_share_ratio,
        carbon_g_per_kwh=None if terms.carbon is None else terms.carbon.g_per_kwh,
        pays_for_power=terms.pays_for_power,
        billing=settings.billing,
        own_capex_usd=settings.own_capex_usd,
        own_gpu_count=settings.own_gpu_count,
        own_life_years=settings.own_life_years,
        own_residual_ratio=settings.own_residual_ratio,
        own_cost_of_capital_ratio=settings.own_cost_of_capital_ratio,
        own_maintenance_ratio=settings.own_maintenance_ratio,
        own_staff_usd_per_year=settings.own_staff_usd_per_year,
        own_idle_kw=settings.own_idle_kw,
        own_active_kw=settings.own_active_kw,
        hourly_usd_per_kwh=None if hours is None else tuple(float(hour) for hour in hours),
    )
