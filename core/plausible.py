"""What a reading can be at all: a figure beyond it is a fault of the sensor or of the text, and no value."""

from collections.abc import Mapping
from sys import float_info
from typing import Final

from core.metrics import BY_NAME, PLAUSIBLE, Range
from core.units import Unit

MOST_ROUNDED: Final = 1.005
"""Shares printed with two digits or put together from rounded counters end a little above the whole."""

_FACTS: Final[Mapping[str, Unit]] = {
    "index": Unit.COUNT,
    "memory_total_bytes": Unit.BYTE,
    "memory_free_bytes": Unit.BYTE,
    "process_memory_bytes": Unit.BYTE,
    "max_sm_clock_hz": Unit.HERTZ,
    "power_limit_default_w": Unit.WATT,
}
"""What describes a card or process and is no metric."""
RANGES: Final[Mapping[str, Range]] = {
    **{metric.reading: metric.plausible for metric in BY_NAME.values()},
    **{name: PLAUSIBLE[unit] for name, unit in _FACTS.items()},
}
_BOUNDS: Final = {name: (one.least, one.most) for name, one in RANGES.items()}
_SHARES: Final = frozenset(name for name, one in RANGES.items() if one is PLAUSIBLE[Unit.RATIO])
_ANY: Final = (-float_info.max, float_info.max)


def plausible(name: str, value: float) -> float | None:
    """The value of a reading in base units; None when it cannot be true.

    Args:
        name: reading of ``core.metrics`` or fact of an identity; of another name every finite value passes.
        value: figure in base units. A share up to half a percent above the whole is the whole.
    """
    least, most = bounds(name)
    if least <= value <= most:
        return value
    return 1.0 if name in _SHARES and 1.0 < value <= MOST_ROUNDED else None


def bounds(name: str) -> tuple[float, float]:
    """Least and most of a reading in base units."""
    return _BOUNDS.get(name, _ANY)


def refusal(name: str, shown: str) -> str:
    """The sentence about a value that was refused, as it stood in the text."""
    return f"{shown} cannot be true: {RANGES[name].reason}"


def plausible_values(values: Mapping[str, float]) -> dict[str, float]:
    """Of one reading the values that can be true; the others are unknown."""
    checked = ((name, plausible(name, value)) for name, value in values.items())
    return {name: value for name, value in checked if value is not None}
