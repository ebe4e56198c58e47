"""Numbers as FOCUS wants them: plain decimals with a point, and quantities whose product with a price is the cost. Pure.

All arithmetic is on whole numbers, so a written figure is exact to its last digit.
"""

from typing import Final

from core.units import HOUR_MS
from ledger.whole_shares import rounded_ratio

PLACES: Final = 12
"""Decimals of quantities and products: at a price below 1,000 a product is off by less than 1e-9."""
MICRO_PLACES: Final = 6
_MJ_PER_KWH: Final = 3_600_000_000


def plain(scaled: int, places: int) -> str:
    """``scaled`` ÷ 10^places: no exponent, no trailing zeros but one decimal at least."""
    sign = "-" if scaled < 0 else ""
    digits = str(abs(scaled)).rjust(places + 1, "0")
    return f"{sign}{digits[:-places]}.{digits[-places:].rstrip('0') or '0'}"


def money(micro: int) -> str:
    """Whole micro-dollars as dollars."""
    return plain(micro, MICRO_PLACES)


def hours(ms: int) -> str:
    """Milliseconds as hours."""
    return plain(rounded_ratio(ms * 10**PLACES, HOUR_MS), PLACES)


def kwh(mj: int) -> str:
    """Millijoules as kilowatt-hours."""
    return plain(rounded_ratio(mj * 10**PLACES, _MJ_PER_KWH), PLACES)


def grams(ug: int) -> str:
    """Micrograms as grams."""
    return plain(ug, MICRO_PLACES)


class Quantity:
    """A quantity as it is written, so that others can be worked out from what is written.

    Attributes:
        scaled: of it. places: decimals.
    """

    __slots__ = ("places", "scaled")

    def __init__(self, scaled: int, places: int = PLACES) -> None:
        self.scaled = scaled
        self.places = places

    @classmethod
    def of_cost(cls, cost: int, price: int) -> "Quantity":
        """What at a price (micro-dollars, above 0) costs so many micro-dollars, with digits enough for 1e-9."""
        places = PLACES + max(0, len(str(price)) - MICRO_PLACES - 3)
        return cls(rounded_ratio(cost * 10**places, price), places)

    @classmethod
    def of_hours(cls, ms: int) -> "Quantity":
        """Milliseconds as hours."""
        return cls(rounded_ratio(ms * 10**PLACES, HOUR_MS))

    @classmethod
    def of_kwh(cls, mj: int) -> "Quantity":
        """Millijoules as kilowatt-hours."""
        return cls(rounded_ratio(mj * 10**PLACES, _MJ_PER_KWH))

    @property
    def text(self) -> str:
        """As written."""
        return plain(self.scaled, self.places)

    def cost(self, price: int) -> str:
        """Its product with a price in micro-dollars, every digit of it that counts."""
        return plain(self.scaled * price, self.places + MICRO_PLACES)

    def whole_cost(self, price: int) -> int:
        """The same in whole micro-dollars."""
        return rounded_ratio(self.scaled * price, 10**self.places)

    def price_for(self, cost: int) -> str | None:
        """The price at which it costs so many micro-dollars; None where none above or at 0 does."""
        if self.scaled == 0:
            return None
        sign = 1 if self.scaled > 0 else -1
        places = PLACES + len(str(abs(self.scaled) // 10**self.places))
        price = rounded_ratio(cost * sign * 10 ** (self.places + places - MICRO_PLACES), abs(self.scaled))
        return plain(price, places) if price >= 0 else None
