"""What a benchmark says, and how it takes time: medians of runs that alternate with what they are compared to."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

MICRO: Final = 1e6


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table.

    Attributes:
        group: part of the product. name: what was done. value, unit: the median.
        ratio: against ``against``; a ratio travels between machines where a figure does not. None: none taken.
        runs: how many the median is of.
    """

    group: str
    name: str
    value: float
    unit: str
    runs: int
    ratio: float | None = None
    against: str = ""


def seconds(call: Callable[[], object]) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def medians(runs: int, *calls: Callable[[], float]) -> list[float]:
    """Median of what each call returns; the calls take turns, so that a slow minute of the machine hits all."""
    found: list[list[float]] = [[] for _ in calls]
    for _ in range(runs):
        for times, call in zip(found, calls, strict=True):
            times.append(call())
    return [median(times) for times in found]


def table(figures: Sequence[Figure]) -> str:
    """The figures as a Markdown table."""
    lines = ["| part | what | figure | ratio | runs |", "|---|---|---:|---:|---:|"]
    for one in figures:
        ratio = "" if one.ratio is None else f"{shown(one.ratio)} × {one.against}"
        lines.append(f"| {one.group} | {one.name} | {shown(one.value)} {one.unit} | {ratio} | {one.runs} |")
    return "\n".join(lines)


def shown(value: float) -> str:
    """Three significant digits, thousands apart."""
    if value >= 100:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.3g}"
