"""Total › allocated › active › effective GPU-hours, with the money of each step."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Final

from api.resources.book import Book, book_for
from api.resources.by import By
from api.resources.columns import about
from api.resources.gpu_slice import Slice
from api.resources.scope import Scope
from api.resources.slices import slices
from api.resources.usage import HOUR_S, UsageSum
from core.activity import Activity
from ledger.cost import Meter

STEPS: Final = ("total", "allocated", "active", "effective")


@dataclass(frozen=True, slots=True)
class FunnelRow:
    """One step of the funnel."""

    step: Annotated[str, about("total, allocated, active or effective.")]
    gpu_h: Annotated[float | None, about("GPU-hours known to be in this step; null when nothing could tell.")]
    unknown_gpu_h: Annotated[
        float, about("GPU-hours of the step before that nothing can place (gap, no counters).")
    ]
    ratio: Annotated[float | None, about("Share of all GPU-hours.")]
    cost_usd: Annotated[
        Decimal | None,
        about("The priced hours of the step at their price; null: none is priced. Total: gaps included."),
    ]


def rows(scope: Scope, *, book: Book | None = None) -> list[FunnelRow]:
    """The four steps over the whole fleet; unknown time is said, never counted as a step."""
    read = book_for(scope, By.GPU, book)
    whole = UsageSum()
    meters: defaultdict[tuple[str, str], Meter] = defaultdict(Meter)
    for part in slices(scope, read, By.GPU):
        whole.add(part)
        price = read.price(part.gpu_uuid, part.from_ms)
        if price is not None:
            for step, seconds in _seconds(part).items():
                meters[step, part.gpu_uuid].add(seconds, price)
    unnamed_h = (whole.gap_s + whole.seconds.get(Activity.UNKNOWN, 0.0)) / HOUR_S
    named = whole.named_s > 0
    hours = {
        "total": whole.known_s / HOUR_S if whole.known_s > 0 else None,
        "allocated": whole.allocated_s / HOUR_S if named else None,
        "active": whole.active_s / HOUR_S if named else None,
        "effective": whole.effective_h,
    }
    unknown = {
        "total": 0.0,
        "allocated": unnamed_h,
        "active": unnamed_h,
        "effective": unnamed_h + whole.effective_unknown_s / HOUR_S,
    }
    total = hours["total"]
    return [
        FunnelRow(
            step=step,
            gpu_h=hours[step],
            unknown_gpu_h=unknown[step],
            ratio=None if hours[step] is None or not total else (hours[step] or 0.0) / total,
            cost_usd=None if hours[step] is None else _usd(meters, step),
        )
        for step in STEPS
    ]


def _seconds(part: Slice) -> dict[str, float]:
    return {
        "total": part.known_s,
        "allocated": part.allocated_s,
        "active": part.active_s,
        "effective": part.effective_s,
    }


def _usd(meters: Mapping[tuple[str, str], Meter], step: str) -> Decimal | None:
    """Cost of a step over all GPUs; None when none has a price."""
    found = [meter.usd for (of, _), meter in meters.items() if of == step]
    return sum(found, Decimal(0)) if found else None
