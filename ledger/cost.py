"""What GPU time cost: seconds × the price in force, in whole micro-dollars.

    cost = GPU-seconds / 3600 × USD per GPU-hour

Hours come from the clock: a gap in samples is unknown, neither idle nor free (cost-model 1). An unpriced GPU has no
cost (None), which is not a cost of 0: the caller that has no price asks for none.

Source: cost-model 2.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from core.evidence import Price
from core.money import usd
from ledger.share import rounded

HOUR_S: Final = 3600
PLACES: Final = 6
"""Seconds count to the microsecond; what is finer is noise of adding floats, and could turn a half micro-dollar."""


def cost_usd(gpu_seconds: float, price: Price) -> Decimal:
    """Dollars for so many GPU-seconds, in whole micro-dollars."""
    return Meter().add(gpu_seconds, price)


@dataclass(slots=True)
class Meter:
    """Running cost of one GPU, rounded over all its time: however time is cut, the parts add up to the same."""

    _usd_seconds: Decimal = Decimal(0)

    @property
    def usd(self) -> Decimal:
        """Dollars so far, in whole micro-dollars."""
        return rounded(self._usd_seconds / HOUR_S)

    def add(self, gpu_seconds: float, price: Price) -> Decimal:
        """Count so many GPU-seconds at a price; returns by how much the dollars grew, 0 or more."""
        before = self.usd
        self._usd_seconds += usd(round(gpu_seconds, PLACES)) * price.usd_per_gpu_hour
        return self.usd - before
