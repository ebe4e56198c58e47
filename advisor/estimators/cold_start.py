"""How long a model takes to come back, and how long to keep it warm because of that.

    T_cold = weights + graphs [+ image pull]      vendor figures: 8B 8 s + 12 s, 70B 45 s + 30 s, pull 4–8 min uncached
    tau    = cost of a cold start / cost of an idle second

Source: advisor-rules R04 [S9] (literature: one vendor's figures, so the range is wide; a measured start beats it).
Keeping warm for ``tau`` and then unloading never costs more than twice what perfect foresight would (ski rental).
"""

from typing import Final

from core.finding import Range

SMALL: Final = (8e9, 8.0, 12.0)
LARGE: Final = (70e9, 45.0, 30.0)
"""Parameters, seconds to load weights, seconds to capture graphs."""
MOST_PARAMETERS: Final = 140e9
"""Twice the larger row: beyond that the line is a guess."""
PULL_S: Final = (0.0, 240.0, 480.0)
"""Image cached; pulled fast; pulled slowly."""
MEASURED_HALF_WIDTH: Final = 0.25
"""A start that was measured once varies with caches and disks."""


def load_s(parameters: float) -> float | None:
    """Seconds to load weights and capture graphs, between and beyond the two rows on a line; None outside validity.

    Args:
        parameters: of the model; 0 < parameters ≤ 140e9.
    """
    if not 0 < parameters <= MOST_PARAMETERS:
        return None
    share = max(0.0, (parameters - SMALL[0]) / (LARGE[0] - SMALL[0]))
    return sum(small + share * (large - small) for small, large in zip(SMALL[1:], LARGE[1:], strict=True))


def cold_start_s(*, parameters: float | None, measured_s: float | None = None) -> Range | None:
    """Seconds from the wish to the first answer, from a host that runs.

    Args:
        parameters: of the model; None: not known, which gives no figure.
        measured_s: a start that was measured here; wins.

    Returns:
        A range; None when nothing is known or the model is outside what the figures describe. Booting a machine
        is not in it.
    """
    if measured_s is not None:
        return Range.around(measured_s, MEASURED_HALF_WIDTH) if measured_s > 0 else None
    base_s = None if parameters is None else load_s(parameters)
    return None if base_s is None else Range(*(base_s + pull_s for pull_s in PULL_S))


def widest_s() -> Range:
    """For work of which nothing is known: from the smallest row with a cached image to the largest with a slow pull."""
    small_s, large_s = sum(SMALL[1:]), sum(LARGE[1:])
    return Range(small_s, large_s + PULL_S[1], large_s + PULL_S[2])


def keep_warm_s(
    cold_start_s: float, *, usd_per_gpu_hour: float | None, penalty_usd: float = 0.0
) -> float | None:
    """Idle seconds after which unloading pays: cost of a cold start over cost of an idle second.

    Args:
        cold_start_s: seconds for which the GPU is paid and serves nobody.
        usd_per_gpu_hour: price of the GPU; without a penalty it cancels out.
        penalty_usd: what late answers cost per cold start (dollars); needs the price.

    Returns:
        Seconds ≥ 0; None when a penalty is given without a price above 0.
    """
    if penalty_usd <= 0:
        return cold_start_s
    if usd_per_gpu_hour is None or usd_per_gpu_hour <= 0:
        return None
    return cold_start_s + penalty_usd / (usd_per_gpu_hour / 3600)
