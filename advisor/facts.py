"""Facts that every finding carries, and the sentences rules share."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from core.chart import PackedChart
from core.clock import iso
from core.evidence import Evidence, Price
from core.finding import Range

_iso: Final = lru_cache(maxsize=16)(iso)
"""The same text for every finding of a run."""


def window_facts(evidence: Evidence, coverage_ratio: float) -> dict[str, Any]:
    """Window and coverage, as every finding's evidence has them."""
    return {
        "window_from": _iso(evidence.window.from_ms),
        "window_to": _iso(evidence.window.to_ms),
        "coverage_ratio": round(coverage_ratio, 4),
    }


def price_facts(price: Price | None) -> dict[str, Any]:
    """Price in force with its basis; nothing when the GPU is unpriced."""
    if price is None:
        return {}
    return {
        "usd_per_gpu_hour": str(price.usd_per_gpu_hour),
        "price_basis": price.basis,
        "price_as_of": price.as_of,
    }


def rounded(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts without the noise of binary floats, and without those that are unknown."""
    return {
        name: round(value, 6) if isinstance(value, float) else value
        for name, value in facts.items()
        if value is not None
    }


def as_facts(name: str, figure: Range) -> Mapping[str, float]:
    """A range as three facts: ``name_p10``, ``name_p50``, ``name_p90``."""
    return {f"{name}_p10": figure.p10, f"{name}_p50": figure.p50, f"{name}_p90": figure.p90}


def time_chart(points: Iterable[tuple[int, float | None]], unit: str, threshold: float | None) -> PackedChart:
    """A chart over time; an hour without data or value has no point, so that the line breaks there."""
    known = [point for point in points if point[1] is not None]
    times, values = zip(*known, strict=True) if known else ((), ())
    return PackedChart(times, values, unit, threshold)


def profile_chart(
    points: Iterable[tuple[float, float]], unit: str, x_unit: str, threshold: float
) -> PackedChart:
    """A chart over something else than time, for data too short to show a course."""
    known = list(points)
    return PackedChart([x for x, _ in known], [value for _, value in known], unit, threshold, x_unit)
