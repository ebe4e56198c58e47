"""One pass over a GPU's days (hours where it has no days) for all rules: time by what it was doing, energy, coverage."""

from collections.abc import Mapping
from dataclasses import dataclass

from advisor.memo import OncePerEvidence
from core.activity import Activity
from core.evidence import Evidence, GpuEvidence
from core.hours import GpuHour
from core.units import HOUR_MS


@dataclass(frozen=True, slots=True)
class Digest:
    """One GPU over the window.

    Attributes:
        observed_h: from its first to its last sample inside the window. covered_h: vouched for by samples.
        active_h, empty_h, parked_h, memory_bound_h, unknown_h: of the covered hours.
        energy_j: known energy; None when none is known.
        spinning_h: of the covered hours. is_memory_known: its newest day, or hour, tells memory utilization.
    """

    observed_h: float
    covered_h: float
    active_h: float
    empty_h: float
    parked_h: float
    memory_bound_h: float
    unknown_h: float
    energy_j: float | None
    spinning_h: float = 0.0
    is_memory_known: bool = False

    @property
    def coverage(self) -> float:
        """Share of the observed time for which samples vouch, 0–1."""
        return min(1.0, self.covered_h / self.observed_h) if self.observed_h > 0 else 0.0


def digest_of(evidence: Evidence, gpu: GpuEvidence) -> Digest:
    """The pass over one GPU."""
    covered = active = empty = parked = bound = unknown = energy = spinning = 0.0
    energy_known = False
    newest: GpuHour | None = None
    for hour in gpu.parts:
        newest = hour
        covered += hour.covered_s
        active += hour.active_s
        seconds = hour.seconds
        empty += seconds.get(Activity.EMPTY, 0.0)
        parked += seconds.get(Activity.PARKED, 0.0)
        bound += seconds.get(Activity.MEMORY_BOUND, 0.0)
        spinning += seconds.get(Activity.SPINNING, 0.0)
        unknown += seconds.get(Activity.UNKNOWN, 0.0)
        if hour.energy_j is not None:
            energy += hour.energy_j
            energy_known = True
    first = max(evidence.window.from_ms, gpu.first_sample_ms)
    last = min(evidence.window.to_ms, gpu.last_sample_ms)
    return Digest(
        observed_h=max(0.0, (last - first) / HOUR_MS),
        covered_h=covered / 3600,
        active_h=active / 3600,
        empty_h=empty / 3600,
        parked_h=parked / 3600,
        memory_bound_h=bound / 3600,
        unknown_h=unknown / 3600,
        energy_j=energy if energy_known else None,
        spinning_h=spinning / 3600,
        is_memory_known=newest is not None and newest.memory_busy_ratio is not None,
    )


def _digests(evidence: Evidence) -> Mapping[str, Digest]:
    """Every GPU of the fleet by UUID."""
    return {gpu.gpu_uuid: digest_of(evidence, gpu) for gpu in evidence.gpus}


digests = OncePerEvidence(_digests)


def digest(evidence: Evidence, gpu: GpuEvidence) -> Digest:
    """One GPU of the fleet."""
    return digests(evidence)[gpu.gpu_uuid]
