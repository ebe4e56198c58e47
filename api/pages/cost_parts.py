"""What a cost is made of: hours × price, energy × tariff, corrections, gaps; the parts add up to the figure."""

from dataclasses import dataclass
from decimal import Decimal

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from api import formats
from api.links import PATHS
from api.pages.breakdown import NAME, asked_of
from api.pages.filters import OF_REPORTS, FilterBar, filter_bar
from api.pages.frame import Frame, build_frame
from api.pages.period import period_bar
from api.pages.view import Address, View, ViewDep
from api.resources.cost_parts import CostParts, Group, PricePart, cost_parts
from api.templating import render
from core.clock import from_ms
from core.errors import NotFoundError
from core.money import from_micro

router = APIRouter(include_in_schema=False)

KIND_WORDS = {
    "workload": "held by a workload",
    "unattributed": "held, by whom is not known",
    "idle": "held by nobody",
    "gap": "not seen: no samples",
}


@dataclass(frozen=True, slots=True)
class PartLine:
    """One line: hours of a kind under a price, as the page prints it."""

    part: PricePart
    kind: str
    days: str
    in_force: str


@dataclass(frozen=True, slots=True)
class CostPartsPage:
    """Everything the page prints.

    Attributes:
        label: of the group. by_name: what it is a group of; empty: everything. exact: the cost to the micro-dollar.
        difference: of hours × price against the cost: what rounding each GPU-hour leaves.
        days_href: the costs of the same group by time. subject_href: the page about it; empty: none.
        adds_up: the parts come to the cost, to the micro-dollar.
    """

    frame: Frame
    parts: CostParts
    label: str
    by_name: str
    headline: str
    exact: str
    lines: tuple[PartLine, ...]
    corrections: tuple[PartLine, ...]
    costs_href: str
    subject_href: str
    filters: FilterBar
    adds_up: bool


def group_of(address: Address) -> Group | None:
    """Which group the address names; None: everything."""
    if address.get("nobody"):
        return Group(is_nobody=True)
    if address.get("key"):
        return Group(key=address.get("key"))
    return Group(label=address.get("label")) if address.get("label") else None


def exact(amount: Decimal | None) -> str:
    """Dollars to the micro-dollar."""
    return formats.UNKNOWN if amount is None else f"${formats.figure(amount, 6)}".replace("$−", "−$")


def line_of(part: PricePart) -> PartLine:
    """A part in words."""
    days = part.first_day if part.first_day == part.last_day else f"{part.first_day} – {part.last_day}"
    since = (
        "since ever"
        if part.valid_from_ms is None
        else f"from {from_ms(part.valid_from_ms):%Y-%m-%d %H:%M} UTC"
    )
    until = "" if part.valid_to_ms is None else f" until {from_ms(part.valid_to_ms):%Y-%m-%d %H:%M} UTC"
    in_force = (
        f"{part.billing.replace('_', ' ')}; price {part.price_id} for {part.price_scope}, {since}{until}"
    )
    if part.price_id is None:
        in_force = f"{part.billing.replace('_', ' ')}; the catalogue's, for whoever gives no price"
    elif part.price_scope is None:
        in_force = f"{part.billing.replace('_', ' ')}; price {part.price_id}, removed since"
    return PartLine(part, KIND_WORDS[part.kind], days, in_force)


def page_of(
    frame: Frame,
    found: CostParts,
    *,
    by_name: str,
    address: Address,
    filters: FilterBar,
    subject_href: str = "",
) -> CostPartsPage:
    """Lay out the parts; pure."""
    cost = found.row.cost_usd
    label = found.row.label
    headline = f"{label}: {formats.money(cost)}".replace(formats.NBSP, " ")
    return CostPartsPage(
        frame=frame,
        parts=found,
        label=label,
        by_name=by_name,
        headline=headline if cost is not None else f"{label}: no price is known",
        exact=exact(cost),
        lines=tuple(line_of(part) for part in found.prices),
        corrections=tuple(line_of(part) for part in found.corrections),
        costs_href=address.link("/costs", by=address.get("by"), idle=address.get("idle")),
        subject_href=subject_href,
        filters=filters,
        adds_up=cost is None or abs(found.sum_usd - cost) < from_micro(1),
    )


def build_cost_parts(view: View) -> CostPartsPage:
    """The page over the view's window. Raises ``NotFoundError`` where there is no such group."""
    asked, group = asked_of(view), group_of(view.address)
    found = cost_parts(view.scope, asked.by, group, asked.filters, idle=asked.idle)
    if found is None:
        raise NotFoundError("nothing of that name has a cost in this period: /costs lists what has")
    return page_of(
        build_frame(view, active="costs", title=f"Cost of {found.row.label}", periods=period_bar(view)),
        found,
        by_name="" if group is None else NAME[asked.by],
        address=view.address,
        filters=filter_bar(view.address, {}, also=OF_REPORTS),
        subject_href=""
        if group is None or group.key is None
        else subject_href(view.address, asked.by.value, group.key),
    )


def subject_href(address: Address, by: str, key: str) -> str:
    """The page about a group; empty where there is none."""
    return address.link(PATHS[by](key)) if by in PATHS else ""


@router.get("/costs/parts", response_class=HTMLResponse)
def cost_parts_page(view: ViewDep) -> str:
    """The parts as HTML."""
    return render("pages/cost_parts.html", build_cost_parts(view), exact=exact)
