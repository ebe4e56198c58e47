"""The lookup of energy terms: what it remembers is what it would work out."""

from dataclasses import replace
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from api.resources.places import PlaceLookup, by_name, site_of
from core.ownership import HostFacts
from core.settings import Settings
from core.units import DAY_MS, HOUR_MS
from core.user_site import Profile
from core.user_tariff import Period, Tariff
from ledger.place import terms_at

SETTINGS = Settings(tariff_usd_per_kwh=0.12)
FACTS = {
    "n1": HostFacts("n1", cluster="blue"),
    "n2": HostFacts("n2", cluster="blue", region="us-east-1"),
    "n3": HostFacts("n3"),
}
HOSTS = (None, *FACTS, "stranger")
DAYS = 6
SHARES = {("n1", day): 0.1 + day / 100 for day in range(DAYS) if day != 3}
BY_THE_HOUR = tuple(
    Period(tuple(range(7)), hour, hour + 1, Decimal(1 + hour // 8) / 10) for hour in range(24)
)


def share(host: str, at_ms: int) -> float | None:
    return SHARES.get((host, at_ms // DAY_MS))


def lookup(profiles: list[Profile], tariffs: list[Tariff]) -> PlaceLookup:
    days = range(0, (DAYS + 1) * DAY_MS, DAY_MS)
    return PlaceLookup(profiles, by_name(tariffs), SETTINGS, FACTS, share, days)


hours = st.integers(0, DAYS * 24).map(lambda hour: hour * HOUR_MS)


@st.composite
def spans(draw: st.DrawFn) -> tuple[int, int | None]:
    start = draw(hours)
    length = draw(st.one_of(st.none(), st.integers(1, 100)))
    return start, None if length is None else start + length * HOUR_MS // 2


@st.composite
def profile_lists(draw: st.DrawFn) -> list[Profile]:
    found = []
    for number in range(draw(st.integers(0, 5))):
        kind, value = draw(
            st.sampled_from([("all", ""), ("cluster", "blue"), ("host", "n1"), ("host", "stranger")])
        )
        start, end = draw(spans())
        measured = draw(st.booleans())
        found.append(
            Profile(
                number + 1,
                f"p{number}",
                kind,
                value,
                tariff=draw(st.sampled_from([None, "city"])),
                pue=draw(st.sampled_from([None, 1.1, 1.5])),
                host_share_measured=measured,
                grid_code=draw(st.sampled_from([None, "DEU"])),
                pays_for_power=draw(st.sampled_from([False, True])),
                valid_from_ms=start,
                valid_to_ms=end,
            )
        )
    return found


CITY = [
    Tariff(1, "city", None, Decimal("0.2"), (), 0, 40 * HOUR_MS),
    Tariff(2, "city", "Europe/Berlin", None, BY_THE_HOUR, 50 * HOUR_MS, 110 * HOUR_MS),
]


@given(profile_lists())
def test_what_it_answers_is_what_holds_and_its_borders_are_complete(profiles: list[Profile]) -> None:
    asked = lookup(profiles, CITY)
    tariffs = by_name(CITY)
    assert list(asked.borders) == sorted(set(asked.borders))
    for host in HOSTS:
        facts = None if host is None else FACTS.get(host, HostFacts(host))
        before = None
        for hour in range(DAYS * 24):
            at_ms = hour * HOUR_MS
            place = asked(host, at_ms)
            terms = terms_at(profiles, tariffs, SETTINGS, facts, at_ms)
            assert place == terms.place(at_ms, None if host is None else share(host, at_ms))
            crossed = any(at_ms - HOUR_MS < border <= at_ms for border in asked.borders)
            if before is not None and not crossed:
                same = replace(place, usd_per_kwh=before.usd_per_kwh) if place.is_time_of_use else place
                assert same == before
            before = place


def test_hosts_and_hours_of_the_same_terms_share_one_place() -> None:
    tariff = Tariff(1, "city", "UTC", None, BY_THE_HOUR)
    asked = lookup([Profile(1, "all", "all", tariff="city")], [tariff])
    assert asked("n1", 0) is asked("n3", HOUR_MS)
    assert asked("n1", 0) is asked("n1", 5 * DAY_MS)
    assert len({id(asked(host, hour * HOUR_MS)) for host in ("n1", "n3") for hour in range(72)}) == 3


def test_the_site_of_the_advisor_has_prices_by_the_hour_where_the_tariff_has() -> None:
    tariff = Tariff(1, "city", "UTC", None, BY_THE_HOUR)
    asked = lookup([Profile(1, "hall", "all", tariff="city", pue=1.1, pays_for_power=True)], [tariff])
    site = site_of(asked.terms(None, 0), SETTINGS, 0)
    assert site.hourly_usd_per_kwh == (0.1,) * 8 + (0.2,) * 8 + (0.3,) * 8
    assert (site.tariff_usd_per_kwh, site.pue, site.pays_for_power) == (0.2, 1.1, True)
    flat = site_of(lookup([], []).terms(None, 0), SETTINGS, 0)
    assert (flat.hourly_usd_per_kwh, flat.tariff_usd_per_kwh) == (None, 0.12)
    none = site_of(lookup([Profile(1, "hall", "all", tariff="gone")], []).terms(None, 0), SETTINGS, 0)
    assert (none.hourly_usd_per_kwh, none.tariff_usd_per_kwh) == (None, None)


def test_the_site_takes_what_all_hosts_agree_on_and_else_what_holds_for_no_host() -> None:
    everywhere = [Profile(number, host, "host", host, pue=1.1) for number, host in enumerate(FACTS, 1)]
    agreed = lookup(everywhere, []).common_terms(0)
    assert (agreed.pue, agreed.pays_for_power, agreed.carbon) == (
        1.1,
        False,
        lookup([], []).terms(None, 0).carbon,
    )
    apart = lookup([*everywhere[:2], replace(everywhere[2], pue=1.2)], []).common_terms(0)
    assert apart.pue == SETTINGS.pue
    nobody = PlaceLookup([], {}, SETTINGS, {}, share)
    assert nobody.common_terms(0) == nobody.terms(None, 0)
