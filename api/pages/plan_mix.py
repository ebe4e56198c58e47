"""How many to own as a page: the demand that was measured, the cheapest way to pay for it, and how flat the least is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, RedirectResponse
from markupsafe import Markup

from api import formats
from api.overview_parts import Tile
from api.pages.frame import Frame, build_frame
from api.pages.plan_fields import Default, Kind, Spec
from api.pages.plan_form import MACHINE, RENT, RUNNING, TABS, Asked, PlanForm, ask, form_of, weeks_of
from api.pages.plan_mix_charts import cost_by_paid, demand_over_time, use_of_nth
from api.pages.view import View, ViewDep
from api.resources.plan_measured import Wanted
from api.resources.plan_mix import MixRow, Question, mix_of
from api.templating import render
from core.errors import UsageError
from ledger.demand import Demand
from ledger.mix_answer import LEAST_WEEKS

router = APIRouter(include_in_schema=False)

PATH: Final = "/plan/mix"
WAYS: Final = (
    RENT,
    Spec(
        "reserve_usd_per_gpu_hour",
        "Reserved",
        "$ per GPU-hour",
        Kind.MONEY,
        "for a shorter term, used or not",
    ),
    Spec("commit_usd_per_gpu_hour", "Committed", "$ per GPU-hour", Kind.MONEY, "for long, used or not"),
)
SPOT: Final = (
    Spec("spot_usd_per_gpu_hour", "Spot", "$ per GPU-hour", Kind.MONEY, "as listed"),
    Spec("restartable_ratio", "May be interrupted", "% of the demand", Kind.PERCENT),
    Spec("interruptions_per_hour", "Interruptions", "per running hour"),
    Spec("checkpoint_h", "Between checkpoints", "hours"),
    Spec("restart_h", "Until it goes on", "hours"),
)
GROUPS: Final = (
    ("Prices of a GPU-hour", WAYS, True),
    ("The machine", MACHINE, True),
    ("What it takes to run", RUNNING, False),
    ("Spot", SPOT, False),
)
SPECS: Final = tuple(spec for _, specs, _ in GROUPS for spec in specs)
OWN_NAMES: Final = frozenset(spec.name for spec in (*WAYS[1:], *SPOT))
STEP_NAMES: Final = {
    "today": "Today: all that is there",
    "on_demand": "Rent by the hour only",
    "spot": "and put on spot what can restart",
    "reserve": "and reserve",
    "commit": "and commit",
    "own": "and own machines",
}
SAME_USE: Final = 0.005
"""A smaller difference in use reads as none."""
WAY_NAMES: Final = {"own": "owning", "spot": "spot", "commit": "a commitment", "reserve": "a reservation"}


@dataclass(frozen=True, slots=True)
class MixPage:
    """Everything the page prints.

    Attributes:
        row: the answer; None: a field is wrong, or nothing is measured. title: of the demand; demand, use, paid: charts.
        left_out: ways that were not to be had, with the reason, for people.
    """

    frame: Frame
    tabs: tuple[tuple[str, str], ...]
    path: str
    headline: str
    lede: str
    form: PlanForm
    result: bool
    row: MixRow | None = None
    tiles: tuple[Tile, ...] = ()
    title: str = ""
    demand: Markup | None = None
    demand_note: str = ""
    use: Markup | None = None
    use_title: str = ""
    thumb: str = ""
    nth: tuple[tuple[int, float], ...] = ()
    paid: Markup | None = None
    paid_title: str = ""
    step_names: Mapping[str, str] | None = None
    left_out: tuple[tuple[str, str], ...] = ()


def page_of(asked: Asked, frame: Frame, row: MixRow | None, problem: str = "") -> MixPage:
    """Lay out the page; pure. ``problem``: why there is no row though every field is fine by itself."""
    form = form_of(asked, PATH, GROUPS)
    if asked.inputs is None or problem:
        lede = problem or "A field below says what is wrong with it."
        return MixPage(frame, TABS, PATH, "There is no answer yet", lede, form, result=False)
    measured, known = asked.here.measured, asked.here
    if row is None or not measured.hours:
        return MixPage(
            frame,
            TABS,
            PATH,
            "How many to own is read from demand, and none is measured yet",
            "Start the agent or import what was recorded. Rent or buy and the size of a model work without.",
            form,
            result=True,
        )
    said, lede = headline(row, known.gpus)
    return MixPage(
        frame=frame,
        tabs=TABS,
        path=PATH,
        headline=said,
        lede=lede,
        form=form,
        result=True,
        row=row,
        tiles=tiles(row),
        title=demand_title(row),
        demand=demand_over_time(measured, row, known.window),
        demand_note=demand_note(row),
        use=use_of_nth(measured, row),
        use_title=use_title(row, nth_of(measured)),
        thumb=rule_of_thumb(row),
        nth=nth_of(measured),
        paid=cost_by_paid(row) if len(row.curve) > 1 else None,
        paid_title=paid_title(row),
        step_names=STEP_NAMES,
        left_out=tuple((WAY_NAMES.get(name, name), plain(why)) for name, why in row.left_out.items()),
    )


def headline(row: MixRow, gpus: int) -> tuple[str, str]:
    """What to own, promise and rent, and what it costs."""
    if row.usd_per_month is None:
        reason = plain(row.reason)
        if row.demand.weeks < LEAST_WEEKS and row.demand.mean_gpus is not None:
            weeks = weeks_of(row.demand.weeks)
            return (
                f"{weeks} weeks of demand are measured, and {LEAST_WEEKS} are needed to say how many to own",
                "Take them for the years to come with the box in the form, if you know that they are alike.",
            )
        return "How many to own cannot be said yet", reason
    parts = [
        f"{verb} {count}"
        for verb, count in (
            ("own", row.own_gpus),
            ("commit to", row.commit_gpus),
            ("reserve", row.reserve_gpus),
        )
        if count
    ]
    rented = round((row.on_demand_gpus or 0.0) + (row.spot_gpus or 0.0), 2)
    if rented > 0:
        parts.append(f"rent {formats.short(rented)} on average")
    what = ", ".join(parts) or "nothing was wanted"
    return f"{what[0].upper()}{what[1:]}: {formats.money(row.usd_per_month)} a month{_against(row)}", (
        f"Of the {gpus} GPUs of {row.gpu_model} here. {row.reason}"
    )


def _against(row: MixRow) -> str:
    saves = row.saves_usd_per_month
    if saves is None:
        return ""
    if saves == 0:
        return ", as today"
    return f", {formats.money(abs(saves))} {'less' if saves > 0 else 'more'} than today"


def tiles(row: MixRow) -> tuple[Tile, ...]:
    """The mix in figures."""
    demand = row.demand

    def spread(name: str) -> str:
        found = row.ranges.get(name)
        if found is None:
            return ""
        if found.p10 == found.p90:
            return "as many whichever weeks are drawn"
        return f"{found.p10} to {found.p90} over weeks drawn again"

    answer = (
        Tile("Owned", formats.figure(row.own_gpus), spread("own_gpus")),
        Tile(
            "Promised",
            formats.figure(
                None if row.own_gpus is None else (row.commit_gpus or 0) + (row.reserve_gpus or 0)
            ),
            "reserved or committed",
        ),
        Tile("Rented on demand", formats.short(_two(row.on_demand_gpus)), "on average at once"),
        Tile("Paid for and not wanted", formats.short(_two(row.idle_gpus)), "on average"),
    )
    wanted = (
        Tile(
            "Wanted at once",
            formats.short(_two(demand.mean_gpus)),
            f"on average, {formats.figure(demand.most_gpus)} at most, of {formats.short(_two(demand.present_gpus))} there",
        ),
        Tile("Wanted in 9 hours of 10", formats.short(_two(demand.p10_gpus)), "at least"),
    )
    return (*(answer if row.usd_per_month is not None else ()), *wanted)


def _two(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


def demand_title(row: MixRow) -> str:
    """What the curve of demand shows."""
    demand = row.demand
    mean, present = formats.short(_two(demand.mean_gpus)), formats.short(_two(demand.present_gpus))
    return f"{mean} of {present} GPUs are wanted on average, {formats.figure(demand.most_gpus)} at most"


def demand_note(row: MixRow) -> str:
    """What to know of the demand."""
    demand = row.demand
    held = "a workload held it" if demand.wanted is Wanted.ALLOCATED else "work ran on it"
    said = f"A GPU counts as wanted while {held}."
    if demand.full_ratio > 0:
        said += (
            f" In {formats.percent(demand.full_ratio)} of the hours every GPU was: more may have been wanted."
        )
    if demand.left_out_hours:
        said += f" {formats.figure(demand.left_out_hours)} hours were hardly seen and do not count."
    return said


def use_title(row: MixRow, nth: Sequence[tuple[int, float]]) -> str:
    """What the duration curve shows."""
    pays = row.break_even_ratio
    if "own" in pays and pays["own"] <= 1:
        return (
            f"A GPU is worth owning while it is wanted more than {formats.percent(pays['own'])} of the time"
        )
    if nth and nth[0][1] - nth[-1][1] < SAME_USE:
        return f"Every GPU is wanted {formats.percent(nth[0][1])} of the time, the last as much as the first"
    return "The more GPUs there are, the less the last one is wanted"


def rule_of_thumb(row: MixRow) -> str:
    """How many are wanted nearly always, as a figure to hold beside the answer."""
    found = [formats.short(round(n, 2)) for n in (row.demand.p10_gpus, row.demand.p20_gpus) if n is not None]
    if not found:
        return ""
    low, high = found[0], found[-1]
    many = f"{low} to {high} GPUs" if low != high else "no GPU" if low == "0" else f"{low} GPUs"
    return f"Rule of thumb beside it: own what is wanted in eight to nine hours of ten, {many} here."


def paid_title(row: MixRow) -> str:
    """What the curve of cost shows."""
    paid = (row.own_gpus or 0) + (row.commit_gpus or 0) + (row.reserve_gpus or 0)
    if not paid:
        return "Renting all of it costs least"
    return f"Paying for {paid} GPUs costs least"


def nth_of(measured: Demand) -> tuple[tuple[int, float], ...]:
    """Use of the n-th GPU, at most forty of them."""
    curve = measured.duration
    most = max(1, curve.most_gpus)
    stride = max(1, -(-most // 40))
    return tuple((n, curve.use_ratio(n)) for n in range(1, most + 1, stride))


def plain(text: str) -> str:
    """A sentence of the calculator without its flags and names of fields."""
    for name, words in (
        (
            "give --assume-measured to take them for the years to come",
            "mark the box to take them for the years to come",
        ),
        ("--rent-usd-per-gpu-hour", "the rent"),
        *((spec.name, f"“{spec.label}”") for spec in SPECS),
    ):
        text = text.replace(name, words)
    return text


def build_mix(view: View) -> MixPage:
    """The page as the address asks for it."""
    asked = ask(view, SPECS, by_use=True, more=MORE)
    known = asked.here
    row, problem = None, ""
    if asked.inputs is not None and known.group.gpus:
        given: dict[str, Any] = {
            name: value for name, value in asked.filled.values.items() if name in OWN_NAMES
        }
        question = Question(
            known.scope, known.group, asked.inputs, known.measured, known.wanted, asked.assumes
        )
        try:
            row = mix_of(question, given)
        except UsageError as error:
            problem = plain(str(error))
    frame = build_frame(
        view,
        active="plan",
        title="How many to own",
        window_text=formats.span(known.window.from_ms, known.window.to_ms),
    )
    return page_of(asked, frame, row, problem)


MORE: Final = {
    "spot_usd_per_gpu_hour": Default(None, "empty: nothing goes to spot"),
    "restartable_ratio": Default(0.0, "nothing, unless you say"),
    "interruptions_per_hour": Default(None, "needed for spot"),
    "checkpoint_h": Default(0.0, "default"),
    "restart_h": Default(0.0, "default"),
}
"""What the fields of spot start from."""


@router.get(PATH, response_class=HTMLResponse)
def mix_page(view: ViewDep) -> str:
    """The page as HTML."""
    return render("pages/plan_mix.html", build_mix(view))


@router.get("/plan", response_class=RedirectResponse)
def plan() -> RedirectResponse:
    """The first of the calculators."""
    return RedirectResponse("/plan/rent-or-buy", 307)
