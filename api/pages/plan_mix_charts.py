"""Charts of the mix: cost by the number of GPUs paid for, and the demand they are for."""

from typing import Final

from markupsafe import Markup

from api import formats
from api.charts_curves import Curve, Mark, curves
from api.charts_lines import Line, line_chart
from api.charts_scatter import Upright
from api.resources.plan_mix import MixRow
from core.evidence import Window
from core.units import HOUR_MS
from ledger.demand import Demand

LINES: Final = {"own": "own", "commit": "rent", "reserve": "faint-asked"}
"""Ways to pay → the line of their break-even."""


def cost_by_paid(row: MixRow) -> Markup:
    """Cost a month by GPUs owned or promised, the rest rented; the least is marked."""
    points = tuple((float(one.gpus), float(one.usd_per_month)) for one in row.curve)
    paid = (row.own_gpus or 0) + (row.commit_gpus or 0) + (row.reserve_gpus or 0)
    best = next((one for one in row.curve if one.gpus == paid), None)
    marks = []
    uprights = []
    spread = row.ranges.get("paid_gpus")
    if best is not None:
        marks.append(
            Mark(
                float(best.gpus),
                float(best.usd_per_month),
                f"{best.gpus} paid for: {formats.money(best.usd_per_month)} a month, the least",
                None if spread is None else float(spread.p10),
                None if spread is None else float(spread.p90),
            )
        )
        uprights.append(Upright(float(best.gpus), f"least at {best.gpus}"))
    return curves(
        (Curve("own", points),),
        label=f"Cost a month by GPUs paid for; the least is {formats.money(row.usd_per_month)} at {paid}.",
        x_unit="GPUs owned or promised, the rest rented",
        marks=marks,
        uprights=uprights,
        axis_text=formats.money_axis,
        height=230,
    )


def demand_over_time(measured: Demand, row: MixRow, window: Window) -> Markup:
    """GPUs wanted at once in each hour, with the number that is paid for as a line; hours hardly seen are gaps."""
    points = tuple((hour_ms, wanted / HOUR_MS) for hour_ms, wanted in measured.hours)
    paid = (row.own_gpus or 0) + (row.commit_gpus or 0) + (row.reserve_gpus or 0)
    return line_chart(
        (Line("busy", "wanted", points),),
        window=window,
        label=f"GPUs wanted at once by hour: {formats.short(round(row.demand.mean_gpus or 0.0, 2))} on average.",
        step_ms=HOUR_MS,
        highest=max(1.0, measured.present_gpus),
        threshold=float(paid) if paid else None,
        threshold_text=f"{paid} paid for" if paid else "",
        height=190,
    )


def use_of_nth(measured: Demand, row: MixRow) -> Markup:
    """How much the n-th GPU is wanted, with the use at which each way to pay for it is worth it."""
    curve = measured.duration
    most = max(1, curve.most_gpus)
    stride = max(1, -(-most // 200))
    points = tuple((float(n), 100 * curve.use_ratio(n)) for n in range(1, most + 1, stride))
    drawn = [Curve("asked", points)]
    for way, use in row.break_even_ratio.items():
        if use <= 1:
            drawn.append(Curve(LINES.get(way, "rent"), ((0.0, 100 * use), (float(most), 100 * use))))
    return curves(
        drawn,
        label=f"Use of the n-th GPU, from {points[0][1]:.0f} % of the first to {points[-1][1]:.0f} % of the last.",
        x_unit="n-th GPU, those before it taken first",
        y_to=100,
        axis_text=lambda value: f"{value:g} %",
        height=230,
    )
