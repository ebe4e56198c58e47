"""A load on a card as the driver would report it: readings in base units, by reading name."""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

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
    """A share of time with 1 % of noise, as the driver prints it: whole percent, never outside 0–1."""
    percent = int(100.0 * value + noise + 0.5)
    return 1.0 if percent >= 100 else (max(0, percent)) / 100


class _Still(NamedTuple):
    """What the sensors say of one load but for their noise.

    Attributes:
        values: readings without noise. power_w, jitter: mean power and its noise. heat_c: settled temperature.
        ours, theirs: shares of time that are not 0, by the noise they take.
    """

    values: dict[str, float]
    power_w: float
    jitter: float
    heat_c: float
    ours: tuple[tuple[str, float], ...]
    theirs: tuple[tuple[str, float], ...]


@dataclass(slots=True)
class Sensors:
    """The sensors of one GPU.

    Attributes:
        card: the product. seed: of this GPU's noise.
    """

    card: Card
    seed: int
    _known: dict[Load, _Still] = field(default_factory=dict)

    def read(self, load: Load, ts_ms: int) -> dict[str, float]:
        """Every reading at one instant but the counters."""
        still = self._known.get(load)
        if still is None:  # a program has some hundred loads, a history some thousand instants
            still = self._known[load] = _still(self.card, load)
        ours, theirs = normal_pair(self.seed, ts_ms // 1000)
        values = still.values.copy()
        for name, value in still.ours:
            values[name] = whole_percent(value, ours)
        for name, value in still.theirs:
            values[name] = whole_percent(value, theirs)
        power = still.power_w * (1.0 + still.jitter * ours)
        values["power_w"] = int(100.0 * min(power, self.card.power_limit_w)) / 100
        values["temperature_c"] = float(int(still.heat_c + 0.5 * theirs + 0.5))
        if load.pcie_rx_bytes_per_s:
            values["pcie_rx_bytes_per_s"] = float(int(load.pcie_rx_bytes_per_s * (1.0 + 0.05 * ours)))
        if load.pcie_tx_bytes_per_s:
            values["pcie_tx_bytes_per_s"] = float(int(load.pcie_tx_bytes_per_s * (1.0 + 0.05 * theirs)))
        return values


def _still(card: Card, load: Load) -> _Still:
    asked = asked_w(card, load)
    power = drawn_w(card, asked)
    heat = temperature_c(card, load, power)
    values = {
        "busy_ratio": 0.0,
        "memory_busy_ratio": 0.0,
        "memory_used_bytes": load.memory_used_bytes,
        "memory_reserved_bytes": float(card.memory_reserved_bytes),
        "power_w": power,
        "power_limit_w": card.power_limit_w,
        "sm_clock_hz": int(sm_clock_hz(card, load, asked) / CLOCK_STEP_HZ) * CLOCK_STEP_HZ,
        "memory_clock_hz": card.memory_clock_hz,
        "temperature_c": heat,
        "event_reasons_flags": float(_reasons(card, load, asked)),
        "pcie_rx_bytes_per_s": 0.0,
        "pcie_tx_bytes_per_s": 0.0,
        "process_count": float(load.process_count),
    }
    if card.has_memory_sensor:
        values["memory_temperature_c"] = float(int(heat + 7.5))
    ours = {"memory_busy_ratio": load.memory_busy_ratio}
    theirs = {"busy_ratio": load.busy_ratio}
    if card.has_gpm:
        ours |= {
            "sm_active_ratio": load.sm_ratio,
            "tensor_active_ratio": load.tensor_ratio,
            "fp32_active_ratio": load.fp32_ratio,
        }
        theirs |= {
            "sm_occupancy_ratio": load.occupancy_ratio,
            "dram_active_ratio": min(load.dram_ratio, DRAM_CEILING_RATIO),
        }
    values |= dict.fromkeys(ours | theirs, 0.0)
    jitter = POWER_NOISE_RATIO if load.busy_ratio > 0.0 else IDLE_POWER_NOISE_RATIO
    return _Still(values, power, jitter, heat, _moving(ours), _moving(theirs))


def _moving(ratios: dict[str, float]) -> tuple[tuple[str, float], ...]:
    """Shares that are not 0: what rests, rests exactly."""
    return tuple((name, value) for name, value in ratios.items() if value > 0.0)


def _reasons(card: Card, load: Load, asked: float) -> int:
    if load.process_count == 0:
        return GPU_IDLE_FLAG
    if load.overheated:
        return SW_THERMAL_FLAG | HW_THERMAL_FLAG
    return SW_POWER_CAP_FLAG if asked > card.power_limit_w else 0
