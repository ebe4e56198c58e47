"""Rent or buy as a page: the answer as a sentence, cost by use with the point where one stands, and what turns the answer."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from api import formats
from api.charts_bars import swing_bar
from api.charts_curves import Curve, Mark, curves
from api.charts_scatter import Upright
from api.overview_parts import Tile
from api.pages.frame import Frame, build_frame
from api.pages.plan_fields import Kind, Spec
from api.pages.plan_form import MACHINE, RENT, RUNNING, TABS, Asked, PlanForm, ask, form_of
from api.pages.plan_mix_charts import cost_by_paid
from api.pages.view import View, ViewDep
from api.resources.plan_mix import MixRow, Question, mix_of_two
from api.templating import render
from core.errors import UsageError
from ledger.rent_or_buy import RENT_FACTORS, RentOrBuyResult, Spread, Verdict, evaluate
from ledger.rent_or_buy_inputs import RentOrBuyInputs
from ledger.rent_or_buy_swings import Case, Swing, UsePoint, by_use, cases, dearest_purchase_usd, swings

router = APIRouter(include_in_schema=False)

PATH: Final = "/plan/rent-or-buy"
USE: Final = (
    Spec("utilisation", "Wanted", "% of all hours", Kind.PERCENT),
    Spec("utilisation_p25", "Wanted on slow days", "% of all hours", Kind.PERCENT),
    Spec("utilisation_p75", "Wanted on busy days", "% of all hours", Kind.PERCENT),
)
GROUPS: Final = (
    ("The machine", MACHINE, True),
    ("Rent and use", (RENT, *USE), True),
    ("What it takes to run", RUNNING, False),
)
SPECS: Final = tuple(spec for _, specs, _ in GROUPS for spec in specs)
BY_NAME: Final = {spec.name: spec for spec in SPECS}
CASES: Final = {
    "against owning": f"rent {formats.percent(RENT_FACTORS[0] - 1)}, shorter life, slow days",
    "as assumed": "what the form says",
    "for owning": f"rent +{formats.percent(RENT_FACTORS[-1] - 1)}, longer life, busy days",
}


@dataclass(frozen=True, slots=True)
class SwingLine:
    """One assumption moved alone, for people."""

    name: str
    tried: str
    saves: str
    turns: bool
    bar: Markup


@dataclass(frozen=True, slots=True)
class CaseLine:
    """One case, for people."""

    name: str
    note: str
    use: str
    rent: str
    life: str
    own: str
    breakeven: str
    payback: str
    saves: str


@dataclass(frozen=True, slots=True)
class RentOrBuyPage:
    """Everything the page prints; parts without an honest figure are empty.

    Attributes:
        result: there is one: no field is wrong. title, chart: of cost by use; points: the same as a table.
        most: what a machine may cost by use, while its price is not given.
        paid, paid_title, mix: cost by the number owned.
    """

    frame: Frame
    tabs: tuple[tuple[str, str], ...]
    path: str
    headline: str
    lede: str
    form: PlanForm
    result: bool
    tiles: tuple[Tile, ...] = ()
    title: str = ""
    chart: Markup | None = None
    points: tuple[UsePoint, ...] = ()
    rent_usd: float | None = None
    most: Markup | None = None
    swing_title: str = ""
    swings: tuple[SwingLine, ...] = ()
    cases: tuple[CaseLine, ...] = ()
    mix: MixRow | None = None
    paid: Markup | None = None
    paid_title: str = ""


def headline(inputs: RentOrBuyInputs, found: RentOrBuyResult, mix: MixRow | None = None) -> tuple[str, str]:
    """The answer as a sentence, and what to know of it; ``mix``: for the measured demand."""
    use, breakeven = inputs.utilisation, found.breakeven_utilisation
    firm = ""
    if found.firm is not None:
        firm = (
            "It holds over the whole range of rent, life and use."
            if found.firm
            else "It does not hold over the whole range of rent, life and use: look at the offer you have."
        )
    if found.verdict is Verdict.UNKNOWN:
        return _unknown(inputs, found)
    if found.verdict is Verdict.NEVER:
        return "Keep renting: running a machine of your own costs more than its rent", firm
    if breakeven is None or breakeven > 1:
        return "Keep renting: owning does not pay even at full use", firm
    at, runs = formats.percent(breakeven), formats.percent(use)
    if found.verdict is Verdict.MIX:
        low, high = formats.percent(inputs.utilisation_p25), formats.percent(inputs.utilisation_p75)
        days = f"owning pays from {at} use, and your days are between {low} and {high}"
        if mix is None or mix.own_gpus is None:
            return (
                f"Own what is always busy and rent the rest: {days}",
                "How many to own is on the third page.",
            )
        if mix.own_gpus == 0:
            return (
                f"Keep renting: {days}",
                "No whole machine is wanted enough: renting all of it costs least.",
            )
        count = formats.figure(mix.own_gpus)
        return f"Own {count} GPUs and rent the rest: {days}", f"For the demand measured here. {mix.reason}"
    if found.verdict is Verdict.BUY:
        return f"Owning pays: it takes {at} use, and you run at {runs}", firm
    return f"Keep renting: owning pays from {at} use, and you run at {runs}", firm


def _unknown(inputs: RentOrBuyInputs, found: RentOrBuyResult) -> tuple[str, str]:
    most = dearest_purchase_usd(inputs)
    if found.missing == ("capex_usd",) and inputs.utilisation is not None:
        use = formats.percent(inputs.utilisation)
        if most is None:
            return (
                f"At {use} use no purchase price is low enough to own",
                "Give the price of your offer to see how far it is.",
            )
        count = formats.figure(inputs.gpu_count)
        return (
            f"Owning pays if a machine of {count} GPUs costs less than {formats.money(round(most, -2))}",
            f"At the {use} use and the rent below. Give the price of your offer for the whole answer.",
        )
    breakeven = found.breakeven_utilisation
    if found.missing == ("utilisation",) and breakeven is not None:
        if breakeven > 1:
            return "Keep renting: owning does not pay even at full use", ""
        hours = formats.figure(24 * breakeven, 1)
        return (
            f"Owning pays from {formats.percent(breakeven)} use",
            f"That is {hours} hours of every day. How much yours are wanted is not known yet: give a use.",
        )
    names = [BY_NAME[name].label.lower() for name in found.missing if name in BY_NAME]
    return (
        "Rent or buy: what does the machine cost, and how much is it wanted?",
        f"Still needed: {', '.join(names)}.",
    )


def page_of(asked: Asked, frame: Frame, mix: MixRow | None) -> RentOrBuyPage:
    """Lay out the page; pure. ``mix``: owning and renting alone, for the measured demand."""
    form = form_of(asked, PATH, GROUPS)
    inputs = asked.inputs
    if inputs is None:
        return RentOrBuyPage(
            frame,
            TABS,
            PATH,
            "There is no answer yet",
            "A field below says what is wrong with it.",
            form,
            result=False,
        )
    found = evaluate(inputs)
    said, lede = headline(inputs, found, mix)
    rent = inputs.rent_per_gpu_hour
    points = by_use(inputs)
    moved = swings(inputs)
    return RentOrBuyPage(
        frame=frame,
        tabs=TABS,
        path=PATH,
        headline=said,
        lede=lede,
        form=form,
        result=True,
        tiles=tuple(one for one in tiles(inputs, found) if one.figure != formats.UNKNOWN),
        title=use_title(inputs, found),
        chart=use_chart(inputs, found, points) if points and rent is not None else None,
        most=purchase_chart(inputs) if found.missing == ("capex_usd",) else None,
        points=points[4::5],
        rent_usd=rent,
        swing_title=swing_title(moved),
        swings=swing_lines(moved),
        cases=tuple(case_line(one) for one in cases(inputs)),
        mix=mix if mix is not None and mix.curve else None,
        paid=cost_by_paid(mix) if mix is not None and mix.curve else None,
        paid_title=paid_title(mix),
    )


def tiles(inputs: RentOrBuyInputs, found: RentOrBuyResult) -> tuple[Tile, ...]:
    """The figures beside the sentence, each with its range."""
    ranges, use = found.ranges, inputs.utilisation
    breakeven = found.breakeven_utilisation
    at = "at full use" if use is None else f"at {formats.percent(use)} use"
    own, rent = found.own_usd_per_gpu_h, found.rent_usd_per_gpu_h
    saves = None
    if found.rent_usd_per_year is not None and found.own_usd_per_year is not None:
        saves = found.rent_usd_per_year - found.own_usd_per_year
    verb = "Owning saves" if saves is None or saves >= 0 else "Owning costs more"
    never = "never" if ranges and found.payback_months is None else None
    return (
        Tile(
            "Owning pays from",
            "no use" if ranges and (breakeven is None or breakeven > 1) else formats.percent(breakeven),
            _range(ranges.get("breakeven_utilisation"), formats.percent, "of all hours", "no use"),
        ),
        Tile(
            "Wanted",
            formats.percent(use),
            "not known"
            if use is None
            else _ends(inputs.utilisation_p25, inputs.utilisation_p75, "on half of the days"),
        ),
        Tile(
            "Owned, a GPU-hour", _rate(own), _range(ranges.get("own_usd_per_gpu_h"), _rate, at, "any price")
        ),
        Tile("Rented, a GPU-hour", _rate(rent), _range(ranges.get("rent_usd_per_gpu_h"), _rate, "")),
        Tile(
            "Paid back in",
            never or months(found.payback_months),
            _range(ranges.get("payback_months"), months, "" if use is not None else "at full use"),
        ),
        Tile(
            f"{verb} a year",
            formats.money(None if saves is None else abs(saves)),
            "the whole machine, against renting the same hours",
        ),
    )


def months(value: float | None) -> str:
    """Months, as years from two of them on."""
    if value is None:
        return formats.UNKNOWN
    if value < 24:
        return f"{formats.figure(value, 1)}{formats.NBSP}months"
    return f"{formats.figure(value / 12, 1)}{formats.NBSP}years"


def _rate(value: float | Decimal | None) -> str:
    return formats.UNKNOWN if value is None else f"${formats.figure(value, 2)}"


def _ends(low: float | None, high: float | None, of: str) -> str:
    return (
        "no range"
        if low is None or high is None
        else f"{formats.percent(low)} to {formats.percent(high)} {of}"
    )


def _range(found: Spread | None, text: Callable[[float], str], more: str, never: str = "never") -> str:
    if found is None or found.low is None:
        return more
    high = never if found.high is None else text(float(found.high))
    return f"{text(float(found.low))} to {high}{' ' if more else ''}{more}"


def use_title(inputs: RentOrBuyInputs, found: RentOrBuyResult) -> str:
    """What the chart of cost by use shows."""
    rent, own, use = found.rent_usd_per_gpu_h, found.own_usd_per_gpu_h, inputs.utilisation
    if rent is None or own is None:
        return "What an hour costs, owned and rented"
    at = "At full use" if use is None else f"At {formats.percent(use)} use"
    return f"{at} an owned GPU-hour costs {_rate(own)}, a rented one {_rate(rent)}"


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
            f"{formats.percent(use)} use: {_rate(cost)} owned, {_rate(rent)} rented",
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


def swing_title(moved: Sequence[Swing]) -> str:
    """Which assumption matters most, and which turn the answer."""
    if not moved:
        return ""
    turning = [one.name for one in moved if one.turns]
    most = _named(moved[0].name)
    if not turning:
        return f"{most} matters most; no assumption alone turns the answer"
    if turning == [moved[0].name]:
        return f"{most} matters most, and alone turns the answer"
    return f"{most} matters most; {len(turning)} assumption{'s' if len(turning) != 1 else ''} alone turn{'' if len(turning) != 1 else 's'} the answer"


def _named(name: str) -> str:
    return (
        "Use" if name == "utilisation" else BY_NAME[name].label if name in BY_NAME else name.replace("_", " ")
    )


def swing_lines(moved: Sequence[Swing]) -> tuple[SwingLine, ...]:
    """Assumptions with their bars, all on one scale."""
    figures = [value for one in moved for value in (one.saves_at_low, one.saves_at_high)]
    ends = (min(*figures, 0.0), max(*figures, 0.0)) if figures else (0.0, 0.0)
    found = []
    for one in moved:
        at = tuple(_signed(value) for value in (one.saves_at_low, one.saves_at_high))
        name = _named(one.name)
        found.append(
            SwingLine(
                name=name,
                tried=f"{_as_said(one.name, one.low)} to {_as_said(one.name, one.high)}",
                saves=f"{at[0]} to {at[1]}",
                turns=one.turns,
                bar=swing_bar(
                    one.saves_at_low,
                    one.saves_at_high,
                    None,
                    ends,
                    f"{name}: owning saves {at[0]} to {at[1]} a year",
                ),
            )
        )
    return tuple(found)


def _as_said(name: str, value: float) -> str:
    if name == "utilisation" or name.endswith("_ratio"):
        return formats.percent(value)
    if "usd" in name:
        return f"${formats.short(value)}"
    return f"{formats.short(value)}{' years' if name == 'life_years' else ''}"


def _signed(value: float) -> str:
    return f"{'−' if round(value) < 0 else ''}${formats.figure(abs(value))}"


def case_line(one: Case) -> CaseLine:
    """A case in words."""
    found = one.result
    breakeven = found.breakeven_utilisation
    return CaseLine(
        name=one.name,
        note=CASES[one.name],
        use=formats.percent(one.inputs.utilisation),
        rent=_rate(one.inputs.rent_per_gpu_hour),
        life=f"{formats.short(one.inputs.life_years)} years",
        own=_rate(found.own_usd_per_gpu_h),
        breakeven="at no use" if breakeven is None or breakeven > 1 else formats.percent(breakeven),
        payback="never" if found.payback_months is None else months(found.payback_months),
        saves=_signed(one.saves_usd_per_year) if one.saves_usd_per_year is not None else formats.UNKNOWN,
    )


def paid_title(mix: MixRow | None) -> str:
    """What the curve by number owned shows."""
    if mix is None or mix.own_gpus is None:
        return ""
    if mix.own_gpus == 0:
        return "For the measured demand renting all of it costs least"
    return f"For the measured demand {mix.own_gpus} owned GPUs cost least, {formats.money(mix.usd_per_month)} a month"


def build_rent_or_buy(view: View) -> RentOrBuyPage:
    """The page as the address asks for it."""
    asked = ask(view, SPECS)
    mix = None
    inputs = asked.inputs
    if inputs is not None and inputs.machine() is not None and asked.here.group.gpus:
        known = asked.here
        with suppress(UsageError):  # a rent of nothing has no cheapest mix; the page says the rest
            mix = mix_of_two(
                Question(known.scope, known.group, inputs, known.measured, known.wanted, asked.assumes)
            )
    frame = build_frame(
        view,
        active="plan",
        title="Rent or buy",
        window_text=formats.span(asked.here.window.from_ms, asked.here.window.to_ms),
    )
    return page_of(asked, frame, mix)


@router.get(PATH, response_class=HTMLResponse)
def rent_or_buy_page(view: ViewDep) -> str:
    """The page as HTML."""
    return render("pages/plan_rent_or_buy.html", build_rent_or_buy(view))
