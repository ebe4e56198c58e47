"""What a GPU's charts show, in one sentence each: titles that state the conclusion. Pure."""

from decimal import Decimal
from typing import Final

from api import formats
from api.formats import NBSP
from api.pages.gpu_memory import Layers
from api.pages.gpu_series import GpuSeries
from api.pages.gpu_slowed import REASONS
from api.text import clipped
from api.words import ACTIVITY
from core.activity import IDLE, Activity
from core.units import GIB

NO_COUNTERS: Final = (
    "SM, tensor and DRAM activity were not measured in this period, so nothing here says how much of the GPU worked. "
    "On Hopper and newer the agent reads them from the driver, unless that keeps them for administrators "
    "(NVreg_RestrictProfilingToAdminUsers=0 opens them); on older cards it takes them from a dcgm-exporter "
    "on the host (DCGM_FI_PROF_*, setting dcgm_url)."
)
MOST_SHARES: Final = 3
STEADY: Final = 0.01
"""A metric that moves by less than this share of itself is steady."""
NEARLY_ALL: Final = Decimal("0.995")


def activity(series: GpuSeries) -> str:
    """Shares of the time with samples, the largest first."""
    seconds = {a: sum(p.seconds.get(a, 0.0) for p in series.points) for a in ACTIVITY}
    covered = sum(seconds.values())
    if covered <= 0:
        return "No samples"
    ranked = sorted((a for a in seconds if seconds[a] > 0), key=lambda a: -seconds[a])
    if len(ranked) == 1:
        return f"{ACTIVITY[ranked[0]].name.capitalize()} all the time"
    parts = [f"{formats.percent(seconds[a] / covered)} {ACTIVITY[a].name}" for a in ranked[:MOST_SHARES]]
    return " · ".join(parts)


def power(series: GpuSeries, limit_w: float | None) -> str:
    """Mean draw against the limit."""
    mean = series.mean("power_w")
    if mean is None:
        return "Power was not measured"
    said = f"It drew {formats.watts(mean)} on average"
    if limit_w:
        said += f", {formats.percent(mean / limit_w)} of its limit"
    return said


def use(series: GpuSeries) -> str:
    """How much of the time something ran, and how much of the GPU worked."""
    busy = series.mean("busy_ratio")
    names = (
        ("sm_active_ratio", "SMs"),
        ("tensor_active_ratio", "tensor cores"),
        ("dram_active_ratio", "memory"),
    )
    parts = [
        f"{word} {formats.percent(mean)}" for key, word in names if (mean := series.mean(key)) is not None
    ]
    if busy is None and not parts:
        return "Use was not measured"
    worked = f"active: {', '.join(parts)}" if parts else ""
    if busy is None:
        return worked.capitalize()
    if busy == 0:
        return "No kernel ran"
    ran = f"A kernel ran {formats.percent(busy)} of the time"
    return f"{ran}; {worked}" if worked else ran


def memory(series: GpuSeries, found: Layers, total_bytes: float | None) -> str:
    """The most that was held, and by whom."""
    highest = series.highest("memory_used_max_bytes")
    if highest is None:
        return "Memory was not measured"
    of = f" of {formats.figure(total_bytes / GIB)}" if total_bytes else ""
    if highest < 0.5 * GIB:
        return "No memory to speak of was held"
    said = f"Up to {formats.figure(highest / GIB)}{of}{NBSP}GiB held"
    if found.largest is None:
        return said
    return f"{said}, most by {clipped(found.largest)}"


def clocks(series: GpuSeries) -> str:
    """Whether anything held the clocks back."""
    told_s = sum(point.covered_s for point in series.points if point.told)
    if told_s <= 0:
        return "Nothing tells whether clocks were held back"
    seconds: dict[str, float] = {}
    for point in series.points:
        for key, value in point.slowed.items():
            seconds[key] = seconds.get(key, 0.0) + value
    worst = max((k for k in seconds if REASONS[k].lane != "set"), key=lambda k: seconds[k], default=None)
    if worst is None:
        mean = series.mean("sm_clock_hz")
        ran = "" if mean is None else f": SMs ran at {formats.clock_mhz(mean)} on average"
        return f"Nothing held the clocks back{ran}"
    share = formats.percent(min(seconds[worst] / told_s, 1.0))
    return f"Clocks were held back {share} of the time by {REASONS[worst].words}"


def is_steady(series: GpuSeries, name: str) -> bool:
    """Whether a metric moved so little that a chart of it would be a line."""
    known = [value for value, _ in series.known(name)]
    return bool(known) and max(known) - min(known) <= STEADY * max(known)


def steady_memory(series: GpuSeries) -> str:
    """What the clocks' small print says of a memory clock that has no chart."""
    if not is_steady(series, "memory_clock_hz"):
        return ""
    return f"; memory ran at {formats.clock_mhz(series.highest('memory_clock_hz'))} all the time"


def memory_clock(series: GpuSeries) -> str:
    """Between which clocks memory ran."""
    known = [value for value, _ in series.known("memory_clock_hz")]
    return f"Memory ran between {formats.clock_mhz(min(known))} and {formats.clock_mhz(max(known))}"


def temperature(series: GpuSeries) -> str:
    """The hottest that each part of the card was."""
    parts = [
        f"{word} at most {formats.celsius(highest)}"
        for key, word in (("temperature_c", "GPU"), ("memory_temperature_c", "memory"))
        if (highest := series.highest(key)) is not None
    ]
    return ", ".join(parts)


def links(series: GpuSeries) -> str:
    """Mean traffic of what was measured."""
    names = (("pcie_bytes_per_s", "PCIe"), ("nvlink_bytes_per_s", "NVLink"))
    parts = [
        f"{word} moved {formats.traffic(mean)}"
        for key, word in names
        if (mean := series.mean(key)) is not None
    ]
    return f"{' and '.join(parts)} on average"


def headline(
    name: str, series: GpuSeries, cost_usd: Decimal | None, idle_usd: Decimal | None
) -> tuple[str, str]:
    """What the period was, in one sentence, and what of its money was idle in another; the second may be empty."""
    covered = sum(point.covered_s for point in series.points)
    if covered <= 0:
        return f"{name}: no samples in this period", ""
    idle = sum(sum(point.seconds.get(a, 0.0) for a in IDLE) for point in series.points) / covered
    if idle >= 0.995:
        did = "did nothing all the time"
    elif idle >= 0.5:
        did = f"did nothing {formats.percent(idle)} of the time"
    else:
        unknown = sum(point.seconds.get(Activity.UNKNOWN, 0.0) for point in series.points) / covered
        if unknown > 0.5:
            return f"{name}: what it did cannot be told", ""
        did = f"worked {formats.percent(1 - idle - unknown)} of the time"
    if cost_usd is None:
        return f"{name} {did}", ""
    aside = ""
    if idle_usd and idle_usd >= Decimal("0.01"):
        what = "All" if idle_usd >= cost_usd * NEARLY_ALL else formats.money(idle_usd)
        aside = f"{what} of it bought hours in which nothing ran."
    return f"{name} {did} and cost {formats.money(cost_usd)}.", aside
