"""The fleet's hours over one window, read once: what usage, energy, costs, funnel and overview all fold."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from api.resources.pricing import PriceLookup, price_lookup, spec_of
from api.resources.scope import Scope
from core.evidence import Price, Window
from core.hours import GpuHour
from core.units import HOUR_MS
from store.queries import fleet, hours
from store.queries.fleet import FleetGpu


@dataclass(frozen=True, slots=True)
class Book:
    """Hours of every GPU in a window, with who they are, when they were known and what they cost.

    Attributes:
        window: as asked.
        gpus: every GPU that was known in the window, by UUID.
        gpu_keys: their rows in the GPU catalogue; None where the name resolves to none.
        spans: when each was known: from its first to its last sample, clipped to the window.
        hours: rows that have samples, by GPU and time.
    """

    window: Window
    gpus: Mapping[str, FleetGpu]
    gpu_keys: Mapping[str, str | None]
    spans: Mapping[str, Window]
    hours: tuple[GpuHour, ...]
    prices: PriceLookup

    def price(self, gpu_uuid: str, at_ms: int) -> Price | None:
        """Price of that GPU at that time; None: unpriced."""
        gpu = self.gpus.get(gpu_uuid)
        return None if gpu is None else self.prices(gpu.identity, self.gpu_keys[gpu_uuid], at_ms)

    def known_s(self, gpu_uuid: str, hour_ms: int) -> float:
        """Seconds of that hour in which the GPU was known."""
        span = self.spans[gpu_uuid]
        return max(0, min(hour_ms + HOUR_MS, span.to_ms) - max(hour_ms, span.from_ms)) / 1000

    def grid(self) -> Iterator[tuple[str, int, GpuHour | None]]:
        """Every GPU and hour in which the GPU was known; the hour is None where no sample vouches (a gap)."""
        by_key = {(hour.gpu_uuid, hour.hour_ms): hour for hour in self.hours}
        for gpu_uuid, span in self.spans.items():
            for hour_ms in range(span.from_ms - span.from_ms % HOUR_MS, span.to_ms, HOUR_MS):
                yield gpu_uuid, hour_ms, by_key.get((gpu_uuid, hour_ms))


def read_book(scope: Scope) -> Book:
    """Read fleet, hours and prices of the scope's window; three queries, whatever the raw history."""
    rows = hours.gpu_hours(scope.session, scope.window)
    with_hours = {row.gpu_uuid for row in rows}
    gpus: dict[str, FleetGpu] = {}
    spans: dict[str, Window] = {}
    for gpu in fleet.gpus(scope.session):
        span = _span(gpu, scope.window)
        if span is None and gpu.identity.gpu_uuid not in with_hours:
            continue
        gpus[gpu.identity.gpu_uuid] = gpu
        spans[gpu.identity.gpu_uuid] = span or scope.window
    return Book(
        window=scope.window,
        gpus=gpus,
        gpu_keys={
            uuid: spec.gpu_key if (spec := spec_of(gpu.identity)) else None for uuid, gpu in gpus.items()
        },
        spans=spans,
        hours=tuple(row for row in rows if row.gpu_uuid in gpus),
        prices=price_lookup(scope.session, scope.settings),
    )


def _span(gpu: FleetGpu, window: Window) -> Window | None:
    if gpu.first_seen_ms is None or gpu.last_seen_ms is None:
        return None
    start, end = max(gpu.first_seen_ms, window.from_ms), min(gpu.last_seen_ms, window.to_ms)
    return Window(start, end) if start < end else None
