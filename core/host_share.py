"""What a host draws beside its GPUs, told from what was measured. Pure; standard library only.

    host_share_ratio = P_host / Σ P_gpu              mean watts over the same day

``P_host`` is what RAPL counts (``core.host_metrics.HOST_POWER_W``): processors and their memory. It holds neither the
GPUs, so nothing is taken off, nor fans, network cards, drives and the losses of the power supply: the ratio is a lower
bound of the host's share, and a site profile says what comes on top. Source: cost-model 2 and 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MIN_COVERED_S: Final = 3_600.0
"""Less than an hour in a day is no mean of a day."""
MIN_COMMON_RATIO: Final = 0.8
"""Host and GPUs must have been watched for about the same time, or the means are of different loads: the coverage
that rules ask for too."""
DECIMALS: Final = 3
"""Of the ratio: finer than any counter here, and coarse enough that the ledger keeps few places, and does not price a day
anew for nothing."""
HIGHEST_RATIO: Final = 20.0
"""Two sockets at 100 W each beside one idle card of 10 W, the most lopsided host we know of; beyond it GPU power is missing."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Mean power over a day, and the time that it is the mean of."""

    power_w: float
    covered_s: float


def measured_share(host: Drawn, gpus: Sequence[Drawn | None]) -> float | None:
    """The host's other power over GPU power; None where that cannot be told.

    Args:
        host: as RAPL counts it. gpus: every card of the host that was seen that day; None: its power is not known.
    """
    if not gpus or host.covered_s < MIN_COVERED_S or host.power_w <= 0:
        return None
    total_w = 0.0
    for gpu in gpus:
        if gpu is None:
            return None
        shorter, longer = sorted((gpu.covered_s, host.covered_s))
        if shorter < MIN_COMMON_RATIO * longer:
            return None
        total_w += gpu.power_w
    if total_w <= 0 or host.power_w > HIGHEST_RATIO * total_w:
        return None
    return round(host.power_w / total_w, DECIMALS)
