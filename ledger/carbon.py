"""Carbon of GPU energy, location-based: site kWh × gCO2e per kWh of the place (cost-model 3).

The factor is the user's own or a row of ``catalog.grid_carbon``; print its code, year and method beside the grams.
Certificates and contracts (market-based figures) are the user's to add.
"""

from core.evidence import Site
from ledger.energy import site_kwh


def carbon_g(energy_j: float | None, site: Site) -> float | None:
    """Grams of CO2e for that much GPU energy; None when energy or factor is unknown."""
    if energy_j is None or site.carbon_g_per_kwh is None:
        return None
    return site_kwh(energy_j, site) * site.carbon_g_per_kwh
