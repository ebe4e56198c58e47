"""Days as rows and rows as days: the one place that knows how ``core.days`` lies in the day tables."""

from collections.abc import Sequence
from struct import Struct
from typing import Any, Final

from core.days import HOURS, EngineDay, GpuDay, HostDay, UsageDay
from core.hours import HostHour
from store.hour_rows import (
    ENGINE_FIGURES,
    GPU_FIGURES,
    HOST_FIGURES,
    engine_hour_in,
    engine_hour_values,
    gpu_hour_in,
    gpu_hour_values,
    host_hour_values,
)

_GPU_HOURLY: Final = Struct(f"<{4 * HOURS}h")
_ENGINE_HOURLY: Final = Struct(f"<{2 * HOURS}h{4 * HOURS}d?")
_UNKNOWN: Final = -1.0
"""Stands for an hour without a median batch or token count in the packed column; neither is ever negative."""
GPU_DAY: Final = ("day_ms", "seen", "hourly", "bare_idle_w", *GPU_FIGURES)
ENGINE_DAY: Final = ("day_ms", "seen", "hourly", *ENGINE_FIGURES)
HOST_DAY: Final = ("day_ms", "seen", *HOST_FIGURES)
"""Columns that the readers below expect, in their order."""


def gpu_day_values(day: GpuDay, gpu_id: int) -> dict[str, Any]:
    """Columns of ``gpu_day``."""
    values = gpu_hour_values(day.whole, gpu_id)
    values["day_ms"] = values.pop("hour_ms")
    values["seen"] = day.seen
    values["hourly"] = _GPU_HOURLY.pack(*day.covered_s, *day.active_s, *day.empty_s, *day.parked_s)
    values["bare_idle_w"] = day.bare_idle_w
    return values


def gpu_day_in(gpu_uuid: str, row: Sequence[Any]) -> GpuDay:
    """Values of ``GPU_DAY`` as a day."""
    day_ms, seen, hourly, bare_idle_w = row[:4]
    seconds = _GPU_HOURLY.unpack(hourly)
    return GpuDay(
        gpu_uuid,
        day_ms,
        gpu_hour_in(gpu_uuid, day_ms, row[4:]),
        seen,
        seconds[:24],
        seconds[24:48],
        seconds[48:72],
        seconds[72:],
        bare_idle_w,
    )


def engine_day_values(day: EngineDay, engine_id: int) -> dict[str, Any]:
    """Columns of ``engine_day``."""
    values = engine_hour_values(day.whole, engine_id)
    values["day_ms"] = values.pop("hour_ms")
    values["seen"] = day.seen
    values["hourly"] = _ENGINE_HOURLY.pack(
        *day.covered_s,
        *day.busy_s,
        *(_UNKNOWN if median is None else median for median in day.running_p50),
        *(_UNKNOWN if tokens is None else tokens for tokens in day.generated_tokens),
        *day.running_mean,
        *day.kv_mean,
        day.paired,
    )
    return values


def engine_day_in(engine: str, row: Sequence[Any]) -> EngineDay:
    """Values of ``ENGINE_DAY`` as a day."""
    day_ms, seen, hourly = row[:3]
    values = _ENGINE_HOURLY.unpack(hourly)
    return EngineDay(
        engine,
        day_ms,
        engine_hour_in(engine, day_ms, row[3:]),
        seen,
        values[:24],
        values[24:48],
        tuple([None if median < 0 else median for median in values[48:72]]),
        values[96:120],
        values[120:144],
        tuple([None if tokens < 0 else tokens for tokens in values[72:96]]),
        values[144],
    )


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
