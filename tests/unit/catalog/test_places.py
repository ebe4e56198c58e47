"""Grid carbon, cloud regions and tariffs by code."""

import pytest

from catalog import cloud_regions, electricity, grid_carbon


@pytest.mark.parametrize(
    ("code", "row"),
    [
        ("DEU", "DEU"),
        ("deu", "DEU"),
        ("DE", "DEU"),
        ("US-VA", "US-VA"),
        ("US", "USA"),
        ("WLD", "WLD"),
        ("gcp:europe-west4", "gcp:europe-west4"),
        ("aws:eu-central-1", "DEU"),
        ("azure:germanywestcentral", "DEU"),
        (" NAM ", "NAM"),
    ],
)
def test_a_place_is_found_by_code_country_or_cloud_region(code: str, row: str) -> None:
    factor = grid_carbon.resolve(code)
    assert factor is not None
    assert factor.code == row


def test_na_is_namibia() -> None:
    factor = grid_carbon.resolve("NA")
    assert factor is not None
    assert (factor.name, factor.iso2, factor.g_per_kwh) == ("Namibia", "NA", 59.3)


@pytest.mark.parametrize("code", ["", "XX", "US-XX", "aws:nowhere", "ibm:us-south", ":", "gcp:"])
def test_a_place_that_is_not_in_the_table_is_none(code: str) -> None:
    assert grid_carbon.resolve(code) is None


def test_a_factor_says_year_and_method() -> None:
    factor = grid_carbon.resolve("US-VA")
    assert factor is not None
    assert factor.year == 2023
    assert "combustion" in factor.method


def test_a_cloud_region_is_found_whatever_its_case() -> None:
    region = cloud_regions.resolve("AWS", "US-East-1")
    assert region is not None
    assert (region.location, region.grid_carbon_code) == ("Northern Virginia", "US-VA")
    assert cloud_regions.resolve("aws", "us-east-99") is None


def test_a_tariff_is_in_dollars_and_says_of_when() -> None:
    tariff = electricity.resolve("deu")
    assert tariff is not None
    assert (tariff.usd_per_kwh, tariff.period, tariff.confidence) == (0.252, "2024", "low")
    assert electricity.resolve("ATLANTIS") is None
