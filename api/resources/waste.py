"""Where money went without work to show for it: broken, unoccupied, occupied and idle, occupied and inefficient.

Four kinds that never overlap, of the GPU cost of one window. What nothing can tell (gaps, cards without counters) is in none
of them: waste is what samples show, so these are lower bounds.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Final

from api.resources.report_sum import LineSum
from core.activity import Activity
from core.units import HOUR_MS


class WasteKind(StrEnum):
    """Kinds of waste, from what nobody could use to what somebody used badly."""

    BROKEN = "broken"
    UNOCCUPIED = "unoccupied"
    IDLE = "idle"
    INEFFICIENT = "inefficient"


@dataclass(frozen=True, slots=True)
class Waste:
    """One kind: GPU-hours, and their GPU cost (None: nothing of the window is priced)."""

    kind: WasteKind
    gpu_h: float
    usd: Decimal | None


_BY_ACTIVITY: Final = {
    WasteKind.BROKEN: Activity.SPINNING,
    WasteKind.UNOCCUPIED: Activity.EMPTY,
    WasteKind.IDLE: Activity.PARKED,
}


def waste(whole: LineSum) -> tuple[Waste, ...]:
    """The four kinds of lines added up.

    Broken is time of stuck jobs; unoccupied is ``empty``, idle is ``parked``: together the idle cost. Inefficient is time that
    was active, not stuck, and known not to be effective (design 2).
    """
    seconds, money = whole.seconds_by_activity(), whole.usd_by_activity()
    found = [
        Waste(
            kind,
            seconds.get(activity, 0.0) / 3600,
            money.get(activity, Decimal(0)) if whole.is_priced else None,
        )
        for kind, activity in _BY_ACTIVITY.items()
    ]
    stuck = found[0]
    hours = (
        whole.whole("active_ms") - whole.whole("effective_ms") - whole.whole("effective_unknown_ms")
    ) / HOUR_MS - stuck.gpu_h
    active, effective, unknown = (
        whole.step_usd(step) for step in ("active_ms", "effective_ms", "effective_unknown_ms")
    )
    usd = None
    if active is not None and effective is not None and unknown is not None and stuck.usd is not None:
        usd = max(active - effective - unknown - stuck.usd, Decimal(0))
    return (*found, Waste(WasteKind.INEFFICIENT, max(hours, 0.0), usd))


def total_usd(kinds: Iterable[Waste]) -> Decimal | None:
    """All kinds together; None: nothing is priced."""
    known = [one.usd for one in kinds if one.usd is not None]
    return sum(known, Decimal(0)) if known else None
