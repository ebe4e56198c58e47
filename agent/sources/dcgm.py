"""Names of GPU series in exposition text: dcgm-exporter's fields and nvidia_gpu_exporter's, by ``core.metrics``.

Beside the metrics there are series that only describe the card; ``@…`` marks them.
"""

from dataclasses import dataclass
from typing import Final

from core.metrics import GPU_METRICS
from core.units import MIB


@dataclass(frozen=True, slots=True)
class GpuName:
    """What a series of that name gives: a reading or an ``@`` fact, the factor to the base unit, its rank.

    Where an exporter publishes a thing under several names, the lowest rank wins. ``instance`` readings belong
    to a MIG instance when the series names one, the others to the whole card. ``counter`` ones only grow.
    """

    reading: str
    factor: float = 1.0
    rank: int = 0
    instance: bool = False
    counter: bool = False


FREE: Final = "@memory_free_bytes"
TOTAL: Final = "@memory_total_bytes"
INDEX: Final = "@index"
MAX_SM_CLOCK: Final = "@max_sm_clock_hz"
DEFAULT_LIMIT: Final = "@power_limit_default_w"
INFO: Final = "@info"
PROCESS_MEMORY: Final = "@process_memory_bytes"

_INSTANCE: Final = ("DCGM_FI_DEV_FB_", "DCGM_FI_PROF_")
BLANK: Final = 140_737_488_355_328.0
"""DCGM's "no value" (2^47 as a float, larger as an integer), which some exporters let through."""
BLANKS_32: Final = range(0x7FFFFFF0, 0x80000000)
"""The same for fields of 32 bits; no counter has such."""


def _names() -> dict[str, GpuName]:
    names: dict[str, GpuName] = {}
    for metric in GPU_METRICS:
        if metric.of is not None:
            continue
        if metric.dcgm is not None:
            instance = metric.dcgm.startswith(_INSTANCE)
            names[metric.dcgm] = GpuName(
                metric.name, metric.dcgm_per_unit, instance=instance, counter=metric.kind == "counter"
            )
        if metric.exporter is not None:
            names[metric.exporter] = GpuName(metric.name)
    return names


NAMES: Final = _names() | {
    "DCGM_FI_DEV_FB_FREE": GpuName(FREE, float(MIB), instance=True),
    "DCGM_FI_DEV_FB_TOTAL": GpuName(TOTAL, float(MIB), instance=True),
    "DCGM_FI_DEV_POWER_MGMT_LIMIT": GpuName("power_limit_w", rank=1),
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": GpuName("event_reasons_flags", rank=1),
    "DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF": GpuName(DEFAULT_LIMIT),
    "DCGM_FI_DEV_MAX_SM_CLOCK": GpuName(MAX_SM_CLOCK, 1e6),
    "nvidia_smi_power_limit_watts": GpuName("power_limit_w", rank=1),
    "nvidia_smi_power_draw_average_watts": GpuName("power_w", rank=1),
    "nvidia_smi_power_draw_instant_watts": GpuName("power_w", rank=2),
    "nvidia_smi_memory_total_bytes": GpuName(TOTAL),
    "nvidia_smi_index": GpuName(INDEX),
    "nvidia_smi_clocks_max_sm_clock_hz": GpuName(MAX_SM_CLOCK),
    "nvidia_smi_power_default_limit_watts": GpuName(DEFAULT_LIMIT),
    "nvidia_smi_gpu_info": GpuName(INFO),
    "nvidia_smi_compute_app_used_memory_bytes": GpuName(PROCESS_MEMORY),
}
PREFIXES: Final = ("DCGM_FI_", "nvidia_smi_")
XID: Final = "DCGM_FI_DEV_XID_ERRORS"
"""The number of the last XID, 0 before the first: an event where it changes, and no metric."""
