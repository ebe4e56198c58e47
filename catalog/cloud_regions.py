"""Where the regions of AWS, Azure and Google are, and which grid-carbon row stands for them.

Source: ``catalog/data/cloud_regions.csv``, from the providers' region lists. The carbon figure itself is read from
``catalog.grid_carbon``; a contract test holds the copy in this file to it.
"""

from dataclasses import dataclass
from functools import cache
from typing import Final

from catalog.loader import Cells, packaged, read_rows

FILE: Final = "cloud_regions.csv"
COLUMNS: Final = ("provider", "region", "location", "grid_carbon_code", "g_co2e_per_kwh", "year")


@dataclass(frozen=True, slots=True)
class CloudRegion:
    """One region of a cloud.

    Attributes:
        provider: ``aws``, ``azure`` or ``gcp``. region: the provider's name of it.
        grid_carbon_code: row of the grid-carbon table.
        g_per_kwh, year: that row's figure, repeated for readers of the file.
    """

    provider: str
    region: str
    location: str
    grid_carbon_code: str
    g_per_kwh: float
    year: int


def _parse(cells: Cells) -> CloudRegion:
    return CloudRegion(
        provider=cells.choice("provider", ("aws", "azure", "gcp")),
        region=cells.text("region"),
        location=cells.text("location"),
        grid_carbon_code=cells.text("grid_carbon_code"),
        g_per_kwh=cells.number("g_co2e_per_kwh", high=2_000.0),
        year=cells.whole("year", low=1990),
    )


@cache
def regions() -> tuple[CloudRegion, ...]:
    """All rows, in the file's order."""
    return read_rows(packaged(FILE), COLUMNS, _parse, key=lambda row: (row.provider, row.region))


@cache
def _by_name() -> dict[tuple[str, str], CloudRegion]:
    return {(row.provider, row.region.casefold()): row for row in regions()}


def resolve(provider: str, region: str) -> CloudRegion | None:
    """A region by provider and name, case ignored; None when it is not in the table."""
    return _by_name().get((provider.strip().casefold(), region.strip().casefold()))
