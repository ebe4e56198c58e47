"""Runs of batch jobs as energy by hour: what could have been spent at another time of the day."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from advisor.digest import digest
from advisor.estimators.shift import DAY_H, Run
from core.evidence import Evidence, GpuEvidence, WorkloadUse
from core.hours import GpuHour
from core.units import HOUR_MS, J_PER_KWH

BATCH_KINDS: Final = frozenset({"slurm_job"})
"""Kinds that a scheduler starts when it likes; a pod or a container may serve somebody."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The jobs of a window that could have run at another time.

    Attributes:
        runs: each job's energy by hour, above idle. gpus: that ran them. unread: jobs left out because energy or
            bare idle power of a GPU is not known. long: jobs left out because they fill a day.
    """

    runs: tuple[Run, ...]
    gpus: tuple[GpuEvidence, ...]
    unread: int
    long: int


def batch_of(evidence: Evidence, pue: float) -> Batch:
    """Jobs of batch schedulers that began and ended in the window, on GPUs that they had for themselves.

    Only energy above the card's bare idle moves with a job: the card is there at the other hour too.
    """
    parts: dict[str, list[tuple[GpuEvidence, WorkloadUse]]] = defaultdict(list)
    for gpu in evidence.gpus:
        for use in gpu.uses:
            if use.workload.kind in BATCH_KINDS:
                parts[use.workload.key].append((gpu, use))
    read: dict[str, Mapping[int, GpuHour]] = {}
    runs: list[Run] = []
    used: dict[str, GpuEvidence] = {}
    unread = long = 0
    for members in parts.values():
        if not all(_is_whole(evidence, gpu, use) for gpu, use in members):
            continue
        begin_ms = min(use.first_ms for _, use in members)
        hours = (max(use.last_ms for _, use in members) - begin_ms) // HOUR_MS
        if hours >= DAY_H:
            long += 1
            continue
        for gpu, _ in members:
            if gpu.gpu_uuid not in read:
                read[gpu.gpu_uuid] = {hour.hour_ms: hour for hour in gpu.hours}
        kwh = _kwh([(gpu, use, read[gpu.gpu_uuid]) for gpu, use in members], begin_ms, hours, pue)
        if kwh is None:
            unread += 1
            continue
        runs.append(Run(begin_ms // HOUR_MS % DAY_H, kwh))
        used.update((gpu.gpu_uuid, gpu) for gpu, _ in members)
    return Batch(tuple(runs), tuple(used.values()), unread, long)


def _is_whole(evidence: Evidence, gpu: GpuEvidence, use: WorkloadUse) -> bool:
    """Alone on the GPU, begun after the window did and over before its data end."""
    begun = use.first_ms > evidence.window.from_ms or use.first_ms > gpu.first_sample_ms
    return not use.shared and begun and use.last_ms < gpu.last_sample_ms


def _kwh(
    members: Sequence[tuple[GpuEvidence, WorkloadUse, Mapping[int, GpuHour]]],
    begin_ms: int,
    hours: int,
    pue: float,
) -> tuple[float, ...] | None:
    """Energy above idle of each of the job's hours on all of its GPUs, at the meter; None when a part is not known."""
    kwh = [0.0] * hours
    for gpu, use, read in members:
        bare_w = gpu.bare_idle_w
        if bare_w is None:
            return None
        for hour_ms in range(use.first_ms, use.last_ms, HOUR_MS):
            hour = read.get(hour_ms)
            if hour is None or hour.energy_j is None:
                return None
            above_j = max(0.0, hour.energy_j - bare_w * hour.energy_covered_s)
            kwh[(hour_ms - begin_ms) // HOUR_MS] += above_j * pue / J_PER_KWH
    return tuple(kwh)


def active_by_hour(gpus: Sequence[GpuEvidence]) -> Mapping[int, float]:
    """Share of covered time at work by hour of the day (UTC); hours never seen are absent."""
    covered: dict[int, float] = defaultdict(float)
    active: dict[int, float] = defaultdict(float)
    for gpu in gpus:
        for hour in gpu.hours:
            at = hour.hour_ms // HOUR_MS % DAY_H
            covered[at] += hour.covered_s
            active[at] += hour.active_s
    return {at: active[at] / seconds for at, seconds in covered.items() if seconds > 0}


def coverage_of(evidence: Evidence, gpus: Sequence[GpuEvidence]) -> float:
    """Share of their time for which samples vouch, 0–1: the worst of them."""
    return min((digest(evidence, gpu).coverage for gpu in gpus), default=0.0)
