"""Hours made one: the parts of an hour, the hours of a day, the days of a window. Pure.

Sums add, means weigh by their seconds over what is known, extremes stay extremes, histograms merge.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from operator import add, attrgetter
from typing import Any, Final

from core.activity import Activity
from core.histogram import Histogram
from core.hour_columns import rows_of
from core.hours import BatchPoint, EngineHour, GpuHour, HostHour
from core.samples import EnergyMethod
from core.sharing import ShareMethod

MEANS: Final = (
    "busy_ratio",
    "memory_busy_ratio",
    "sm_active_ratio",
    "sm_occupancy_ratio",
    "tensor_active_ratio",
    "dram_active_ratio",
    "fp32_active_ratio",
    "memory_used_bytes",
    "power_w",
    "tensor_hmma_active_ratio",
    "tensor_imma_active_ratio",
    "tensor_dfma_active_ratio",
    "fp64_active_ratio",
    "fp16_active_ratio",
)
"""Metrics whose mean over the covered time an hour keeps under the same name."""
HOST_MEANS: Final = (
    "cpu_busy_ratio",
    "cpu_busiest_ratio",
    "iowait_ratio",
    "host_memory_used_bytes",
    "host_power_w",
)
"""The same of a host."""
MIN_ENERGY_SHARE: Final = 0.95
"""An engine's busy energy is a figure only when it was measured for this share of its busy time: what is missing
would make tokens per joule look better by as much."""
WEAKEST_LAST: Final = tuple(ShareMethod)
"""How shared GPUs are split; together the weakest of them."""

_BY_COVERED: Final = (*MEANS, "pcie_bytes_per_s", "nvlink_bytes_per_s")
_HIGHEST: Final = ("memory_used_max_bytes", "power_max_w", "temperature_max_c")
_LOWEST: Final = ("temperature_margin_min_c",)
_SUMS: Final = (
    "covered_s",
    "energy_covered_s",
    "allocated_s",
    "active_s",
    "effective_s",
    "effective_unknown_s",
)
_KNOWN_SUMS: Final = ("energy_j", "throttled_s", "slowed_power_s", "slowed_thermal_s")
_GPU_FIELDS: Final = (
    *_SUMS,
    *_KNOWN_SUMS,
    *_HIGHEST,
    *_LOWEST,
    *_BY_COVERED,
    "sm_clock_hz",
    "empty_power_w",
    "parked_power_w",
    "power_limit_w",
)
_GPU_VALUES: Final = attrgetter(*_GPU_FIELDS)
_ENGINE_SUMS: Final = (
    "generated_tokens",
    "busy_generated_tokens",
    "prompt_tokens",
    "cached_prompt_tokens",
    "preemption_count",
    "finished_requests",
    "ttft_sum_s",
    "ttft_count",
    "itl_sum_s",
    "itl_count",
)
_ENGINE_FIELDS: Final = ("covered_s", "busy_s", "busy_energy_j", *_ENGINE_SUMS)


def merged_gpu_hours(hours: Sequence[GpuHour], start_ms: int) -> GpuHour:
    """Hours of one GPU, in order of time, as one that begins at ``start_ms``; at least one."""
    columns = dict(zip(_GPU_FIELDS, zip(*map(_GPU_VALUES, hours), strict=True), strict=True))
    covered = columns["covered_s"]
    values: dict[str, Any] = {name: sum(columns[name]) for name in _SUMS}
    values |= {name: known_sum(columns[name]) for name in _KNOWN_SUMS}
    values |= {name: max(known(columns[name]), default=None) for name in _HIGHEST}
    values |= {name: min(known(columns[name]), default=None) for name in _LOWEST}
    values |= {name: weighted(columns[name], covered) for name in _BY_COVERED}
    values["sm_clock_hz"] = weighted(columns["sm_clock_hz"], columns["active_s"])
    for name, activity in (("empty_power_w", Activity.EMPTY), ("parked_power_w", Activity.PARKED)):
        values[name] = weighted(columns[name], [hour.seconds.get(activity, 0.0) for hour in hours])
    limits = known(columns["power_limit_w"])
    methods = {hour.energy_method for hour in hours if hour.energy_method is not None}
    return GpuHour(
        gpu_uuid=hours[0].gpu_uuid,
        hour_ms=start_ms,
        seconds=_added(hour.seconds for hour in hours),
        joules=_added(hour.joules for hour in hours),
        energy_method=EnergyMethod.MIXED if len(methods) > 1 else next(iter(methods), None),
        power_limit_w=limits[-1] if limits else None,
        **values,
    )


def merged_engine_hours(hours: Sequence[EngineHour], start_ms: int) -> EngineHour:
    """Hours of one engine as one that begins at ``start_ms``; at least one."""
    profile: dict[float, BatchPoint] = {}
    for hour in hours:
        for batch, point in hour.profile.items():
            old = profile.get(batch)
            profile[batch] = point if old is None else BatchPoint(*map(add, old, point))
    columns = dict(zip(_ENGINE_FIELDS, zip(*rows_of(hours, *_ENGINE_FIELDS), strict=True), strict=True))
    busy, energy_j = columns["busy_s"], columns["busy_energy_j"]
    busy_s = sum(busy)
    enough = sum(compress(busy, map(is_known, energy_j))) >= MIN_ENERGY_SHARE * busy_s
    sums: dict[str, Any] = {name: known_sum(columns[name]) for name in _ENGINE_SUMS}
    return EngineHour(
        engine=hours[0].engine,
        hour_ms=start_ms,
        covered_s=sum(columns["covered_s"]),
        busy_s=busy_s,
        running=Histogram.merged(hour.running for hour in hours),
        waiting=Histogram.merged(hour.waiting for hour in hours),
        kv_used=Histogram.merged(hour.kv_used for hour in hours),
        profile=profile,
        busy_energy_j=known_sum(energy_j) if enough else None,
        **sums,
    )


def merged_host_hours(hours: Sequence[HostHour], start_ms: int) -> HostHour:
    """Hours of one host as one that begins at ``start_ms``; at least one."""
    covered = [hour.covered_s for hour in hours]
    means: dict[str, Any] = {
        name: weighted([getattr(hour, name) for hour in hours], covered) for name in HOST_MEANS
    }
    return HostHour(host=hours[0].host, hour_ms=start_ms, covered_s=sum(covered), **means)


def is_known(value: float | None) -> bool:
    """It is a number."""
    return value is not None


def known(values: Iterable[float | None]) -> list[float]:
    """Those that are known."""
    return [value for value in values if value is not None]


def known_sum(values: Iterable[float | None]) -> float | None:
    """Sum of what is known; None when nothing is."""
    found = known(values)
    return sum(found) if found else None


def weighted(values: Sequence[float | None], seconds: Sequence[float]) -> float | None:
    """Mean by seconds over what is known; of values without any time the last."""
    pairs = [(value, weight) for value, weight in zip(values, seconds, strict=True) if value is not None]
    if len(pairs) < 2:
        return pairs[0][0] if pairs else None
    whole = sum(weight for _, weight in pairs)
    return sum(value * weight for value, weight in pairs) / whole if whole > 0 else pairs[-1][0]


def _added(parts: Iterable[Mapping[Activity, float]]) -> dict[Activity, float]:
    found: dict[Activity, float] = {}
    for part in parts:
        for activity, amount in part.items():
            found[activity] = found.get(activity, 0.0) + amount
    return {activity: found[activity] for activity in Activity if activity in found}
