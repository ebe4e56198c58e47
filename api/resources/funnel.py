"""Total › allocated › active › effective GPU-hours, with the money of each step."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Final

from api.resources import usage
from api.resources.by import By
from api.resources.columns import about
from api.resources.report import Question, report
from api.resources.report_filters import NO_FILTERS, Filters
from api.resources.report_parts import USAGE
from api.resources.report_sum import LineSum, merged
from api.resources.scope import Scope

AMOUNTS: Final = (*USAGE, "cost_usd")
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


def rows(scope: Scope, filters: Filters = NO_FILTERS) -> list[FunnelRow]:
    """The four steps over the whole fleet; unknown time is said, never counted as a step."""
    return steps(merged(report(scope, Question((By.KIND,), AMOUNTS, money=True, filters=filters)).values()))


def steps(whole: LineSum) -> list[FunnelRow]:
    """The four steps of lines added up."""
    unnamed_h = whole.hours("unknown_ms")
    used = usage.row_of((None,), (By.KIND,), whole)
    hours = {
        "total": used.total_gpu_h or None,
        "allocated": used.allocated_gpu_h,
        "active": used.active_gpu_h,
        "effective": used.effective_gpu_h,
    }
    unknown = {
        "total": 0.0,
        "allocated": unnamed_h,
        "active": unnamed_h,
        "effective": unnamed_h + used.effective_unknown_gpu_h,
    }
    total = hours["total"]
    return [
        FunnelRow(
            step=step,
            gpu_h=hours[step],
            unknown_gpu_h=unknown[step],
            ratio=None if hours[step] is None or not total else (hours[step] or 0.0) / total,
            cost_usd=None if hours[step] is None else _usd(whole, step),
        )
        for step in STEPS
    ]


def _usd(whole: LineSum, step: str) -> Decimal | None:
    return whole.usd("cost_usd") if step == "total" else whole.step_usd(f"{step}_ms")
