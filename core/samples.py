"""What fold makes and stores: readings of an interval folded into one row per GPU or engine."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from core.activity import Activity
from core.readings import WorkloadKey

SAMPLE_MS: Final = 10_000
"""Length of a live sample's interval. Intervals are aligned to the epoch."""


class EnergyMethod(StrEnum):
    """Where a sample's joules come from."""

    COUNTER = "counter"
    INTEGRATED = "integrated"
    MIXED = "mixed"
    """Parts of either kind: a folded span (hours, groups), or an interval in which the counter was reset."""


@dataclass(frozen=True, slots=True)
class GpuSample:
    """One GPU over one interval.

    Attributes:
        gpu_uuid: whose.
        ts_ms: start of the interval, a multiple of ``span_ms``.
        span_ms: length of the interval.
        covered_ms: time for which readings vouch; ``covered_ms / span_ms`` is the coverage.
        values: by metric name (``core.metrics.GPU_COLUMNS``); an absent key is unknown.
        energy_method: how ``energy_j`` was had; None when it is unknown.
        activity: what the GPU was doing, by ``core.activity.classify``.
    """

    gpu_uuid: str
    ts_ms: int
    span_ms: int
    covered_ms: int
    values: Mapping[str, float]
    energy_method: EnergyMethod | None
    activity: Activity


@dataclass(frozen=True, slots=True)
class ProcessSample:
    """One workload on one GPU over one interval (its processes together).

    ``cpu_ratio`` is CPU time over wall time of its processes (1 is one core), ``cpu_thread_ratio`` that of the
    busiest thread among them: a thread near 1 is a host that holds the GPU up (advisor-rules R15).
    """

    gpu_uuid: str
    ts_ms: int
    span_ms: int
    workload: WorkloadKey
    memory_used_bytes: float | None
    busy_ratio: float | None
    process_count: int
    cpu_ratio: float | None = None
    cpu_thread_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class HostSample:
    """One host over one interval: ``values`` by metric name (``core.metrics.HOST_COLUMNS``); absent is unknown."""

    host: str
    ts_ms: int
    span_ms: int
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class EngineSample:
    """One engine over one interval.

    Attributes:
        engine: whose (``EngineIdentity.engine``).
        ts_ms, span_ms, covered_ms: as in ``GpuSample``.
        busy_ms: time with ``running_requests > 0`` at either end of a reading pair, or tokens generated between them.
        busy_running_requests: mean of running over ``busy_ms``; None when never busy.
        values: by metric name (``core.metrics.ENGINE_COLUMNS``).
    """

    engine: str
    ts_ms: int
    span_ms: int
    covered_ms: int
    busy_ms: int
    busy_running_requests: float | None
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class GpuEvent:
    """Something that happened to a GPU at one instant; stored once however often it is reported.

    Attributes:
        gpu_uuid: whose.
        ts_ms: when.
        kind: ``xid``, ``lost`` (gone), ``stuck`` (a driver call that does not return), ``found`` (either is over),
            ``driver``, ``ecc``, ``row_remap``, ``retired_pages``, ``recovery_action``, ``pcie_link``, ``power_limit``, ``mode``,
            ``mig``, ``clock``, ``agent``; ``model`` and ``precision`` (an LLM engine on it serves another one, or the same
            in another form).
        message: one sentence for people; part of the key, so it carries no running figure.
        code: number of the event (XID); None where there is none.
    """

    gpu_uuid: str
    ts_ms: int
    kind: str
    message: str
    code: int | None = None
