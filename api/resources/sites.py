"""The user's site profiles, and the energy terms that hold for a host. A change marks the ledger's days that it touches."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.orm import Session

from api.refusals import validated
from api.resources.columns import about
from api.resources.owner_specs import when
from api.resources.places import place_lookup
from api.resources.tariffs import between
from api.text import Named, Storable
from core.clock import from_ms, iso
from core.errors import NotFoundError, UsageError
from core.settings import Settings
from core.units import HOUR_MS
from core.user_site import Profile, Scope
from ledger.carbon import grid_carbon
from store.known import known_gpus
from store.queries import sites as kept
from store.queries import tariffs
from store.queries.fleet import gpu_counts
from store.queries.host_facts import host_facts
from store.queries.ledger_pending import mark


class SiteBody(BaseModel):
    """A site profile to keep; what it leaves out is taken from the next broader one, then from the settings."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: Named = Field(max_length=255, description="In your own words; figures carry it.")
    scope_kind: str = Field("all", description=f"What it is for: {', '.join(Scope)}.")
    scope_value: Named = Field("", max_length=255, description="Which host or cluster; empty for all.")
    tariff: Named | None = Field(None, max_length=255, description="Name of a tariff.")
    pue: float | None = Field(None, description="Power usage effectiveness, 1 to 3.")
    host_share_ratio: float | None = Field(
        None, description="The node's other power on top of GPU draw, 0 to 2; where measured, what stands in."
    )
    host_share_measured: bool = Field(
        False, description="Measure it by day where the host's processor power is known (RAPL)."
    )
    host_rest_ratio: float | None = Field(
        None, description="On top of what is measured: fans, network, drives, supply losses. Default: 0."
    )
    grid_code: Storable | None = Field(
        None,
        max_length=100,
        description="Country (DEU), US state (US-VA) or cloud region (aws:eu-central-1).",
    )
    carbon_g_per_kwh: float | None = Field(None, description="Your own gCO2e per kWh; wins over grid_code.")
    pays_for_power: bool | None = Field(
        None, description="Power is a bill of its own here, so energy is added to cost."
    )
    valid_from: str | None = Field(
        None,
        max_length=40,
        description="In force from: a time, or a day of the accounting time zone. Default: since ever.",
    )
    valid_to: str | None = Field(None, max_length=40, description="In force until; default: still.")
    note: Storable = Field("", max_length=2_000, description="In your own words.")


def parsed(given: Mapping[str, Any]) -> SiteBody:
    """A profile from named values. Raises ``UsageError`` that names field and value."""
    return validated(SiteBody, given, "site")


@dataclass(frozen=True, slots=True)
class SiteView:
    """Energy terms given for a host, a cluster or everything; null: left to the next broader profile."""

    id: Annotated[int, about("Its key.")]
    name: Annotated[str, about("In your own words; figures carry it.")]
    scope_kind: Annotated[str, about("host, cluster or all; the most specific one in force wins.")]
    scope_value: Annotated[str, about("Which host or cluster; empty for all.")]
    tariff: Annotated[str | None, about("Name of a tariff.")]
    pue: Annotated[float | None, about("Power usage effectiveness.")]
    host_share_ratio: Annotated[float | None, about("The node's other power on top of GPU draw.")]
    host_share_measured: Annotated[bool, about("Measured by day where processor power is known (RAPL).")]
    host_rest_ratio: Annotated[float | None, about("On top of what is measured.")]
    grid_code: Annotated[str | None, about("Row of the grid table, or cloud region.")]
    carbon_g_per_kwh: Annotated[float | None, about("Your own gCO2e per kWh.")]
    pays_for_power: Annotated[bool | None, about("Power is a bill of its own.")]
    gpu_count: Annotated[
        int, about("GPUs it is for, of those known now; 0: no host or cluster is called so.")
    ]
    valid_from: Annotated[datetime, about("In force from, inclusive, UTC.")]
    valid_to: Annotated[datetime | None, about("In force until, exclusive, UTC; null: still.")]
    note: Annotated[str, about("In your own words.")]


@dataclass(frozen=True, slots=True)
class TermsView:
    """What holds for a host in one hour, figure by figure, with its origin."""

    host: Annotated[str | None, about("The host; null: where no host is named.")]
    at: Annotated[datetime, about("Start of the hour, UTC.")]
    site: Annotated[str, about("Profiles that gave a figure, most specific first; settings: none did.")]
    usd_per_kwh: Annotated[Decimal | None, about("Price in that hour; null: no tariff in force.")]
    tariff: Annotated[str | None, about("Which tariff; null: none in force.")]
    is_time_of_use: Annotated[bool, about("The price changes by the hour.")]
    pue: Annotated[float, about("Power usage effectiveness.")]
    host_share_ratio: Annotated[float, about("The node's other power on top of GPU draw.")]
    host_share_method: Annotated[str, about("setting, or measured on that day (UTC).")]
    carbon_g_per_kwh: Annotated[float | None, about("gCO2e per kWh; null: unknown.")]
    carbon_code: Annotated[str | None, about("Row of the grid table; own: the user's figure.")]
    carbon_year: Annotated[int | None, about("Year of the grid figure.")]
    carbon_method: Annotated[str | None, about("Method of the grid figure; not comparable across methods.")]
    pays_for_power: Annotated[bool, about("Energy is added to cost.")]
    origins: Annotated[
        Mapping[str, str], about("Where tariff, pue, host_share, carbon, pays_for_power are from.")
    ]


def rows(session: Session) -> list[SiteView]:
    """Every profile, in the order they were given."""
    gpus = _Gpus(session)
    return [_view(profile, gpus) for profile in kept.listing(session)]


def add(session: Session, settings: Settings, body: SiteBody, now_ms: int) -> SiteView:
    """Keep a profile. Raises ``UsageError`` where it could not be applied: which field, and what to do."""
    profile = _profile(body, settings, now_ms)
    if profile.grid_code is not None and grid_carbon(profile.grid_code) is None:
        raise UsageError(
            f"site {profile.name!r}: grid_code is {profile.grid_code!r}, which no grid table has: "
            "use a country (DEU), a US state (US-VA) or a cloud region (aws:eu-central-1)"
        )
    if profile.tariff is not None and all(one.name != profile.tariff for one in tariffs.listing(session)):
        raise UsageError(
            f"site {profile.name!r}: tariff is {profile.tariff!r}, and there is none of that name: add it first"
        )
    made = kept.add(session, profile)
    _mark(session, made, made.valid_from_ms, made.valid_to_ms)
    return _view(made, _Gpus(session))


def end(session: Session, settings: Settings, id_: int, at: str, now_ms: int) -> SiteView:
    """Let a profile end at a time, or a day of the accounting time zone.

    Raises:
        NotFoundError: there is none of that key. UsageError: it would end before it starts.
    """
    profile = _get(session, id_)
    valid_to_ms = when(at, settings, now_ms, "at")
    if valid_to_ms <= profile.valid_from_ms:
        raise UsageError(
            f"at is {at!r}, which is not after the start of site profile {id_} ({iso(profile.valid_from_ms)}): "
            "give a later time, or remove it"
        )
    kept.end(session, id_, valid_to_ms)
    _mark(session, profile, *between(profile.valid_to_ms, valid_to_ms))
    return _view(replace(profile, valid_to_ms=valid_to_ms), _Gpus(session))


def remove(session: Session, id_: int) -> None:
    """Remove a profile, as if it had never been given. Raises ``NotFoundError`` when there is none of that key."""
    profile = _get(session, id_)
    kept.delete(session, id_)
    _mark(session, profile, profile.valid_from_ms, profile.valid_to_ms)


def terms(session: Session, settings: Settings, at_ms: int, host: str | None = None) -> list[TermsView]:
    """What holds in the hour of ``at_ms`` for one host, or for each that is known, by name; without any, for no host.

    Raises:
        NotFoundError: no host is called so.
    """
    lookup = place_lookup(session, settings)
    if host is not None and host not in lookup.facts:
        raise NotFoundError(f"no host {host}: hosts lists them")
    hour_ms = at_ms - at_ms % HOUR_MS
    found: list[TermsView] = []
    names: list[str | None] = [host] if host is not None else [*sorted(lookup.facts)] or [None]
    for name in names:
        place = lookup(name, hour_ms)
        found.append(
            TermsView(
                host=name,
                at=from_ms(hour_ms),
                site=place.site,
                usd_per_kwh=place.usd_per_kwh,
                tariff=place.tariff,
                is_time_of_use=place.is_time_of_use,
                pue=place.pue,
                host_share_ratio=place.host_share_ratio,
                host_share_method=place.host_share_method,
                carbon_g_per_kwh=place.carbon_g_per_kwh,
                carbon_code=place.carbon_code,
                carbon_year=place.carbon_year,
                carbon_method=place.carbon_method,
                pays_for_power=place.pays_for_power,
                origins=lookup.terms(name, hour_ms).origins,
            )
        )
    return found


class _Gpus:
    """How many GPUs a profile is for."""

    def __init__(self, session: Session) -> None:
        self._by_host = gpu_counts(known_gpus(session.connection()))
        self._by_cluster: dict[str | None, int] = {}
        for facts in host_facts(session).values():
            there = self._by_cluster.get(facts.cluster, 0)
            self._by_cluster[facts.cluster] = there + self._by_host[facts.host]

    def count(self, profile: Profile) -> int:
        """GPUs known now."""
        match Scope(profile.scope_kind):
            case Scope.HOST:
                return self._by_host[profile.scope_value]
            case Scope.CLUSTER:
                return self._by_cluster.get(profile.scope_value, 0)
            case Scope.ALL:
                return self._by_host.total()


def _get(session: Session, id_: int) -> Profile:
    profile = kept.get(session, id_)
    if profile is None:
        raise NotFoundError(f"no site profile {id_}: sites lists them")
    return profile


def _profile(body: SiteBody, settings: Settings, now_ms: int) -> Profile:
    given = body.model_dump(exclude={"valid_from", "valid_to"})
    start, until = body.valid_from, body.valid_to
    try:
        return Profile(
            id=0,
            **given,
            valid_from_ms=0 if start is None else when(start, settings, now_ms, "valid_from"),
            valid_to_ms=None if until is None else when(until, settings, now_ms, "valid_to"),
        )
    except ValueError as error:
        raise UsageError(str(error)) from error


def _mark(session: Session, profile: Profile, from_ms: int, to_ms: int | None) -> None:
    """Mark what a change of it touches."""
    mark(session, from_ms, to_ms, kept.gpus_of(session, profile))


def _view(profile: Profile, gpus: _Gpus) -> SiteView:
    return SiteView(
        id=profile.id,
        name=profile.name,
        scope_kind=profile.scope_kind,
        scope_value=profile.scope_value,
        tariff=profile.tariff,
        pue=profile.pue,
        host_share_ratio=profile.host_share_ratio,
        host_share_measured=profile.host_share_measured,
        host_rest_ratio=profile.host_rest_ratio,
        grid_code=profile.grid_code,
        carbon_g_per_kwh=profile.carbon_g_per_kwh,
        pays_for_power=profile.pays_for_power,
        gpu_count=gpus.count(profile),
        valid_from=from_ms(profile.valid_from_ms),
        valid_to=None if profile.valid_to_ms is None else from_ms(profile.valid_to_ms),
        note=profile.note,
    )
