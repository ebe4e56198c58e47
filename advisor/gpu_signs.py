"""What a GPU's own counters say of the work on it: profiling counters, or NVML's utilization and power."""

from dataclasses import dataclass
from typing import Any, Final

from core.evidence import GpuEvidence
from core.hour_columns import rows_of
from core.hours import GpuHour

PROFILING: Final = ("dram_active_ratio", "tensor_active_ratio", "sm_active_ratio")
_AT_WORK: Final = ("active_s", "dram_active_ratio", "sm_active_ratio")
WHOLE: Final = 0.95
"""Share of an hour with work from which its means describe the work and not the pauses."""


@dataclass(frozen=True, slots=True)
class Signs:
    """Memory-bound as NVML shows it: busy, memory busy, and power well below the limit (R06)."""

    min_busy_ratio: float
    min_memory_busy_ratio: float
    max_power_ratio: float


def has_counters(gpu: GpuEvidence) -> bool:
    """Profiling counters over at least half of its days with work (hours, where it has no days)."""
    work = [counters for active_s, *counters in rows_of(gpu.parts, *_AT_WORK) if active_s > 0]
    seen = len([1 for dram, sm in work if dram is not None and sm is not None])
    return bool(work) and seen >= 0.5 * len(work)


def counter_facts(gpu: GpuEvidence) -> dict[str, Any]:
    """Means of the profiling counters over days (or hours) with work; only those that were read."""
    facts: dict[str, Any] = {}
    for name in PROFILING:
        known = [
            (value, covered_s)
            for active_s, covered_s, value in rows_of(gpu.parts, "active_s", "covered_s", name)
            if active_s > 0 and value is not None
        ]
        total = sum([seconds for _, seconds in known])
        if total > 0:
            facts[name] = round(sum([value * seconds for value, seconds in known]) / total, 4)
    return facts


def likely_memory_bound_h(gpu: GpuEvidence, signs: Signs) -> float | None:
    """Hours that look memory-bound to NVML; None when readings are missing. Partly idle hours blur means: left out."""
    verdicts = [
        (hour.covered_s, verdict)
        for hour in gpu.hours
        if hour.active_s >= WHOLE * hour.covered_s > 0
        and (verdict := _looks_bound(gpu, hour, signs)) is not None
    ]
    return sum(seconds for seconds, bound in verdicts if bound) / 3600 if verdicts else None


def _looks_bound(gpu: GpuEvidence, hour: GpuHour, signs: Signs) -> bool | None:
    limit = hour.power_limit_w if hour.power_limit_w is not None else gpu.identity.power_limit_default_w
    if hour.busy_ratio is None or hour.memory_busy_ratio is None or hour.power_w is None or limit is None:
        return None
    return (
        hour.busy_ratio >= signs.min_busy_ratio
        and hour.memory_busy_ratio >= signs.min_memory_busy_ratio
        and hour.power_w <= signs.max_power_ratio * limit
    )
