"""A weekly schedule as crontab lines and words."""

from collections import defaultdict
from math import ceil

from advisor.estimators.off_hours import DAYS, WEEK_H, Schedule


def stop_lines(schedule: Schedule) -> list[str]:
    """When to stop, as crontab times: ``0 20 * * 1,2,3,4,5``."""
    return _lines([block.start * 60 for block in schedule.blocks])


def start_lines(schedule: Schedule, lead_s: float) -> list[str]:
    """When to start, early enough to be ready when work begins: ``52 5 * * 2,3,4,5,6``."""
    return _lines([block.end * 60 - ceil(lead_s / 60) for block in schedule.blocks])


def _lines(minutes_of_week: list[int]) -> list[str]:
    """Times of the week (minutes since Monday 00:00) by time of day; cron counts days from Sunday 0."""
    days: dict[tuple[int, int], list[int]] = defaultdict(list)
    for minute in minutes_of_week:
        day, of_day = divmod(minute % (WEEK_H * 60), 24 * 60)
        days[divmod(of_day, 60)].append((day + 1) % 7)
    return [f"{minute} {hour} * * {','.join(map(str, sorted(on)))}" for (hour, minute), on in days.items()]


def in_words(schedule: Schedule) -> str:
    """``Mon, Tue 20:00 for 10 h; Fri 20:00 for 58 h`` (UTC)."""
    days: dict[tuple[int, int], list[str]] = defaultdict(list)
    for block in schedule.blocks:
        days[block.start % 24, block.hours].append(DAYS[block.start // 24])
    return "; ".join(f"{', '.join(on)} {hour:02d}:00 for {length} h" for (hour, length), on in days.items())
