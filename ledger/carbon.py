"""Grid carbon of a place, location-based: gCO2e per kWh at the meter (cost-model 3); ``ledger.lines`` multiplies it with site energy.

The factor is the user's own or a row of ``catalog.grid_carbon``; print its code, year and method beside the grams.
Certificates and contracts (market-based figures) are the user's to add.
"""

from dataclasses import dataclass
from typing import Final

from catalog.grid_carbon import resolve

OWN_CODE: Final = "own"
"""Name of a factor that the user gives."""
PROVIDERS: Final = ("aws", "azure", "gcp")


@dataclass(frozen=True, slots=True)
class Carbon:
    """Grid carbon with its origin.

    Attributes:
        g_per_kwh: gCO2e per kWh at the meter.
        code: row of the grid table, or ``own`` for the user's own figure. year: of the figure; None for their own.
        method: life-cycle, combustion or operational average: not to be compared across methods.
    """

    g_per_kwh: float
    code: str
    year: int | None
    method: str


def own_carbon(g_per_kwh: float) -> Carbon:
    """A figure of the user's own."""
    return Carbon(g_per_kwh, OWN_CODE, None, "the site's own figure")


def grid_carbon(code: str) -> Carbon | None:
    """Carbon of a grid; None for a code that no table has.

    Args:
        code: row of the grid table (``DEU``, ``DE``, ``US-VA``), or a cloud's region, with its provider or without
            (``aws:eu-central-1``, ``eu-central-1``): no two providers call a region the same.
    """
    names = (code, *(f"{provider}:{code}" for provider in PROVIDERS))
    factor = next((found for name in names if (found := resolve(name)) is not None), None)
    return None if factor is None else Carbon(factor.g_per_kwh, factor.code, factor.year, factor.method)
