"""Where money meets the store: the price of a GPU at a time, and the site's settings as evidence."""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Final

from sqlalchemy.orm import Session

from catalog.gpu_specs import GpuSpec, resolve
from catalog.grid_carbon import resolve as grid_factor
from core.evidence import Price, Site
from core.readings import GpuIdentity
from core.settings import Settings
from ledger.prices import PriceRow, price_at
from store.known import known_gpus
from store.queries import prices as price_queries
from store.queries.fleet import gpu_counts

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


@dataclass(slots=True)
class PriceLookup:
    """Price of a GPU at a time: the user's most specific row in force, else the catalogue's median, else None.

    A price only changes where a row begins or ends (``borders``, ascending), so one answer serves every hour between
    two of them. ``host_gpu_counts``: cards by host, asked for where a row names no unit to release.
    """

    rows: tuple[PriceRow, ...]
    host_gpu_counts: Mapping[str, int] = field(default_factory=dict)
    borders: list[int] = field(init=False)
    _known: dict[tuple[str, int], Price | None] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Collect the times at which any price changes."""
        ends = {row.valid_to_ms for row in self.rows if row.valid_to_ms is not None}
        self.borders = sorted(ends | {row.valid_from_ms for row in self.rows})

    def __call__(self, identity: GpuIdentity, gpu_key: str | None, at_ms: int) -> Price | None:
        """Price in force at ``at_ms``; a MIG slice has none, because its card is priced."""
        if identity.is_slice:
            return None
        key = (identity.gpu_uuid, bisect_right(self.borders, at_ms))
        if key not in self._known:
            self._known[key] = price_at(
                self.rows,
                gpu_uuid=identity.gpu_uuid,
                host=identity.host,
                model=identity.model,
                gpu_key=gpu_key,
                at_ms=at_ms,
                host_gpu_count=None if identity.host is None else self.host_gpu_counts.get(identity.host),
            )
        return self._known[key]


def price_lookup(session: Session, settings: Settings) -> PriceLookup:  # noqa: ARG001 - settings.billing is read by the advisor; the seam is kept for price sources
    """A lookup over the price rows as they are now."""
    names = [field_.name for field_ in fields(PriceRow)]
    rows = tuple(
        PriceRow(**{name: getattr(record, name) for name in names})
        for record in price_queries.listing(session)
    )
    by_host = any(row.gpus_per_unit is None for row in rows)
    return PriceLookup(rows, gpu_counts(known_gpus(session.connection())) if by_host else {})


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
