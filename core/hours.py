"""An hour of a GPU, an engine, a workload, a host: what everything slower than live reads."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from core.activity import Activity
from core.histogram import Histogram
from core.readings import WorkloadKey
from core.samples import EnergyMethod


@dataclass(frozen=True, slots=True)
class GpuHour:
    """Samples of one GPU folded over one clock hour (UTC).

    Attributes:
        gpu_uuid: whose.
        hour_ms: start of the hour.
        covered_s: seconds for which samples vouch; 3600 − covered is a gap: unknown, neither idle nor free.
        seconds: covered seconds by activity (``unknown`` included); sums to ``covered_s``.
        joules: energy by activity; only activities with known energy.
        energy_j: all known energy of the hour; None when none is known.
        energy_method: counter, integrated or mixed; None with ``energy_j``.
        energy_covered_s: seconds behind ``energy_j``.
        allocated_s, active_s: as in design section 2; time of unknown activity is in neither.
        effective_s: seconds known to be effective.
        effective_unknown_s: active seconds where nothing can tell.
        busy_ratio … fp32_active_ratio: means over the covered time that has the counter; None where none has.
        memory_used_bytes, memory_used_max_bytes: mean and highest.
        power_w, power_max_w: mean and highest.
        empty_power_w, parked_power_w: mean power while empty, while parked; None without such time.
        sm_clock_hz: mean while active. throttled_s: active seconds with a thermal or brake bit set.
        temperature_max_c: highest.
        pcie_bytes_per_s, nvlink_bytes_per_s: mean of rx + tx.
        tensor_hmma_active_ratio … fp16_active_ratio: means of the pipes, as above.
        slowed_power_s: time in which the power cap or the board's limit held clocks back, of all activities; of a
            sample at most what it covers. None where no sample has the counters.
        slowed_thermal_s: the same of heat (driver or hardware) and the server's power brake.
        temperature_margin_min_c: least distance to the temperature at which the card slows down.
    """

    gpu_uuid: str
    hour_ms: int
    covered_s: float
    seconds: Mapping[Activity, float]
    joules: Mapping[Activity, float]
    energy_j: float | None
    energy_method: EnergyMethod | None
    energy_covered_s: float
    allocated_s: float
    active_s: float
    effective_s: float
    effective_unknown_s: float
    busy_ratio: float | None = None
    memory_busy_ratio: float | None = None
    sm_active_ratio: float | None = None
    sm_occupancy_ratio: float | None = None
    tensor_active_ratio: float | None = None
    dram_active_ratio: float | None = None
    fp32_active_ratio: float | None = None
    memory_used_bytes: float | None = None
    memory_used_max_bytes: float | None = None
    power_w: float | None = None
    power_max_w: float | None = None
    power_limit_w: float | None = None
    empty_power_w: float | None = None
    parked_power_w: float | None = None
    sm_clock_hz: float | None = None
    throttled_s: float | None = None
    temperature_max_c: float | None = None
    pcie_bytes_per_s: float | None = None
    nvlink_bytes_per_s: float | None = None
    tensor_hmma_active_ratio: float | None = None
    tensor_imma_active_ratio: float | None = None
    tensor_dfma_active_ratio: float | None = None
    fp64_active_ratio: float | None = None
    fp16_active_ratio: float | None = None
    slowed_power_s: float | None = None
    slowed_thermal_s: float | None = None
    temperature_margin_min_c: float | None = None


class BatchPoint(NamedTuple):
    """What an engine did at one batch size: time, generated and prompt tokens."""

    seconds: float
    generated_tokens: float
    prompt_tokens: float


@dataclass(frozen=True, slots=True)
class EngineHour:
    """Samples of one engine folded over one clock hour (UTC).

    Attributes:
        engine: ``EngineIdentity.engine``.
        covered_s, busy_s: seconds seen; of them with requests running.
        running, waiting, kv_used: time spent at each level *while busy*.
        profile: batch size (``core.histogram.level`` of running) → what happened there; a site fit of
            step time t = a + b·B reads it (t = B·seconds/generated_tokens).
        generated_tokens … itl_count: sums over the hour; None where the engine does not publish them.
        busy_generated_tokens: generated tokens of busy time (the numerator of ``tokens_per_s``).
        busy_energy_j: energy of the engine's GPUs over its busy time; None when GPUs or energy are unknown.
    """

    engine: str
    hour_ms: int
    covered_s: float
    busy_s: float
    running: Histogram
    waiting: Histogram
    kv_used: Histogram
    profile: Mapping[float, BatchPoint]
    generated_tokens: float | None
    busy_generated_tokens: float | None
    prompt_tokens: float | None
    cached_prompt_tokens: float | None
    preemption_count: float | None
    finished_requests: float | None
    ttft_sum_s: float | None
    ttft_count: float | None
    itl_sum_s: float | None
    itl_count: float | None
    busy_energy_j: float | None


@dataclass(frozen=True, slots=True)
class UsageHour:
    """One workload on one GPU in one hour; ``workload`` None is what nobody held (idle, on the GPU's own line).

    Attributes:
        allocated_s, active_s, effective_s: GPU-seconds; shared GPUs are split by ``share_method``. In the row
            without workload ``allocated_s`` is the time for which no workload is known (idle, or held by
            something unseen), so that the rows of a GPU's hour sum to its ``covered_s``.
        memory_byte_s: memory × time. energy_j: its share of the GPU's energy. Both None when unknown.
        share_method: of ``core.sharing.ShareMethod`` the weakest in the hour. In the row without workload ``mig_slice`` says that
            it holds time of slices that nobody used: idle, and not active.
        cpu_ratio, cpu_thread_ratio: mean over the time in which it was seen on the GPU and they are known; 1 is one
            core. Not split: a workload on two GPUs says the same of its processors on both.
    """

    workload: WorkloadKey | None
    gpu_uuid: str
    hour_ms: int
    allocated_s: float
    active_s: float
    effective_s: float
    memory_byte_s: float | None
    energy_j: float | None
    share_method: str
    cpu_ratio: float | None = None
    cpu_thread_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class HostHour:
    """Samples of one host folded over one clock hour (UTC).

    Attributes:
        host: its name.
        hour_ms: start of the hour.
        covered_s: seconds for which samples vouch.
        cpu_busy_ratio … host_power_w: means over the time that has the figure; None where none has.
            ``cpu_busiest_ratio``: of the busiest core of each sample.
    """

    host: str
    hour_ms: int
    covered_s: float
    cpu_busy_ratio: float | None = None
    cpu_busiest_ratio: float | None = None
    iowait_ratio: float | None = None
    host_memory_used_bytes: float | None = None
    host_power_w: float | None = None
