"""A priced line of one GPU's hour, and what it is made of. Pure values; ``ledger.lines`` makes them."""

from decimal import Decimal
from typing import Final, NamedTuple

from core.activity import IDLE, Activity
from core.evidence import Price
from core.money import to_micro
from core.place import Place

ACTIVITIES: Final = tuple(Activity)
"""An activity's number is its place here; of the named ones, ``unknown`` is the last."""
NAMED: Final = len(ACTIVITIES) - 1
EMPTY, PARKED, UNKNOWN = (ACTIVITIES.index(a) for a in (Activity.EMPTY, Activity.PARKED, Activity.UNKNOWN))
ACTIVE: Final = tuple(at for at, a in enumerate(ACTIVITIES[:NAMED]) if a not in IDLE)


class Hour(NamedTuple):
    """What the ledger reads of ``core.hours.GpuHour``; a row of these columns, with more behind them, serves as well."""

    hour_ms: int
    covered_s: float
    empty_s: float
    parked_s: float
    starved_s: float
    spinning_s: float
    memory_bound_s: float
    compute_bound_s: float
    mixed_s: float
    busy_s: float
    effective_s: float
    effective_unknown_s: float
    energy_j: float | None
    energy_method: str | None
    energy_covered_s: float
    empty_j: float | None


class Use(NamedTuple):
    """What one known workload had of that hour: ``core.hours.UsageHour``; ``workload`` is its key.

    None: time of MIG slices that nobody used, with what else nobody known held of the card; of that the active part.
    """

    workload: int | None
    allocated_s: float
    active_s: float
    effective_s: float
    memory_byte_s: float | None
    energy_j: float | None
    share_method: str


class Terms(NamedTuple):
    """Price and place of an hour as whole numbers; None: no price, no tariff, no grid figure."""

    micro_usd_per_hour: int | None
    site_factor: float
    micro_usd_per_kwh: int | None
    carbon_g_per_kwh: float | None
    pays_for_power: bool


class Line(NamedTuple):
    """A share of one GPU's hour; amounts in the order of ``ledger_day``, money in whole micro-dollars.

    Attributes:
        kind: ``workload``, ``unattributed`` (held, by whom is not known), ``idle`` (nobody held it), ``gap``.
        known_ms: time it stands for. covered_ms: of it with samples; 0 of a gap.
        allocated_ms: of it held; the activity of a part of that may be unknown.
        memory_byte_s: None where unknown. energy_mj: None where unknown, and of a gap.
        cost_usd … carbon_ug: None where there is no price, no energy, no tariff, no grid figure.
        idle_cost_usd: of empty and parked time; None also where no activity could be named.
        billed_energy_usd: ``energy_usd`` where the site pays for power apart from the GPU; None elsewhere.
        spent: number of the activity, milliseconds, micro-dollars (None without a price) of every activity that took
            time; a gap's is unknown. They add up to ``known_ms`` and ``cost_usd``.
    """

    kind: str
    workload: int | None
    share_method: str
    known_ms: int
    covered_ms: int
    allocated_ms: int
    active_ms: int
    effective_ms: int
    effective_unknown_ms: int
    memory_byte_s: float | None
    energy_mj: int | None
    energy_covered_ms: int
    energy_method: str | None
    site_energy_mj: int | None
    cost_usd: int | None
    idle_cost_usd: int | None
    energy_usd: int | None
    billed_energy_usd: int | None
    carbon_ug: int | None
    spent: tuple[tuple[int, int, int | None], ...]


def terms_of(price: Price | None, place: Place) -> Terms:
    """Price and place in whole micro-dollars, as the ledger keeps them."""
    return Terms(
        None if price is None else to_micro(price.usd_per_gpu_hour),
        (1.0 + place.host_share_ratio) * place.pue,
        None if place.usd_per_kwh is None else to_micro(Decimal(place.usd_per_kwh)),
        place.carbon_g_per_kwh,
        place.pays_for_power,
    )
