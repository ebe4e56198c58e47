"""Steps of hours cut into those of their quarters, as far as hours keep them. Pure.

An hour that keeps none (folded before there were any) stands for all four with its own figures.
"""

from collections.abc import Iterable, Iterator, Mapping

from core.activity import Activity
from core.quarters import OF_GPU, OF_HOST, QUARTER_MS, QUARTERS, Quarters
from store.queries.gpu_heat import Step

GpuQuarters = Mapping[tuple[int, int], Quarters | None]
"""By GPU and start of the hour; None: the hour keeps none."""
HostQuarters = Mapping[int, Quarters | None]
"""The same of a host."""


def starts(hour_ms: int) -> Iterator[int]:
    """Starts of the quarters of an hour."""
    return (hour_ms + at * QUARTER_MS for at in range(QUARTERS))


def activities(
    hours: Mapping[tuple[int, int], Mapping[Activity, float]], quarters: GpuQuarters
) -> dict[tuple[int, int], Mapping[Activity, float]]:
    """Seconds of the main activity by GPU and start of the quarter; gaps are not there."""
    found: dict[tuple[int, int], Mapping[Activity, float]] = {}
    for (gpu_id, hour_ms), seconds in hours.items():
        kept = quarters.get((gpu_id, hour_ms))
        for at, start in enumerate(starts(hour_ms)):
            if kept is None:
                found[gpu_id, start] = seconds
            elif (activity := kept[at].activity) is not None:
                found[gpu_id, start] = {activity: kept[at].covered_s}
    return found


def values(hours: Iterable[Step], quarters: GpuQuarters, name: str) -> list[Step]:
    """Means of one of ``OF_GPU`` by GPU and quarter; gaps are not there."""
    place = OF_GPU.index(name)
    found = []
    for gpu_id, hour_ms, value in hours:
        kept = quarters.get((gpu_id, hour_ms))
        for at, start in enumerate(starts(hour_ms)):
            if kept is None:
                found.append(Step(gpu_id, start, value))
            elif kept[at].covered_s > 0:
                found.append(Step(gpu_id, start, kept[at].values[place]))
    return found


def machine(
    hours: Mapping[int, Mapping[str, float | None]], quarters: HostQuarters
) -> dict[int, Mapping[str, float | None]]:
    """Means of ``OF_HOST`` by start of the quarter."""
    found: dict[int, Mapping[str, float | None]] = {}
    for hour_ms, figures in hours.items():
        kept = quarters.get(hour_ms)
        for at, start in enumerate(starts(hour_ms)):
            found[start] = figures if kept is None else dict(zip(OF_HOST, kept[at].values, strict=True))
    return found
