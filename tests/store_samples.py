"""One good sample of each kind for store tests; a test replaces the field it is about."""

from core.activity import Activity
from core.readings import WorkloadKey
from core.samples import EnergyMethod, EngineSample, GpuSample, HostSample, ProcessSample
from core.units import HOUR_MS

H0 = 1_791_158_400_000
"""2026-10-05T00:00:00Z: the start of an hour and of a day."""
SPAN = 10_000
NOW = H0 + 1_000 * HOUR_MS


def gpu_sample(
    slot: int = 0,
    activity: Activity = Activity.BUSY,
    *,
    gpu: str = "GPU-a",
    covered_ms: int = SPAN,
    method: EnergyMethod | None = EnergyMethod.COUNTER,
    **values: float,
) -> GpuSample:
    """Ten seconds of one GPU, ``slot`` intervals after ``H0``."""
    known = {"busy_ratio": 0.9, "power_w": 300.0, "energy_j": 3_000.0} | values
    return GpuSample(gpu, H0 + slot * SPAN, SPAN, covered_ms, known, method, activity)


def bare_sample(slot: int, activity: Activity, *, covered_ms: int = SPAN, **values: float) -> GpuSample:
    """Ten seconds of GPU-a of which only ``values`` are known."""
    return GpuSample("GPU-a", H0 + slot * SPAN, SPAN, covered_ms, values, None, activity)


def workload(key: str = "1:1", host: str | None = "h1", kind: str = "process") -> WorkloadKey:
    """A process of ann's."""
    return WorkloadKey(kind, key, "train.py", "ann", host)


def process_sample(
    slot: int = 0,
    key: str = "1:1",
    memory: float | None = 1e9,
    *,
    gpu: str = "GPU-a",
    cpu: float | None = None,
    thread: float | None = None,
) -> ProcessSample:
    """Ten seconds of one process on one GPU."""
    return ProcessSample(gpu, H0 + slot * SPAN, SPAN, workload(key), memory, None, 1, cpu, thread)


def host_sample(slot: int = 0, *, host: str = "h1", **values: float) -> HostSample:
    """Ten seconds of one host."""
    known = {"cpu_busy_ratio": 0.25, "host_memory_used_bytes": 6e10} | values
    return HostSample(host, H0 + slot * SPAN, SPAN, known)


def engine_sample(
    slot: int = 0,
    running: float | None = 8.0,
    *,
    engine: str = "h1:8000/0",
    busy_ms: int = SPAN,
    covered_ms: int = SPAN,
    **values: float,
) -> EngineSample:
    """Ten seconds of one engine."""
    known = {"generated_tokens": 1_000.0, "prompt_tokens": 500.0, "waiting_requests": 2.0} | values
    return EngineSample(engine, H0 + slot * SPAN, SPAN, covered_ms, busy_ms, running, known)
