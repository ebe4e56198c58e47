"""Energy terms of a place at an hour: tariff, overheads, grid carbon, and where each is from. Standard library only."""

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Place:
    """What a kilowatt-hour at a GPU means where it stands, in one hour.

    Attributes:
        site: name of the profile; ``settings`` where none is given.
        usd_per_kwh: price in that hour; None: no tariff. tariff: which, for people; None with no tariff.
        is_time_of_use: the price changes by the hour.
        pue: power usage effectiveness. host_share_ratio: the node's other power on top of GPU draw.
        host_share_method: ``setting`` or ``measured``.
        carbon_g_per_kwh: gCO2e; None: unknown. carbon_code, carbon_year, carbon_method: where it is from.
        pays_for_power: power is a bill of its own here, so that energy is added to cost.
    """

    site: str
    usd_per_kwh: Decimal | None
    tariff: str | None
    is_time_of_use: bool
    pue: float
    host_share_ratio: float
    host_share_method: str
    carbon_g_per_kwh: float | None
    carbon_code: str | None
    carbon_year: int | None
    carbon_method: str | None
    pays_for_power: bool
