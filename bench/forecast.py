"""How right forecasts of a month's spend are, beside the run-rate of the month so far.

Each simulated owner has 200 days of spend; every month from the third on is forecast as of its days 5, 10, 15, 20 and
25 from nothing but the days before, and compared with what it came to. The error is that of the whole month, as a
share of it. Parameters of ``ledger.forecast`` were chosen with other seeds than the ones that are reported.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from math import exp, pi, sin
from random import Random
from statistics import fmean
from typing import Final

from bench.measure import Figure
from core.percent import percent
from ledger.forecast import DaySpend, Refused, forecast

AS_OF_DAYS: Final = (5, 10, 15, 20, 25)
FIRST: Final = date(2026, 4, 1)
DAYS: Final = 200
MONTHS: Final = tuple(date(2026, month, 1) for month in (6, 7, 8, 9))
TUNING_SEEDS: Final = range(100, 115)
SEEDS: Final = range(15)


@dataclass(frozen=True, slots=True)
class Trial:
    """One month as of one day.

    Attributes:
        kind: of the owner. day: of the month. error, naive_error: shares of what the month came to.
        is_covered: that lies within p10 to p90. width: of the interval, as a share of it.
    """

    kind: str
    day: int
    error: float
    naive_error: float
    is_covered: bool
    width: float


def _noise(random: Random, spread: float, memory: float) -> Iterator[float]:
    """Factors around 1 that remember the day before."""
    at = 0.0
    while True:
        at = memory * at + random.gauss(0.0, spread)
        yield exp(at)


def serving(random: Random) -> Iterator[float]:
    """An inference service: nearly level, quieter at weekends, grows a little."""
    grows, weekend = random.uniform(0.0, 0.004), random.uniform(0.75, 0.95)
    for day, noise in zip(range(DAYS), _noise(random, 0.02, 0.6), strict=False):
        yield exp(grows * day) * (weekend if _is_weekend(day) else 1.0) * noise


def research(random: Random) -> Iterator[float]:
    """People at work: half or less at weekends, restless, slow waves over weeks."""
    weekend, wave = random.uniform(0.25, 0.6), random.uniform(0.0, 0.25)
    for day, noise in zip(range(DAYS), _noise(random, 0.12, 0.6), strict=False):
        yield (1.0 + wave * sin(2 * pi * day / 60)) * (weekend if _is_weekend(day) else 1.0) * noise


def steps(random: Random) -> Iterator[float]:
    """Nodes come and go: three or so steps of a third to double, weekly pattern."""
    level, weekend = 1.0, random.uniform(0.6, 0.95)
    changes = {random.randrange(DAYS): random.choice((0.66, 0.8, 1.25, 1.5, 2.0)) for _ in range(3)}
    for day, noise in zip(range(DAYS), _noise(random, 0.03, 0.5), strict=False):
        level *= changes.get(day, 1.0)
        yield level * (weekend if _is_weekend(day) else 1.0) * noise


def training(random: Random) -> Iterator[float]:
    """Runs of three to twelve days on many GPUs, with small jobs between."""
    left, busy = 0, False
    for _, noise in zip(range(DAYS), _noise(random, 0.03, 0.3), strict=False):
        if left == 0:
            busy = not busy
            left = random.randint(3, 12) if busy else random.randint(2, 8)
        left -= 1
        yield (1.0 if busy else 0.25) * noise


def growth(random: Random) -> Iterator[float]:
    """A team that doubles in three to six months."""
    grows, weekend = random.uniform(0.0038, 0.0077), random.uniform(0.5, 0.9)
    for day, noise in zip(range(DAYS), _noise(random, 0.05, 0.6), strict=False):
        yield exp(grows * day) * (weekend if _is_weekend(day) else 1.0) * noise


def owned(random: Random) -> Iterator[float]:
    """Machines that cost the same each day, whoever uses them; one node more once."""
    grown = random.randrange(DAYS)
    for day in range(DAYS):
        yield 1.0 if day < grown else 1.125


KINDS: Final[tuple[Callable[[Random], Iterator[float]], ...]] = (
    serving,
    research,
    steps,
    training,
    growth,
    owned,
)


def _is_weekend(day: int) -> bool:
    return (FIRST + timedelta(days=day)).weekday() >= 5


def trials(seeds: Sequence[int]) -> Iterator[Trial]:
    """Every month of every simulated owner as of every day asked."""
    for kind in KINDS:
        for seed in seeds:
            random = Random(f"{kind.__name__} {seed}")
            scale = exp(random.uniform(3.0, 9.0))
            days = [
                _spend(FIRST + timedelta(days=at), value * scale) for at, value in enumerate(kind(random))
            ]
            for month in MONTHS:
                yield from _month(kind.__name__, days, month)


def _spend(day: date, value: float) -> DaySpend:
    return DaySpend(day, Decimal(f"{value:.6f}"), 1.0, 1.0, is_whole=True)


def _month(kind: str, days: Sequence[DaySpend], month: date) -> Iterator[Trial]:
    after = (month + timedelta(days=31)).replace(day=1)
    actual = float(sum(day.usd for day in days if month <= day.day < after))
    for count in AS_OF_DAYS:
        first = month + timedelta(days=count)
        spent = float(sum(day.usd for day in days if month <= day.day < first))
        found = forecast(days, first, after)
        if isinstance(found, Refused):
            raise TypeError(found.why)
        low, middle, high = (spent + float(value) for value in found.total)
        naive = spent / count * (after - month).days
        yield Trial(
            kind,
            count,
            abs(middle - actual) / actual,
            abs(naive - actual) / actual,
            low - 0.005 <= actual <= high + 0.005,
            (high - low) / actual,
        )


def scored(found: Sequence[Trial], by: Callable[[Trial], object]) -> dict[object, tuple[float, ...]]:
    """Count, mean error, mean error of the run-rate, coverage, mean width; by a key."""
    groups: dict[object, list[Trial]] = {}
    for trial in found:
        groups.setdefault(by(trial), []).append(trial)
    return {
        key: (
            len(of),
            fmean(trial.error for trial in of),
            fmean(trial.naive_error for trial in of),
            fmean(trial.is_covered for trial in of),
            fmean(trial.width for trial in of),
        )
        for key, of in groups.items()
    }


def run() -> Iterator[Figure]:
    """Error and coverage by day of the month as figures of the benchmark; ``runs`` is how many months are behind each."""
    for day, (count, error, naive, covered, _) in scored(list(trials(SEEDS)), lambda one: one.day).items():
        name = f"as of day {day} of the month"
        yield Figure(
            "forecast", f"{name}: mean error", error * 100, "%", int(count), error / naive, "run-rate"
        )
        yield Figure("forecast", f"{name}: in the 80 % interval", covered * 100, "%", int(count))


def main(seeds: Sequence[int] = SEEDS) -> None:
    """Print the table, by day and by kind."""
    found = list(trials(seeds))
    print("| | months | mean error | run-rate's | in the 80 % interval | its width |")
    print("|---|---:|---:|---:|---:|---:|")
    for by in (lambda one: f"day {one.day}", lambda one: one.kind):
        for key, (count, error, naive, covered, width) in scored(found, by).items():
            print(
                f"| {key} | {count:.0f} | {percent(error, 1)} | {percent(naive, 1)} | {percent(covered)} | {percent(width, 1)} |"
            )


if __name__ == "__main__":
    main()
