"""The adjusted baseline: what an hour would have cost under its load and at its time of the week.

Least squares of the outcome on the loads, the first two harmonics of the day and the weekend: with few weeks of data
168 hours of the week would describe noise. Columns that are constant or follow from others in the baseline are left
out (Gram-Schmidt). IPMVP's "adjusted baseline energy"; acceptance as in ASHRAE Guideline 14 (hourly CV(RMSE) ≤ 30 %).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import cos, fsum, pi, sin, sqrt
from typing import Final

from advisor.verify.series import LoadHour
from core.units import DAY_MS, HOUR_MS

_SAME: Final = 1e-7
"""A column whose remainder is below this share of itself says nothing new."""
_EPOCH_WEEKDAY: Final = 3
"""1970-01-01 was a Thursday (Monday is 0)."""
NOISE_FLOOR_RATIO: Final = 0.01
"""No meter is better than this: a baseline without any scatter does not prove a hundredth (E)."""
_MAX_CORRELATION: Final = 0.95


def _features(hour: LoadHour) -> list[float]:
    turn = 2 * pi * (hour.hour_ms % DAY_MS) / DAY_MS
    is_weekend = (hour.hour_ms // DAY_MS + _EPOCH_WEEKDAY) % 7 >= 5
    clock = (sin(turn), cos(turn), sin(2 * turn), cos(2 * turn))
    return [1.0, *hour.loads, *clock, float(is_weekend)]


@dataclass(frozen=True, slots=True)
class Adjusted:
    """Difference between baseline and what was measured, of some hours.

    Attributes:
        saving: mean per hour; positive: less than the baseline. standard_error: of that mean, days taken as they
            follow one another. expected: mean of the baseline. hours: how many.
    """

    saving: float
    standard_error: float
    expected: float
    hours: int

    @property
    def is_noise(self) -> bool:
        """Less than two standard errors from none."""
        return abs(self.saving) < 2 * self.standard_error


class Baseline:
    """Fitted on hours before an action.

    Attributes:
        cv_rmse: scatter of an hour over the mean, a ratio; None when the mean is 0. hours: how many.
    """

    def __init__(self, hours: Sequence[LoadHour]) -> None:
        """Fit.

        Raises:
            ValueError: no hours.
        """
        if not hours:
            raise ValueError("a baseline needs hours: give some")
        rows = [_features(hour) for hour in hours]
        self._scales = [max(map(abs, column)) or 1.0 for column in zip(*rows, strict=True)]
        columns = [
            [value / scale for value in column]
            for column, scale in zip(zip(*rows, strict=True), self._scales, strict=True)
        ]
        self._kept, self._norms, self._mixes, orthogonal = _orthogonal(columns)
        outcomes = [hour.outcome for hour in hours]
        weights = [
            _dot(column, outcomes) / norm for column, norm in zip(orthogonal, self._norms, strict=True)
        ]
        self._weights = weights
        residuals = [hour.outcome - self.expected(hour) for hour in hours]
        mean = fsum(outcomes) / len(outcomes)
        spare = max(1, len(hours) - len(self._kept))
        scatter = sqrt(fsum(r * r for r in residuals) / spare)
        self.hours = len(hours)
        self.cv_rmse = scatter / abs(mean) if mean else None
        floor = NOISE_FLOOR_RATIO * abs(mean)
        self._variance = max(scatter**2, floor**2) * _day_inflation(hours, residuals)

    def _coordinates(self, features: Sequence[float]) -> list[float]:
        """Features in the orthogonal basis."""
        found: list[float] = []
        for index, mix in zip(self._kept, self._mixes, strict=True):
            value = features[index] / self._scales[index]
            found.append(value - sum(share * part for share, part in zip(mix, found, strict=True)))
        return found

    def expected(self, hour: LoadHour) -> float:
        """What that hour would have been."""
        return _dot(self._weights, self._coordinates(_features(hour)))

    def against(self, hours: Sequence[LoadHour]) -> Adjusted:
        """Saving of other hours under their own load.

        Raises:
            ValueError: no hours.
        """
        if not hours:
            raise ValueError("there are no hours to compare: give some")
        expected = [self.expected(hour) for hour in hours]
        differences = [what - hour.outcome for what, hour in zip(expected, hours, strict=True)]
        saving = fsum(differences) / len(hours)
        rows = [_features(hour) for hour in hours]
        middle = [fsum(column) / len(rows) for column in zip(*rows, strict=True)]
        place = self._coordinates(middle)
        leverage = fsum(value * value / norm for value, norm in zip(place, self._norms, strict=True))
        deviations = [difference - saving for difference in differences]
        scatter = fsum(value * value for value in deviations) / max(1, len(hours) - 1)
        floor = (NOISE_FLOOR_RATIO * fsum(expected) / len(hours)) ** 2
        own = max(scatter, floor) * _day_inflation(hours, deviations) / len(hours)
        return Adjusted(
            saving, sqrt(self._variance * leverage + own), fsum(expected) / len(hours), len(hours)
        )


def cross_bias(hours: Sequence[LoadHour]) -> float | None:
    """Relative error of the sum when even days predict odd ones and the other way round; None when it is unknown."""
    days = ([], [])  # type: tuple[list[LoadHour], list[LoadHour]]
    for hour in hours:
        days[hour.hour_ms // DAY_MS % 2].append(hour)
    total = fsum(hour.outcome for hour in hours)
    if not days[0] or not days[1] or not total:
        return None
    error = 0.0
    for given, asked in (days, days[::-1]):
        model = Baseline(given)
        error += fsum(model.expected(hour) - hour.outcome for hour in asked)
    return error / abs(total)


def _orthogonal(
    columns: Sequence[Sequence[float]],
) -> tuple[list[int], list[float], list[list[float]], list[list[float]]]:
    """Columns that say something new: index, squared norm, what of the former ones was taken off, and the rest."""
    kept: list[int] = []
    norms: list[float] = []
    mixes: list[list[float]] = []
    basis: list[list[float]] = []
    for index, column in enumerate(columns):
        rest, mix = list(column), []
        for norm, direction in zip(norms, basis, strict=True):
            share = _dot(direction, rest) / norm
            mix.append(share)
            rest = [value - share * part for value, part in zip(rest, direction, strict=True)]
        norm = _dot(rest, rest)
        if norm > _SAME * _dot(column, column) and norm > 0:
            kept.append(index)
            norms.append(norm)
            mixes.append(mix)
            basis.append(rest)
    return kept, norms, mixes, basis


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return fsum(a * b for a, b in zip(one, other, strict=True))


def _day_inflation(hours: Sequence[LoadHour], residuals: Sequence[float]) -> float:
    """How much wider the variance of a mean is than of independent hours: hours of a day, and days, go together.

    Variance of the days' means over that of independent hours, and days' own correlation ``(1 + ρ) / (1 - ρ)`` (ρ corrected for few days); never
    below 1.
    """
    days: dict[int, list[float]] = {}
    for hour, residual in zip(hours, residuals, strict=True):
        days.setdefault(hour.hour_ms // DAY_MS, []).append(residual)
    means = [fsum(values) / len(values) for values in days.values()]
    square = fsum(residual * residual for residual in residuals) / max(1, len(residuals))
    if len(means) < 4 or square == 0:
        return 1.0
    middle = fsum(means) / len(means)
    spread = fsum((mean - middle) ** 2 for mean in means) / (len(means) - 1)
    per_day = len(residuals) / len(means)
    pairs = list(pairwise(means))
    top = fsum((a - middle) * (b - middle) for a, b in pairs)
    raw = top / (spread * (len(means) - 1)) if spread > 0 else 0.0
    # Few days understate how they go together: Kendall's correction.
    rho = min(_MAX_CORRELATION, max(0.0, raw + (1 + 3 * raw) / len(means)))
    return max(1.0, spread * per_day / square) * (1 + rho) / (1 - rho)


def blocks(
    hours: Sequence[LoadHour], model: Baseline, action_ms: int, block_h: int
) -> list[tuple[int, float]]:
    """Means of measured less expected over blocks that meet at the action: (start in ms, mean), gaps left out."""
    width = block_h * HOUR_MS
    found: dict[int, list[float]] = {}
    for hour in hours:
        found.setdefault((hour.hour_ms - action_ms) // width, []).append(hour.outcome - model.expected(hour))
    return [(action_ms + key * width, fsum(v) / len(v)) for key, v in sorted(found.items())]
