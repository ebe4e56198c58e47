"""A load on a card as the driver would report it: readings in base units, by reading name."""

from dataclasses import dataclass, field
from typing import Final

from agent.sources.simulator.cards import Card
from agent.sources.simulator.load import Load
from agent.sources.simulator.noise import normal_pair
from agent.sources.simulator.power import asked_w, drawn_w, sm_clock_hz, temperature_c

GPU_IDLE_FLAG: Final = 0x1
SW_POWER_CAP_FLAG: Final = 0x4
SW_THERMAL_FLAG: Final = 0x20
HW_THERMAL_FLAG: Final = 0x40
"""``nvmlClocksEventReason…`` bits."""
DRAM_CEILING_RATIO: Final = 0.8
"""``dram_active`` tops out near 0.8 in practice (advisor-rules 1)."""
CLOCK_STEP_HZ: Final = 15e6
POWER_NOISE_RATIO: Final = 0.012
IDLE_POWER_NOISE_RATIO: Final = 0.004
"""The sensor averages a second and is good for a few per cent under load (advisor-rules 1); idle it is nearly still."""


def whole_percent(value: float, noise: float) -> float:
    """A share of time with 1 % of noise, as the driver prints it: whole percent, never outside 0–1; 0 stays 0."""
    if value <= 0.0:
        return 0.0
    percent = int(100.0 * value + noise + 0.5)
    return 1.0 if percent >= 100 else (max(0, percent)) / 100


@dataclass(slots=True)
class Sensors:
    """The sensors of one GPU.

    Attributes:
        card: the product. seed: of this GPU's noise.
    """

    card: Card
    seed: int
    _constant: dict[str, float] = field(init=False)

    def __post_init__(self) -> None:
        """Readings that never change."""
        self._constant = {
            "memory_reserved_bytes": float(self.card.memory_reserved_bytes),
            "power_limit_w": self.card.power_limit_w,
            "memory_clock_hz": self.card.memory_clock_hz,
        }

    def read(self, load: Load, ts_ms: int) -> dict[str, float]:
        """Every reading at one instant but the counters."""
        card = self.card
        noise, other = normal_pair(self.seed, ts_ms // 1000)
        asked = asked_w(card, load)
        jitter = POWER_NOISE_RATIO if load.busy_ratio > 0.0 else IDLE_POWER_NOISE_RATIO
        power = min(drawn_w(card, asked) * (1.0 + jitter * noise), card.power_limit_w)
        heat = temperature_c(card, load, power)
        values = self._constant.copy()
        values["busy_ratio"] = whole_percent(load.busy_ratio, other)
        values["memory_busy_ratio"] = whole_percent(load.memory_busy_ratio, noise)
        values["memory_used_bytes"] = load.memory_used_bytes
        values["power_w"] = int(100.0 * power) / 100
        values["sm_clock_hz"] = int(sm_clock_hz(card, load, asked) / CLOCK_STEP_HZ) * CLOCK_STEP_HZ
        values["temperature_c"] = float(int(heat + 0.5 * other + 0.5))
        values["event_reasons_flags"] = float(_reasons(card, load, asked))
        values["pcie_rx_bytes_per_s"] = float(int(load.pcie_rx_bytes_per_s * (1.0 + 0.05 * noise)))
        values["pcie_tx_bytes_per_s"] = float(int(load.pcie_tx_bytes_per_s * (1.0 + 0.05 * other)))
        values["process_count"] = float(load.process_count)
        if card.has_memory_sensor:
            values["memory_temperature_c"] = float(int(heat + 7.5))
        if card.has_gpm:
            values["sm_active_ratio"] = whole_percent(load.sm_ratio, noise)
            values["sm_occupancy_ratio"] = whole_percent(load.occupancy_ratio, other)
            values["tensor_active_ratio"] = whole_percent(load.tensor_ratio, noise)
            values["dram_active_ratio"] = whole_percent(min(load.dram_ratio, DRAM_CEILING_RATIO), other)
            values["fp32_active_ratio"] = whole_percent(load.fp32_ratio, noise)
        return values


def _reasons(card: Card, load: Load, asked: float) -> int:
    if load.process_count == 0:
        return GPU_IDLE_FLAG
    if load.overheated:
        return SW_THERMAL_FLAG | HW_THERMAL_FLAG
    return SW_POWER_CAP_FLAG if asked > card.power_limit_w else 0
