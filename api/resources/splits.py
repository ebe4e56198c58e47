"""Cuts that go through a stretch: by activity, by engine, by workload. Each returns parts that add up to it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from api.resources.gpu_slice import Slice
from core.activity import IDLE, Activity, is_active, is_allocated
from core.readings import WorkloadKey
from store.queries.hour_sums import GpuSum, WorkloadSum

ALWAYS_EFFECTIVE: Final = (Activity.MEMORY_BOUND, Activity.COMPUTE_BOUND)
"""By their own thresholds (``core.activity``): DRAM ≥ 0.5, SM ≥ 0.5."""
HELD_IDLE: Final = frozenset({Activity.PARKED, Activity.UNKNOWN})
"""What time of a workload can be that is not active."""
TOLERANCE_S: Final = 1e-6


def by_activity(part: Slice, hours: GpuSum | None) -> Iterator[Slice]:
    """One part per activity; the gap joins ``unknown``.

    Energy time by activity is not stored: it is taken in the stretch's own share of time with energy. Effective
    time of a stretch that holds both ``mixed`` and ``busy`` cannot be told apart, and is unknown for both.
    """
    gap_s = part.known_s - part.covered_s
    seconds = dict(part.seconds)
    if gap_s > TOLERANCE_S:
        seconds.setdefault(Activity.UNKNOWN, 0.0)
    energy_share = part.energy_covered_s / part.covered_s if part.covered_s > 0 else 0.0
    effective = _effective_by_activity(part)
    for activity, s in seconds.items():
        joules = None if hours is None else hours.joules.get(activity)
        known, unknown = effective.get(activity, (0.0, 0.0))
        yield replace(
            part,
            key=activity.value,
            label=activity.value.replace("_", "-"),
            known_s=s + (gap_s if activity is Activity.UNKNOWN else 0.0),
            covered_s=s,
            seconds={activity: s},
            energy_j=joules,
            energy_covered_s=0.0 if joules is None else s * energy_share,
            energy_method=None if joules is None else part.energy_method,
            allocated_s=s if is_allocated(activity) else 0.0,
            active_s=s if is_active(activity) else 0.0,
            effective_s=known,
            effective_unknown_s=unknown,
        )


def _effective_by_activity(part: Slice) -> dict[Activity, tuple[float, float]]:
    found = {a: (part.seconds[a], 0.0) for a in ALWAYS_EFFECTIVE if a in part.seconds}
    rest = max(0.0, part.effective_s - sum(known for known, _ in found.values()))
    mixed, busy = part.seconds.get(Activity.MIXED, 0.0), part.seconds.get(Activity.BUSY, 0.0)
    busy_unknown = min(busy, part.effective_unknown_s)
    if mixed > 0 and busy - busy_unknown > TOLERANCE_S:
        found[Activity.MIXED], found[Activity.BUSY] = (0.0, mixed), (0.0, busy)
    elif mixed > 0:
        found[Activity.MIXED], found[Activity.BUSY] = (min(rest, mixed), 0.0), (0.0, busy_unknown)
    elif busy > 0:
        found[Activity.BUSY] = (min(rest, busy), busy_unknown)
    return found


def by_engine(part: Slice, engines: Sequence[tuple[str, str]]) -> Iterator[Slice]:
    """The engines (name, label) seen on that GPU in that stretch share it evenly; none: key None."""
    if not engines:
        yield part
        return
    method = "whole" if len(engines) == 1 else "even"
    for name, label in engines:
        yield part.scaled(1 / len(engines), key=name, label=label, method=method)


def by_workload(
    part: Slice, usages: Sequence[WorkloadSum], name: Callable[[WorkloadKey], tuple[str | None, str]]
) -> Iterator[Slice]:
    """One part per workload with its allocated time, and the rest of the stretch under key None.

    A workload's active seconds take the mix of activities of the GPU's own active time; its other allocated
    seconds that of the GPU's ``parked`` and ``unknown`` time.
    """
    left = part
    for usage in usages:
        taken = _of_workload(part, usage, *name(usage.workload))
        left = _minus(left, taken)
        yield taken
    if left.known_s > TOLERANCE_S:
        yield left


def _of_workload(part: Slice, usage: WorkloadSum, key: str | None, label: str) -> Slice:
    active: Mapping[Activity, float] = {
        a: s for a, s in part.seconds.items() if a not in IDLE and a is not Activity.UNKNOWN
    }
    idle = {a: s for a, s in part.seconds.items() if a in HELD_IDLE} or {Activity.PARKED: 1.0}
    seconds = _mixed(active, usage.active_s) | _mixed(idle, usage.allocated_s - usage.active_s)
    active_share = min(1.0, usage.active_s / part.active_s) if part.active_s > 0 else 0.0
    time_share = min(1.0, usage.allocated_s / part.covered_s) if part.covered_s > 0 else 0.0
    return Slice(
        key=key,
        label=label,
        gpu_uuid=part.gpu_uuid,
        from_ms=part.from_ms,
        known_s=usage.allocated_s,
        covered_s=usage.allocated_s,
        seconds=seconds,
        energy_j=usage.energy_j,
        energy_covered_s=0.0 if usage.energy_j is None else part.energy_covered_s * time_share,
        energy_method=None if usage.energy_j is None else part.energy_method,
        allocated_s=usage.allocated_s,
        active_s=usage.active_s,
        effective_s=usage.effective_s,
        effective_unknown_s=part.effective_unknown_s * active_share,
        share_method=usage.share_method,
    )


def _mixed(mix: Mapping[Activity, float], seconds: float) -> dict[Activity, float]:
    """``seconds`` in the proportions of ``mix``."""
    whole_s = sum(mix.values())
    if whole_s <= 0 or seconds <= TOLERANCE_S:
        return {}
    return {activity: seconds * s / whole_s for activity, s in mix.items()}


def _minus(whole: Slice, taken: Slice) -> Slice:
    energy = whole.energy_j
    if energy is not None and taken.energy_j is not None:
        energy = max(0.0, energy - taken.energy_j)
    return replace(
        whole,
        known_s=max(0.0, whole.known_s - taken.known_s),
        covered_s=max(0.0, whole.covered_s - taken.covered_s),
        seconds=_less(whole.seconds, taken.seconds),
        energy_j=energy,
        energy_covered_s=max(0.0, whole.energy_covered_s - taken.energy_covered_s),
        allocated_s=max(0.0, whole.allocated_s - taken.allocated_s),
        active_s=max(0.0, whole.active_s - taken.active_s),
        effective_s=max(0.0, whole.effective_s - taken.effective_s),
        effective_unknown_s=max(0.0, whole.effective_unknown_s - taken.effective_unknown_s),
    )


def _less(whole: Mapping[Activity, float], taken: Mapping[Activity, float]) -> dict[Activity, float]:
    left = {activity: s - taken.get(activity, 0.0) for activity, s in whole.items()}
    return {activity: s for activity, s in left.items() if s > TOLERANCE_S}
