"""A day of a GPU, an engine, a workload, a host: its hours folded once, so that a fortnight is read as fourteen rows.

A day holds what its hours add up to and, per clock hour, whole seconds that tell whether an hour is worth reading.
Folding is pure; a part of a day (the edge of a window) folds the same way from the hours it has.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, TypeVar

from core.activity import HELD_MEMORY_BYTES, Activity
from core.hour_merge import (
    WEAKEST_LAST,
    known_sum,
    merged_engine_hours,
    merged_gpu_hours,
    merged_host_hours,
    weighted,
)
from core.hours import EngineHour, GpuHour, HostHour, UsageHour
from core.readings import WorkloadKey
from core.units import DAY_MS, HOUR_MS

HOURS: Final = 24
ALL_DAY: Final = (1 << HOURS) - 1
"""``seen`` of a day without a gap."""
MIN_EMPTY_S: Final = 300.0
"""An hour speaks for bare idle power only with this much empty time: right after work the board is still hot."""
Hourly = tuple[int, ...]
"""Whole seconds of each of the 24 clock hours, rounded, at least 1 where there was any; 0 also where ``seen`` is not."""
T = TypeVar("T")
Hour = TypeVar("Hour", bound=GpuHour | EngineHour | HostHour)


@dataclass(frozen=True, slots=True)
class GpuDay:
    """The hours of one GPU on one UTC day.

    Attributes:
        gpu_uuid: whose. day_ms: start of the day.
        whole: all of its hours as one; sums add, means weigh by covered time (``core.hour_merge``).
        seen: bit ``n`` is set where the hour that begins ``n`` hours into the day has data.
        covered_s, active_s, empty_s: of each hour, as in ``GpuHour``.
        parked_s: parked time of the hours whose mean memory in use is at least a model's (1 GiB).
        bare_idle_w: lowest mean power while empty among hours with five minutes of it; None without such an hour.
    """

    gpu_uuid: str
    day_ms: int
    whole: GpuHour
    seen: int
    covered_s: Hourly
    active_s: Hourly
    empty_s: Hourly
    parked_s: Hourly
    bare_idle_w: float | None


@dataclass(frozen=True, slots=True)
class EngineDay:
    """The hours of one engine on one UTC day.

    Attributes:
        engine: whose. day_ms: start of the day. whole: all of its hours as one.
        seen: bit ``n`` is set where the hour that begins ``n`` hours into the day has data.
        covered_s, busy_s: of each hour.
        running_p50: each hour's median batch; None where not busy.
        running_mean, kv_mean: batch and KV-cache use of each hour over its covered time, idle time included.
        generated_tokens: of each hour; None where not known.
        paired: no hour knows only one of prompt tokens and prompt tokens from the cache.
    """

    engine: str
    day_ms: int
    whole: EngineHour
    seen: int
    covered_s: Hourly
    busy_s: Hourly
    running_p50: tuple[float | None, ...]
    running_mean: tuple[float, ...]
    kv_mean: tuple[float, ...]
    generated_tokens: tuple[float | None, ...]
    paired: bool


@dataclass(frozen=True, slots=True)
class HostDay:
    """The hours of one host on one UTC day."""

    host: str
    day_ms: int
    whole: HostHour
    seen: int


@dataclass(frozen=True, slots=True)
class UsageDay:
    """One workload on one GPU on one UTC day; ``workload`` None is time for which none is known.

    Attributes:
        first_ms, last_ms: start of its first and end of its last hour there.
        allocated_s … cpu_thread_ratio: of its hours together, as in ``core.hours.UsageHour``; means weigh by
            allocated time.
        shared: another workload held the GPU in one of these hours.
    """

    workload: WorkloadKey | None
    gpu_uuid: str
    day_ms: int
    first_ms: int
    last_ms: int
    allocated_s: float
    active_s: float
    effective_s: float
    memory_byte_s: float | None
    energy_j: float | None
    share_method: str
    cpu_ratio: float | None
    cpu_thread_ratio: float | None
    shared: bool


def day_of(at_ms: int) -> int:
    """Start of the UTC day of a time."""
    return at_ms - at_ms % DAY_MS


def seen_hours(day_ms: int, seen: int) -> list[int]:
    """Starts of the hours with data, in order."""
    if seen == ALL_DAY:
        return list(range(day_ms, day_ms + DAY_MS, HOUR_MS))
    return [day_ms + at * HOUR_MS for at in range(HOURS) if seen >> at & 1]


def gpu_day(hours: Sequence[GpuHour]) -> GpuDay:
    """Hours of one GPU within one day, in order of time; at least one."""
    day_ms = day_of(hours[0].hour_ms)
    return GpuDay(
        gpu_uuid=hours[0].gpu_uuid,
        day_ms=day_ms,
        whole=merged_gpu_hours(hours, day_ms),
        seen=_seen(hours, day_ms),
        covered_s=_spread(hours, lambda hour: hour.covered_s),
        active_s=_spread(hours, lambda hour: hour.active_s),
        empty_s=_spread(hours, lambda hour: hour.seconds.get(Activity.EMPTY, 0.0)),
        parked_s=_spread(hours, _parked_s),
        bare_idle_w=bare_idle_w(hours),
    )


def engine_day(hours: Sequence[EngineHour]) -> EngineDay:
    """Hours of one engine within one day, in order of time; at least one."""
    day_ms = day_of(hours[0].hour_ms)
    medians: list[float | None] = [None] * HOURS
    tokens: list[float | None] = [None] * HOURS
    running, kv_used = [0.0] * HOURS, [0.0] * HOURS
    for hour in hours:
        at = _at(hour.hour_ms)
        medians[at] = hour.running.quantile(0.5) if hour.busy_s > 0 else None
        tokens[at] = None if hour.generated_tokens is None else float(hour.generated_tokens)
        running[at], kv_used[at] = covered_mean(hour, "running"), covered_mean(hour, "kv_used")
    return EngineDay(
        engine=hours[0].engine,
        day_ms=day_ms,
        whole=merged_engine_hours(hours, day_ms),
        seen=_seen(hours, day_ms),
        covered_s=_spread(hours, lambda hour: hour.covered_s),
        busy_s=_spread(hours, lambda hour: hour.busy_s),
        running_p50=tuple(medians),
        running_mean=tuple(running),
        kv_mean=tuple(kv_used),
        generated_tokens=tuple(tokens),
        paired=all((hour.prompt_tokens is None) == (hour.cached_prompt_tokens is None) for hour in hours),
    )


def covered_mean(hour: EngineHour, name: str) -> float:
    """Mean of ``running`` or ``kv_used`` over the hour's covered time, idle time included; 0 without any."""
    if hour.covered_s <= 0:
        return 0.0
    levels: dict[float, float] = getattr(hour, name).seconds
    return float(sum(level * seconds for level, seconds in levels.items())) / hour.covered_s


def host_day(hours: Sequence[HostHour]) -> HostDay:
    """Hours of one host within one day, in order of time; at least one."""
    day_ms = day_of(hours[0].hour_ms)
    return HostDay(hours[0].host, day_ms, merged_host_hours(hours, day_ms), _seen(hours, day_ms))


def usage_days(usage: Sequence[UsageHour]) -> list[UsageDay]:
    """Usage of one GPU within one day, a line per workload in the order in which they came."""
    holders: dict[int, int] = {}
    lines: dict[WorkloadKey | None, list[UsageHour]] = {}
    for line in usage:
        lines.setdefault(line.workload, []).append(line)
        if line.workload is not None:
            holders[line.hour_ms] = holders.get(line.hour_ms, 0) + 1
    return [
        usage_day(of, shared=workload is not None and any(holders[line.hour_ms] > 1 for line in of))
        for workload, of in lines.items()
    ]


def usage_day(lines: Sequence[UsageHour], *, shared: bool) -> UsageDay:
    """Hours of one workload on one GPU within one day."""
    first = lines[0]
    allocated = [line.allocated_s for line in lines]
    return UsageDay(
        workload=first.workload,
        gpu_uuid=first.gpu_uuid,
        day_ms=day_of(first.hour_ms),
        first_ms=min(line.hour_ms for line in lines),
        last_ms=max(line.hour_ms for line in lines) + HOUR_MS,
        allocated_s=sum(allocated),
        active_s=sum(line.active_s for line in lines),
        effective_s=sum(line.effective_s for line in lines),
        memory_byte_s=known_sum(line.memory_byte_s for line in lines),
        energy_j=known_sum(line.energy_j for line in lines),
        share_method=max((line.share_method for line in lines), key=WEAKEST_LAST.index),
        cpu_ratio=weighted([line.cpu_ratio for line in lines], allocated),
        cpu_thread_ratio=weighted([line.cpu_thread_ratio for line in lines], allocated),
        shared=shared,
    )


def folded_by_day(hours: Iterable[Hour], fold: Callable[[Sequence[Hour]], T]) -> tuple[T, ...]:
    """Hours of one subject, in order of time, as its days."""
    return tuple(fold(list(of)) for _, of in groupby(hours, key=lambda hour: hour.hour_ms // DAY_MS))


def bare_idle_w(hours: Iterable[GpuHour]) -> float | None:
    """Lowest mean power while empty among hours with enough empty time to have cooled down."""
    return min(
        (
            hour.empty_power_w
            for hour in hours
            if hour.empty_power_w is not None and hour.seconds.get(Activity.EMPTY, 0.0) >= MIN_EMPTY_S
        ),
        default=None,
    )


def _at(hour_ms: int) -> int:
    return hour_ms % DAY_MS // HOUR_MS


def _seen(hours: Iterable[Hour], day_ms: int) -> int:
    mask = 0
    for hour in hours:
        mask |= 1 << (hour.hour_ms - day_ms) // HOUR_MS
    return mask


def _spread(hours: Iterable[Hour], seconds_of: Callable[[Hour], float]) -> Hourly:
    spread = [0] * HOURS
    for hour in hours:
        seconds = seconds_of(hour)
        spread[_at(hour.hour_ms)] = max(1, round(seconds)) if seconds > 0 else 0
    return tuple(spread)


def _parked_s(hour: GpuHour) -> float:
    memory = hour.memory_used_bytes
    held = memory is not None and memory >= HELD_MEMORY_BYTES
    return hour.seconds.get(Activity.PARKED, 0.0) if held else 0.0
