"""How much carbon a kilowatt-hour carries, by country, US state, Google region and for the world.

gCO2e per kWh, location-based. The rows mix methods (life-cycle for countries, combustion for US states, operational for
Google's regions): print code, year and method with every figure, and do not compare across methods to three digits.

Sources, by row of ``catalog/data/grid_carbon.csv``: Ember Yearly Electricity Data and Energy Institute, via Our World
in Data, CC BY 4.0; US EPA eGRID2023; Google Cloud region-carbon-info, Apache-2.0.
"""

from dataclasses import dataclass
from functools import cache
from typing import Final

from catalog import cloud_regions
from catalog.loader import Cells, packaged, read_rows

FILE: Final = "grid_carbon.csv"
COLUMNS: Final = ("scope", "code", "iso2", "name", "g_co2e_per_kwh", "year", "method", "source", "license")


@dataclass(frozen=True, slots=True)
class CarbonFactor:
    """Carbon of one kWh somewhere.

    Attributes:
        code: ``DEU``, ``US-VA``, ``gcp:europe-west4``, ``WLD``. iso2: two-letter code of a country; None elsewhere.
        scope: ``country``, ``us_state``, ``cloud_region`` or ``world``.
        g_per_kwh: gCO2e. year: of the data. method: what was counted.
    """

    code: str
    iso2: str | None
    scope: str
    name: str
    g_per_kwh: float
    year: int
    method: str
    source: str
    license: str


def _parse(cells: Cells) -> CarbonFactor:
    return CarbonFactor(
        code=cells.text("code"),
        iso2=cells.text_or_none("iso2"),
        scope=cells.choice("scope", ("country", "us_state", "cloud_region", "world")),
        name=cells.text("name"),
        g_per_kwh=cells.number("g_co2e_per_kwh", high=2_000.0),
        year=cells.whole("year", low=1990),
        method=cells.text("method"),
        source=cells.text("source"),
        license=cells.text("license"),
    )


@cache
def factors() -> tuple[CarbonFactor, ...]:
    """All rows, in the file's order."""
    return read_rows(packaged(FILE), COLUMNS, _parse, key=lambda factor: factor.code)


@cache
def _by_code() -> dict[str, CarbonFactor]:
    index = {factor.code.casefold(): factor for factor in factors()}
    for factor in factors():
        if factor.scope == "country" and factor.iso2 is not None:
            index.setdefault(factor.iso2.casefold(), factor)
    return index


def resolve(code: str) -> CarbonFactor | None:
    """The factor of a place, case ignored; None for a code that is not in the table.

    Args:
        code: our code (``DEU``, ``US-VA``, ``gcp:europe-west4``), a country's two letters (``DE``, ``NA`` is Namibia), or a
            cloud region as ``provider:region`` (``aws:eu-central-1``).
    """
    text = code.strip().casefold()
    known = _by_code().get(text)
    if known is not None:
        return known
    provider, colon, region = text.partition(":")
    place = cloud_regions.resolve(provider, region) if colon else None
    return None if place is None else _by_code().get(place.grid_carbon_code.casefold())
