"""The metrics of a host, and what the agent itself costs there."""

from typing import Final

from core.metric import Fold, Metric, gauge
from core.units import Unit

CPU_BUSY_RATIO: Final = gauge(
    "cpu_busy_ratio", Unit.RATIO, "Share of the host's CPU time that was used, all cores.", "/proc/stat"
)
CPU_BUSIEST_RATIO: Final = gauge(
    "cpu_busiest_ratio", Unit.RATIO, "Share of its time that the busiest core was used.", "/proc/stat"
)
IOWAIT_RATIO: Final = gauge(
    "iowait_ratio",
    Unit.RATIO,
    "Share of CPU time that waited for disks with nothing else to do.",
    "/proc/stat",
)
HOST_MEMORY_USED_BYTES: Final = gauge(
    "host_memory_used_bytes",
    Unit.BYTE,
    "Memory of the host that is in use (total less available).",
    "/proc/meminfo",
)
HOST_MEMORY_TOTAL_BYTES: Final = gauge(
    "host_memory_total_bytes", Unit.BYTE, "Memory of the host.", "/proc/meminfo"
)
HOST_POWER_W: Final = gauge(
    "host_power_w",
    Unit.WATT,
    "Power of processors and their memory, where RAPL is readable; not the GPUs', not the whole node's.",
    "/sys/class/powercap energy_uj",
)
AGENT_CPU_RATIO: Final = gauge(
    "agent_cpu_ratio", Unit.RATIO, "CPU time of the agent's processes; 1 is one core.", "getrusage"
)
AGENT_MEMORY_BYTES: Final = gauge(
    "agent_memory_bytes", Unit.BYTE, "Resident memory of the agent's processes.", "/proc/PID/statm"
)
AGENT_TICK_S: Final = gauge(
    "agent_tick_s", Unit.SECOND, "Mean time that one round over all GPUs took.", "the agent's own clock"
)
AGENT_TICK_MAX_S: Final = gauge(
    "agent_tick_max_s", Unit.SECOND, "Longest round over all GPUs.", AGENT_TICK_S.source, fold=Fold.MAX
)
AGENT_WRITTEN_BYTES: Final = gauge(
    "agent_written_bytes", Unit.BYTE, "What the agent handed to its spool and sink.", "the agent's own count"
)
AGENT_SKIPPED_COUNT: Final = gauge(
    "agent_skipped_count",
    Unit.COUNT,
    "Rounds that were skipped because one took too long.",
    AGENT_TICK_S.source,
)
AGENT_DROPPED_COUNT: Final = gauge(
    "agent_dropped_count",
    Unit.COUNT,
    "Samples that were lost because the spool was full.",
    AGENT_TICK_S.source,
)
AGENT_WAITING_COUNT: Final = gauge(
    "agent_waiting_count",
    Unit.COUNT,
    "Intervals in the spool that the sink has not taken yet.",
    AGENT_TICK_S.source,
)

HOST_METRICS: Final[tuple[Metric, ...]] = (
    CPU_BUSY_RATIO,
    CPU_BUSIEST_RATIO,
    IOWAIT_RATIO,
    HOST_MEMORY_USED_BYTES,
    HOST_MEMORY_TOTAL_BYTES,
    HOST_POWER_W,
    AGENT_CPU_RATIO,
    AGENT_MEMORY_BYTES,
    AGENT_TICK_S,
    AGENT_TICK_MAX_S,
    AGENT_WRITTEN_BYTES,
    AGENT_SKIPPED_COUNT,
    AGENT_DROPPED_COUNT,
    AGENT_WAITING_COUNT,
)
"""Columns of ``host_sample`` after its keys, in order."""
