"""What a power cap does to time and energy of compute-bound work, by cap over the power it drew without one.

A published curve, no physics: medians and p10…p90 of about 120 training configurations at every limit of their cards
(V100 and RTX 6000, Zeus traces [S16]), taken at the middle of each bin of x = cap ÷ uncapped mean power and joined
by straight lines. The ends at 1.0–1.3, which the source table leaves out, are the spread of the RTX 6000 rows.

Below x = 0.7 there is no answer: some boards then use *more* energy, because the job runs longer on the same idle
power. On another board (A40) one configuration in ten loses energy between 0.7 and 0.8 already: stay above 0.8 where
nobody has tried.

The range of the added time is of one trial: the curve's spread over configurations, and in quadrature what two runs of
the same work differ by anyway. It never starts below 0, because no cap makes work faster.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from core.finding import Range
from core.units import J_PER_KWH

LEAST_RATIO: Final = 0.7
"""Never cap below this share of the uncapped mean power (R22)."""
NO_EFFECT_RATIO: Final = 1.4
"""From here on the cap is out of the work's reach."""

Curve = Sequence[tuple[float, float, float, float]]
TIME: Final[Curve] = (
    (0.65, 0.13, 0.20, 0.29),
    (0.75, 0.07, 0.12, 0.23),
    (0.85, 0.035, 0.067, 0.11),
    (0.95, 0.014, 0.032, 0.08),
    (1.05, 0.005, 0.022, 0.055),
    (1.2, 0.0, 0.01, 0.03),
    (NO_EFFECT_RATIO, 0.0, 0.0, 0.0),
)
"""x, then p10, p50, p90 of added time as a share."""
ENERGY: Final[Curve] = (
    (0.65, -0.34, -0.26, -0.19),
    (0.75, -0.29, -0.21, -0.16),
    (0.85, -0.25, -0.17, -0.11),
    (0.95, -0.19, -0.12, -0.05),
    (1.05, -0.13, -0.08, 0.0),
    (1.2, -0.09, -0.07, 0.0),
    (NO_EFFECT_RATIO, -0.07, -0.01, 0.05),
)
"""The same of energy for the same work."""
RUN_NOISE: Final = 0.02
"""Difference in time of two runs of the same work, a share. Where the cap is out of reach (x ≥ 1.4; 243 public rows) half
of the runs differ by less than 3 %, jobs that wait for data among them. With 2 % the range holds 78 % of the A40's and
85 % of the RTX 6000's rows from 0.75 to 1.1 (`python -m bench.advice`); without it 65 and 78 %."""


@dataclass(frozen=True, slots=True)
class CapEffect:
    """What a cap does to the same work: shares of its time and of its energy, negative is less."""

    cap_ratio: float
    time_ratio: Range
    energy_ratio: Range


def power_cap(*, cap_w: float, uncapped_mean_w: float) -> CapEffect | None:
    """The curve at ``cap_w / uncapped_mean_w``; None below 0.7, and where a figure is not positive.

    Args:
        cap_w: the cap to try, watts.
        uncapped_mean_w: mean power of the busy card *without* a cap; under one it is not known.
    """
    if cap_w <= 0 or uncapped_mean_w <= 0:
        return None
    ratio = cap_w / uncapped_mean_w
    if ratio < LEAST_RATIO - 1e-9:
        return None
    return CapEffect(ratio, of_one_trial(published_time(ratio)), _at(ENERGY, ratio))


@dataclass(frozen=True, slots=True)
class MoneyTest:
    """A month of the cap in dollars: energy saved, the same work's longer time at the GPU's price, and the rest."""

    energy_usd_month: float
    time_usd_month: float

    @property
    def net_usd_month(self) -> float:
        """What remains when every GPU-hour is worth its price."""
        return self.energy_usd_month - self.time_usd_month


def money_test(
    effect: CapEffect,
    *,
    energy_j_month: float,
    busy_h_month: float,
    usd_per_kwh: float,
    pue: float,
    usd_per_gpu_hour: Decimal | float,
) -> MoneyTest:
    """Net = ΔE · $/kWh · PUE − Δt · GPU $/h, medians (R22).

    Args:
        effect: from ``power_cap``. energy_j_month: of the busy time now. busy_h_month: the same time in hours.
        usd_per_kwh, pue, usd_per_gpu_hour: the site's.
    """
    saved_kwh = -effect.energy_ratio.p50 * energy_j_month / J_PER_KWH
    return MoneyTest(
        energy_usd_month=saved_kwh * usd_per_kwh * pue,
        time_usd_month=effect.time_ratio.p50 * busy_h_month * float(usd_per_gpu_hour),
    )


def published_time(ratio: float) -> Range:
    """Added time over configurations at cap ÷ uncapped mean power ≥ 0.65, a share: the curve itself."""
    return _at(TIME, ratio)


def of_one_trial(time: Range, noise: float = RUN_NOISE) -> Range:
    """A range of added time with the noise of two runs (a share) in it."""
    below, above = math.hypot(time.p50 - time.p10, noise), math.hypot(time.p90 - time.p50, noise)
    return Range(max(0.0, time.p50 - below), time.p50, time.p50 + above)


def _at(curve: Curve, ratio: float) -> Range:
    last = curve[-1]
    if ratio >= last[0]:
        return Range(last[1], last[2], last[3])
    for low, high in itertools.pairwise(curve):
        if ratio <= high[0]:
            part = (ratio - low[0]) / (high[0] - low[0])
            p10, p50, p90 = (a + part * (b - a) for a, b in zip(low[1:], high[1:], strict=True))
            return Range(p10, p50, p90)
    raise AssertionError(f"ratio {ratio} is on no part of the curve")
