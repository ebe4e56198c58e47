"""Readings of one GPU each second, in base units by reading name; what is unknown is not in them.

As much as possible in one driver call; what changes slowly is spread over five rounds and repeated in between.
"""

from __future__ import annotations

import time

from agent.collectors.identity import power_averaging_s
from agent.collectors.links import Links
from agent.collectors.memory import memory_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.driver.device import Device
    from agent.driver.fields import Entry

ROUNDS = 5
STALE_NS = 15_000_000_000
"""After a gap this long nothing is repeated."""

ENERGY, MODULE_ENERGY = 83, (83, 1)
"""mJ since the driver was loaded. On GH200 only scope 1 answers: GPU and CPU together."""
POWER_AVERAGE, POWER_INSTANT = 185, 186
MEMORY_TEMPERATURE = 82
SLOWED: tuple[tuple[int, str], ...] = (
    (74, "slowed_power_cap_s"),
    (76, "slowed_sync_boost_s"),
    (77, "slowed_board_limit_s"),
    (78, "slowed_low_utilization_s"),
    (79, "slowed_reliability_s"),
    (269, "slowed_sw_thermal_s"),
    (270, "slowed_hw_thermal_s"),
    (271, "slowed_power_brake_s"),
)
CLOCK_SM, CLOCK_MEMORY = 1, 2
GPU_SENSOR = 0
PCIE_TX, PCIE_RX = 0, 1
HIGHEST_STATE = 15
"""nvmlPstates_t ends there; 32 is "unknown"."""
BLOCKS = (
    ("encoder_busy_ratio", "nvmlDeviceGetEncoderUtilization"),
    ("decoder_busy_ratio", "nvmlDeviceGetDecoderUtilization"),
    ("jpeg_busy_ratio", "nvmlDeviceGetJpgUtilization"),
    ("ofa_busy_ratio", "nvmlDeviceGetOfaUtilization"),
)


class Readings:
    """The quick side of one GPU or MIG instance. Belongs to one thread, save ``slow``, which belongs to another.

    Args:
        device: whose.
        clock: monotonic nanoseconds.

    Attributes:
        energy_is_module: the energy counter covers GPU and CPU of the module; None until known.
    """

    __slots__ = (
        "_at_ns",
        "_clock",
        "_device",
        "_energy",
        "_entries",
        "_held",
        "_links",
        "_power",
        "_round",
        "energy_is_module",
    )

    def __init__(self, device: Device, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._device = device
        self._clock = clock
        self._held: dict[str, float | None] = {}
        self._round = 0
        self._at_ns: int | None = None
        self._links = Links(device)
        self._power: int | None = None
        self._energy: Entry | None = ENERGY
        self._entries: tuple[Entry, ...] = ()
        self.energy_is_module: bool | None = None

    def quick(self) -> dict[str, float]:
        """Readings of now; a MIG instance has memory of its own and nothing else. Raises ``GpuLost``."""
        device = self._device
        values: dict[str, float | None] = {}
        memory = memory_of(device)
        if memory is not None:
            values["memory_used_bytes"] = float(memory.used)
            reserved = getattr(memory, "reserved", None)
            values["memory_reserved_bytes"] = None if reserved is None else float(reserved)
        if not device.is_mig:
            if not self._entries:
                self._plan()
            now_ns = self._clock()
            self._now(values, now_ns)
            values.update(self._slowly(now_ns))
        return {name: value for name, value in values.items() if value is not None}

    def slow(self) -> dict[str, float]:
        """The PCIe rate where neither GPM nor a counter tells it: each direction blocks for 20 ms. Raises ``GpuLost``."""
        device = self._device
        if device.is_mig or "pcie_rx_bytes_per_s" in device.elsewhere or self._links.counts_pcie:
            return {}
        told = {}
        for name, direction in (("pcie_rx_bytes_per_s", PCIE_RX), ("pcie_tx_bytes_per_s", PCIE_TX)):
            kilobytes = device.call("nvmlDeviceGetPcieThroughput", direction)
            if kilobytes is not None:
                told[name] = kilobytes * 1000.0
        return told

    def _now(self, values: dict[str, float | None], now_ns: int) -> None:
        device = self._device
        call = device.call
        told = device.fields(self._entries)
        while self._energy is not None and self._energy not in told and device.lacks(self._energy):
            self._energy = MODULE_ENERGY if self._energy == ENERGY else None
            self._compose()
            told.update(device.fields(self._entries))
        self._energy_and_power(values, told)
        for field, name in SLOWED:
            held_ns = told.get(field)
            if held_ns is not None:
                values[name] = held_ns * 1e-9
        values.update(self._links.quick(told, now_ns))
        used = call("nvmlDeviceGetUtilizationRates")
        if used is not None:
            values["busy_ratio"] = used.gpu * 0.01
            values["memory_busy_ratio"] = used.memory * 0.01
        clock = call("nvmlDeviceGetClockInfo", CLOCK_SM)
        values["sm_clock_hz"] = None if clock is None else clock * 1e6
        clock = call("nvmlDeviceGetClockInfo", CLOCK_MEMORY)
        values["memory_clock_hz"] = None if clock is None else clock * 1e6
        reasons = call("nvmlDeviceGetCurrentClocksEventReasons")
        if reasons is None:
            reasons = call("nvmlDeviceGetCurrentClocksThrottleReasons")
        values["event_reasons_flags"] = None if reasons is None else float(reasons)
        state = call("nvmlDeviceGetPerformanceState")
        if state is not None and 0 <= state <= HIGHEST_STATE:
            values["performance_state_index"] = float(state)

    def _energy_and_power(self, values: dict[str, float | None], told: dict[Entry, float]) -> None:
        """Counter and power in J and W. The calls stand in only where there is no field for good."""
        millijoules = told.get(self._energy) if self._energy is not None else None
        if self._energy is None:
            millijoules = self._device.call("nvmlDeviceGetTotalEnergyConsumption")
        if millijoules is not None:
            values["energy_j"] = millijoules * 1e-3
            self.energy_is_module = self._energy == MODULE_ENERGY
        milliwatts = told.get(self._power) if self._power is not None else None
        if milliwatts is None and (self._power is None or self._device.lacks(self._power)):
            milliwatts = self._device.call("nvmlDeviceGetPowerUsage")
        values["power_w"] = None if milliwatts is None else milliwatts * 1e-3

    def _plan(self) -> None:
        """Ask for the power that nvmlDeviceGetPowerUsage would give on this card, so that both mean the same."""
        averaging_s = power_averaging_s(self._device)
        if averaging_s is not None:
            self._power = POWER_AVERAGE if averaging_s else POWER_INSTANT
        self._compose()

    def _compose(self) -> None:
        asked: list[Entry] = [] if self._energy is None else [self._energy]
        if self._power is not None:
            asked.append(self._power)
        asked.extend(field for field, _name in SLOWED)
        self._entries = (*asked, *self._links.entries)

    def _slowly(self, now_ns: int) -> dict[str, float | None]:
        """What is asked every fifth round, one part a round; everything the first time and after a gap."""
        everything = self._at_ns is None or not 0 <= now_ns - self._at_ns < STALE_NS
        self._at_ns = now_ns
        if everything:
            self._held.clear()
            self._round = 0
            for part in range(ROUNDS):
                self._part(part, now_ns)
            return self._held
        self._round = (self._round + 1) % ROUNDS
        self._part(self._round, now_ns)
        return self._held

    def _part(self, part: int, now_ns: int) -> None:
        device, held = self._device, self._held
        if part == 0:
            held["temperature_c"] = self._temperature()
            memory = device.fields((MEMORY_TEMPERATURE,)).get(MEMORY_TEMPERATURE)
            held["memory_temperature_c"] = None if memory is None else float(memory)
        elif part == 1:
            margin = device.call("nvmlDeviceGetMarginTemperature")
            held["temperature_margin_c"] = None if margin is None else float(margin)
            limit = device.call("nvmlDeviceGetEnforcedPowerLimit")
            held["power_limit_w"] = None if limit is None else limit * 1e-3
        elif part == 4:
            self._links_slowly(now_ns)
        else:
            for name, call in BLOCKS[2 * part - 4 : 2 * part - 2]:
                said = device.call(call)
                held[name] = None if said is None else said[0] * 0.01

    def _links_slowly(self, now_ns: int) -> None:
        before = self._links.entries
        rates = self._links.slow(now_ns)
        for name in LINK_RATES:
            self._held.pop(name, None)
        self._held.update(rates)
        if self._links.entries != before:
            self._compose()

    def _temperature(self) -> float | None:
        value = self._device.call("nvmlDeviceGetTemperatureV", GPU_SENSOR)
        if value is None:
            value = self._device.call("nvmlDeviceGetTemperature", GPU_SENSOR)
        return None if value is None else float(value)


LINK_RATES = (
    "nvlink_rx_bytes_per_s",
    "nvlink_tx_bytes_per_s",
    "pcie_rx_bytes_per_s",
    "pcie_tx_bytes_per_s",
)
