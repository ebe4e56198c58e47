"""Quarters of hours as bytes and bytes as quarters: the one place that knows how the column ``quarters`` is packed.

Means are half-precision floats (a two-thousandth of the value), memory in GiB: strips show no more.
"""

from math import isnan, nan
from struct import Struct
from typing import Final

from core.activity import Activity
from core.quarters import OF_GPU, OF_HOST, QUARTERS, Quarter, Quarters
from core.units import GIB

CODES: Final = (
    Activity.EMPTY,
    Activity.PARKED,
    Activity.STARVED,
    Activity.SPINNING,
    Activity.MEMORY_BOUND,
    Activity.COMPUTE_BOUND,
    Activity.MIXED,
    Activity.BUSY,
    Activity.UNKNOWN,
)
"""An activity is stored as its place here, counted from 1 (0: none): only ever add at the end."""
_CODE_OF: Final = {None: 0} | {activity: at for at, activity in enumerate(CODES, 1)}
_ACTIVITY_OF: Final = (None, *CODES)
_MOST: Final = 65_504.0
"""The largest half-precision number."""
_PER_UNIT: Final = {"memory_used_bytes": float(GIB)}
"""What one of the packed unit is in the base unit, where that is not 1."""
_SCALES: Final[dict[tuple[str, ...], tuple[float, ...]]] = {
    names: tuple(_PER_UNIT.get(name, 1.0) for name in names) for names in (OF_GPU, OF_HOST)
}
_PACKED: Final = {names: Struct("<" + f"HB{len(names)}e" * QUARTERS) for names in _SCALES}
"""By the names of the means: deciseconds covered, activity, means, four times over."""


def packed(quarters: Quarters | None, names: tuple[str, ...]) -> bytes | None:
    """The column ``quarters``: ``names`` are ``OF_GPU`` or ``OF_HOST``. None: nothing finer than the hour is known."""
    if quarters is None:
        return None
    cells: list[float] = []
    for quarter in quarters:
        # Whatever was covered at all is no gap.
        cells += (round(quarter.covered_s * 10) or int(quarter.covered_s > 0), _CODE_OF[quarter.activity])
        cells += [
            nan if value is None else min(value / scale, _MOST)
            for value, scale in zip(quarter.values, _SCALES[names], strict=True)
        ]
    return _PACKED[names].pack(*cells)


def quarters_in(column: bytes | None, names: tuple[str, ...]) -> Quarters | None:
    """What ``packed`` made of the same ``names``."""
    if column is None:
        return None
    cells, width = _PACKED[names].unpack(column), 2 + len(names)
    found = []
    for at in range(0, len(cells), width):
        covered, code, *values = cells[at : at + width]
        means = [None if isnan(v) else v * scale for v, scale in zip(values, _SCALES[names], strict=True)]
        found.append(Quarter(covered / 10, _ACTIVITY_OF[code], tuple(means)))
    return tuple(found)
