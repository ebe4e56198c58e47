"""Money: ``Decimal`` in code, whole micro-dollars in the database, a string in JSON, rounded once when printed."""

from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

MICRO: Final = Decimal(1_000_000)
CENT: Final = Decimal("0.01")


def to_micro(amount: Decimal) -> int:
    """Dollars as whole micro-dollars, half to even."""
    return int((amount * MICRO).to_integral_value(ROUND_HALF_EVEN))


def from_micro(micro: int) -> Decimal:
    """Whole micro-dollars as dollars."""
    return Decimal(micro) / MICRO


def usd(value: float | Decimal | str) -> Decimal:
    """A figure as money without the noise of binary floats (through its shortest text)."""
    return value if isinstance(value, Decimal) else Decimal(str(value))


def text(amount: Decimal | None, places: int = 6) -> str | None:
    """Money for JSON: a plain decimal string with ``places`` digits at most; None stays None."""
    if amount is None:
        return None
    quantum = Decimal(1).scaleb(-places)
    plain = format(amount.quantize(quantum, ROUND_HALF_EVEN), "f")
    whole, _, fraction = plain.partition(".")
    fraction = fraction.rstrip("0").ljust(2, "0")
    return f"{whole}.{fraction}"
