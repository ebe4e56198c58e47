"""What a program asks of its GPU at one instant: what the card's sensors are computed from."""

from typing import NamedTuple


class Load(NamedTuple):
    """One instant of one GPU, before its card turns it into readings.

    A named tuple, because the history of the demo fleet makes several hundred thousand of them.

    Attributes:
        memory_used_bytes: device memory held by processes.
        process_count: processes with a context; without one the card falls to its bare idle.
        busy_ratio, memory_busy_ratio: as ``nvmlDeviceGetUtilizationRates`` would say.
        bytes_per_s, flop_per_s: device-memory traffic and arithmetic: what draws power.
        sm_ratio, occupancy_ratio, tensor_ratio, dram_ratio, fp32_ratio: as GPM would say.
        pcie_rx_bytes_per_s, pcie_tx_bytes_per_s: to and from the GPU.
        spinning_w: power of kernels that wait in a loop: neither traffic nor arithmetic, but issue slots.
        overheated: the card slows down because it is too hot.
    """

    memory_used_bytes: float = 0.0
    process_count: int = 0
    busy_ratio: float = 0.0
    memory_busy_ratio: float = 0.0
    bytes_per_s: float = 0.0
    flop_per_s: float = 0.0
    sm_ratio: float = 0.0
    occupancy_ratio: float = 0.0
    tensor_ratio: float = 0.0
    dram_ratio: float = 0.0
    fp32_ratio: float = 0.0
    pcie_rx_bytes_per_s: float = 0.0
    pcie_tx_bytes_per_s: float = 0.0
    spinning_w: float = 0.0
    overheated: bool = False


EMPTY = Load()
"""No process at all."""


def parked(memory_used_bytes: float, process_count: int = 1) -> Load:
    """Memory held by a process that does nothing."""
    return Load(memory_used_bytes=memory_used_bytes, process_count=process_count)
