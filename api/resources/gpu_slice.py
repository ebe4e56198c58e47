"""One GPU, or a share of it, in one clock hour: the unit that usage, energy and costs add up."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from core.activity import Activity
from core.hours import GpuHour
from core.samples import EnergyMethod


@dataclass(frozen=True, slots=True)
class Slice:
    """A share of a GPU's hour.

    Attributes:
        key: group it falls into; None: cannot be said. label: the key for people.
        known_s: time it stands for; ``known_s − covered_s`` is a gap.
        covered_s: time for which samples vouch. seconds: of them by activity.
        energy_j: None when unknown. energy_covered_s: seconds behind it.
        allocated_s … effective_unknown_s: as in ``GpuHour``.
        share_method: how a shared hour was split; ``whole`` when it was not.
    """

    key: str | None
    label: str
    gpu_uuid: str
    hour_ms: int
    known_s: float
    covered_s: float
    seconds: Mapping[Activity, float]
    energy_j: float | None
    energy_covered_s: float
    energy_method: EnergyMethod | None
    allocated_s: float
    active_s: float
    effective_s: float
    effective_unknown_s: float
    share_method: str = "whole"

    def scaled(self, share: float, *, key: str | None, label: str, method: str) -> "Slice":
        """That share (0–1) of everything, under another key."""
        return replace(
            self,
            key=key,
            label=label,
            known_s=self.known_s * share,
            covered_s=self.covered_s * share,
            seconds={activity: s * share for activity, s in self.seconds.items()},
            energy_j=None if self.energy_j is None else self.energy_j * share,
            energy_covered_s=self.energy_covered_s * share,
            allocated_s=self.allocated_s * share,
            active_s=self.active_s * share,
            effective_s=self.effective_s * share,
            effective_unknown_s=self.effective_unknown_s * share,
            share_method=method,
        )


def whole(hour: GpuHour, known_s: float, *, key: str | None = None, label: str = "") -> Slice:
    """A GPU's whole hour; known at least as long as it is covered."""
    return Slice(
        key=key,
        label=label,
        gpu_uuid=hour.gpu_uuid,
        hour_ms=hour.hour_ms,
        known_s=max(known_s, hour.covered_s),
        covered_s=hour.covered_s,
        seconds=hour.seconds,
        energy_j=hour.energy_j,
        energy_covered_s=hour.energy_covered_s,
        energy_method=hour.energy_method,
        allocated_s=hour.allocated_s,
        active_s=hour.active_s,
        effective_s=hour.effective_s,
        effective_unknown_s=hour.effective_unknown_s,
    )


def gap(gpu_uuid: str, hour_ms: int, known_s: float, *, key: str | None = None, label: str = "") -> Slice:
    """Known time without samples: unknown, neither idle nor free."""
    return Slice(key, label, gpu_uuid, hour_ms, known_s, 0.0, {}, None, 0.0, None, 0.0, 0.0, 0.0, 0.0)
