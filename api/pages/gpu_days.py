"""One GPU day by day: of a card from the ledger, of a MIG slice, which is paid for with its card, from its own hours. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from api.resources.costs import CostRow
from api.resources.usage import UsageRow
from core.activity import IDLE, Activity, is_active
from core.evidence import Window
from core.hours import GpuHour
from core.units import HOUR_MS
from ledger.calendar import Calendar


@dataclass(frozen=True, slots=True)
class DayLine:
    """One accounting day, in hours of clock time; None where nothing is known. ``href`` leads to its hours."""

    day: str
    href: str
    gpu_h: float
    active_h: float | None
    idle_h: float | None
    unknown_h: float
    cost_usd: Decimal | None
    idle_usd: Decimal | None


def day_lines(cost_days: Iterable[CostRow], used_days: Sequence[UsageRow], path: str) -> tuple[DayLine, ...]:
    """Days of a card, the newest first; ``path``: address of its page."""
    by_day = {row.key: row for row in cost_days}
    lines = []
    for used in reversed(used_days):
        cost = by_day.get(used.key)
        lines.append(
            DayLine(
                day=used.key or used.label,
                href=f"{path}/hours?day={used.key}",
                gpu_h=used.total_gpu_h,
                active_h=used.active_gpu_h,
                idle_h=None if used.active_gpu_h is None else _idle_h(used.seconds_by_activity.items()),
                unknown_h=used.unknown_gpu_h,
                cost_usd=None if cost is None else cost.cost_usd,
                idle_usd=None if cost is None else cost.idle_cost_usd,
            )
        )
    return tuple(lines)


def slice_days(hours: Iterable[GpuHour], known: Window, calendar: Calendar, path: str) -> tuple[DayLine, ...]:
    """Days of a slice, the newest first.

    Args:
        hours: of the slice.
        known: from its first to its last sample, within the period.
        calendar: of accounting days.
        path: address of its page.
    """
    by_day: dict[str, dict[Activity, float]] = {}
    for hour in hours:
        spent = by_day.setdefault(calendar.day_at(hour.hour_ms).key, {})
        for activity, seconds in hour.seconds.items():
            spent[activity] = spent.get(activity, 0.0) + seconds
    lines = []
    for day in reversed(calendar.days(known.from_ms, known.to_ms)):
        spent = by_day.get(day.key, {})
        clock_h = (min(day.to_ms, known.to_ms) - max(day.from_ms, known.from_ms)) / HOUR_MS
        named_h = (
            sum(seconds for activity, seconds in spent.items() if activity is not Activity.UNKNOWN) / 3600
        )
        active_h = sum(seconds for activity, seconds in spent.items() if is_active(activity)) / 3600
        lines.append(
            DayLine(
                day=day.key,
                href=f"{path}/hours?day={day.key}",
                gpu_h=clock_h,
                active_h=active_h if named_h else None,
                idle_h=_idle_h(spent.items()) if named_h else None,
                unknown_h=max(0.0, clock_h - named_h),
                cost_usd=None,
                idle_usd=None,
            )
        )
    return tuple(lines)


def _idle_h(seconds: Iterable[tuple[str, float]]) -> float:
    """Of seconds by the names of activities."""
    return sum(spent for name, spent in seconds if name in IDLE) / 3600
