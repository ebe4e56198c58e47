"""One GPU over time at the resolution a chart can show: raw samples near, hours far, never more than ``MOST`` points."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from api.charts_bands import Column
from core.activity import Activity
from core.evidence import Window
from core.hours import GpuHour
from core.samples import SAMPLE_MS, GpuSample
from core.units import HOUR_MS, MINUTE_MS

MOST: Final = 720
"""Points of one chart: two a pixel on a wide screen."""
RAW_UP_TO_MS: Final = 26 * HOUR_MS
"""Longest window drawn from raw samples: 9,360 rows of one GPU; a longer one reads hours."""
STEPS_MS: Final = (SAMPLE_MS, 30_000, MINUTE_MS, 2 * MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS)


@dataclass(frozen=True, slots=True)
class GpuPoint:
    """One GPU over one step; None where nothing was measured.

    Attributes:
        ts_ms: start. span_ms: length of the step.
        seconds: covered seconds by activity.
    """

    ts_ms: int
    span_ms: int
    power_w: float | None
    power_max_w: float | None
    busy_ratio: float | None
    memory_used_bytes: float | None
    seconds: Mapping[Activity, float]


@dataclass(frozen=True, slots=True)
class GpuSeries:
    """Points by time with the step they were folded to and a word on where they come from."""

    window: Window
    points: tuple[GpuPoint, ...]
    step_ms: int
    source: str

    @property
    def columns(self) -> list[Column]:
        """The points as columns of an activity band; what a step lacks is a gap."""
        return [Column(p.ts_ms, p.ts_ms + p.span_ms, p.seconds, p.span_ms / 1000) for p in self.points]

    def values(self, name: str) -> tuple[tuple[int, float | None], ...]:
        """One metric as points at the middle of their steps; an unknown one in every pause."""
        return tuple((p.ts_ms + p.span_ms // 2, getattr(p, name)) for p in self.with_gaps())

    def with_gaps(self) -> list[GpuPoint]:
        """Points with an unknown one wherever samples pause for more than half a step."""
        found: list[GpuPoint] = []
        for point in self.points:
            if found:
                end = found[-1].ts_ms + found[-1].span_ms
                if point.ts_ms - end > self.step_ms // 2:
                    found.append(GpuPoint(end, point.ts_ms - end, None, None, None, None, {}))
            found.append(point)
        return found


def step_for(window: Window) -> int:
    """The finest step that keeps the window below ``MOST`` points."""
    length = window.to_ms - window.from_ms
    return next((step for step in STEPS_MS if length / step <= MOST), STEPS_MS[-1])


def from_hours(hours: Iterable[GpuHour], window: Window) -> GpuSeries:
    """A far view: one point an hour."""
    points = tuple(
        GpuPoint(
            hour.hour_ms,
            HOUR_MS,
            hour.power_w,
            hour.power_max_w,
            hour.busy_ratio,
            hour.memory_used_max_bytes,
            hour.seconds,
        )
        for hour in hours
        if hour.covered_s > 0
    )
    return GpuSeries(window, points, HOUR_MS, "one point an hour")


def from_samples(samples: Sequence[GpuSample], window: Window) -> GpuSeries:
    """A near view: samples folded to the window's step, means weighted by the time they vouch for."""
    shortest = min((sample.span_ms for sample in samples), default=SAMPLE_MS)
    step = max(step_for(window), shortest)
    buckets: dict[int, list[GpuSample]] = {}
    for sample in samples:
        if sample.covered_ms > 0:
            # A sample longer than the step stays where it is: moved to a grid it would overlap its neighbour.
            start = sample.ts_ms if sample.span_ms > step else sample.ts_ms - sample.ts_ms % step
            buckets.setdefault(start, []).append(sample)
    points = tuple(_folded(start, step, buckets[start]) for start in sorted(buckets))
    text = f"samples of {shortest // 1000} s"
    if step > shortest:
        text += (
            f", means over {step // 1000} s" if step < MINUTE_MS else f", means over {step // MINUTE_MS} min"
        )
    return GpuSeries(window, points, step, text)


def _folded(start: int, step: int, samples: Sequence[GpuSample]) -> GpuPoint:
    seconds: dict[Activity, float] = {}
    for sample in samples:
        seconds[sample.activity] = seconds.get(sample.activity, 0.0) + sample.covered_ms / 1000
    return GpuPoint(
        start,
        max(step, *(sample.span_ms for sample in samples)),
        _mean(samples, "power_w"),
        _highest(samples, "power_max_w"),
        _mean(samples, "busy_ratio"),
        _highest(samples, "memory_used_bytes"),
        seconds,
    )


def _mean(samples: Sequence[GpuSample], name: str) -> float | None:
    known = [(s.values[name], s.covered_ms) for s in samples if name in s.values]
    weight = sum(ms for _, ms in known)
    return sum(value * ms for value, ms in known) / weight if weight else None


def _highest(samples: Sequence[GpuSample], name: str) -> float | None:
    return max((s.values[name] for s in samples if name in s.values), default=None)
