"""Microseconds that fold takes for one reading."""

from collections.abc import Iterator, Sequence
from typing import Final

from agent.fold import EngineFold, GpuFold
from agent.sources.simulator.fleet import fleet
from bench.measure import MICRO, Figure, medians, seconds
from core.readings import EngineReading, GpuReading
from core.samples import SAMPLE_MS
from core.units import HOUR_MS, MINUTE_MS, SECOND_MS

START_MS: Final = 1_794_960_000_000
READINGS: Final = 3_600


def run(runs: int) -> Iterator[Figure]:
    """The cadences that occur: live, a scrape of 15 s, one reading a minute."""
    of = fleet(START_MS + HOUR_MS)
    for name, step_ms, span_ms in (
        ("GPU, 1 s → 10 s (live)", SECOND_MS, SAMPLE_MS),
        ("GPU, 15 s → 10 s (Prometheus)", 15 * SECOND_MS, SAMPLE_MS),
        ("GPU, 60 s → 60 s", MINUTE_MS, MINUTE_MS),
    ):
        instants = range(START_MS, START_MS + READINGS * step_ms, step_ms)
        readings = [reading for ts_ms in instants if (reading := of.gpus[4].read(ts_ms)) is not None]
        (took_s,) = medians(runs, lambda r=readings, s=span_ms: seconds(lambda: _fold_gpu(r, s)))  # type: ignore[misc]
        yield Figure("fold", name, took_s / len(readings) * MICRO, "µs/reading", runs)
    instants = range(START_MS, START_MS + READINGS * SECOND_MS, SECOND_MS)
    scrapes = [scrape for ts_ms in instants if (scrape := of.engines[0].read(ts_ms)) is not None]
    (took_s,) = medians(runs, lambda: seconds(lambda: _fold_engine(scrapes)))
    yield Figure("fold", "engine, 1 s → 10 s", took_s / len(scrapes) * MICRO, "µs/reading", runs)


def _fold_gpu(readings: Sequence[GpuReading], span_ms: int) -> None:
    fold = GpuFold(span_ms=span_ms)
    for reading in readings:
        fold.add(reading)
    fold.flush()


def _fold_engine(readings: Sequence[EngineReading]) -> None:
    fold = EngineFold()
    for reading in readings:
        fold.add(reading)
    fold.flush()
