"""Hours as rows and rows as hours: the one place that knows how ``core.hours`` lies in the hour tables."""

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Final

from sqlalchemy import RowMapping

from core.activity import Activity
from core.histogram import Histogram
from core.hours import BatchPoint, EngineHour, GpuHour, HostHour, UsageHour
from core.samples import EnergyMethod

_GPU_APART: Final = {"gpu_uuid", "seconds", "joules", "energy_method"}
_ENGINE_APART: Final = {"engine", "running", "waiting", "kv_used", "profile"}
GPU_PLAIN: Final = tuple(f.name for f in fields(GpuHour) if f.name not in _GPU_APART)
"""Fields of ``GpuHour`` that are columns of the same name."""
ENGINE_PLAIN: Final = tuple(f.name for f in fields(EngineHour) if f.name not in _ENGINE_APART)
"""Fields of ``EngineHour`` that are columns of the same name."""

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


_SECONDS: Final = tuple((activity, f"{activity.value}_s") for activity in Activity)
_JOULES: Final = tuple((activity, f"{activity.value}_j") for activity in Activity)


_GPU_REST: Final = GPU_PLAIN[GPU_PLAIN.index("energy_covered_s") :]
GPU_FIGURES: Final = (
    "covered_s",
    *(column for _, column in _SECONDS),
    *(column for _, column in _JOULES),
    "energy_j",
    "energy_method",
    *_GPU_REST,
)
"""Columns of ``gpu_hour`` and ``gpu_day`` that ``gpu_hour_in`` reads, in its order."""
_ACTIVITIES: Final = tuple(Activity)
_METHODS: Final = {None: None} | {method.value: method for method in EnergyMethod}
_COUNT: Final = len(_ACTIVITIES)


def gpu_hour_in(gpu_uuid: str, start_ms: int, row: Sequence[Any]) -> GpuHour:
    """Values of ``GPU_FIGURES`` as an hour; activities without time are left out.

    By place, because a fleet's fortnight is read this way and names would cost more than the rest.
    """
    joules_at = _COUNT + 1
    rest_at = joules_at + _COUNT
    return GpuHour(
        gpu_uuid,
        start_ms,
        row[0],
        {activity: s for activity, s in zip(_ACTIVITIES, row[1:joules_at], strict=True) if s},
        {
            activity: j
            for activity, j in zip(_ACTIVITIES, row[joules_at:rest_at], strict=True)
            if j is not None
        },
        row[rest_at],
        _METHODS[row[rest_at + 1]],
        *row[rest_at + 2 :],
    )


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


ENGINE_FIGURES: Final = tuple(f.name for f in fields(EngineHour) if f.name not in {"engine", "hour_ms"})
"""Columns of ``engine_hour`` and ``engine_day`` that ``engine_hour_in`` reads, in its order."""


def engine_hour_in(engine: str, start_ms: int, row: Sequence[Any]) -> EngineHour:
    """Values of ``ENGINE_FIGURES`` as an hour."""
    covered_s, busy_s, running, waiting, kv_used, profile, *rest = row
    return EngineHour(
        engine,
        start_ms,
        covered_s,
        busy_s,
        Histogram.from_json(running),
        Histogram.from_json(waiting),
        Histogram.from_json(kv_used),
        {float(batch): BatchPoint(*point) for batch, point in json.loads(profile).items()},
        *rest,
    )


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
