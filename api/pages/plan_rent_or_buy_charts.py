"""Charts of rent or buy: cost of a GPU-hour by use, and what a machine may cost by use."""

from collections.abc import Sequence
from dataclasses import replace

from markupsafe import Markup

from api import formats
from api.charts_curves import Curve, Mark, curves
from api.charts_scatter import Upright
from api.pages.plan_rent_or_buy_words import rate
from ledger.rent_or_buy import RENT_FACTORS, RentOrBuyResult
from ledger.rent_or_buy_inputs import RentOrBuyInputs
from ledger.rent_or_buy_swings import UsePoint, dearest_purchase_usd


def use_title(inputs: RentOrBuyInputs, found: RentOrBuyResult) -> str:
    """What the chart of cost by use shows."""
    rent, own, use = found.rent_usd_per_gpu_h, found.own_usd_per_gpu_h, inputs.utilisation
    if rent is None or own is None:
        return "What an hour costs, owned and rented"
    at = "At full use" if use is None else f"At {formats.percent(use)} use"
    return f"{at} an owned GPU-hour costs {rate(own)}, a rented one {rate(rent)}"


def use_chart(inputs: RentOrBuyInputs, found: RentOrBuyResult, points: Sequence[UsePoint]) -> Markup:
    """Cost of a GPU-hour by use, owned and rented, where they cross, and where one stands."""
    rent = inputs.rent_per_gpu_hour
    assert rent is not None
    own = found.own_usd_per_gpu_h
    here = [] if inputs.utilisation is None or own is None else [(inputs.utilisation, float(own))]
    top = max(3 * rent, 1.25 * points[-1].own, *(min(1.15 * y, 5 * rent) for _, y in here))
    flat = tuple((100.0 * step / 10, rent) for step in range(11))
    drawn = (
        Curve(
            "rent",
            flat,
            tuple((x, RENT_FACTORS[0] * y) for x, y in flat),
            tuple((x, RENT_FACTORS[-1] * y) for x, y in flat),
        ),
        Curve(
            "own",
            tuple((100 * one.use, one.own) for one in points),
            tuple((100 * one.use, one.low) for one in points),
            tuple((100 * one.use, one.high) for one in points),
        ),
    )
    breakeven = found.breakeven_utilisation
    crossing = []
    if breakeven is not None and breakeven <= 1:
        crossing.append(Upright(100 * breakeven, f"owning pays from {formats.percent(breakeven)}"))
    marks = [
        Mark(
            100 * use,
            cost,
            f"{formats.percent(use)} use: {rate(cost)} owned, {rate(rent)} rented",
            None if inputs.utilisation_p25 is None else 100 * inputs.utilisation_p25,
            None if inputs.utilisation_p75 is None else 100 * inputs.utilisation_p75,
        )
        for use, cost in here
        if cost <= top
    ]
    return curves(
        drawn,
        label=f"{use_title(inputs, found)}.",
        x_unit="use, % of all hours",
        marks=marks,
        uprights=crossing,
        x_to=100,
        y_to=top,
        axis_text=formats.money_axis,
    )


def purchase_chart(inputs: RentOrBuyInputs) -> Markup | None:
    """The purchase price at which owning costs as much as renting, by use."""
    found = [(use / 20, dearest_purchase_usd(replace(inputs, utilisation=use / 20))) for use in range(1, 21)]
    points = tuple((100 * use, most) for use, most in found if most is not None)
    here = dearest_purchase_usd(inputs)
    if len(points) < 2:
        return None
    marks: tuple[Mark, ...] = ()
    if here is not None and inputs.utilisation is not None:
        text = f"{formats.percent(inputs.utilisation)} use: up to {formats.money(here)}"
        marks = (
            Mark(
                100 * inputs.utilisation,
                here,
                text,
                None if inputs.utilisation_p25 is None else 100 * inputs.utilisation_p25,
                None if inputs.utilisation_p75 is None else 100 * inputs.utilisation_p75,
            ),
        )
    return curves(
        (Curve("own", points),),
        label="The purchase price at which owning costs as much as renting, by use.",
        x_unit="use, % of all hours",
        marks=marks,
        x_to=100,
        axis_text=formats.money_axis,
    )
