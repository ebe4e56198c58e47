"""One pass over a GPU's days (hours where it has no days) for all rules: time by what it was doing, energy, coverage."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from advisor.memo import OncePerEvidence
from core.evidence import Evidence, GpuEvidence
from core.series import figures_of
from core.units import HOUR_MS

COLUMNS: Final = (
    "covered_s",
    "active_s",
    "empty_s",
    "parked_s",
    "memory_bound_s",
    "spinning_s",
    "unknown_s",
    "energy_j",
    "memory_busy_ratio",
)


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
    rows = figures_of(gpu.hours, COLUMNS)
    *sums, energy_j, memory = zip(*rows, strict=True) if rows else [()] * len(COLUMNS)
    covered, active, empty, parked, bound, spinning, unknown = map(sum, sums)
    known_j = [energy for energy in energy_j if energy is not None]
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
        energy_j=sum(known_j) if known_j else None,
        spinning_h=spinning / 3600,
        is_memory_known=bool(memory) and memory[-1] is not None,
    )


def _digests(evidence: Evidence) -> Mapping[str, Digest]:
    """Every GPU of the fleet by UUID."""
    return {gpu.gpu_uuid: digest_of(evidence, gpu) for gpu in evidence.gpus}


digests = OncePerEvidence(_digests)


def digest(evidence: Evidence, gpu: GpuEvidence) -> Digest:
    """One GPU of the fleet."""
    return digests(evidence)[gpu.gpu_uuid]
