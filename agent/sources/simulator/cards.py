"""The cards of the simulated fleet: what a product draws, clocks and reports, beside its catalogue facts."""

from dataclasses import dataclass
from typing import Final

from catalog.gpu_specs import by_key
from core.units import MIB


@dataclass(frozen=True, slots=True)
class Card:
    """One product.

    Attributes:
        model: NVML product name. gpu_key: its row of the GPU catalogue.
        memory_total_bytes: as the driver reports it (less than the label says).
        memory_reserved_bytes: kept by driver and firmware.
        bare_idle_w: no process at all. context_w: what a CUDA context adds by holding the clocks up: +26–66 W,
            nearly independent of the memory held (advisor-rules 4.1 [S8]); a loaded vLLM on H100 idles at 118 W [S4].
        power_limit_w: default limit. bandwidth_bytes_per_s, flop_per_s: peak, dense bf16.
        idle_sm_clock_hz, max_sm_clock_hz, memory_clock_hz: clocks.
        has_gpm: NVML counters of SM, tensor and DRAM activity (Hopper and later); without them there is only busy.
        has_memory_sensor: HBM parts report a memory temperature.
    """

    model: str
    gpu_key: str
    memory_total_bytes: int
    memory_reserved_bytes: int
    bare_idle_w: float
    context_w: float
    power_limit_w: float
    bandwidth_bytes_per_s: float
    flop_per_s: float
    idle_sm_clock_hz: float
    max_sm_clock_hz: float
    memory_clock_hz: float
    has_gpm: bool
    has_memory_sensor: bool


def _card(
    model: str,
    gpu_key: str,
    *,
    memory_mib: int,
    reserved_mib: int,
    bare_idle_w: float,
    context_w: float,
    clocks_mhz: tuple[int, int, int],
    has_gpm: bool,
    has_memory_sensor: bool = True,
) -> Card:
    """A card with limit, bandwidth and arithmetic from the catalogue. Raises ``ValueError`` where it has none."""
    spec = by_key(gpu_key)
    if spec is None or not (spec.bandwidth_bytes_per_s and spec.bf16_flops and spec.tdp_w):
        raise ValueError(
            f"the catalogue has no bandwidth, bf16 rate and power of {gpu_key}: the demo fleet needs them"
        )
    idle, highest, memory = clocks_mhz
    return Card(
        model=model,
        gpu_key=gpu_key,
        memory_total_bytes=memory_mib * MIB,
        memory_reserved_bytes=reserved_mib * MIB,
        bare_idle_w=bare_idle_w,
        context_w=context_w,
        power_limit_w=spec.tdp_w,
        bandwidth_bytes_per_s=spec.bandwidth_bytes_per_s,
        flop_per_s=spec.bf16_flops,
        idle_sm_clock_hz=idle * 1e6,
        max_sm_clock_hz=highest * 1e6,
        memory_clock_hz=memory * 1e6,
        has_gpm=has_gpm,
        has_memory_sensor=has_memory_sensor,
    )


H100: Final = _card(
    "NVIDIA H100 80GB HBM3",
    "H100-SXM5-80GB",
    memory_mib=81_559,
    reserved_mib=551,
    bare_idle_w=70.0,
    context_w=48.0,
    clocks_mhz=(345, 1980, 2619),
    has_gpm=True,
)
H200: Final = _card(
    "NVIDIA H200",
    "H200-SXM-141GB",
    memory_mib=143_771,
    reserved_mib=604,
    bare_idle_w=74.0,
    context_w=46.0,
    clocks_mhz=(345, 1980, 3201),
    has_gpm=True,
)
A100: Final = _card(
    "NVIDIA A100-SXM4-80GB",
    "A100-SXM4-80GB",
    memory_mib=81_920,
    reserved_mib=574,
    bare_idle_w=54.0,
    context_w=26.0,
    clocks_mhz=(210, 1410, 1593),
    has_gpm=False,
)
L40S: Final = _card(
    "NVIDIA L40S",
    "L40S",
    memory_mib=46_068,
    reserved_mib=562,
    bare_idle_w=35.0,
    context_w=44.0,
    clocks_mhz=(210, 2520, 9001),
    has_gpm=False,
    has_memory_sensor=False,
)
