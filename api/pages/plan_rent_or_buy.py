"""Rent or buy as a page: the answer as a sentence, cost by use with the point where one stands, and what turns the answer."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from api import formats
from api.overview_parts import Tile
from api.pages.frame import Frame, build_frame
from api.pages.plan_form import TABS, Asked, PlanForm, ask, form_of
from api.pages.plan_mix_charts import cost_by_paid
from api.pages.plan_rent_or_buy_cases import CaseLine, SwingLine, case_line, swing_lines, swing_title
from api.pages.plan_rent_or_buy_charts import purchase_chart, use_chart, use_title
from api.pages.plan_rent_or_buy_form import GROUPS, SPECS
from api.pages.plan_rent_or_buy_words import headline, paid_title, tiles
from api.pages.view import View, ViewDep
from api.resources.plan_mix import MixRow, Question, mix_of_two
from api.templating import render
from core.errors import UsageError
from ledger.rent_or_buy import evaluate
from ledger.rent_or_buy_swings import UsePoint, by_use, cases, swings

router = APIRouter(include_in_schema=False)

PATH: Final = "/plan/rent-or-buy"


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
