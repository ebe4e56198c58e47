"""The simulated fleet's past, on the path of real data: readings → fold → samples → ingest.

Older history is read and folded more coarsely, as telemetry that nobody zooms into. Runs in worker processes,
so it loads neither SQLAlchemy nor the web stack.
"""

from dataclasses import dataclass
from typing import Final

from agent.fold import EngineFold, GpuFold, ProcessFold
from agent.sources.simulator.fleet import EngineProbe, GpuProbe, fleet
from core.samples import EngineSample, GpuSample, ProcessSample
from core.units import DAY_MS, HOUR_MS, MINUTE_MS
from store.dbapi import open_connection
from store.ingest import Ingest

READ_EVERY_MS: Final = 5 * MINUTE_MS
"""The longest distance that fold vouches for."""


@dataclass(frozen=True, slots=True)
class Tier:
    """A stretch of history, one cadence: readings every ``step_ms``, samples of ``span_ms``."""

    from_ms: int
    to_ms: int
    step_ms: int
    span_ms: int


_CADENCES: Final = (
    (7 * DAY_MS, READ_EVERY_MS, 30 * MINUTE_MS),
    (DAY_MS, READ_EVERY_MS, 15 * MINUTE_MS),
    (2 * HOUR_MS, READ_EVERY_MS, READ_EVERY_MS),
    (0, MINUTE_MS, MINUTE_MS),
)
"""Age from which a cadence serves, distance of readings, length of samples: each step costs what a look at that age
is worth, so that thirty days of 32 GPUs are there in seconds."""


def tiers(from_ms: int, to_ms: int) -> tuple[Tier, ...]:
    """Stretches that cover ``from_ms`` to ``to_ms``, to the minute: the older the coarser.

    Borders are full hours. What is left before the first one is told by the minute, so that no sample reaches
    back over ``from_ms``.
    """
    start, end = -(-from_ms // MINUTE_MS) * MINUTE_MS, to_ms // MINUTE_MS * MINUTE_MS
    plan = [(-(-start // HOUR_MS) * HOUR_MS, MINUTE_MS, MINUTE_MS)]
    plan += [
        ((end - age_ms) // HOUR_MS * HOUR_MS if age_ms else end, step_ms, span_ms)
        for age_ms, step_ms, span_ms in _CADENCES
    ]
    found: list[Tier] = []
    for until, step_ms, span_ms in plan:
        stop = min(until, end)
        if stop > start:
            found.append(Tier(start, stop, step_ms, span_ms))
            start = stop
    return tuple(found)


def gpu_history(probe: GpuProbe, tier: Tier) -> tuple[list[GpuSample], list[ProcessSample]]:
    """One GPU over one stretch."""
    fold = GpuFold(span_ms=tier.span_ms, identities=[probe.identity])
    processes = ProcessFold(span_ms=tier.span_ms)
    found: list[GpuSample] = []
    held: list[ProcessSample] = []
    # One reading before the stretch, so that fold knows the cadence, and one at its end, which closes it.
    for ts_ms in range(tier.from_ms - tier.step_ms, tier.to_ms + 1, tier.step_ms):
        reading = probe.read(ts_ms)
        if reading is None:
            continue
        found += fold.add(reading)
        if (
            ts_ms % tier.span_ms == 0 and tier.from_ms <= ts_ms < tier.to_ms
        ):  # processes come and go with the hour
            for process in probe.processes(ts_ms):
                held += processes.add(process)
    found += fold.flush()
    return [sample for sample in found if tier.from_ms <= sample.ts_ms < tier.to_ms], held + processes.flush()


def engine_history(probe: EngineProbe, tier: Tier) -> list[EngineSample]:
    """One engine over one stretch."""
    fold = EngineFold(span_ms=tier.span_ms)
    found: list[EngineSample] = []
    for ts_ms in range(tier.from_ms - tier.step_ms, tier.to_ms + 1, tier.step_ms):
        reading = probe.read(ts_ms)
        if reading is not None:
            found += fold.add(reading)
    found += fold.flush()
    return [sample for sample in found if tier.from_ms <= sample.ts_ms < tier.to_ms]


def register(url: str, anchor_ms: int) -> None:
    """Tell the database which GPUs and engines there are."""
    crew = fleet(anchor_ms)
    with open_connection(url) as connection:
        ingest = Ingest(connection)
        ingest.gpus(probe.identity for probe in crew.gpus)
        ingest.engines(probe.identity for probe in crew.engines)
        ingest.commit()


def write_gpu(url: str, anchor_ms: int, number: int, stretches: tuple[Tier, ...]) -> int:
    """Simulate, fold and store one GPU's history; samples stored.

    The lists are complete before the first row is written: SQLite has one writer at a time, and folding must not
    hold its lock.
    """
    probe = fleet(anchor_ms).gpus[number]
    found: list[GpuSample] = []
    held: list[ProcessSample] = []
    for tier in stretches:
        samples, processes = gpu_history(probe, tier)
        found += samples
        held += processes
    with open_connection(url) as connection:
        ingest = Ingest(connection)
        stored = ingest.gpu_samples(found) + ingest.process_samples(held)
        ingest.commit()
    return stored


def write_engine(url: str, anchor_ms: int, number: int, stretches: tuple[Tier, ...]) -> int:
    """Simulate, fold and store one engine's history; samples stored."""
    probe = fleet(anchor_ms).engines[number]
    found = [sample for tier in stretches for sample in engine_history(probe, tier)]
    with open_connection(url) as connection:
        ingest = Ingest(connection)
        stored = ingest.engine_samples(found)
        ingest.commit()
    return stored
