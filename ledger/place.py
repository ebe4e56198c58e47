"""Energy terms of a host at an hour: the site profiles that apply to it, figure by figure, then the settings.

    host's profile > its cluster's > the one for all > settings                      (of equals the one in force last)

Each figure is taken from the first profile that gives it, and says which that was. Carbon is one figure, given as the
user's own g/kWh or as a code of the grid table: profiles, then the settings' own g/kWh, then the region that the host is
said to stand in, then the settings' code (a country; the world by default). Source: cost-model 1 and 3.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from core.money import usd
from core.ownership import HostFacts
from core.place import Place
from core.settings import Settings
from core.user_site import FIGURES, Profile, Scope
from core.user_tariff import DECIMALS, Tariff
from ledger.carbon import Carbon, grid_carbon, own_carbon
from ledger.tariff import usd_per_kwh

T = TypeVar("T")
SETTINGS: Final = "settings"
MEASURED: Final = "measured"
SETTING: Final = "setting"
_RANK: Final = {scope: rank for rank, scope in enumerate(Scope)}


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds for a host in a stretch of time without a border.

    Attributes:
        site: names of the profiles that gave a figure, most specific first; ``settings`` where none did.
        tariff: in force; None: none is, or none is named. tariff_name: of the one that is named.
        host_share_ratio: as given. is_measured: the host's share is to be measured; then the ratio is what stands in.
        host_rest_ratio: on top of what is measured.
        origins: where each of ``FIGURES`` is from, in words.
    """

    site: str
    tariff: Tariff | None
    tariff_name: str | None
    pue: float
    host_share_ratio: float
    is_measured: bool
    host_rest_ratio: float
    carbon: Carbon | None
    pays_for_power: bool
    origins: Mapping[str, str] = field(default_factory=dict)

    def place(self, at_ms: int, measured_ratio: float | None = None) -> Place:
        """The terms in one hour; ``measured_ratio`` is the host's measured share, where there is one."""
        measured = measured_ratio if self.is_measured else None
        tariff, carbon = self.tariff, self.carbon
        return Place(
            site=self.site,
            usd_per_kwh=None if tariff is None else usd_per_kwh(tariff, at_ms),
            tariff=None if tariff is None else self._tariff_text(tariff),
            is_time_of_use=tariff is not None and bool(tariff.periods),
            pue=self.pue,
            host_share_ratio=self.host_share_ratio if measured is None else measured + self.host_rest_ratio,
            host_share_method=SETTING if measured is None else MEASURED,
            carbon_g_per_kwh=None if carbon is None else carbon.g_per_kwh,
            carbon_code=None if carbon is None else carbon.code,
            carbon_year=None if carbon is None else carbon.year,
            carbon_method=None if carbon is None else carbon.method,
            pays_for_power=self.pays_for_power,
        )

    def _tariff_text(self, tariff: Tariff) -> str:
        if self.origins["tariff"] == SETTINGS:
            return "flat, from the settings"
        return (
            f"{tariff.name}, {'by time of use' if tariff.periods else 'flat'}, from {self.origins['tariff']}"
        )


def terms_at(
    profiles: Iterable[Profile],
    tariffs: Mapping[str, Sequence[Tariff]],
    settings: Settings,
    facts: HostFacts | None,
    at_ms: int,
) -> Terms:
    """What holds for a host at an instant.

    Args:
        profiles: all there are. tariffs: all there are, by name. settings: what no profile says.
        facts: what is known of the host; None: no host is named, so that only profiles for all apply.
        at_ms: when.
    """
    host, cluster = (None, None) if facts is None else (facts.host, facts.cluster)
    found = sorted(
        (profile for profile in profiles if profile.in_force(at_ms) and profile.applies(host, cluster)),
        key=lambda profile: (_RANK[Scope(profile.scope_kind)], -profile.valid_from_ms, -profile.id),
    )
    by = {figure: next((one for one in found if one.says(figure)), None) for figure in FIGURES}
    origins = {figure: SETTINGS if one is None else f"profile {one.name}" for figure, one in by.items()}
    carbon, origins["carbon"] = _carbon(by["carbon"], settings, facts)
    name, tariff = _tariff(by["tariff"], tariffs, settings, at_ms)
    ratio = _first(found, lambda profile: profile.host_share_ratio)
    share = by["host_share"]
    used = {one.id for one in by.values() if one is not None}
    return Terms(
        site=" > ".join(dict.fromkeys(one.name for one in found if one.id in used)) or SETTINGS,
        tariff=tariff,
        tariff_name=name,
        pue=_first(found, lambda profile: profile.pue) or settings.pue,
        host_share_ratio=settings.host_share_ratio if ratio is None else ratio,
        is_measured=share is not None and share.host_share_measured,
        host_rest_ratio=0.0 if share is None else share.host_rest_ratio or 0.0,
        carbon=carbon,
        pays_for_power=_or(_first(found, lambda profile: profile.pays_for_power), settings.pays_for_power),
        origins=origins,
    )


def settings_tariff(settings: Settings) -> Tariff | None:
    """The settings' price of a kWh as a tariff; None: none is set."""
    if settings.tariff_usd_per_kwh is None:
        return None
    return Tariff(0, SETTINGS, None, round(usd(settings.tariff_usd_per_kwh), DECIMALS), ())


def borders(profiles: Iterable[Profile], tariffs: Iterable[Tariff]) -> set[int]:
    """Instants at which a profile or a tariff begins or ends."""
    found: set[int] = set()
    spans: tuple[Profile | Tariff, ...] = (*profiles, *tariffs)
    for one in spans:
        found.add(one.valid_from_ms)
        if one.valid_to_ms is not None:
            found.add(one.valid_to_ms)
    return found


def _tariff(
    profile: Profile | None, tariffs: Mapping[str, Sequence[Tariff]], settings: Settings, at_ms: int
) -> tuple[str | None, Tariff | None]:
    """Name and tariff. One that is named and not in force is no price: a broader one would be somebody else's."""
    if profile is None or profile.tariff is None:
        tariff = settings_tariff(settings)
        return (None if tariff is None else SETTINGS), tariff
    versions = tariffs.get(profile.tariff, ())
    return profile.tariff, next((tariff for tariff in versions if tariff.in_force(at_ms)), None)


def _carbon(
    profile: Profile | None, settings: Settings, facts: HostFacts | None
) -> tuple[Carbon | None, str]:
    if profile is not None:
        if profile.carbon_g_per_kwh is not None:
            return own_carbon(profile.carbon_g_per_kwh), f"profile {profile.name}"
        return grid_carbon(profile.grid_code or ""), f"profile {profile.name}"
    if settings.carbon_g_per_kwh is not None:
        return own_carbon(settings.carbon_g_per_kwh), SETTINGS
    of_region = None if facts is None or facts.region is None else grid_carbon(facts.region)
    if facts is not None and of_region is not None:
        return of_region, f"region {facts.region} of the host"
    return grid_carbon(settings.grid_code), SETTINGS


def _first(profiles: Iterable[Profile], figure: Callable[[Profile], T | None]) -> T | None:
    return next((value for profile in profiles if (value := figure(profile)) is not None), None)


def _or(given: bool | None, default: bool) -> bool:
    return default if given is None else given
