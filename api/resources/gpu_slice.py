"""One GPU, or a share of it, in one stretch of time: the unit that usage, energy and costs add up."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from core.activity import Activity
from core.samples import EnergyMethod
from store.queries.hour_sums import GpuSum


@dataclass(frozen=True, slots=True)
class Slice:
    """A share of a GPU's stretch of hours.

    Attributes:
        key: group it falls into; None: cannot be said. label: the key for people.
        from_ms: start of the stretch; its price is the one in force then.
        known_s: time it stands for; ``known_s − covered_s`` is a gap.
        covered_s: time for which samples vouch. seconds: of them by activity.
        energy_j: None when unknown. energy_covered_s: seconds behind it.
        allocated_s … effective_unknown_s: as in ``core.hours.GpuHour``.
        share_method: how shared hours were split; ``whole`` when they were not.
    """

    key: str | None
    label: str
    gpu_uuid: str
    from_ms: int
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


def whole(hours: GpuSum, from_ms: int, known_s: float, *, key: str | None = None, label: str = "") -> Slice:
    """A GPU's whole stretch; known at least as long as it is covered."""
    return Slice(
        key=key,
        label=label,
        gpu_uuid=hours.gpu_uuid,
        from_ms=from_ms,
        known_s=max(known_s, hours.covered_s),
        covered_s=hours.covered_s,
        seconds=hours.seconds,
        energy_j=hours.energy_j,
        energy_covered_s=hours.energy_covered_s,
        energy_method=hours.energy_method,
        allocated_s=hours.allocated_s,
        active_s=hours.active_s,
        effective_s=hours.effective_s,
        effective_unknown_s=hours.effective_unknown_s,
    )


def gap(gpu_uuid: str, from_ms: int, known_s: float, *, key: str | None = None, label: str = "") -> Slice:
    """Known time without samples: unknown, neither idle nor free."""
    return Slice(key, label, gpu_uuid, from_ms, known_s, 0.0, {}, None, 0.0, None, 0.0, 0.0, 0.0, 0.0)
