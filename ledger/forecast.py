"""What the days until the end of a month will cost: level, day of the week, and the errors such forecasts made before. Pure.

    day       = line × factor of its weekday
    factor    = median over eight weeks of day / mean of the seven days around it, drawn a little towards 1
    line      = of days over their factors since the last step: three means whose memory halves in 4, 14 and 28 days, and
                trends through the same weights, damped; each counts by how little it was off as of earlier days
    interval  = p10 and p90 of actual / forecast - 1 over as many days ahead, of forecasts made as of earlier days

Errors are taken of *sums* over the days ahead, so that what days have in common (a job that runs for a week) is in
them; they are widened where few independent stretches stand behind them. Plain statistics: ``bench/forecast.py`` says
how right it is. Sources: Hyndman & Athanasopoulos, Forecasting: Principles and Practice, 3rd ed., 3.4 (ratio to moving
average), 5.10 (rolling origin), 8.2 (damped trend), 13.4 (combinations).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from functools import cache
from math import sqrt
from statistics import fmean, median
from typing import Final, NamedTuple

from core.money import CENT, usd

ONE_DAY: Final = timedelta(days=1)
MIN_HISTORY_DAYS: Final = 14
"""Two weeks: every weekday twice. With less, nothing tells a weekday from chance, and no forecast is made."""
MAX_HISTORY_DAYS: Final = 112
"""Sixteen weeks: what was before says little of next month, and its errors would."""
SEASONS: Final = 8
ONE_WEEKS: Final = 0.25
"""Weeks in which every day were alike, added to those seen: one week alone is not taken at its word."""
HALF_LIVES_DAYS: Final = (4.0, 14.0, 28.0)
LONGEST_DAYS: Final = 56.0
"""Memory of the mean that no step cuts: what comes and goes is no step."""
TREND_DAYS: Final = 14.0
"""A trend needs a memory at least so long: a few days of growth are chance."""
LINES: Final = len(HALF_LIVES_DAYS) + sum(days >= TREND_DAYS for days in HALF_LIVES_DAYS) + 1
DAMPING: Final = 0.98
"""What a day keeps of the day before's trend: growth does not go on for ever (Hyndman & Athanasopoulos: 0.8 to 0.98)."""
TRAINING_DAYS: Final = 7
"""Fewest days before an earlier day as of which a forecast is tried."""
MIN_TRIES: Final = 8
"""Fewest forecasts behind the errors of a length; with less, those of a shorter length are stretched."""
SHARPNESS: Final = 4
"""A line counts by one over its mean error to this power (from the back-test)."""
WIDENING: Final = 0.8
"""Share by which errors of one independent stretch are widened; of n stretches, by this over √n (from the back-test)."""
STEP_SEARCH_DAYS: Final = 56
STEP_DAYS: Final = 4
STEP_SPREADS: Final = 3.0
STEP_RATIO: Final = 0.08
"""A step: the last days beyond so many usual spreads, and this share, of those before (from the back-test)."""
MIN_COVERAGE_RATIO: Final = 0.8
"""Samples received over samples due, as for rules: with less, a day's spend may be somebody else's."""
PRICED_RATIO: Final = 0.999
"""Below it some of a day has no price, and its spend is too low."""
LOW, HIGH = 0.1, 0.9
_SMALL_FACTOR: Final = 0.2
_SMALL: Final = 1e-9


class DaySpend(NamedTuple):
    """What one accounting day cost.

    Attributes:
        day: which. usd: cost of its priced time.
        covered_ratio: share of the GPU time around it that has samples. priced_ratio: of its own, that has a price.
            None: there was no such time.
        is_whole: it is over, and data reach from its start to its end.
    """

    day: date
    usd: Decimal
    covered_ratio: float | None
    priced_ratio: float | None
    is_whole: bool

    @property
    def left_out(self) -> str | None:
        """Why a forecast leaves it out; None: it counts."""
        if not self.is_whole:
            return "partial"
        if self.covered_ratio is not None and self.covered_ratio < MIN_COVERAGE_RATIO:
            return "gap"
        if self.priced_ratio is not None and self.priced_ratio < PRICED_RATIO:
            return "unpriced"
        return None


class Range(NamedTuple):
    """Dollars: one in ten outcomes is below ``p10``, one in two below ``p50``, nine in ten below ``p90``."""

    p10: Decimal
    p50: Decimal
    p90: Decimal


@dataclass(frozen=True, slots=True)
class Forecast:
    """What days to come will cost.

    Attributes:
        first: the first of them. path: sum from it to the end of each day, in cents.
        history_days: days that it rests on. left_out: others by why (``partial``, ``gap``, ``unpriced``).
    """

    first: date
    path: tuple[Range, ...]
    history_days: int
    left_out: Mapping[str, int]

    @property
    def total(self) -> Range:
        """Of all days; nothing when there are none."""
        return self.path[-1] if self.path else Range(Decimal(0), Decimal(0), Decimal(0))


@dataclass(frozen=True, slots=True)
class Refused:
    """No forecast, and why, in a sentence; the rest as in ``Forecast``."""

    why: str
    history_days: int
    left_out: Mapping[str, int]


def forecast(days: Sequence[DaySpend], first: date, until: date) -> Forecast | Refused:
    """Cost of the days from ``first`` (inclusive) to ``until`` (exclusive).

    Args:
        days: of the past, in order of time, a day without any cost among them (a day that is missing is unknown);
            those from ``first`` on are not looked at.
    """
    past = [day for day in days if first - MAX_HISTORY_DAYS * ONE_DAY <= day.day < first]
    begun = next((at for at, day in enumerate(past) if day.usd > 0), len(past))
    reasons = [(day, day.left_out) for day in past[begun:]]
    left_out = Counter(why for _, why in reasons if why is not None)
    known = {day.day: float(day.usd) for day, why in reasons if why is None}
    if len(known) < MIN_HISTORY_DAYS:
        return Refused(_too_few(len(known), left_out), len(known), left_out)
    ahead = (until - first).days
    if ahead <= 0:
        return Forecast(first, (), len(known), left_out)
    start = min(known)
    series = _Series(start.weekday(), [known.get(start + n * ONE_DAY) for n in range((first - start).days)])
    tries = _tries(series, ahead)
    weights = _weights(tries, ahead)
    sums = [_mixed(said, weights) for said in _sums(series, len(series.values), ahead)]
    errors = {
        length: sorted(seen / _mixed(said, weights) - 1.0 for seen, said in of)
        for length, of in tries.items()
    }
    spreads = [_spread(errors, length, len(known)) for length in range(1, ahead + 1)]
    return Forecast(first, tuple(_ranges(sums, spreads)), len(known), left_out)


def _too_few(count: int, left_out: Mapping[str, int]) -> str:
    others = ", ".join(f"{n} {why}" for why, n in sorted(left_out.items()))
    return f"{count} whole days with spend are known, a forecast needs {MIN_HISTORY_DAYS}" + (
        f" (left out: {others})" if others else ""
    )


class _Series:
    """Days one after the other, None where unknown, and what each is to the week around it."""

    def __init__(self, weekday: int, values: Sequence[float | None]) -> None:
        self.weekday = weekday
        self.values = values
        self._ratios: list[list[tuple[int, float]]] = [[] for _ in range(7)]
        for at in range(3, len(values) - 3):
            around = [value for value in values[at - 3 : at + 4] if value is not None]
            value = values[at]
            if value is not None and len(around) == 7 and sum(around) > 0:
                self._ratios[self.weekday_of(at)].append((at, 7 * value / sum(around)))

    def weekday_of(self, at: int) -> int:
        return (self.weekday + at) % 7

    def factors(self, before: int) -> list[float]:
        """Of Monday to Sunday, 1 on average, as of a day; all 1 where nothing can be told."""
        found = []
        for of in self._ratios:
            ratios = [ratio for at, ratio in of if at + 3 < before][-SEASONS:]
            found.append(
                (median(ratios) * len(ratios) + ONE_WEEKS) / (len(ratios) + ONE_WEEKS) if ratios else 1.0
            )
        whole = fmean(found)
        return [factor / whole for factor in found]


def _sums(series: _Series, before: int, count: int) -> Iterator[list[float]]:
    """Sums over 1 … ``count`` days from day ``before`` on, by each line."""
    factors = series.factors(before)
    plain = [
        (at, value / factors[series.weekday_of(at)])
        for at, value in enumerate(series.values[:before])
        if value is not None and factors[series.weekday_of(at)] >= _SMALL_FACTOR
    ]
    lines = _lines(plain, _since_step([value for _, value in plain]), before)
    totals = [0.0] * len(lines)
    damped, kept = 0.0, 1.0
    for n in range(count):
        factor = factors[series.weekday_of(before + n)]
        for line, (level, slope) in enumerate(lines):
            totals[line] += max(0.0, level + slope * damped) * factor
        kept *= DAMPING
        damped += kept
        yield list(totals)


def _lines(plain: Sequence[tuple[int, float]], step: int, before: int) -> list[tuple[float, float]]:
    """Level on day ``before`` and change a day: means since the last step, trends since then, the mean over all."""
    levels, trends = [], []
    for half_life in HALF_LIVES_DAYS:
        level, with_trend, slope = _line(plain[step:], before, half_life)
        levels.append((level, 0.0))
        if half_life >= TREND_DAYS:
            trends.append((max(0.0, with_trend), slope))
    return [*levels, *trends, (_line(plain, before, LONGEST_DAYS)[0], 0.0)]


def _line(plain: Sequence[tuple[int, float]], before: int, half_life: float) -> tuple[float, float, float]:
    """Weighted mean of days; and of the straight line through them, its level on day ``before`` and change a day."""
    table = _weights_by_age(half_life)
    w = wt = wtt = wz = wtz = 0.0
    for at, value in plain:
        weight, by_age, by_square = table[before - at]
        w += weight
        wt += by_age
        wtt += by_square
        wz += weight * value
        wtz += by_age * value
    mean = wz / w
    below = w * wtt - wt * wt
    slope = (w * wtz - wt * wz) / below if below > _SMALL else 0.0
    return mean, mean - slope * wt / w, slope


@cache
def _weights_by_age(half_life: float) -> tuple[tuple[float, float, float], ...]:
    """Weight of a day so many days back; the same times its (negative) age, and times its square."""
    keep = 0.5 ** (1.0 / half_life)
    return tuple((keep**age, -age * keep**age, age * age * keep**age) for age in range(MAX_HISTORY_DAYS + 1))


def _since_step(values: Sequence[float]) -> int:
    """Where the last step is: what was before says nothing of the level."""
    for at in range(len(values) - STEP_DAYS, max(TRAINING_DAYS, len(values) - STEP_SEARCH_DAYS) - 1, -1):
        after = values[at : at + STEP_DAYS]
        lowest, highest = min(after), max(after)
        if lowest <= values[at - 1] <= highest:
            continue
        before = values[max(0, at - MIN_HISTORY_DAYS) : at]
        level = median(before)
        if lowest <= level * (1 + STEP_RATIO) and highest >= level * (1 - STEP_RATIO):
            continue
        spread = STEP_SPREADS * 1.4826 * median([abs(value - level) for value in before])
        if lowest > level + spread or highest < level - spread:
            return at
    return 0


_Tries = Mapping[int, Sequence[tuple[float, list[float]]]]
"""By days ahead: what was seen, and what each line had said."""


def _tries(series: _Series, ahead: int) -> _Tries:
    """Forecasts made as of every earlier day; unknown days count on neither side."""
    found: dict[int, list[tuple[float, list[float]]]] = {}
    values = series.values
    for before in range(TRAINING_DAYS, len(values)):
        if sum(value is not None for value in values[:before]) < TRAINING_DAYS:
            continue
        seen = 0.0
        said: list[float] = []
        last: list[float] = []
        for n, totals in enumerate(_sums(series, before, min(ahead, len(values) - before))):
            value = values[before + n]
            step = totals if not last else [now - then for now, then in zip(totals, last, strict=True)]
            last = totals
            if value is None:
                continue
            seen += value
            said = step if not said else [total + more for total, more in zip(said, step, strict=True)]
            if min(said) > 0:
                found.setdefault(n + 1, []).append((seen, said))
    return found


def _weights(tries: _Tries, ahead: int) -> list[float]:
    """Of each line: the less it was off over as many days ahead, the more."""
    length = _length(tries, ahead)
    of = tries.get(length, ())
    if not of:
        return [1.0 / LINES] * LINES
    seen = fmean(total for total, _ in of)
    if seen <= 0:
        return [1.0 / LINES] * LINES
    off = [fmean(abs(total - said[line]) for total, said in of) / seen for line in range(LINES)]
    found = [1.0 / (error**SHARPNESS + _SMALL) for error in off]
    return [weight / sum(found) for weight in found]


def _mixed(said: Sequence[float], weights: Sequence[float]) -> float:
    return sum(weight * total for weight, total in zip(weights, said, strict=True))


def _length(tries: Mapping[int, Sequence[object]], ahead: int) -> int:
    """The most days ahead, up to these, that have enough tries behind them."""
    length = ahead
    while length > 1 and len(tries.get(length, ())) < MIN_TRIES:
        length -= 1
    return length


def _spread(errors: Mapping[int, Sequence[float]], ahead: int, history: int) -> tuple[float, float]:
    """p10 and p90 of the error over so many days, widened by how little is behind them."""
    length = _length(errors, ahead)
    of = errors.get(length, ())
    if not of:
        return -1.0, 1.0
    wider = (1.0 + WIDENING / sqrt(max(1.0, history / ahead))) * sqrt(ahead / length)
    low, high = min(0.0, _quantile(of, LOW)), max(0.0, _quantile(of, HIGH))
    return max(-1.0, low * wider), high * wider


def _quantile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    at = int(place)
    after = ordered[min(at + 1, len(ordered) - 1)]
    return ordered[at] + (after - ordered[at]) * (place - at)


def _ranges(sums: Sequence[float], spreads: Sequence[tuple[float, float]]) -> Iterator[Range]:
    """Sums with their intervals; what is spent by a day is spent by the next."""
    low = high = 0.0
    for total, (below, above) in zip(sums, spreads, strict=True):
        low, high = max(low, total * (1.0 + below)), max(high, total * (1.0 + above))
        yield Range(_cents(min(low, total)), _cents(total), _cents(high))


def _cents(value: float) -> Decimal:
    return usd(value).quantize(CENT)
