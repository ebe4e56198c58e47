"""The fleet's hours over one window, read once: what usage, energy, costs, funnel and overview all fold.

The database adds hours up to the coarsest stretch that the question allows (``step_for``), cut where prices change,
so that a month of a fleet is a few hundred rows.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from api.resources.by import By
from api.resources.pricing import PriceLookup, price_lookup, spec_of
from api.resources.scope import Scope
from core.evidence import Price, Window
from core.units import DAY_MS, HOUR_MS
from store.queries import fleet
from store.queries.fleet import FleetGpu
from store.queries.hour_sums import GpuSum, Stretches, gpu_sums

WHOLE: Final = frozenset({By.GPU, By.HOST, By.MODEL, By.OWNER})
"""Keys that do not change over time: one stretch for the whole window."""
BY_THE_HOUR: Final = frozenset({By.HOUR, By.ENGINE})
"""Engines share a GPU by who was seen in an hour."""


@dataclass(frozen=True, slots=True)
class Book:
    """Hours of every GPU in a window, with who they are, when they were known and what they cost.

    Attributes:
        window: as asked. stretches: how its time is cut.
        gpus: every GPU that was known in the window, by UUID; MIG slices are left out, because their card is here.
        gpu_keys: their rows in the GPU catalogue; None where the name resolves to none.
        spans: when each was known: from its first to its last sample, clipped to the window.
        sums: their hours added up by stretch.
    """

    window: Window
    stretches: Stretches
    gpus: Mapping[str, FleetGpu]
    gpu_keys: Mapping[str, str | None]
    spans: Mapping[str, Window]
    sums: tuple[GpuSum, ...]
    prices: PriceLookup

    def price(self, gpu_uuid: str, at_ms: int) -> Price | None:
        """Price of that GPU at that time; None: unpriced."""
        gpu = self.gpus.get(gpu_uuid)
        return None if gpu is None else self.prices(gpu.identity, self.gpu_keys[gpu_uuid], at_ms)

    def grid(self) -> Iterator[tuple[str, int, float, GpuSum | None]]:
        """Every GPU and stretch in which it was known: UUID, start, seconds known, and its hours there.

        Hours are None where no sample vouches for any of the stretch (a gap). The start is the stretch's own or the
        GPU's first sight, and never before the hour that holds it, so that a price is that of the hour.
        """
        by_key = {(row.gpu_uuid, row.from_ms): row for row in self.sums}
        for gpu_uuid, span in self.spans.items():
            for part in self.stretches.split(span):
                row = by_key.pop((gpu_uuid, self.stretches.start_of(part.from_ms)), None)
                yield gpu_uuid, part.from_ms - part.from_ms % HOUR_MS, (part.to_ms - part.from_ms) / 1000, row
        for (gpu_uuid, _), row in by_key.items():
            yield gpu_uuid, max(row.from_ms, self.window.from_ms), row.covered_s, row


def step_for(by: By) -> int | None:
    """The longest stretch whose hours fall under one key together."""
    if by in WHOLE:
        return None
    return HOUR_MS if by in BY_THE_HOUR else DAY_MS


def read_book(
    scope: Scope, step_ms: int | None = DAY_MS, *, gpu_uuids: Collection[str] | None = None
) -> Book:
    """Read fleet, hours and prices of the scope's window: three queries, whatever the raw history.

    Args:
        scope: where and when.
        step_ms: stretches to add hours up to; a day serves every key but ``hour`` and ``engine``.
        gpu_uuids: only these GPUs; default all.
    """
    prices = price_lookup(scope.session, scope.settings)
    stretches = Stretches(step_ms, _cuts(prices, scope.window))
    rows = gpu_sums(scope.session, scope.window, stretches, gpu_uuids)
    with_hours = {row.gpu_uuid for row in rows}
    gpus: dict[str, FleetGpu] = {}
    spans: dict[str, Window] = {}
    for gpu in fleet.gpus(scope.session):
        if gpu.identity.is_slice or (gpu_uuids is not None and gpu.identity.gpu_uuid not in gpu_uuids):
            continue
        span = _span(gpu, scope.window)
        if span is None and gpu.identity.gpu_uuid not in with_hours:
            continue
        gpus[gpu.identity.gpu_uuid] = gpu
        spans[gpu.identity.gpu_uuid] = span or scope.window
    return Book(
        window=scope.window,
        stretches=stretches,
        gpus=gpus,
        gpu_keys={
            uuid: spec.gpu_key if (spec := spec_of(gpu.identity)) else None for uuid, gpu in gpus.items()
        },
        spans=spans,
        sums=tuple(row for row in rows if row.gpu_uuid in gpus),
        prices=prices,
    )


def book_for(scope: Scope, by: By, book: Book | None = None) -> Book:
    """``book`` when its stretches are short enough for ``by``, else one that is."""
    step_ms = step_for(by)
    if book is not None and (step_ms is None or (book.stretches.step_ms or step_ms + 1) <= step_ms):
        return book
    return read_book(scope, step_ms)


def _cuts(prices: PriceLookup, window: Window) -> tuple[int, ...]:
    """Starts of the first hours at a new price."""
    starts = {border + -border % HOUR_MS for border in prices.borders}
    return tuple(sorted(start for start in starts if window.from_ms - HOUR_MS < start < window.to_ms))


def _span(gpu: FleetGpu, window: Window) -> Window | None:
    if gpu.first_seen_ms is None or gpu.last_seen_ms is None:
        return None
    start, end = max(gpu.first_seen_ms, window.from_ms), min(gpu.last_seen_ms, window.to_ms)
    return Window(start, end) if start < end else None
