"""What starting a job at another hour saves: the same kWh at the prices of other hours of the day.

    saving(d) = sum over the job's hours of kWh_i · (price[h + i] − price[h + i + d])      d = hours of delay

Source: advisor-rules R33 [S20] (arXiv 2306.06502): upper bounds are limited, and simple policies get most of them. So
three policies are run, not assumed: wait a few hours at most, always start at one hour of the day, wait as long as the
deadline allows. The same function shifts carbon when given g/kWh in place of prices.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from core.finding import Range

DAY_H: Final = 24
CAUTIOUS_DELAY_H: Final = 6
"""A wait that few jobs notice."""


@dataclass(frozen=True, slots=True)
class Run:
    """A job that ran once.

    Attributes:
        start_hour: hour of the day in which it began, 0–23.
        kwh: energy of each of its hours, first hour first.
    """

    start_hour: int
    kwh: tuple[float, ...]


def cost(run: Run, prices: Sequence[float], delay_h: int = 0) -> float:
    """What the run costs when it begins ``delay_h`` hours later.

    Args:
        run: energy by hour.
        prices: of the 24 hours of a day, dollars (or grams) per kWh.
        delay_h: hours ≥ 0.
    """
    first = run.start_hour + delay_h
    return sum(kwh * prices[(first + i) % DAY_H] for i, kwh in enumerate(run.kwh))


def best_delay_h(
    run: Run, prices: Sequence[float], *, max_delay_h: int, allowed: Sequence[bool] | None = None
) -> int:
    """The shortest delay of the cheapest start; 0 when none is cheaper.

    Args:
        run, prices: as in ``cost``.
        max_delay_h: longest wait, hours.
        allowed: hours of the day in which there is room for more work; default all. A start is allowed when all of
            the run's new hours are.
    """
    best, cheapest = 0, cost(run, prices)
    for delay_h in range(1, max_delay_h + 1):
        if allowed is not None and not _has_room(run, delay_h, allowed):
            continue
        price = cost(run, prices, delay_h)
        if price < cheapest - 1e-12:
            best, cheapest = delay_h, price
    return best


def _has_room(run: Run, delay_h: int, allowed: Sequence[bool]) -> bool:
    first = run.start_hour + delay_h
    return all(allowed[(first + i) % DAY_H] for i in range(len(run.kwh)))


def saved_by_waiting(
    runs: Sequence[Run], prices: Sequence[float], *, max_delay_h: int, allowed: Sequence[bool] | None = None
) -> float:
    """Dollars (or grams) that all runs save when each waits for its cheapest start; ≥ 0."""
    return sum(
        cost(run, prices)
        - cost(run, prices, best_delay_h(run, prices, max_delay_h=max_delay_h, allowed=allowed))
        for run in runs
    )


def saved_by_one_hour(
    runs: Sequence[Run], prices: Sequence[float], *, max_delay_h: int, allowed: Sequence[bool] | None = None
) -> tuple[int | None, float]:
    """The one hour of the day at which all should start, and what that saves; a run that it makes dearer stays.

    Returns:
        The hour (None when no hour saves anything) and dollars (or grams) ≥ 0.
    """
    best_hour, best = None, 0.0
    for hour in range(DAY_H):
        saved = 0.0
        for run in runs:
            delay_h = (hour - run.start_hour) % DAY_H
            if delay_h > max_delay_h or (allowed is not None and not _has_room(run, delay_h, allowed)):
                continue
            saved += max(0.0, cost(run, prices) - cost(run, prices, delay_h))
        if saved > best + 1e-12:
            best_hour, best = hour, saved
    return best_hour, best


def shifted(
    runs: Sequence[Run],
    prices: Sequence[float],
    *,
    max_delay_h: int = DAY_H - 1,
    allowed: Sequence[bool] | None = None,
) -> Range | None:
    """What shifting saves: a cautious wait, one start hour, every run at its cheapest.

    Returns:
        Range in dollars (or grams) over all runs; None without runs, without 24 finite prices, or without energy.
    """
    whole = sum(sum(run.kwh) for run in runs)
    if len(prices) != DAY_H or not all(-1e6 < price < 1e6 for price in prices) or whole <= 0:
        return None
    cautious = saved_by_waiting(runs, prices, max_delay_h=min(CAUTIOUS_DELAY_H, max_delay_h), allowed=allowed)
    _, simple = saved_by_one_hour(runs, prices, max_delay_h=max_delay_h, allowed=allowed)
    best = saved_by_waiting(runs, prices, max_delay_h=max_delay_h, allowed=allowed)
    low, middle, high = sorted((cautious, simple, best))
    return Range(low, middle, high)
