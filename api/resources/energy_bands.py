"""What energy cost by the price of a kWh: how much was drawn in dear and in cheap hours of tariffs by time of use."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from api.resources.places import place_lookup
from api.resources.scope import Scope
from core.evidence import Window
from core.units import HOUR_MS, J_PER_KWH
from store.queries.fleet_state import fleet_state
from store.queries.idle_energy import energy_by_host_hour

MOST_GPU_HOURS: Final = 50_000
"""Hours of GPUs that are looked at, the newest: some 50 ms. A tariff by the hour needs every hour."""


@dataclass(frozen=True, slots=True)
class Band:
    """Energy at one price of a kWh; None: no tariff. ``hours`` of the clock with such a price."""

    tariff: str | None
    usd_per_kwh: Decimal | None
    site_kwh: float
    cost_usd: float | None
    hours: int
    share: float


@dataclass(frozen=True, slots=True)
class Bands:
    """Bands, the dearest first; ``window``: the newest part of the period where it is too long to read by the hour."""

    window: Window
    is_whole: bool
    bands: tuple[Band, ...]

    @property
    def site_kwh(self) -> float:
        """Energy of all of them."""
        return sum(band.site_kwh for band in self.bands)

    @property
    def cost_usd(self) -> float | None:
        """What those with a tariff cost; None without any."""
        known = [band.cost_usd for band in self.bands if band.cost_usd is not None]
        return sum(known) if known else None


def energy_bands(scope: Scope, gpu_ids: Collection[int] | None = None) -> Bands | None:
    """Bands of the window; None where no tariff changes by the hour, or no energy is known."""
    places = place_lookup(scope.session, scope.settings)
    if not any(tariff.periods for of_name in places.tariffs.values() for tariff in of_name):
        return None
    gpus = max(1, fleet_state(scope.session).gpus if gpu_ids is None else len(gpu_ids))
    whole = scope.window
    hours = max(24, MOST_GPU_HOURS // gpus)
    window = Window(max(whole.from_ms, whole.to_ms - hours * HOUR_MS), whole.to_ms)
    kwh: dict[tuple[str | None, Decimal | None], float] = defaultdict(float)
    seen: dict[tuple[str | None, Decimal | None], set[int]] = defaultdict(set)
    for host, hour_ms, joules in energy_by_host_hour(scope.session, window, gpu_ids):
        place = places(host, hour_ms)
        key = (place.tariff, place.usd_per_kwh)
        kwh[key] += joules / J_PER_KWH * (1 + place.host_share_ratio) * place.pue
        seen[key].add(hour_ms)
    total = sum(kwh.values())
    if total <= 0:
        return None
    found = [
        Band(
            tariff,
            price,
            site,
            None if price is None else site * float(price),
            len(seen[tariff, price]),
            site / total,
        )
        for (tariff, price), site in kwh.items()
    ]
    found.sort(
        key=lambda band: (band.usd_per_kwh is None, -(band.usd_per_kwh or Decimal(0)), band.tariff or "")
    )
    return Bands(window, window.from_ms == whole.from_ms, tuple(found))
