"""Carbon, regions and tariffs as shipped agree with one another."""

from catalog.cloud_regions import regions
from catalog.electricity import tariffs
from catalog.grid_carbon import factors, resolve
from core.settings import Settings


def test_every_cloud_region_has_a_carbon_row_and_repeats_its_figure() -> None:
    for region in regions():
        factor = resolve(region.grid_carbon_code)
        assert factor is not None
        assert (region.g_per_kwh, region.year) == (factor.g_per_kwh, factor.year)
        assert resolve(f"{region.provider}:{region.region}") is factor


def test_every_country_has_two_letters_of_its_own() -> None:
    letters = [factor.iso2 for factor in factors() if factor.scope == "country"]
    assert None not in letters
    assert len(letters) == len(set(letters)) == 213


def test_two_letters_never_hide_a_code() -> None:
    codes = {factor.code for factor in factors()}
    assert not codes & {factor.iso2 for factor in factors() if factor.scope == "country"}


def test_the_default_grid_of_the_settings_is_in_the_table() -> None:
    world = resolve(Settings().grid_code)
    assert world is not None
    assert (world.scope, world.g_per_kwh) == ("world", 475.0)


def test_every_factor_has_method_source_and_licence() -> None:
    assert len(factors()) == 310
    for factor in factors():
        assert factor.method
        assert factor.source
        assert factor.license
        assert 0 <= factor.g_per_kwh < 1500


def test_tariffs_are_coarse_and_say_so() -> None:
    assert len(tariffs()) == 17
    assert {tariff.confidence for tariff in tariffs()} == {"low", "medium"}
    assert all(0.03 < tariff.usd_per_kwh < 0.5 for tariff in tariffs())
