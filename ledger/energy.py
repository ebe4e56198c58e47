"""Energy of a site and its price: GPU joules, the host's share and the building's overhead on top.

    site_kwh = energy_j / 3.6e6 × (1 + host_share_ratio) × PUE          cost = site_kwh × tariff

Source: cost-model 3. Energy is the small term of a GPU's cost and is reported beside it, never inside: a rented GPU's
price holds its power already. Without a tariff there is no cost, not a cost of 0.
"""

from decimal import Decimal

from core.evidence import Site
from core.money import usd
from core.units import J_PER_KWH
from ledger.share import rounded


def site_kwh(energy_j: float, site: Site) -> float:
    """Energy the site draws, kWh, for that much GPU energy."""
    return energy_j / J_PER_KWH * (1.0 + site.host_share_ratio) * site.pue


def energy_cost_usd(energy_j: float | None, site: Site) -> Decimal | None:
    """Dollars for that much GPU energy, in whole micro-dollars; None when energy or tariff is unknown."""
    if energy_j is None or site.tariff_usd_per_kwh is None:
        return None
    return rounded(usd(site_kwh(energy_j, site)) * usd(site.tariff_usd_per_kwh))
