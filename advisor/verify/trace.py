"""Before and after, day by day: what was measured, and what the load of each day would have been before.

For people to look at; the verdict is ``advisor.verification``'s. A day is the mean of its hours that telemetry vouches
for, times 24; a day of which less than half is known is left out. The baseline is drawn where it describes its own time (the same bound as
the verdict's), with the p10–p90 of how its own days scattered around it.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import fsum, sqrt
from typing import Final

from advisor.verify.baseline import Baseline
from advisor.verify.series import Case, LoadHour
from core.units import DAY_MS
from core.verification import TraceDay

LEAST_HOURS: Final = 72
"""Three days: a baseline of less is a guess."""
HOURS_A_DAY: Final = 24
LEAST_OF_A_DAY: Final = 12
"""Hours of a day: of fewer, a night's hours would stand for a day's."""
Z80: Final = 1.2816


def trace(case: Case, *, reach_ms: int, edge_ms: int, max_scatter: float) -> tuple[TraceDay, ...]:
    """The days of a case.

    Args:
        reach_ms: how far back and forth. edge_ms: on either side of the action, in neither side's figures.
        max_scatter: CV(RMSE) above which there is no baseline.
    """
    start, end = case.action_ms - reach_ms, min(case.until_ms, case.action_ms + reach_ms)
    hours = [hour for hour in case.hours if start <= hour.hour_ms < end]
    before = [hour for hour in hours if hour.hour_ms < case.action_ms - edge_ms]
    model = _model(before, max_scatter)
    expected = {} if model is None else _daily((hour.hour_ms, model.expected(hour)) for hour in hours)
    measured = _daily((hour.hour_ms, hour.outcome) for hour in hours)
    half = _half_width(before, measured, expected)
    peers = _peers(case, before, start, end, edge_ms)
    return tuple(
        TraceDay(
            day_ms=day,
            measured=value,
            expected=expected.get(day),
            low=None if half is None or day not in expected else max(0.0, expected[day] - half),
            high=None if half is None or day not in expected else expected[day] + half,
            peers=peers.get(day),
        )
        for day, value in sorted(measured.items())
    )


def _model(before: Sequence[LoadHour], max_scatter: float) -> Baseline | None:
    if len(before) < LEAST_HOURS:
        return None
    model = Baseline(before)
    return None if model.cv_rmse is None or model.cv_rmse > max_scatter else model


def _daily(values: Iterable[tuple[int, float]]) -> dict[int, float]:
    """Amount a day by its start: the mean of what is known of its hours, times 24."""
    days: dict[int, list[float]] = {}
    for hour_ms, value in values:
        days.setdefault(hour_ms // DAY_MS * DAY_MS, []).append(value)
    return {
        day: fsum(found) / len(found) * HOURS_A_DAY
        for day, found in days.items()
        if len(found) >= LEAST_OF_A_DAY
    }


def _half_width(
    before: Sequence[LoadHour], measured: Mapping[int, float], expected: Mapping[int, float]
) -> float | None:
    """How far days before the action lay from the baseline, p10 to p90, one side; None without a baseline."""
    days = sorted({hour.hour_ms // DAY_MS * DAY_MS for hour in before} & expected.keys() & measured.keys())
    if len(days) < 3:
        return None
    return Z80 * sqrt(fsum((measured[day] - expected[day]) ** 2 for day in days) / (len(days) - 1))


def _peers(
    case: Case, before: Sequence[LoadHour], start_ms: int, end_ms: int, edge_ms: int
) -> dict[int, float]:
    """Untreated neighbours by day, scaled so that before the action both are of one size; empty where they cannot be."""
    peers = [hour for hour in case.peers if start_ms <= hour.hour_ms < end_ms]
    own = [hour for hour in peers if hour.hour_ms < case.action_ms - edge_ms]
    if len(own) < LEAST_HOURS or not before:
        return {}
    theirs = fsum(hour.outcome for hour in own) / len(own)
    ours = fsum(hour.outcome for hour in before) / len(before)
    if theirs <= 0:
        return {}
    return _daily((hour.hour_ms, hour.outcome * ours / theirs) for hour in peers)
