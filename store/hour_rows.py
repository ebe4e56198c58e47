"""Hours as rows and rows as hours: the one place that knows how ``core.hours`` lies in the hour tables."""

import json
from dataclasses import fields
from typing import Any, Final

from sqlalchemy import RowMapping

from core.activity import Activity
from core.hours import EngineHour, GpuHour, HostHour, UsageHour
from store.rows_as_hours import (
    ENGINE_FIGURES,
    ENGINE_PLAIN,
    GPU_FIGURES,
    GPU_PLAIN,
    engine_hour_in,
    gpu_hour_in,
)

HOST_PLAIN: Final = tuple(f.name for f in fields(HostHour) if f.name != "host")
"""Fields of ``HostHour`` that are columns of the same name."""


def gpu_hour_values(hour: GpuHour, gpu_id: int) -> dict[str, Any]:
    """Columns of ``gpu_hour``."""
    values: dict[str, Any] = {name: getattr(hour, name) for name in GPU_PLAIN}
    values["gpu_id"] = gpu_id
    values["energy_method"] = None if hour.energy_method is None else hour.energy_method.value
    for activity in Activity:
        values[f"{activity.value}_s"] = hour.seconds.get(activity, 0.0)
        values[f"{activity.value}_j"] = hour.joules.get(activity)
    return values


def gpu_hour_of(row: RowMapping, gpu_uuid: str) -> GpuHour:
    """A row of ``gpu_hour``, by column name."""
    return gpu_hour_in(gpu_uuid, row["hour_ms"], [row[name] for name in GPU_FIGURES])


def engine_hour_values(hour: EngineHour, engine_id: int) -> dict[str, Any]:
    """Columns of ``engine_hour``."""
    values: dict[str, Any] = {name: getattr(hour, name) for name in ENGINE_PLAIN}
    values["engine_id"] = engine_id
    for name in ("running", "waiting", "kv_used"):
        values[name] = getattr(hour, name).to_json()
    values["profile"] = json.dumps(
        {
            f"{batch:g}": [round(p.seconds, 3), p.generated_tokens, p.prompt_tokens]
            for batch, p in sorted(hour.profile.items())
        },
        separators=(",", ":"),
    )
    return values


def engine_hour_of(row: RowMapping, engine: str) -> EngineHour:
    """A row of ``engine_hour``, by column name."""
    return engine_hour_in(engine, row["hour_ms"], [row[name] for name in ENGINE_FIGURES])


def usage_hour_values(usage: UsageHour, gpu_id: int, workload_id: int | None) -> dict[str, Any]:
    """Columns of ``usage_hour``."""
    return {
        "gpu_id": gpu_id,
        "hour_ms": usage.hour_ms,
        "workload_id": workload_id,
        "allocated_s": usage.allocated_s,
        "active_s": usage.active_s,
        "effective_s": usage.effective_s,
        "memory_byte_s": usage.memory_byte_s,
        "energy_j": usage.energy_j,
        "share_method": usage.share_method,
        "cpu_ratio": usage.cpu_ratio,
        "cpu_thread_ratio": usage.cpu_thread_ratio,
    }


def host_hour_values(hour: HostHour, host_id: int) -> dict[str, Any]:
    """Columns of ``host_hour``."""
    return {"host_id": host_id, **{name: getattr(hour, name) for name in HOST_PLAIN}}


HOST_FIGURES: Final = tuple(f.name for f in fields(HostHour) if f.name not in {"host", "hour_ms"})
"""Columns of ``host_hour`` and ``host_day`` after their keys, in the order of ``HostHour``."""


def host_hour_of(row: RowMapping, host: str) -> HostHour:
    """A row of ``host_hour``, by column name."""
    return HostHour(host, row["hour_ms"], *(row[name] for name in HOST_FIGURES))
