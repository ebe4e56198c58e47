"""Total › allocated › active › effective GPU-hours, with the money of each step."""

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
from core.evidence import Price
from ledger.cost import cost_usd

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
        Decimal | None, about("The priced hours of the step at their price; null: none is priced.")
    ]


def rows(scope: Scope, *, book: Book | None = None) -> list[FunnelRow]:
    """The four steps over the whole fleet; unknown time is said, never counted as a step."""
    read = book_for(scope, By.GPU, book)
    whole = UsageSum()
    money: dict[str, Decimal | None] = dict.fromkeys(STEPS)
    for part in slices(scope, read, By.GPU):
        whole.add(part)
        price = read.price(part.gpu_uuid, part.from_ms)
        if price is not None:
            for step, cost in _costs(part, price).items():
                money[step] = (money[step] or Decimal(0)) + cost
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
            cost_usd=None if hours[step] is None else money[step],
        )
        for step in STEPS
    ]


def _costs(part: Slice, price: Price) -> dict[str, Decimal]:
    return {
        "total": cost_usd(part.known_s, price),
        "allocated": cost_usd(part.allocated_s, price),
        "active": cost_usd(part.active_s, price),
        "effective": cost_usd(part.effective_s, price),
    }
