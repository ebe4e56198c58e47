"""Quarters of an hour of a GPU or a host: what strips over two days show. Pure.

An hour keeps its quarters beside its own figures, so that strips finer than hours need no samples.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from core.activity import Activity
from core.units import HOUR_MS

QUARTERS: Final = 4
QUARTER_MS: Final = HOUR_MS // QUARTERS

OF_GPU: Final = (
    "busy_ratio",
    "power_w",
    "memory_used_bytes",
    "sm_active_ratio",
    "dram_active_ratio",
    "tensor_active_ratio",
)
"""Means over the covered time that a quarter of a GPU keeps."""
OF_HOST: Final = ("cpu_busy_ratio", "cpu_busiest_ratio", "iowait_ratio")
"""The same of a host."""


class Quarter(NamedTuple):
    """Fifteen minutes.

    Attributes:
        covered_s: seconds for which samples vouch; 0 is a gap.
        activity: with most of the covered time; None in a gap, and always of a host.
        values: means in the order of ``OF_GPU`` or ``OF_HOST``; None where nothing was measured.
    """

    covered_s: float
    activity: Activity | None
    values: tuple[float | None, ...]


Quarters = tuple[Quarter, ...]
"""The four of an hour, in order of time."""


def merged_quarters(first: Quarters | None, second: Quarters | None) -> Quarters | None:
    """Two parts of one hour together; None where nothing finer than the hour is known of one of them."""
    if first is None or second is None:
        return None
    return tuple(_merged(one, other) for one, other in zip(first, second, strict=True))


def _merged(one: Quarter, other: Quarter) -> Quarter:
    most = max(one, other, key=lambda quarter: quarter.covered_s)
    return Quarter(
        one.covered_s + other.covered_s,
        most.activity,
        tuple(
            _mean(pair, (one.covered_s, other.covered_s))
            for pair in zip(one.values, other.values, strict=True)
        ),
    )


def _mean(values: Sequence[float | None], seconds: Sequence[float]) -> float | None:
    known = [(value, s) for value, s in zip(values, seconds, strict=True) if value is not None and s > 0]
    whole = sum(s for _, s in known)
    return sum(value * s for value, s in known) / whole if known else None
