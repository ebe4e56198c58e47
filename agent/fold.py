"""Readings → samples: the one place where instants become intervals, for live sources, importers and the simulator alike.

Means weigh by time (trapezoid between readings), a segment that crosses a border is split there, and a
distance that is too long to vouch for is a gap: no coverage, no energy, no guess. A counter that falls was
reset: that segment adds nothing.
"""

from collections.abc import Iterable
from typing import Final

from agent.columns import Plan
from agent.energy import energy
from agent.fold_processes import ProcessFold
from agent.track import Cut, Track
from core.activity import classify
from core.engine_metrics import ENGINE_METRICS
from core.gpu_metrics import ENERGY_J, GPU_METRICS
from core.readings import EngineReading, GpuIdentity, GpuReading
from core.samples import SAMPLE_MS, EngineSample, GpuSample

__all__ = ["EngineFold", "GpuFold", "ProcessFold"]

GPU_PLAN: Final = Plan.of(GPU_METRICS, without=frozenset({ENERGY_J.name}))
ENGINE_PLAN: Final = Plan.of(ENGINE_METRICS)


class GpuFold:
    """Readings of any number of GPUs into samples.

    Args:
        span_ms: length of a sample's interval; intervals are aligned to the epoch.
        identities: GPUs whose total memory is known, for the name of the activity; more by ``identify``.
    """

    def __init__(self, *, span_ms: int = SAMPLE_MS, identities: Iterable[GpuIdentity] = ()) -> None:
        self._span = span_ms
        self._tracks: dict[str, Track] = {}
        self._memory_total: dict[str, int | None] = {}
        for identity in identities:
            self.identify(identity)

    def identify(self, identity: GpuIdentity) -> None:
        """Learn a GPU's total memory."""
        if identity.memory_total_bytes is not None:
            self._memory_total[identity.gpu_uuid] = identity.memory_total_bytes

    @property
    def refused(self) -> int:
        """Readings that were not later than the one before them."""
        return sum(track.refused for track in self._tracks.values())

    @property
    def gaps(self) -> int:
        """Distances between readings that were too long to vouch for."""
        return sum(track.gaps for track in self._tracks.values())

    def add(self, reading: GpuReading) -> list[GpuSample]:
        """Take one reading; returns the samples it completes. One that is not later than the last is refused."""
        track = self._tracks.get(reading.gpu_uuid)
        if track is None:
            track = self._tracks[reading.gpu_uuid] = Track(self._span)
        cuts = track.add(reading.ts_ms, reading.values)
        return [self._sample(reading.gpu_uuid, cut) for cut in cuts] if cuts else []

    def flush(self, gpu_uuid: str | None = None) -> list[GpuSample]:
        """Samples of the intervals still open, of one GPU or of all; a later reading starts a new series."""
        uuids = list(self._tracks) if gpu_uuid is None else [u for u in (gpu_uuid,) if u in self._tracks]
        return [self._sample(uuid, cut) for uuid in uuids for cut in self._tracks[uuid].flush()]

    def _sample(self, gpu_uuid: str, cut: Cut) -> GpuSample:
        values = GPU_PLAN.fold(cut)
        joules = energy(cut)
        if joules is not None:
            values[ENERGY_J.name] = joules[0]
        verdict = classify(values, memory_total_bytes=self._memory_total.get(gpu_uuid))
        return GpuSample(
            gpu_uuid,
            cut.frame.start,
            self._span,
            cut.frame.covered_ms,
            values,
            None if joules is None else joules[1],
            verdict.activity,
        )


class EngineFold:
    """Readings of any number of engines into samples."""

    def __init__(self, *, span_ms: int = SAMPLE_MS) -> None:
        self._span = span_ms
        self._tracks: dict[str, Track] = {}

    @property
    def refused(self) -> int:
        """Readings that were not later than the one before them."""
        return sum(track.refused for track in self._tracks.values())

    def add(self, reading: EngineReading) -> list[EngineSample]:
        """Take one reading; returns the samples it completes."""
        track = self._tracks.get(reading.engine)
        if track is None:
            track = self._tracks[reading.engine] = Track(self._span)
        return [self._sample(reading.engine, cut) for cut in track.add(reading.ts_ms, reading.values)]

    def flush(self) -> list[EngineSample]:
        """Samples of the intervals still open."""
        return [self._sample(name, cut) for name, track in self._tracks.items() for cut in track.flush()]

    def _sample(self, engine: str, cut: Cut) -> EngineSample:
        busy_ms, running = _busy(cut)
        return EngineSample(
            engine,
            cut.frame.start,
            self._span,
            cut.frame.covered_ms,
            busy_ms,
            running,
            ENGINE_PLAN.fold(cut),
        )


def _busy(cut: Cut) -> tuple[int, float | None]:
    """Time with requests running or tokens coming out, and the mean batch over it (None: not known)."""
    busy, known_ms, batch = 0, 0, 0.0
    times, rows = cut.frame.times, cut.rows
    for i, low, high in cut.frame.pieces():
        before, here = rows[i - 1], rows[i]
        was, now = before.get("running_requests"), here.get("running_requests")
        grown = here.get("generated_tokens", 0.0) > before.get("generated_tokens", float("inf"))
        if not (was or now or grown):
            continue
        busy += high - low
        if was is not None and now is not None:
            share = ((low + high) / 2 - times[i - 1]) / (times[i] - times[i - 1])
            batch += (was + (now - was) * share) * (high - low)
            known_ms += high - low
    return busy, batch / known_ms if known_ms else None
