"""Where money meets the store: the price of a GPU at a time, and the site's settings as evidence."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy.orm import Session

from catalog.gpu_specs import GpuSpec, resolve
from catalog.grid_carbon import resolve as grid_factor
from core.evidence import Site
from core.readings import GpuIdentity
from core.settings import Settings
from core.user_price import Scope
from ledger.exchange import Exchange
from ledger.price_lookup import PriceLookup
from store.known import known_gpus
from store.queries import exchange_rates as rate_queries
from store.queries import prices as price_queries
from store.queries.fleet import gpu_counts
from store.queries.host_facts import host_facts

__all__ = ["PriceLookup", "price_lookup", "spec_of"]

BY_FACTS: Final = frozenset({Scope.LABEL, Scope.INSTANCE_TYPE, Scope.CLUSTER})
"""Scopes for which it must be known what the user says about hosts."""
OWN_CODE: Final = "own"
"""Name of a carbon factor that the site's settings give."""


@dataclass(frozen=True, slots=True)
class Carbon:
    """Grid carbon with its origin.

    Attributes:
        g_per_kwh: gCO2e per kWh at the meter.
        code: row of the grid table, or ``own`` for the site's own figure. year: of the figure; None for its own.
        method: life-cycle, combustion or operational average: not to be compared across methods.
    """

    g_per_kwh: float
    code: str
    year: int | None
    method: str


def price_lookup(session: Session, settings: Settings) -> PriceLookup:  # noqa: ARG001 - settings.billing is read by the advisor; the seam is kept for price sources
    """A lookup over prices, exchange rates and host facts as they are now."""
    rows = price_queries.listing(session)
    by_host = any(row.gpus_per_unit is None for row in rows)
    return PriceLookup(
        rows=rows,
        exchange=Exchange(rate_queries.listing(session)),
        host_gpu_counts=gpu_counts(known_gpus(session.connection())) if by_host else {},
        facts=host_facts(session) if any(row.scope_kind in BY_FACTS for row in rows) else {},
    )


def spec_of(identity: GpuIdentity) -> GpuSpec | None:
    """The catalogue's row for a GPU, or None when its name resolves to none."""
    return resolve(identity.model, identity.memory_total_bytes)


def carbon(settings: Settings) -> Carbon | None:
    """Grid carbon of the site: its own figure, else the grid table's; None when neither is known."""
    if settings.carbon_g_per_kwh is not None:
        return Carbon(settings.carbon_g_per_kwh, OWN_CODE, None, "the site's own figure")
    factor = grid_factor(settings.grid_code)
    if factor is None:
        return None
    return Carbon(factor.g_per_kwh, factor.code, factor.year, factor.method)


def site(settings: Settings) -> Site:
    """The settings that advice and ledger need."""
    factor = carbon(settings)
    return Site(
        tariff_usd_per_kwh=settings.tariff_usd_per_kwh,
        pue=settings.pue,
        host_share_ratio=settings.host_share_ratio,
        carbon_g_per_kwh=None if factor is None else factor.g_per_kwh,
        pays_for_power=settings.pays_for_power,
        billing=settings.billing,
        own_capex_usd=settings.own_capex_usd,
        own_gpu_count=settings.own_gpu_count,
        own_life_years=settings.own_life_years,
        own_residual_ratio=settings.own_residual_ratio,
        own_cost_of_capital_ratio=settings.own_cost_of_capital_ratio,
        own_maintenance_ratio=settings.own_maintenance_ratio,
        own_staff_usd_per_year=settings.own_staff_usd_per_year,
        own_idle_kw=settings.own_idle_kw,
        own_active_kw=settings.own_active_kw,
    )
