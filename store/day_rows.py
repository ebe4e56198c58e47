"""Days as rows and rows as days: the one place that knows how ``core.days`` lies in the day tables."""

from collections.abc import Sequence
from typing import Any, Final

from core.days import EngineDay, GpuDay, HostDay, UsageDay
from core.hours import HostHour
from store.hour_rows import HOST_FIGURES, engine_hour_values, gpu_hour_values, host_hour_values
from store.rows_as_days import ENGINE_HOURLY, GPU_HOURLY, UNKNOWN

HOST_DAY: Final = ("day_ms", "seen", *HOST_FIGURES)
"""Columns that ``host_day_in`` expects, in its order."""


def gpu_day_values(day: GpuDay, gpu_id: int) -> dict[str, Any]:
    """Columns of ``gpu_day``."""
    values = gpu_hour_values(day.whole, gpu_id)
    values["day_ms"] = values.pop("hour_ms")
    values["seen"] = day.seen
    values["hourly"] = GPU_HOURLY.pack(*day.covered_s, *day.active_s, *day.empty_s, *day.parked_s)
    values["bare_idle_w"] = day.bare_idle_w
    return values


def engine_day_values(day: EngineDay, engine_id: int) -> dict[str, Any]:
    """Columns of ``engine_day``."""
    values = engine_hour_values(day.whole, engine_id)
    values["day_ms"] = values.pop("hour_ms")
    values["seen"] = day.seen
    values["hourly"] = ENGINE_HOURLY.pack(
        *day.covered_s,
        *day.busy_s,
        *(UNKNOWN if median is None else median for median in day.running_p50),
        *(UNKNOWN if tokens is None else tokens for tokens in day.generated_tokens),
        *day.running_mean,
        *day.kv_mean,
        day.paired,
    )
    return values


def host_day_values(day: HostDay, host_id: int) -> dict[str, Any]:
    """Columns of ``host_day``."""
    values = host_hour_values(day.whole, host_id)
    values["day_ms"] = values.pop("hour_ms")
    return values | {"seen": day.seen}


def host_day_in(host: str, row: Sequence[Any]) -> HostDay:
    """Values of ``HOST_DAY`` as a day."""
    day_ms, seen, *figures = row
    return HostDay(host, day_ms, HostHour(host, day_ms, *figures), seen)


def usage_day_values(day: UsageDay, gpu_id: int, workload_id: int | None) -> dict[str, Any]:
    """Columns of ``usage_day``."""
    return {
        "gpu_id": gpu_id,
        "day_ms": day.day_ms,
        "workload_id": workload_id,
        "first_ms": day.first_ms,
        "last_ms": day.last_ms,
        "allocated_s": day.allocated_s,
        "active_s": day.active_s,
        "effective_s": day.effective_s,
        "memory_byte_s": day.memory_byte_s,
        "energy_j": day.energy_j,
        "share_method": day.share_method,
        "cpu_ratio": day.cpu_ratio,
        "cpu_thread_ratio": day.cpu_thread_ratio,
        "shared": day.shared,
    }
