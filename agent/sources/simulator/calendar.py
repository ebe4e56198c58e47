"""When people work: demand by hour of the day and day of the week, in UTC."""

from typing import Final

from core.units import DAY_MS, HOUR_MS

WORKDAY: Final = (
    0.05, 0.03, 0.02, 0.02, 0.03, 0.08, 0.25, 0.60, 0.90, 1.00, 1.00, 0.92,
    0.80, 0.90, 1.00, 0.98, 0.90, 0.72, 0.48, 0.30, 0.20, 0.14, 0.10, 0.07,
)  # fmt: skip
"""Share of the day's peak at each full hour: two humps around lunch, as in office traffic."""
WEEKEND: Final = (
    0.04, 0.03, 0.02, 0.02, 0.02, 0.03, 0.05, 0.08, 0.12, 0.16, 0.18, 0.18,
    0.17, 0.17, 0.18, 0.18, 0.17, 0.16, 0.14, 0.12, 0.10, 0.08, 0.06, 0.05,
)  # fmt: skip
FRIDAY: Final = 4
SATURDAY: Final = 5
MONDAY: Final = 0


def weekday(ts_ms: int) -> int:
    """Day of the week, Monday 0. The epoch began on a Thursday."""
    return (ts_ms // DAY_MS + 3) % 7


def hour_of_day(ts_ms: int) -> float:
    """Hours since midnight."""
    return ts_ms % DAY_MS / HOUR_MS


def traffic_ratio(ts_ms: int) -> float:
    """Demand as a share of the weekly peak: straight lines between the hours of the tables."""
    day, within = divmod(ts_ms, DAY_MS)
    hour, rest = divmod(within, HOUR_MS)
    today = WEEKEND if (day + 3) % 7 >= SATURDAY else WORKDAY
    following = today
    if hour == 23:  # the next value belongs to tomorrow
        following = WEEKEND if (day + 4) % 7 >= SATURDAY else WORKDAY
    low = today[hour]
    return low + (following[(hour + 1) % 24] - low) * rest / HOUR_MS


def in_office(ts_ms: int, from_h: float, to_h: float) -> bool:
    """Whether a weekday's clock is within ``[from_h, to_h)``."""
    return weekday(ts_ms) < SATURDAY and from_h <= hour_of_day(ts_ms) < to_h


def in_weekend_pause(ts_ms: int) -> bool:
    """Friday 20:00 to Monday 06:00: nobody looks after a long job."""
    day, hour = weekday(ts_ms), hour_of_day(ts_ms)
    return day > FRIDAY or (day == FRIDAY and hour >= 20.0) or (day == MONDAY and hour < 6.0)
