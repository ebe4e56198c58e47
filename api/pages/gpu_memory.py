"""Who held a GPU's memory over time: one layer for each of the largest workloads, the others, and what no process names. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from api.charts_areas import Area
from api.pages.gpu_series import GpuSeries
from api.text import clipped
from core.units import GIB
from store.queries.gpu_trace import Held

LARGEST: Final = 5
"""Layers with a name: more shades would not be told apart."""
MOST_LETTERS: Final = 80
OTHERS: Final = "others"
UNNAMED: Final = "no process named"
UNSURE_GIB: Final = 0.5
"""Less than this between the card's figure and its processes' is the driver's own, and rounding."""


@dataclass(frozen=True, slots=True)
class Layers:
    """Layers in GiB, one value a point of ``series.with_gaps()``; bottom first."""

    areas: tuple[Area, ...]

    @property
    def largest(self) -> str | None:
        """Name of who held most; None when no process is named."""
        named = [area for area in self.areas if area.name not in {OTHERS, UNNAMED}]
        return named[0].name if named else None


def layers(series: GpuSeries, held: Sequence[Held], names: Mapping[int, str]) -> Layers:
    """What workloads held, as means over each step; two runs of one name are one layer."""
    total: dict[str, float] = {}
    at: dict[str, dict[int, float]] = {}
    for one in held:
        name = clipped(names[one.workload_id], MOST_LETTERS) if one.workload_id in names else UNNAMED
        total[name] = total.get(name, 0.0) + one.byte_s
        steps = at.setdefault(name, {})
        steps[one.start_ms] = steps.get(one.start_ms, 0.0) + one.byte_s
    ranked = sorted(total, key=lambda name: (-total[name], name))
    points = series.with_gaps()

    def column(which: Sequence[str]) -> tuple[float | None, ...]:
        return tuple(
            sum(at[name].get(p.ts_ms, 0.0) for name in which) / p.covered_s / GIB if p.covered_s > 0 else None
            for p in points
        )

    areas = [Area(f"p-{i + 1}", name, column([name])) for i, name in enumerate(ranked[:LARGEST])]
    if ranked[LARGEST:]:
        areas.append(Area("p-others", OTHERS, column(ranked[LARGEST:])))
    rest: list[float | None] = []
    for i, point in enumerate(points):
        used = point.values.get("memory_used_bytes")
        if used is None:
            rest.append(None)
            continue
        left = used / GIB - sum(area.values[i] or 0.0 for area in areas)
        rest.append(left if left >= UNSURE_GIB else 0.0)
    if any(rest):
        areas.append(Area("a-unknown", UNNAMED, tuple(rest)))
    return Layers(tuple(areas))
