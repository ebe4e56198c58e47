"""The metrics of a GPU: device, clocks and heat, links, profiling counters."""

from typing import Final

from core.metric import Fold, Kind, Metric, gauge
from core.units import MIB, Unit

BUSY_RATIO: Final = gauge(
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
BUSY_MAX_RATIO: Final = gauge(
    "busy_max_ratio",
    Unit.RATIO,
    "Highest busy reading in the interval.",
    BUSY_RATIO.source,
    of="busy_ratio",
    fold=Fold.MAX,
)
BUSY_MIN_RATIO: Final = gauge(
    "busy_min_ratio",
    Unit.RATIO,
    "Lowest busy reading in the interval.",
    BUSY_RATIO.source,
    of="busy_ratio",
    fold=Fold.MIN,
)
MEMORY_BUSY_RATIO: Final = gauge(
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
MEMORY_USED_BYTES: Final = gauge(
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
MEMORY_RESERVED_BYTES: Final = gauge(
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
POWER_W: Final = gauge(
    "power_w",
    Unit.WATT,
    "Board power draw, mean. A ~1 s average on most cards since Ampere; treat single watts as ±5 %.",
    "nvmlDeviceGetPowerUsage (mW)",
    dcgm="DCGM_FI_DEV_POWER_USAGE",
    smi=("power.draw", "power.draw.average", "power.draw.instant"),
    dmon="pwr",
    exporter="nvidia_smi_power_draw_watts",
)
POWER_MAX_W: Final = gauge(
    "power_max_w",
    Unit.WATT,
    "Highest power reading in the interval.",
    POWER_W.source,
    of="power_w",
    fold=Fold.MAX,
)
POWER_LIMIT_W: Final = gauge(
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
SM_CLOCK_HZ: Final = gauge(
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
MEMORY_CLOCK_HZ: Final = gauge(
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
TEMPERATURE_C: Final = gauge(
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
MEMORY_TEMPERATURE_C: Final = gauge(
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
PCIE_RX_BYTES_PER_S: Final = gauge(
    "pcie_rx_bytes_per_s",
    Unit.BYTE_PER_SECOND,
    "Traffic from host to GPU.",
    "nvmlDeviceGetPcieThroughput(RX) (KB/s)",
    dcgm="DCGM_FI_PROF_PCIE_RX_BYTES",
    dmon="rxpci",
)
PCIE_TX_BYTES_PER_S: Final = gauge(
    "pcie_tx_bytes_per_s",
    Unit.BYTE_PER_SECOND,
    "Traffic from GPU to host.",
    "nvmlDeviceGetPcieThroughput(TX) (KB/s)",
    dcgm="DCGM_FI_PROF_PCIE_TX_BYTES",
    dmon="txpci",
)
SM_ACTIVE_RATIO: Final = gauge(
    "sm_active_ratio",
    Unit.RATIO,
    "Share of SM-cycles with a warp resident. ≥ 0.8 is necessary, not sufficient, for good use.",
    "nvmlGpmMetricsGet NVML_GPM_METRIC_SM_UTIL (%)",
    dcgm="DCGM_FI_PROF_SM_ACTIVE",
)
SM_OCCUPANCY_RATIO: Final = gauge(
    "sm_occupancy_ratio",
    Unit.RATIO,
    "Resident warps over the most an SM can hold.",
    "nvmlGpmMetricsGet NVML_GPM_METRIC_SM_OCCUPANCY (%)",
    dcgm="DCGM_FI_PROF_SM_OCCUPANCY",
)
TENSOR_ACTIVE_RATIO: Final = gauge(
    "tensor_active_ratio",
    Unit.RATIO,
    "Share of cycles with a tensor pipe active; saturates near 0.93.",
    "nvmlGpmMetricsGet NVML_GPM_METRIC_ANY_TENSOR_UTIL (%)",
    dcgm="DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
)
DRAM_ACTIVE_RATIO: Final = gauge(
    "dram_active_ratio",
    Unit.RATIO,
    "Share of cycles with device memory moving data; tops out near 0.8 in practice.",
    "nvmlGpmMetricsGet NVML_GPM_METRIC_DRAM_BW_UTIL (%)",
    dcgm="DCGM_FI_PROF_DRAM_ACTIVE",
)
FP32_ACTIVE_RATIO: Final = gauge(
    "fp32_active_ratio",
    Unit.RATIO,
    "Share of cycles with an fp32 pipe active.",
    "nvmlGpmMetricsGet NVML_GPM_METRIC_FP32_UTIL (%)",
    dcgm="DCGM_FI_PROF_PIPE_FP32_ACTIVE",
)


def _pipe(name: str, help_: str, gpm: str, dcgm: str) -> Metric:
    return gauge(name, Unit.RATIO, help_, f"nvmlGpmMetricsGet {gpm} (%)", dcgm=dcgm)


TENSOR_HMMA_ACTIVE_RATIO: Final = _pipe(
    "tensor_hmma_active_ratio",
    "Share of cycles with the half-precision (fp16, bf16) tensor pipe active.",
    "NVML_GPM_METRIC_HMMA_TENSOR_UTIL",
    "DCGM_FI_PROF_PIPE_TENSOR_HMMA_ACTIVE",
)
TENSOR_IMMA_ACTIVE_RATIO: Final = _pipe(
    "tensor_imma_active_ratio",
    "Share of cycles with the integer tensor pipe active.",
    "NVML_GPM_METRIC_IMMA_TENSOR_UTIL",
    "DCGM_FI_PROF_PIPE_TENSOR_IMMA_ACTIVE",
)
TENSOR_DFMA_ACTIVE_RATIO: Final = _pipe(
    "tensor_dfma_active_ratio",
    "Share of cycles with the double-precision tensor pipe active.",
    "NVML_GPM_METRIC_DFMA_TENSOR_UTIL",
    "DCGM_FI_PROF_PIPE_TENSOR_DFMA_ACTIVE",
)
FP64_ACTIVE_RATIO: Final = _pipe(
    "fp64_active_ratio",
    "Share of cycles with an fp64 pipe active.",
    "NVML_GPM_METRIC_FP64_UTIL",
    "DCGM_FI_PROF_PIPE_FP64_ACTIVE",
)
FP16_ACTIVE_RATIO: Final = _pipe(
    "fp16_active_ratio",
    "Share of cycles with an fp16 pipe active (tensor cores not counted).",
    "NVML_GPM_METRIC_FP16_UTIL",
    "DCGM_FI_PROF_PIPE_FP16_ACTIVE",
)
NVLINK_RX_BYTES_PER_S: Final = gauge(
    "nvlink_rx_bytes_per_s",
    Unit.BYTE_PER_SECOND,
    "Traffic from other GPUs over NVLink, all links.",
    "nvmlGpmMetricsGet NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC (MiB/s), else NVML_FI_DEV_NVLINK_* counters",
    dcgm="DCGM_FI_PROF_NVLINK_RX_BYTES",
)
NVLINK_TX_BYTES_PER_S: Final = gauge(
    "nvlink_tx_bytes_per_s",
    Unit.BYTE_PER_SECOND,
    "Traffic to other GPUs over NVLink, all links.",
    "nvmlGpmMetricsGet NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC (MiB/s), else NVML_FI_DEV_NVLINK_* counters",
    dcgm="DCGM_FI_PROF_NVLINK_TX_BYTES",
)


def _block(name: str, what: str, call: str, **more: object) -> Metric:
    help_ = f"Share of time in which {what} worked."
    return gauge(name, Unit.RATIO, help_, f"{call} (%)", **more)


ENCODER_BUSY_RATIO: Final = _block(
    "encoder_busy_ratio",
    "the video encoder",
    "nvmlDeviceGetEncoderUtilization",
    dcgm="DCGM_FI_DEV_ENC_UTIL",
    dcgm_per_unit=0.01,
    smi=("utilization.encoder",),
    dmon="enc",
    exporter="nvidia_smi_utilization_encoder_ratio",
)
DECODER_BUSY_RATIO: Final = _block(
    "decoder_busy_ratio",
    "the video decoder",
    "nvmlDeviceGetDecoderUtilization",
    dcgm="DCGM_FI_DEV_DEC_UTIL",
    dcgm_per_unit=0.01,
    smi=("utilization.decoder",),
    dmon="dec",
    exporter="nvidia_smi_utilization_decoder_ratio",
)
JPEG_BUSY_RATIO: Final = _block(
    "jpeg_busy_ratio",
    "the JPEG decoder",
    "nvmlDeviceGetJpgUtilization",
    smi=("utilization.jpeg",),
    dmon="jpg",
)
OFA_BUSY_RATIO: Final = _block(
    "ofa_busy_ratio",
    "the optical-flow accelerator",
    "nvmlDeviceGetOfaUtilization",
    smi=("utilization.ofa",),
    dmon="ofa",
)
TEMPERATURE_MARGIN_C: Final = gauge(
    "temperature_margin_c",
    Unit.CELSIUS,
    "Distance to the temperature at which the card slows down, least in the interval.",
    "nvmlDeviceGetMarginTemperature (°C)",
    fold=Fold.MIN,
    smi=("temperature.gpu.tlimit",),
)
PERFORMANCE_STATE_INDEX: Final = gauge(
    "performance_state_index",
    Unit.INDEX,
    "Performance state: 0 is the fastest, 15 the slowest.",
    "nvmlDeviceGetPerformanceState",
    fold=Fold.LAST,
    dcgm="DCGM_FI_DEV_PSTATE",
)


def _slowed(name: str, why: str, field: str, number: int) -> Metric:
    return Metric(
        name,
        Unit.SECOND,
        Kind.COUNTER,
        Fold.DELTA,
        f"Time within the interval in which clocks were held back by {why}.",
        f"{field}, field {number} (ns)",
    )


SLOWED_METRICS: Final = (
    _slowed("slowed_power_cap_s", "the power limit", "NVML_FI_DEV_PERF_POLICY_POWER", 74),
    _slowed(
        "slowed_sync_boost_s", "another GPU of the sync-boost group", "NVML_FI_DEV_PERF_POLICY_SYNC_BOOST", 76
    ),
    _slowed("slowed_board_limit_s", "the board's limit", "NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT", 77),
    _slowed("slowed_low_utilization_s", "too little work", "NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION", 78),
    _slowed(
        "slowed_reliability_s", "the voltage limit of reliability", "NVML_FI_DEV_PERF_POLICY_RELIABILITY", 79
    ),
    _slowed("slowed_sw_thermal_s", "heat (driver)", "NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN", 269),
    _slowed(
        "slowed_hw_thermal_s", "heat (hardware)", "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN", 270
    ),
    _slowed(
        "slowed_power_brake_s",
        "the power brake of the server",
        "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN",
        271,
    ),
)
"""Cumulative times of event reasons: they catch what a look once a second misses."""
PROCESS_COUNT: Final = gauge(
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
    TENSOR_HMMA_ACTIVE_RATIO,
    TENSOR_IMMA_ACTIVE_RATIO,
    TENSOR_DFMA_ACTIVE_RATIO,
    FP64_ACTIVE_RATIO,
    FP16_ACTIVE_RATIO,
    NVLINK_RX_BYTES_PER_S,
    NVLINK_TX_BYTES_PER_S,
    ENCODER_BUSY_RATIO,
    DECODER_BUSY_RATIO,
    JPEG_BUSY_RATIO,
    OFA_BUSY_RATIO,
    TEMPERATURE_MARGIN_C,
    PERFORMANCE_STATE_INDEX,
    *SLOWED_METRICS,
)
"""Columns of ``gpu_sample`` after its keys, in order."""
