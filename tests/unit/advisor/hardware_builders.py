"""GPUs at work with counters, jobs over several of them, and the cases in which no rule may claim a saving."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from advice_builders import (
    FORTNIGHT_H,
    PRICE,
    START_MS,
    engine,
    engine_hours,
    evidence,
    gpu,
    gpu_hour,
    gpu_hours,
)

from core.activity import Activity
from core.evidence import Evidence, GpuEvidence, WorkloadUse
from core.finding import Finding
from core.hours import GpuHour
from core.readings import WorkloadKey
from core.units import HOUR_MS

END_MS = START_MS + FORTNIGHT_H * HOUR_MS


def work_hour(index: int = 0, activity: Activity = Activity.COMPUTE_BOUND, **more: Any) -> GpuHour:
    """An hour of healthy arithmetic on an H100: 650 W at 1.75 GHz, nothing held back."""
    facts: dict[str, Any] = {
        "sm_active_ratio": 0.85,
        "tensor_active_ratio": 0.45,
        "dram_active_ratio": 0.3,
        "fp32_active_ratio": 0.05,
        "fp64_active_ratio": 0.0,
        "memory_busy_ratio": 0.5,
        "power_w": 650.0,
        "power_max_w": 690.0,
        "power_limit_w": 700.0,
        "sm_clock_hz": 1.75e9,
        "throttled_s": 0.0,
        "slowed_power_s": 0.0,
        "slowed_thermal_s": 0.0,
        "pcie_bytes_per_s": 2e8,
        "nvlink_bytes_per_s": 0.0,
        "temperature_max_c": 68.0,
    }
    return gpu_hour(index, activity, **(facts | more))


def work_hours(
    count: int = FORTNIGHT_H, activity: Activity = Activity.COMPUTE_BOUND, *, start: int = 0, **more: Any
) -> list[GpuHour]:
    """``count`` equal hours of it."""
    return [work_hour(start + index, activity, **more) for index in range(count)]


def use(name: str = "python3", *, kind: str = "process", key: str = "4711:0", **more: Any) -> WorkloadUse:
    """A training process that held a GPU alone for the fortnight."""
    return replace(
        WorkloadUse(
            workload=WorkloadKey(kind, key, name, "ada", "node-1"),
            first_ms=START_MS,
            last_ms=END_MS,
            allocated_s=FORTNIGHT_H * 3600.0,
            active_s=FORTNIGHT_H * 3600.0,
        ),
        **more,
    )


def card(hours: Sequence[GpuHour] = (), *, uuid: str = "GPU-a", **more: Any) -> GpuEvidence:
    """A GPU with a training process on it."""
    facts: dict[str, Any] = {"uses": (use(),)}
    return gpu(hours or work_hours(), uuid=uuid, **(facts | more))


def job(ranks: Sequence[Sequence[GpuHour]], **more: Any) -> list[GpuEvidence]:
    """One Slurm job over as many GPUs."""
    shared = use("train-llm", kind="slurm_job", key="812")
    facts: dict[str, Any] = {"uses": (shared,), "host_gpu_count": len(ranks)}
    return [card(hours, uuid=f"GPU-{rank}", **(facts | more)) for rank, hours in enumerate(ranks)]


def claims_nothing(findings: Sequence[Finding]) -> bool:
    """No finding claims a saving, and each says why."""
    return all(finding.saving.is_empty and finding.no_figure for finding in findings)


@cache
def no_saving_cases() -> dict[str, Evidence]:
    """Fleets on which nothing can be saved: healthy, standing by, or not seen well enough."""
    reset = work_hours()
    reset[100] = replace(reset[100], energy_j=None, energy_method=None, energy_covered_s=0.0, joules={})
    gap = work_hours()
    gap[200] = replace(gap[200], covered_s=2400.0, active_s=2400.0, seconds={Activity.COMPUTE_BOUND: 2400.0})
    node = [replace(PRICE, billing="reserved", gpus_per_unit=8)] * 8
    standby = engine(engine_hours(FORTNIGHT_H, running=1.0, kv_used=0.01))
    blind = gpu_hours(FORTNIGHT_H, Activity.UNKNOWN)
    half = [
        work_hour(index, busy_ratio=0.95 if index < FORTNIGHT_H // 2 else 0.9) for index in range(FORTNIGHT_H)
    ]
    return {
        "healthy saturated GPUs": evidence([card(uuid=f"GPU-{i}") for i in range(4)]),
        "reserved node": evidence(
            [
                card(uuid=f"GPU-{i}", price=price, host_gpu_count=8, uses=(use(key=f"{i}:0"),))
                for i, price in enumerate(node)
            ]
        ),
        "standby for a latency promise": evidence(
            [gpu([work_hour(i, Activity.MEMORY_BOUND) for i in range(FORTNIGHT_H)])], [standby]
        ),
        "counter reset": evidence([card(reset)]),
        "twenty-minute gap": evidence([card(gap)]),
        "MIG without utilization": evidence([gpu(blind)]),
        "halved traffic after adoption": evidence([card(half)]),
    }
