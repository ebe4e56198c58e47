"""Energy terms of a host: profile by profile, figure by figure, each with its origin."""

from dataclasses import replace
from decimal import Decimal

import pytest

from core.ownership import HostFacts
from core.settings import Settings
from core.units import HOUR_MS
from core.user_site import FIGURES, Profile
from core.user_tariff import Period, Tariff
from ledger.carbon import grid_carbon
from ledger.place import Terms, borders, terms_at

SETTINGS = Settings(tariff_usd_per_kwh=0.12, pue=1.4, host_share_ratio=0.3, grid_code="WLD")
ALL = Profile(1, "berlin", "all", pue=1.2, tariff="city", grid_code="DEU", pays_for_power=True)
CLUSTER = Profile(2, "blue", "cluster", "blue", host_share_ratio=0.25, carbon_g_per_kwh=30.0)
HOST = Profile(3, "rack 7", "host", "n1", pue=1.1)
FACTS = HostFacts("n1", cluster="blue", region="us-east-1")
CITY = Tariff(7, "city", None, Decimal("0.2"), ())
NIGHT = Tariff(8, "city", "UTC", None, (Period(tuple(range(7)), 0, 24, Decimal("0.1")),), 10 * HOUR_MS)
EVERY = (ALL, CLUSTER, HOST)


def terms(
    *profiles: Profile, facts: HostFacts | None = FACTS, settings: Settings = SETTINGS, at_ms: int = 0
) -> Terms:
    return terms_at(
        profiles, {"city": [replace(CITY, valid_to_ms=10 * HOUR_MS), NIGHT]}, settings, facts, at_ms
    )


def test_without_profiles_the_settings_hold() -> None:
    found = terms(facts=None)
    place = found.place(0)
    assert (place.site, place.usd_per_kwh, place.tariff) == (
        "settings",
        Decimal("0.12"),
        "flat, from the settings",
    )
    assert (place.pue, place.host_share_ratio, place.host_share_method) == (1.4, 0.3, "setting")
    assert (place.carbon_code, place.is_time_of_use, place.pays_for_power) == ("WLD", False, False)
    assert place.carbon_year is not None
    assert place.carbon_method
    assert set(found.origins) == set(FIGURES)
    assert set(found.origins.values()) == {"settings"}


def test_each_figure_is_of_the_most_specific_profile_that_gives_it() -> None:
    found = terms(*EVERY)
    assert found.place(0) == replace(
        found.place(0),
        site="rack 7 > blue > berlin",
        usd_per_kwh=Decimal("0.2"),
        tariff="city, flat, from profile berlin",
        pue=1.1,
        host_share_ratio=0.25,
        carbon_g_per_kwh=30.0,
        carbon_code="own",
        pays_for_power=True,
    )
    assert found.origins == {
        "tariff": "profile berlin",
        "pue": "profile rack 7",
        "host_share": "profile blue",
        "carbon": "profile blue",
        "pays_for_power": "profile berlin",
    }


def test_a_profile_holds_for_its_own_hosts_alone() -> None:
    other = HostFacts("n2", cluster="red")
    assert terms(*EVERY, facts=other).site == "berlin"
    assert terms(*EVERY, facts=None).site == "berlin"
    assert terms(CLUSTER, HOST, facts=other).site == "settings"


def test_of_two_for_the_same_the_later_one_wins_and_leaves_the_rest() -> None:
    later = Profile(9, "new hall", "all", pue=1.05, valid_from_ms=5 * HOUR_MS, valid_to_ms=6 * HOUR_MS)
    assert [terms(ALL, later, at_ms=hour * HOUR_MS).pue for hour in (4, 5, 6)] == [1.2, 1.05, 1.2]
    between = terms(ALL, later, at_ms=5 * HOUR_MS)
    assert (between.site, between.tariff_name) == ("new hall > berlin", "city")


def test_a_tariff_of_that_name_is_the_one_in_force() -> None:
    before, after = terms(ALL, at_ms=9 * HOUR_MS), terms(ALL, at_ms=10 * HOUR_MS)
    assert (before.place(0).usd_per_kwh, before.place(0).is_time_of_use) == (Decimal("0.2"), False)
    place = after.place(10 * HOUR_MS)
    assert (place.usd_per_kwh, place.is_time_of_use, place.tariff) == (
        Decimal("0.1"),
        True,
        "city, by time of use, from profile berlin",
    )


def test_a_tariff_that_is_not_in_force_is_no_price() -> None:
    found = terms_at([ALL], {}, SETTINGS, None, 0)
    assert (found.tariff_name, found.place(0).usd_per_kwh, found.place(0).tariff) == ("city", None, None)


def test_no_tariff_is_no_price() -> None:
    assert terms(settings=replace(SETTINGS, tariff_usd_per_kwh=None)).place(0).usd_per_kwh is None


@pytest.mark.parametrize(
    ("profiles", "settings", "facts", "code", "origin"),
    [
        ((CLUSTER, ALL), {}, FACTS, "own", "profile blue"),
        ((ALL,), {"carbon_g_per_kwh": 50.0}, FACTS, "DEU", "profile berlin"),
        ((HOST,), {"carbon_g_per_kwh": 50.0}, FACTS, "own", "settings"),
        ((), {"grid_code": "DEU"}, FACTS, "US-VA", "region us-east-1 of the host"),
        ((), {"grid_code": "DEU"}, replace(FACTS, region="the cellar"), "DEU", "settings"),
        ((), {"grid_code": "DEU"}, None, "DEU", "settings"),
        ((), {}, replace(FACTS, region=None), "WLD", "settings"),
    ],
    ids=[
        "user",
        "profile before settings",
        "own in settings",
        "region",
        "no such region",
        "country",
        "world",
    ],
)
def test_carbon_is_the_users_then_the_regions_then_the_countrys_then_the_worlds(
    profiles: tuple[Profile, ...],
    settings: dict[str, object],
    facts: HostFacts | None,
    code: str,
    origin: str,
) -> None:
    found = terms(*profiles, settings=replace(SETTINGS, **settings), facts=facts)  # type: ignore[arg-type]
    assert found.carbon is not None
    assert (found.carbon.code, found.origins["carbon"]) == (code, origin)


def test_a_grid_that_no_table_has_is_unknown() -> None:
    assert grid_carbon("atlantis") is None
    assert (
        terms(settings=replace(SETTINGS, grid_code="atlantis"), facts=None).place(0).carbon_g_per_kwh is None
    )


def test_a_measured_share_takes_the_place_of_the_given_one_where_there_is_one() -> None:
    measured = replace(HOST, host_share_measured=True, host_rest_ratio=0.05)
    found = terms(ALL, CLUSTER, measured)
    with_it, without = found.place(0, 0.11), found.place(0)
    assert (with_it.host_share_ratio, with_it.host_share_method) == (pytest.approx(0.16), "measured")
    assert (without.host_share_ratio, without.host_share_method) == (0.25, "setting")
    given = terms(ALL, CLUSTER, HOST).place(0, 0.11)
    assert (given.host_share_ratio, given.host_share_method) == (0.25, "setting")


def test_a_given_share_is_stronger_than_a_broader_profile_that_measures() -> None:
    broad = replace(ALL, host_share_measured=True)
    assert terms(broad, CLUSTER).place(0, 0.11).host_share_ratio == 0.25
    assert terms(broad).place(0, 0.11).host_share_ratio == 0.11


def test_borders_are_every_beginning_and_end() -> None:
    later = replace(ALL, valid_from_ms=5, valid_to_ms=9)
    assert borders([ALL, later], [CITY, NIGHT]) == {0, 5, 9, 10 * HOUR_MS}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"name": ""}, "name is ''"),
        ({"scope_kind": "planet"}, "scope_kind is 'planet'"),
        ({"scope_value": "n1"}, "scope_value is 'n1'"),
        ({"scope_kind": "host"}, "scope_value is ''"),
        ({"pue": 0.9}, "pue is 0.9"),
        ({"pue": 3.1}, "pue is 3.1"),
        ({"pue": float("nan")}, "pue is nan"),
        ({"host_share_ratio": -0.1}, "host_share_ratio is -0.1"),
        ({"host_rest_ratio": 0.1}, "host_rest_ratio is 0.1"),
        ({"carbon_g_per_kwh": 20_000.0}, "carbon_g_per_kwh is 20000"),
        ({"valid_from_ms": 9, "valid_to_ms": 9}, "valid_to is not after valid_from"),
        ({"pue": None, "tariff": None, "grid_code": None, "pays_for_power": None}, "says nothing"),
    ],
)
def test_a_profile_that_could_not_be_applied_is_refused(change: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        replace(ALL, **change)  # type: ignore[arg-type]
