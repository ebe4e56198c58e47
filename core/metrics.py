"""Every metric is declared here, once.

From a declaration follow: the columns of the sample tables (a contract test compares them), what
the importers look for in nvidia-smi, dmon and Prometheus text, the exporter's names and HELP lines,
tooltips and the metrics page of the documentation.

A *reading* is one value at one instant; a *sample* folds the readings of an interval. ``Metric.fold``
says how; ``Metric.of`` names the reading it folds when that is not its own name (``power_max_w`` folds
``power_w``).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from sys import float_info
from typing import Final

from core.units import MIB, Unit


class Kind(StrEnum):
    """What the reading behind the metric is."""

    GAUGE = "gauge"
    COUNTER = "counter"
    """Grows for ever, falls only when it is reset (driver reload, engine restart)."""
    FLAGS = "flags"
    """A bit mask; folded with OR."""


class Fold(StrEnum):
    """How the readings of an interval become one value."""

    MEAN = "mean"
    """Mean over time (trapezoid between readings), never over the count of readings."""
    MAX = "max"
    MIN = "min"
    LAST = "last"
    DELTA = "delta"
    """Increase of a counter over the interval; a fall starts a new segment and adds nothing."""
    ANY = "any"
    """Bitwise OR."""


@dataclass(frozen=True, slots=True)
class Range:
    """What a reading can be at all, in base units, and why."""

    least: float
    most: float
    reason: str


_GROWING: Final = Range(0.0, float_info.max, "it counts from 0")
PLAUSIBLE: Final[Mapping[Unit, Range]] = {
    Unit.RATIO: Range(0.0, 1.0, "a share of a whole is between 0 and 1 (0 and 100 %)"),
    Unit.WATT: Range(0.0, 5_000.0, "a board draws between 0 and 5,000 W"),
    Unit.JOULE: _GROWING,
    Unit.BYTE: Range(0.0, 10e12, "a card has between 0 and 10 TB of memory"),
    Unit.BYTE_PER_SECOND: Range(0.0, 1e12, "the link to a card carries between 0 and 1 TB/s"),
    Unit.HERTZ: Range(0.0, 10e9, "a clock is between 0 and 10 GHz"),
    Unit.CELSIUS: Range(-50.0, 200.0, "a card that answers is between -50 and 200 °C"),
    Unit.SECOND: _GROWING,
    Unit.TOKEN: _GROWING,
    Unit.REQUEST: _GROWING,
    Unit.COUNT: _GROWING,
    Unit.FLAGS: Range(0.0, 2.0**64, "a bit mask has at most 64 bits"),
}
"""Wide on purpose: generous for cards to come, and far below what a broken sensor or a blank of 32 bits says."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: what it is called, what it means and where it comes from.

    Attributes:
        name: column, JSON field and reading key; ends in its unit.
        unit: base unit.
        kind: gauge, counter or flags.
        fold: how readings become a sample's value.
        help: one sentence for people.
        source: NVML call, with its raw unit.
        of: the reading folded, when it is not ``name``.
        dcgm: dcgm-exporter's field; ``dcgm_per_unit`` turns its figure into the base unit.
        smi: field of ``nvidia-smi --query-gpu`` (current name first, older ones after it); the unit is in its cell or header.
        dmon: column of ``nvidia-smi dmon``; the unit is in its second header line.
        exporter: name in nvidia_gpu_exporter's text (already in base units).
    """

    name: str
    unit: Unit
    kind: Kind
    fold: Fold
    help: str
    source: str
    of: str | None = None
    dcgm: str | None = None
    dcgm_per_unit: float = 1.0
    smi: tuple[str, ...] = ()
    dmon: str | None = None
    exporter: str | None = None

    def __post_init__(self) -> None:
        """Refuse a name that does not carry its unit."""
        if not self.name.endswith(f"_{self.unit.value}"):
            raise ValueError(f"metric {self.name!r} must end in _{self.unit.value}")

    @property
    def reading(self) -> str:
        """Key of the reading this metric is folded from."""
        return self.of or self.name

    @property
    def plausible(self) -> Range:
        """What its reading can be at all."""
        return PLAUSIBLE[self.unit]


def _gauge(name: str, unit: Unit, help_: str, source: str, **more: object) -> Metric:
    fold = more.pop("fold", Fold.MEAN)
    return Metric(name, unit, Kind.GAUGE, fold, help_, source, **more)  # type: ignore[arg-type]


BUSY_RATIO: Final = _gauge(
    "busy_ratio",
    Unit.RATIO,
    "Share of time in which at least one kernel ran. Not how much of the GPU worked.",
    "nvmlDeviceGetUtilizationRates().gpu (%)",
    dcgm="DCGM_FI_DEV_GPU_UTIL",
    dcgm_per_unit=0.01,
    smi=("utilization.gpu",),
    dmon="sm",
    exporter="nvidia_smi_utilization_gpu_ratio",
)
BUSY_MAX_RATIO: Final = _gauge(
    "busy_max_ratio",
    Unit.RATIO,
    "Highest busy reading in the interval.",
    BUSY_RATIO.source,
    of="busy_ratio",
    fold=Fold.MAX,
)
BUSY_MIN_RATIO: Final = _gauge(
    "busy_min_ratio",
    Unit.RATIO,
    "Lowest busy reading in the interval.",
    BUSY_RATIO.source,
    of="busy_ratio",
    fold=Fold.MIN,
)
MEMORY_BUSY_RATIO: Final = _gauge(
    "memory_busy_ratio",
    Unit.RATIO,
    "Share of time in which device memory was read or written. Not a share of its bandwidth, not its fill.",
    "nvmlDeviceGetUtilizationRates().memory (%)",
    dcgm="DCGM_FI_DEV_MEM_COPY_UTIL",
    dcgm_per_unit=0.01,
    smi=("utilization.memory",),
    dmon="mem",
    exporter="nvidia_smi_utilization_memory_ratio",
)
MEMORY_USED_BYTES: Final = _gauge(
    "memory_used_bytes",
    Unit.BYTE,
    "Device memory allocated by processes, highest in the interval; the driver's own reserve is apart.",
    "nvmlDeviceGetMemoryInfo(version=2).used (bytes)",
    fold=Fold.MAX,
    dcgm="DCGM_FI_DEV_FB_USED",
    dcgm_per_unit=float(MIB),
    smi=("memory.used",),
    dmon="fb",
    exporter="nvidia_smi_memory_used_bytes",
)
MEMORY_RESERVED_BYTES: Final = _gauge(
    "memory_reserved_bytes",
    Unit.BYTE,
    "Device memory kept by the driver and firmware.",
    "nvmlDeviceGetMemoryInfo(version=2).reserved (bytes)",
    fold=Fold.LAST,
    dcgm="DCGM_FI_DEV_FB_RESERVED",
    dcgm_per_unit=float(MIB),
    smi=("memory.reserved",),
    exporter="nvidia_smi_memory_reserved_bytes",
)
POWER_W: Final = _gauge(
    "power_w",
    Unit.WATT,
    "Board power draw, mean. A ~1 s average on most cards since Ampere; treat single watts as ±5 %.",
    "nvmlDeviceGetPowerUsage (mW)",
    dcgm="DCGM_FI_DEV_POWER_USAGE",
    smi=("power.draw", "power.draw.average", "power.draw.instant"),
    dmon="pwr",
    exporter="nvidia_smi_power_draw_watts",
)
POWER_MAX_W: Final = _gauge(
    "power_max_w",
    Unit.WATT,
    "Highest power reading in the interval.",
    POWER_W.source,
    of="power_w",
    fold=Fold.MAX,
)
POWER_LIMIT_W: Final = _gauge(
    "power_limit_w",
    Unit.WATT,
    "Power limit in force.",
    "nvmlDeviceGetEnforcedPowerLimit (mW)",
    fold=Fold.LAST,
    dcgm="DCGM_FI_DEV_ENFORCED_POWER_LIMIT",
    smi=("enforced.power.limit", "power.limit"),
    exporter="nvidia_smi_enforced_power_limit_watts",
)
ENERGY_J: Final = Metric(
    "energy_j",
    Unit.JOULE,
    Kind.COUNTER,
    Fold.DELTA,
    "Energy over the interval: the counter's difference, or integrated power where there is no counter.",
    "nvmlDeviceGetTotalEnergyConsumption (mJ)",
    dcgm="DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    dcgm_per_unit=1e-3,
)
SM_CLOCK_HZ: Final = _gauge(
    "sm_clock_hz",
    Unit.HERTZ,
    "SM clock.",
    "nvmlDeviceGetClockInfo(NVML_CLOCK_SM) (MHz)",
    dcgm="DCGM_FI_DEV_SM_CLOCK",
    dcgm_per_unit=1e6,
    smi=("clocks.current.sm", "clocks.sm"),
    dmon="pclk",
    exporter="nvidia_smi_clocks_current_sm_clock_hz",
)
MEMORY_CLOCK_HZ: Final = _gauge(
    "memory_clock_hz",
    Unit.HERTZ,
    "Memory clock.",
    "nvmlDeviceGetClockInfo(NVML_CLOCK_MEM) (MHz)",
    fold=Fold.LAST,
    dcgm="DCGM_FI_DEV_MEM_CLOCK",
    dcgm_per_unit=1e6,
    smi=("clocks.current.memory", "clocks.mem"),
    dmon="mclk",
    exporter="nvidia_smi_clocks_current_memory_clock_hz",
)
TEMPERATURE_C: Final = _gauge(
    "temperature_c",
    Unit.CELSIUS,
    "GPU temperature, highest in the interval.",
    "nvmlDeviceGetTemperatureV(NVML_TEMPERATURE_GPU) (°C)",
    fold=Fold.MAX,
    dcgm="DCGM_FI_DEV_GPU_TEMP",
    smi=("temperature.gpu",),
    dmon="gtemp",
    exporter="nvidia_smi_temperature_gpu",
)
MEMORY_TEMPERATURE_C: Final = _gauge(
    "memory_temperature_c",
    Unit.CELSIUS,
    "Memory temperature, highest in the interval.",
    "NVML_FI_DEV_MEMORY_TEMP (°C)",
    fold=Fold.MAX,
    dcgm="DCGM_FI_DEV_MEMORY_TEMP",
    smi=("temperature.memory",),
    dmon="mtemp",
    exporter="nvidia_smi_temperature_memory",
)
EVENT_REASONS_FLAGS: Final = Metric(
    "event_reasons_flags",
    Unit.FLAGS,
    Kind.FLAGS,
    Fold.ANY,
    "Why the clocks are lower than asked (nvmlClocksEventReason bits), any in the interval.",
    "nvmlDeviceGetCurrentClocksEventReasons (bit mask)",
    dcgm="DCGM_FI_DEV_CLOCK_THROTTLE_REASONS",
    smi=("clocks_event_reasons.active", "clocks_throttle_reasons.active"),
    exporter="nvidia_smi_clocks_event_reasons_active",
)
PCIE_RX_BYTES_PER_S: Final = _gauge(
    "pcie_rx_bytes_per_s",
    Unit.BYTE_PER_SECOND,
    "Traffic from host to GPU.",
    "nvmlDeviceGetPcieThroughput(RX) (KB/s)",
    dcgm="DCGM_FI_PROF_PCIE_RX_BYTES",
    dmon="rxpci",
)
PCIE_TX_BYTES_PER_S: Final = _gauge(
    "pcie_tx_bytes_per_s",
    Unit.BYTE_PER_SECOND,
    "Traffic from GPU to host.",
    "nvmlDeviceGetPcieThroughput(TX) (KB/s)",
    dcgm="DCGM_FI_PROF_PCIE_TX_BYTES",
    dmon="txpci",
)
SM_ACTIVE_RATIO: Final = _gauge(
    "sm_active_ratio",
    Unit.RATIO,
    "Share of SM-cycles with a warp resident. ≥ 0.8 is necessary, not sufficient, for good use.",
    "nvmlGpmMetricsGet NVML_GPM_METRIC_SM_UTIL (%)",
    dcgm="DCGM_FI_PROF_SM_ACTIVE",
)
SM_OCCUPANCY_RATIO: Final = _gauge(
    "sm_occupancy_ratio",
    Unit.RATIO,
    "Resident warps over the most an SM can hold.",
    "nvmlGpmMetricsGet NVML_GPM_METRIC_SM_OCCUPANCY (%)",
    dcgm="DCGM_FI_PROF_SM_OCCUPANCY",
)
TENSOR_ACTIVE_RATIO: Final = _gauge(
    "tensor_active_ratio",
    Unit.RATIO,
    "Share of cycles with a tensor pipe active; saturates near 0.93.",
    "nvmlGpmMetricsGet NVML_GPM_METRIC_ANY_TENSOR_UTIL (%)",
    dcgm="DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
)
DRAM_ACTIVE_RATIO: Final = _gauge(
    "dram_active_ratio",
    Unit.RATIO,
    "Share of cycles with device memory moving data; tops out near 0.8 in practice.",
    "nvmlGpmMetricsGet NVML_GPM_METRIC_DRAM_BW_UTIL (%)",
    dcgm="DCGM_FI_PROF_DRAM_ACTIVE",
)
FP32_ACTIVE_RATIO: Final = _gauge(
    "fp32_active_ratio",
    Unit.RATIO,
    "Share of cycles with an fp32 pipe active.",
    "nvmlGpmMetricsGet NVML_GPM_METRIC_FP32_UTIL (%)",
    dcgm="DCGM_FI_PROF_PIPE_FP32_ACTIVE",
)
PROCESS_COUNT: Final = _gauge(
    "process_count",
    Unit.COUNT,
    "Processes that hold the GPU, most in the interval.",
    "nvmlDeviceGetComputeRunningProcesses_v3 (and MPS), merged by PID; graphics only is not counted",
    fold=Fold.MAX,
)

GPU_METRICS: Final = (
    BUSY_RATIO,
    BUSY_MAX_RATIO,
    BUSY_MIN_RATIO,
    MEMORY_BUSY_RATIO,
    MEMORY_USED_BYTES,
    MEMORY_RESERVED_BYTES,
    POWER_W,
    POWER_MAX_W,
    POWER_LIMIT_W,
    ENERGY_J,
    SM_CLOCK_HZ,
    MEMORY_CLOCK_HZ,
    TEMPERATURE_C,
    MEMORY_TEMPERATURE_C,
    EVENT_REASONS_FLAGS,
    PCIE_RX_BYTES_PER_S,
    PCIE_TX_BYTES_PER_S,
    SM_ACTIVE_RATIO,
    SM_OCCUPANCY_RATIO,
    TENSOR_ACTIVE_RATIO,
    DRAM_ACTIVE_RATIO,
    FP32_ACTIVE_RATIO,
    PROCESS_COUNT,
)
"""Columns of ``gpu_sample`` after its keys, in order."""

RUNNING_REQUESTS: Final = _gauge(
    "running_requests",
    Unit.REQUEST,
    "Sequences in the running batch, mean over time.",
    "engine /metrics (advisor-rules 3.4)",
)
RUNNING_MAX_REQUESTS: Final = _gauge(
    "running_max_requests",
    Unit.REQUEST,
    "Most sequences in the running batch.",
    RUNNING_REQUESTS.source,
    of="running_requests",
    fold=Fold.MAX,
)
WAITING_REQUESTS: Final = _gauge(
    "waiting_requests",
    Unit.REQUEST,
    "Requests waiting for a place in the batch, mean over time.",
    RUNNING_REQUESTS.source,
)
KV_USED_RATIO: Final = _gauge(
    "kv_used_ratio", Unit.RATIO, "Share of the KV cache in use, mean over time.", RUNNING_REQUESTS.source
)
KV_USED_MAX_RATIO: Final = _gauge(
    "kv_used_max_ratio",
    Unit.RATIO,
    "Highest share of the KV cache in use.",
    RUNNING_REQUESTS.source,
    of="kv_used_ratio",
    fold=Fold.MAX,
)


def _engine_counter(name: str, unit: Unit, help_: str) -> Metric:
    return Metric(name, unit, Kind.COUNTER, Fold.DELTA, help_, RUNNING_REQUESTS.source)


GENERATED_TOKENS: Final = _engine_counter("generated_tokens", Unit.TOKEN, "Tokens generated in the interval.")
PROMPT_TOKENS: Final = _engine_counter(
    "prompt_tokens", Unit.TOKEN, "Prompt tokens processed in the interval."
)
CACHED_PROMPT_TOKENS: Final = _engine_counter(
    "cached_prompt_tokens", Unit.TOKEN, "Prompt tokens served from the prefix cache in the interval."
)
PREEMPTION_COUNT: Final = _engine_counter(
    "preemption_count", Unit.COUNT, "Preempted requests in the interval."
)
FINISHED_REQUESTS: Final = _engine_counter(
    "finished_requests", Unit.REQUEST, "Requests finished in the interval."
)
TTFT_SUM_S: Final = _engine_counter(
    "ttft_sum_s", Unit.SECOND, "Sum of times to first token of the interval's requests."
)
TTFT_COUNT: Final = _engine_counter("ttft_count", Unit.COUNT, "Requests behind ttft_sum_s.")
ITL_SUM_S: Final = _engine_counter("itl_sum_s", Unit.SECOND, "Sum of inter-token latencies of the interval.")
ITL_COUNT: Final = _engine_counter("itl_count", Unit.COUNT, "Tokens (or requests) behind itl_sum_s.")

ENGINE_METRICS: Final = (
    RUNNING_REQUESTS,
    RUNNING_MAX_REQUESTS,
    WAITING_REQUESTS,
    KV_USED_RATIO,
    KV_USED_MAX_RATIO,
    GENERATED_TOKENS,
    PROMPT_TOKENS,
    CACHED_PROMPT_TOKENS,
    PREEMPTION_COUNT,
    FINISHED_REQUESTS,
    TTFT_SUM_S,
    TTFT_COUNT,
    ITL_SUM_S,
    ITL_COUNT,
)
"""Columns of ``engine_sample`` after its keys and its busy-time columns, in order."""

GPU_COLUMNS: Final = tuple(metric.name for metric in GPU_METRICS)
ENGINE_COLUMNS: Final = tuple(metric.name for metric in ENGINE_METRICS)
BY_NAME: Final = {metric.name: metric for metric in GPU_METRICS + ENGINE_METRICS}
