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
        compute_capability: e.g. ``9.0``; tells which number formats the tensor cores know.
        power_averaging_s: time that ``power_w`` averages over: 1 s on most cards since Ampere, 0 (instantaneous) on
            GA100 and older; None when unknown.
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
    compute_capability: str | None = None
    power_averaging_s: float | None = None

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
            ``container`` (its name), ``container_id``, ``slurm_job``, ``slurm_account``, ``slurm_step``, ``systemd_unit``,
            ``executable``, ``image`` (file name of an Apptainer image), ``uid``.
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

    Attributes:
        gpu_uuid, ts_ms, pid, workload: which process where and when.
        memory_used_bytes: None where the driver does not attribute memory (WDDM, some containers).
        busy_ratio: share of time with a kernel of its own; None under MIG and where the driver does not tell.
        cpu_ratio: CPU time over wall time since the last reading; 1 is one core. None the first time.
        cpu_thread_ratio: the same of its busiest thread.
    """

    gpu_uuid: str
    ts_ms: int
    pid: int
    workload: WorkloadKey
    memory_used_bytes: float | None = None
    busy_ratio: float | None = None
    cpu_ratio: float | None = None
    cpu_thread_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class HostIdentity:
    """A machine as its agent describes it.

    Attributes:
        name: of the host in the store.
        cpu_count: logical processors.
        memory_total_bytes: of the host.
        agent_version: of gpuwise there.
    """

    name: str
    cpu_count: int | None = None
    memory_total_bytes: int | None = None
    agent_version: str | None = None


@dataclass(frozen=True, slots=True)
class GpuHealth:
    """The state of one GPU as asked every minute; the latest one is kept with the GPU, changes are events.

    ``facts`` by name: ``ecc_mode``, ``ecc_corrected_count``, ``ecc_uncorrected_count`` (volatile),
    ``ecc_aggregate_uncorrected_count``, ``row_remap_corrected_count``, ``row_remap_uncorrected_count``,
    ``row_remap_pending``, ``row_remap_failed``, ``retired_page_count``, ``retired_pages_pending``, ``recovery_action``,
    ``pcie_link_generation``, ``pcie_link_max_generation``, ``pcie_link_width``, ``pcie_link_max_width``,
    ``pcie_replay_count``, ``persistence_mode``, ``compute_mode``, ``mig_mode``, ``power_limit_w`` (as set), ``power_limit_min_w``,
    ``power_limit_max_w``, ``power_limit_default_w``; absent is unknown.
    """

    gpu_uuid: str
    ts_ms: int
    facts: Mapping[str, float | str]


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
