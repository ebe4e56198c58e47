"""What held a GPU's clocks back, in words: reasons of samples near, sums of hours far. Pure.

Sources: NVML's ``nvmlClocksEventReason*`` bits and the counters of fields 74–79 and 269–271 (``core.gpu_metrics``). A bit
is any look within the sample, so its time is at most the sample's; a counter is exact and wins where it is known.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from core.hours import GpuHour
from core.samples import GpuSample

HARDWARE_FLAG: Final = 0x08
"""Set with heat (0x40) and power brake (0x80), and for causes that the driver does not name."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason.

    Attributes:
        lane: row of the band under the clocks. words: ``held back by …``.
        flag: its bit; 0: none. metric: its counter; empty: none.
    """

    lane: str
    words: str
    flag: int
    metric: str = ""


REASONS: Final = {
    "power_cap": Reason("power", "the power limit", 0x04, "slowed_power_cap_s"),
    "board": Reason("power", "the board's limit", 0x200, "slowed_board_limit_s"),
    "heat_driver": Reason("heat", "heat (by the driver)", 0x20, "slowed_sw_thermal_s"),
    "heat_hardware": Reason("heat", "heat (by the hardware)", 0x40, "slowed_hw_thermal_s"),
    "brake": Reason("brake", "the server's power brake", 0x80, "slowed_power_brake_s"),
    "hardware": Reason("other", "the hardware, for a reason it does not name", HARDWARE_FLAG),
    "sync_boost": Reason("other", "another GPU of its sync-boost group", 0x10, "slowed_sync_boost_s"),
    "voltage": Reason("other", "the voltage limit of reliability", 0x400, "slowed_reliability_s"),
    "set_clock": Reason("set", "a clock that somebody set", 0x02),
    "display_clock": Reason("set", "a clock set for a display", 0x100),
    "hour_power": Reason("power", "the power or board limit", 0),
    "hour_heat": Reason("heat", "heat or the server's power brake", 0),
}
LANES: Final = {
    "power": "power",
    "heat": "heat",
    "brake": "brake",
    "other": "other",
    "set": "set",
}
"""Rows of the band, in order, with the name that stands left of each."""
COUNTERS: Final = tuple(reason.metric for reason in REASONS.values() if reason.metric)


def is_told(values: Mapping[str, float]) -> bool:
    """Whether a sample says anything about reasons."""
    return "event_reasons_flags" in values or any(name in values for name in COUNTERS)


_NAMED: Final = tuple((key, reason.flag, reason.metric) for key, reason in REASONS.items() if reason.flag)
_ALL_FLAGS: Final = sum(flag for _, flag, _ in _NAMED)
_NAMED_HARDWARE: Final = 0x40 | 0x80


def of_sample(sample: GpuSample) -> dict[str, float]:
    """Seconds by reason of one sample; thousands of them are looked at for one chart."""
    values = sample.values
    flags = int(values.get("event_reasons_flags", 0.0)) & _ALL_FLAGS
    if flags & _NAMED_HARDWARE:
        flags &= ~HARDWARE_FLAG
    if not flags and not any(values.get(name) for name in COUNTERS):
        return {}
    covered_s = sample.covered_ms / 1000
    found: dict[str, float] = {}
    for key, flag, metric in _NAMED:
        seconds = values.get(metric)
        if seconds is None:
            seconds = covered_s if flags & flag else 0.0
        if seconds > 0:
            found[key] = min(seconds, covered_s)
    return found


def of_hour(hour: GpuHour) -> dict[str, float]:
    """Seconds by reason of one hour; what hours do not tell apart has one name."""
    heat = hour.slowed_thermal_s if hour.slowed_thermal_s is not None else hour.throttled_s
    pairs = {"hour_power": hour.slowed_power_s, "hour_heat": heat}
    return {key: seconds for key, seconds in pairs.items() if seconds}


def hour_is_told(hour: GpuHour) -> bool:
    """Whether an hour says anything about reasons."""
    return any(v is not None for v in (hour.slowed_power_s, hour.slowed_thermal_s, hour.throttled_s))


def text_of_reasons(slowed: Mapping[str, float]) -> str:
    """Reasons in words, the longest first; empty without any."""
    return ", ".join(REASONS[key].words for key in sorted(slowed, key=lambda k: -slowed[k]))
