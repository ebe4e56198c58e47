"""The simulated fleet as it is now: what a live source would hand over at one instant."""

from dataclasses import dataclass
from typing import Final

from agent.sources.simulator.fleet import Fleet
from core.readings import EngineReading, GpuReading, ProcessReading

SLOW_EVERY_MS: Final = 10_000
"""Engines are scraped and processes listed every 10 s; GPUs are read every time."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Readings of one instant."""

    gpus: tuple[GpuReading, ...]
    engines: tuple[EngineReading, ...]
    processes: tuple[ProcessReading, ...]


def snapshot(fleet: Fleet, now_ms: int) -> Snapshot:
    """Everything the fleet says at ``now_ms``; engines and processes on whole 10 s only."""
    gpus = tuple(reading for probe in fleet.gpus if (reading := probe.read(now_ms)) is not None)
    if now_ms % SLOW_EVERY_MS:
        return Snapshot(gpus, (), ())
    return Snapshot(
        gpus,
        tuple(scrape for engine in fleet.engines if (scrape := engine.read(now_ms)) is not None),
        tuple(process for probe in fleet.gpus for process in probe.processes(now_ms)),
    )
