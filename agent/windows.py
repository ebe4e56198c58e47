"""Readings wait for the profiling counters of the time they stand in.

GPM gives means over the time between two samples, at its end. Given to the readings that follow, every value would
be ten seconds late and land in the next interval; so the readings of a card that has GPM wait until the pair that
spans them is there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from core.readings import GpuReading

PATIENCE_MS: Final = 15_000
"""Readings go on without counters when no pair came for this long."""


@dataclass(slots=True)
class _Waiting:
    seen_ms: int
    readings: list[GpuReading] = field(default_factory=list)


class Windows:
    """The readings of each card that wait."""

    def __init__(self) -> None:
        self._cards: dict[str, _Waiting] = {}

    def reading(self, reading: GpuReading) -> list[GpuReading]:
        """Take one reading; what may go on now. A card without GPM never waits."""
        card = self._cards.get(reading.gpu_uuid)
        if card is None:
            return [reading]
        card.readings.append(reading)
        if reading.ts_ms - card.seen_ms <= PATIENCE_MS:
            return []
        return self.release(reading.gpu_uuid)

    def pair(self, gpu_uuid: str, from_ms: int, to_ms: int, values: Mapping[str, float]) -> list[GpuReading]:
        """Take the means over ``(from, to]``; the readings up to then go on, those inside with the values."""
        card = self._cards.setdefault(gpu_uuid, _Waiting(to_ms))
        card.seen_ms = to_ms
        ready = [reading for reading in card.readings if reading.ts_ms <= to_ms]
        card.readings = card.readings[len(ready) :]
        return [
            GpuReading(gpu_uuid, one.ts_ms, {**one.values, **values}) if one.ts_ms > from_ms else one
            for one in ready
        ]

    def release(self, gpu_uuid: str) -> list[GpuReading]:
        """All that waits of one card, which is then held to have no GPM until its next pair."""
        card = self._cards.pop(gpu_uuid, None)
        return [] if card is None else card.readings

    def release_all(self) -> list[GpuReading]:
        """All that waits."""
        return [reading for uuid in list(self._cards) for reading in self.release(uuid)]
