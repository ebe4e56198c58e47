"""What a source gives: identities once, readings at instants. An absent key is an unknown value, never 0."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

SLICE_PREFIX: Final = "MIG-"


@dataclass(frozen=True, slots=True)
class GpuIdentity:
    """A GPU as its driver or exporter names it.

    Attributes:
        gpu_uuid: ``GPU-…`` or ``MIG-…``; the key of everything.
        host: host it sits in, as the source names it; None when the source does not say.
        index: NVML index at the time; a label, never a key.
        model: NVML product name, e.g. ``NVIDIA H100 80GB HBM3``.
        memory_total_bytes: device memory including the driver's reserve.
        pci_bus_id: as NVML prints it.
        driver_version: kernel driver.
        max_sm_clock_hz: highest SM clock the card allows.
        power_limit_default_w: the card's own default limit.
    """

    gpu_uuid: str
    host: str | None = None
    index: int | None = None
    model: str | None = None
    memory_total_bytes: int | None = None
    pci_bus_id: str | None = None
    driver_version: str | None = None
    max_sm_clock_hz: float | None = None
    power_limit_default_w: float | None = None

    @property
    def is_slice(self) -> bool:
        """A MIG instance: part of a card that is listed too, so it has no hours, price or spend of its own."""
        return self.gpu_uuid.startswith(SLICE_PREFIX)


@dataclass(frozen=True, slots=True)
class GpuReading:
    """Values of one GPU at one instant, by reading name (``core.metrics``: ``Metric.reading``), in base units."""

    gpu_uuid: str
    ts_ms: int
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class WorkloadKey:
    """What held a GPU: a kind and a key that stays the same while it runs.

    Attributes:
        kind: ``process``, ``container``, ``pod``, ``slurm_job``, ``systemd_unit`` or ``engine``.
        key: unique within host and kind (``pid:start_ms`` for a process).
        name: for people: executable, unit, pod name, model.
        user: user name or uid; None when unknown.
        host: host it ran on.
        attributes: what else is known of it, as sorted pairs of text: ``namespace``, ``pod``, ``pod_uid``,
            ``container_id``, ``slurm_job``, ``slurm_account``, ``slurm_step``, ``systemd_unit``, ``executable``, ``uid``.
    """

    kind: str
    key: str
    name: str
    user: str | None = None
    host: str | None = None
    attributes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ProcessReading:
    """One process on one GPU at one instant.

    ``memory_used_bytes`` is None where the driver does not attribute memory (WDDM, some containers).
    """

    gpu_uuid: str
    ts_ms: int
    pid: int
    workload: WorkloadKey
    memory_used_bytes: float | None = None
    busy_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class EngineIdentity:
    """An LLM engine: one scrape target and one core of it.

    Attributes:
        engine: ``<instance>/<label engine>``, e.g. ``gpu-node-01:8000/0``; unique in the fleet.
        host: host part of the instance; joins the engine to its GPUs when processes do not.
        kind: ``vllm``, ``sglang``, ``tgi``, ``trtllm``, ``llamacpp``.
        model: model name as the engine gives it.
        settings: limits and flags the engine publishes (``num_gpu_blocks``, ``block_size``, ``max_num_seqs``,
            ``dtype``, ``quantization``, ``tensor_parallel_size``, ``gpu_memory_utilization``…), as text.
        gpu_uuids: GPUs its processes hold, when known.
    """

    engine: str
    host: str | None
    kind: str
    model: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    gpu_uuids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineReading:
    """Values of one engine at one instant, by reading name, in base units. Counters are raw totals."""

    engine: str
    ts_ms: int
    values: Mapping[str, float]
