"""One GPU over time at the resolution a chart can show: raw samples near, hours far, never more than ``MOST`` points."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from api.charts_bands import Column
from api.pages.gpu_slowed import COUNTERS, hour_is_told, is_told, of_hour, of_sample
from core.activity import Activity
from core.evidence import Window
from core.hour_columns import rows_of
from core.hours import GpuHour
from core.samples import SAMPLE_MS, GpuSample
from core.units import DAY_MS, HOUR_MS, MINUTE_MS

MOST: Final = 720
"""Points of one chart: two a pixel on a wide screen."""
MOST_FAR: Final = 400
"""Points of a chart over more than a month, where a day is a few pixels wide."""
RAW_UP_TO_MS: Final = 26 * HOUR_MS
"""Longest window drawn from raw samples: 9,360 rows of one GPU; a longer one reads hours."""
STEPS_MS: Final = (SAMPLE_MS, 30_000, MINUTE_MS, 2 * MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS)
HOUR_STEPS_MS: Final = (3 * HOUR_MS, 6 * HOUR_MS, 12 * HOUR_MS, DAY_MS)

MEANS: Final = (
    "power_w",
    "busy_ratio",
    "sm_active_ratio",
    "tensor_active_ratio",
    "dram_active_ratio",
    "memory_used_bytes",
    "sm_clock_hz",
    "memory_clock_hz",
    "pcie_bytes_per_s",
    "nvlink_bytes_per_s",
)
"""Folded as means by the time they vouch for; the two links are both directions together."""
HIGHEST: Final = ("power_max_w", "memory_used_max_bytes", "temperature_c", "memory_temperature_c")
LINKS: Final = {
    "pcie_bytes_per_s": ("pcie_rx_bytes_per_s", "pcie_tx_bytes_per_s"),
    "nvlink_bytes_per_s": ("nvlink_rx_bytes_per_s", "nvlink_tx_bytes_per_s"),
}
OF_HOUR: Final = {
    "power_w": "power_w",
    "power_max_w": "power_max_w",
    "busy_ratio": "busy_ratio",
    "sm_active_ratio": "sm_active_ratio",
    "tensor_active_ratio": "tensor_active_ratio",
    "dram_active_ratio": "dram_active_ratio",
    "memory_used_bytes": "memory_used_bytes",
    "memory_used_max_bytes": "memory_used_max_bytes",
    "sm_clock_hz": "sm_clock_hz",
    "temperature_max_c": "temperature_c",
    "pcie_bytes_per_s": "pcie_bytes_per_s",
    "nvlink_bytes_per_s": "nvlink_bytes_per_s",
}
"""Fields of an hour, and what its point calls them."""
METRICS: Final = (
    *(name for name in MEANS if name not in LINKS),
    *(name for pair in LINKS.values() for name in pair),
    *(name for name in HIGHEST if name != "memory_used_max_bytes"),
    "event_reasons_flags",
    *COUNTERS,
)
"""Metrics of samples that a series is made of."""


@dataclass(frozen=True, slots=True)
class GpuPoint:
    """One GPU over one step.

    Attributes:
        ts_ms: start. span_ms: length of the step.
        seconds: covered seconds by activity.
        values: ``MEANS`` and ``HIGHEST`` by name; absent where nothing was measured.
        slowed: seconds by reason for which clocks were held back. told: reasons are known here.
        covered_s: seconds for which samples vouch: the sum of ``seconds``.
    """

    ts_ms: int
    span_ms: int
    seconds: Mapping[Activity, float] = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)
    slowed: Mapping[str, float] = field(default_factory=dict)
    told: bool = False
    covered_s: float = 0.0


@dataclass(frozen=True, slots=True)
class GpuSeries:
    """Points by time with the step they were folded to and a word on where they come from."""

    window: Window
    points: tuple[GpuPoint, ...]
    step_ms: int
    source: str
    near: bool = True
    """From samples; else from hours."""

    @property
    def columns(self) -> list[Column]:
        """The points as columns of an activity band; what a step lacks is a gap."""
        return [Column(p.ts_ms, p.ts_ms + p.span_ms, p.seconds, p.span_ms / 1000) for p in self.points]

    def has(self, name: str) -> bool:
        """Whether a metric was measured anywhere."""
        return any(name in point.values for point in self.points)

    def known(self, name: str) -> list[tuple[float, float]]:
        """Values of a metric with the seconds behind each."""
        return [(p.values[name], p.covered_s) for p in self.points if name in p.values]

    def mean(self, name: str) -> float | None:
        """Mean of a metric over the time that has it."""
        pairs = self.known(name)
        weight = sum(seconds for _, seconds in pairs)
        return sum(value * seconds for value, seconds in pairs) / weight if weight else None

    def highest(self, name: str) -> float | None:
        """Highest of a metric."""
        return max((value for value, _ in self.known(name)), default=None)

    def with_gaps(self) -> list[GpuPoint]:
        """Points with an unknown one wherever samples pause for more than half a step."""
        found: list[GpuPoint] = []
        for point in self.points:
            if found:
                end = found[-1].ts_ms + found[-1].span_ms
                if point.ts_ms - end > self.step_ms // 2:
                    found.append(GpuPoint(end, point.ts_ms - end))
            found.append(point)
        return found


def step_for(window: Window) -> int:
    """The finest step of samples that keeps the window below ``MOST`` points."""
    length = window.to_ms - window.from_ms
    return next((step for step in STEPS_MS if length / step <= MOST), STEPS_MS[-1])


def hour_step_for(window: Window) -> int:
    """Every hour of a month; beyond, the finest step that keeps the window at ``MOST_FAR`` points."""
    length = window.to_ms - window.from_ms
    if length / HOUR_MS <= MOST + 1:
        return HOUR_MS
    return next((step for step in HOUR_STEPS_MS if length / step <= MOST_FAR), HOUR_STEPS_MS[-1])


def from_hours(hours: Iterable[GpuHour], window: Window) -> GpuSeries:
    """A far view: one point an hour, or some."""
    step = hour_step_for(window)
    buckets: dict[int, list[GpuPoint]] = {}
    covered = [hour for hour in hours if hour.covered_s > 0]
    for hour, row in zip(covered, rows_of(covered, *OF_HOUR), strict=True):
        buckets.setdefault(hour.hour_ms - hour.hour_ms % step, []).append(_point_of_hour(hour, row))
    points = tuple(_folded(start, step, buckets[start]) for start in sorted(buckets))
    text = "one point an hour" if step == HOUR_MS else f"one point for {step // HOUR_MS} hours"
    return GpuSeries(window, points, step, text, near=False)


def _point_of_hour(hour: GpuHour, row: Sequence[float | None]) -> GpuPoint:
    known = {name: value for name, value in zip(OF_HOUR.values(), row, strict=True) if value is not None}
    return GpuPoint(
        hour.hour_ms, HOUR_MS, hour.seconds, known, of_hour(hour), hour_is_told(hour), hour.covered_s
    )


def from_samples(samples: Sequence[GpuSample], window: Window) -> GpuSeries:
    """A near view: samples folded to the window's step, means weighted by the time they vouch for."""
    shortest = min((sample.span_ms for sample in samples), default=SAMPLE_MS)
    step = max(step_for(window), shortest)
    buckets: dict[int, list[GpuPoint]] = {}
    for sample in samples:
        if sample.covered_ms > 0:
            # A sample longer than the step stays where it is: moved to a grid it would overlap its neighbour.
            start = sample.ts_ms if sample.span_ms > step else sample.ts_ms - sample.ts_ms % step
            buckets.setdefault(start, []).append(_point_of_sample(sample))
    points = tuple(_folded(start, step, buckets[start]) for start in sorted(buckets))
    text = f"samples of {shortest // 1000} s"
    if step > shortest:
        text += (
            f", means over {step // 1000} s" if step < MINUTE_MS else f", means over {step // MINUTE_MS} min"
        )
    return GpuSeries(window, points, step, text)


def _point_of_sample(sample: GpuSample) -> GpuPoint:
    values = dict(sample.values)
    for name, (one, other) in LINKS.items():
        there, back = values.get(one), values.get(other)
        if (
            there is not None and back is not None
        ):  # as in hours: one direction alone is not the link's traffic
            values[name] = there + back
    if "memory_used_bytes" in values:
        values["memory_used_max_bytes"] = values["memory_used_bytes"]
    return GpuPoint(
        sample.ts_ms,
        sample.span_ms,
        {sample.activity: sample.covered_ms / 1000},
        values,
        of_sample(sample),
        is_told(sample.values),
        sample.covered_ms / 1000,
    )


def _folded(start: int, step: int, points: Sequence[GpuPoint]) -> GpuPoint:
    if len(points) == 1 and points[0].ts_ms == start and points[0].span_ms == step:
        return points[0]
    span = max(step, *(point.span_ms for point in points))
    values: dict[str, float] = {}
    for name in MEANS:
        total = weight = 0.0
        for point in points:
            value = point.values.get(name)
            if value is not None:
                total += value * point.covered_s
                weight += point.covered_s
        if weight:
            values[name] = total / weight
    for name in HIGHEST:
        highest = max((p.values[name] for p in points if name in p.values), default=None)
        if highest is not None:
            values[name] = highest
    return GpuPoint(
        start,
        span,
        _added(point.seconds for point in points),
        values,
        _added(point.slowed for point in points),
        any(point.told for point in points),
        sum(point.covered_s for point in points),
    )


K = TypeVar("K")


def _added(maps: Iterable[Mapping[K, float]]) -> dict[K, float]:
    total: dict[K, float] = {}
    for one in maps:
        if one:
            for key, value in one.items():
                total[key] = total.get(key, 0.0) + value
    return total
