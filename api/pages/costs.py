"""Costs: what the GPUs cost by any grouping over time, what of it was idle, and how the month will end."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from api import formats
from api.charts import Layer, stacked_bars
from api.charts_lines import meter
from api.pages.breakdown import NAME, Asked, Breakdown, asked_of, breakdown
from api.pages.breakdown_filters import filters_of
from api.pages.breakdown_links import choices_of, files_of, links_of
from api.pages.breakdown_rows import Bucket, Layered, Row, chart_of, short_name, whole_of
from api.pages.filters import FilterBar
from api.pages.frame import Frame, build_frame
from api.pages.month_ahead import MonthAhead, month_ahead
from api.pages.period import PeriodLink, period_bar
from api.pages.sorting import Column, SortLink, sort_rows
from api.pages.view import Address, View, ViewDep
from api.resources.by import By
from api.resources.costs import CostRow, months_closed, row_of
from api.resources.idle_sharing import IdlePolicy
from api.resources.report_parts import MONEY
from api.resources.report_sum import LineSum
from api.templating import render

router = APIRouter(include_in_schema=False)

MOST_LINES: Final = 50
"""Lines of the table; the rest is in the file."""
PARTS: Final = "/costs/parts"


@dataclass(frozen=True, slots=True)
class CostLine:
    """One group: its figures, share of the whole, change on the period before, and the page of its parts."""

    row: CostRow
    count: int
    share: float | None
    change: str
    bar: Markup
    href: str


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure of one group in one stretch of time, and the page of its parts."""

    usd: Decimal | float | None
    href: str


@dataclass(frozen=True, slots=True)
class TimeLine:
    """A stretch of time: all of it, what of it was idle, and each layer of the chart."""

    bucket: Bucket
    href: str
    row: CostRow | None
    cells: tuple[Cell, ...]
    is_closed: bool


@dataclass(frozen=True, slots=True)
class CostsPage:
    """Everything the page prints.

    Attributes:
        whole: all groups. change: of the cost on the period before. title: of the chart: what it shows.
        lines: groups, the largest first; ``left_out`` more are in the file. times: stretches of time, oldest first;
            ``all_times`` is all of them as one.
        ahead: the month in progress, where that is the period. files: the same as files.
        running_href: the page over the month in progress, where that is not shown.
    """

    frame: Frame
    headline: str
    lede: str
    by_name: str
    per_name: str
    choices: dict[str, tuple[PeriodLink, ...]]
    filters: FilterBar
    whole: CostRow
    change: str
    title: str
    chart: Markup | None
    legend: tuple[Layered, ...]
    use_title: str
    use_chart: Markup | None
    lines: tuple[CostLine, ...]
    sort: dict[str, SortLink]
    left_out: int
    times: tuple[TimeLine, ...]
    all_times: TimeLine
    closed: tuple[str, ...]
    is_shared: bool
    files: dict[str, str]
    ahead: MonthAhead | None
    bases: tuple[str, ...]
    carbon: str

    @property
    def alike(self) -> str:
        """Several groups that people cannot tell apart."""
        return "runs" if self.by_name == NAME[By.WORKLOAD] else f"{self.by_name}s"

    @property
    def has_sum(self) -> bool:
        """The table has several groups to add up, shown or not."""
        return len(self.lines) + self.left_out > 1

    @property
    def has_unseen(self) -> bool:
        """Some of it is time without samples."""
        return bool(self.whole.unseen_cost_usd)


def columns_of(found: Breakdown) -> dict[str, Column]:
    """How the table can be sorted: by the groups, so that only those shown become lines."""
    return {
        "name": Column("Group", lambda row: row.label.lower(), down=False),
        "cost": Column("Cost", lambda row: row.lines.spend_usd),
        "change": Column("Change", lambda row: _change_ratio(found, row)),
        "idle": Column("Idle", lambda row: row.lines.usd("idle_cost_usd")),
        "unseen": Column("Not seen", lambda row: row.lines.unseen_usd),
        "hours": Column("GPU-h seen", lambda row: row.lines.whole("covered_ms")),
        "energy": Column("Energy cost", lambda row: row.lines.usd("energy_usd")),
        "carbon": Column("CO₂e", lambda row: row.lines.carbon_g),
    }


def _before(found: Breakdown, row: Row) -> Decimal | None:
    before = None if found.before is None else found.before.get(row.name)
    return None if before is None else before.spend_usd


def _change_ratio(found: Breakdown, row: Row) -> float | None:
    cost, was = row.lines.spend_usd, _before(found, row)
    return None if cost is None or not was else float(cost / was) - 1


def spend(lines: LineSum) -> Decimal | None:
    """The figure that costs are ordered and drawn by."""
    return lines.spend_usd


def lines_of(found: Breakdown, address: Address, rows: Sequence[Row]) -> list[CostLine]:
    """Groups as lines."""
    keys, total = (found.asked.by,), found.whole.spend_usd
    most = max((float(row.lines.spend_usd or 0) for row in found.rows), default=0.0)
    lines = []
    for row in rows:
        cost, was = row.lines.spend_usd, _before(found, row)
        lines.append(
            CostLine(
                row_of((row.key,), keys, row.lines),
                row.count,
                None if cost is None or not total else float(cost / total),
                _change(cost, was, is_known=found.before is not None),
                meter(
                    None if cost is None or most <= 0 else float(cost) / most,
                    label=f"{short_name(row.label)}: {formats.money(cost)}",
                    key="m-used",
                ),
                links_of(address, row, None, found.asked, PARTS),
            )
        )
    return lines


def _change(cost: Decimal | None, before: Decimal | None, *, is_known: bool) -> str:
    if is_known and cost and not before:
        return "new"
    return formats.change(cost, before)


def times_of(found: Breakdown, address: Address, closed: Sequence[str]) -> list[TimeLine]:
    """The time as lines, each figure with a way to its parts."""
    lines = []
    for at, bucket in enumerate(found.buckets):
        total = found.totals[at]
        cells = tuple(
            Cell(
                layer.values[at],
                "" if layer.group is None else links_of(address, layer.group, bucket, found.asked, PARTS),
            )
            for layer in found.layers
        )
        lines.append(
            TimeLine(
                bucket,
                links_of(address, None, bucket, found.asked, PARTS),
                None if total is None else row_of((bucket.key,), (found.asked.per,), total),
                cells,
                bucket.key[:7] in closed,
            )
        )
    return lines


def all_times_of(found: Breakdown, address: Address, whole: CostRow) -> TimeLine:
    """All of the time as one line."""
    cells = tuple(
        Cell(
            layer.total,
            "" if layer.group is None else links_of(address, layer.group, None, found.asked, PARTS),
        )
        for layer in found.layers
    )
    href = links_of(address, None, None, found.asked, PARTS)
    return TimeLine(whole_of(found.buckets), href, whole, cells, is_closed=False)


def conclusion(found: Breakdown) -> str:
    """What the stacked chart shows, in a sentence."""
    total = found.whole.spend_usd
    groups = [row for row in found.rows if row.lines.spend_usd]
    if not total or not groups:
        return "Nothing of it has a price"
    first = groups[0]
    share = formats.percent(float((first.lines.spend_usd or Decimal(0)) / total))
    name = short_name(first.label)
    if len(groups) == 1:
        return f"All of it is {name}"
    before = None if found.before is None else found.before.get(first.name)
    grown = "" if before is None else formats.change(first.lines.spend_usd, before.spend_usd)
    than = f", {grown} on the period before" if grown and grown != formats.UNKNOWN else ""
    three = sum((row.lines.spend_usd or Decimal(0) for row in groups[:3]), Decimal(0))
    rest = (
        f"; the largest three of {formats.figure(len(groups) + found.left_out)} are {formats.percent(float(three / total))}"
        if len(groups) > 4
        else ""
    )
    return f"{name} is {share} of the cost{than}{rest}"


def use_chart(times: Sequence[TimeLine], whole: CostRow, per: str) -> Markup | None:
    """Used, idle and not seen; None when nothing is priced."""
    if whole.cost_usd is None:
        return None
    rows = [line.row for line in times]
    label = f"Cost per {per} in US dollars over {len(times)} {per}s: {formats.money(whole.cost_usd)}, of it"
    label += f" {formats.money(whole.idle_cost_usd)} idle"
    layers = [
        Layer("m-used", "used", tuple(_float(used(row)) for row in rows)),
        Layer("m-idle", "idle", tuple(None if row is None else _float(row.idle_cost_usd) for row in rows)),
    ]
    if whole.unseen_cost_usd:
        unseen = tuple(None if row is None else _float(row.unseen_cost_usd) for row in rows)
        layers.append(Layer("a-unknown", "not seen", unseen))
        label += f", {formats.money(whole.unseen_cost_usd)} not seen"
    return stacked_bars([line.bucket.name for line in times], layers, label=label, height=150)


def used(row: CostRow | None) -> Decimal | None:
    """Cost that is neither idle nor of a gap; energy is in it where the site pays for power."""
    if row is None or row.cost_usd is None:
        return None
    return row.cost_usd - (row.idle_cost_usd or Decimal(0)) - (row.unseen_cost_usd or Decimal(0))


def _float(amount: Decimal | None) -> float | None:
    return None if amount is None else float(amount)


def _use_title(whole: CostRow) -> str:
    if not whole.cost_usd or whole.idle_cost_usd is None:
        return "Used against idle"
    share = formats.percent(float(whole.idle_cost_usd / whole.cost_usd))
    return f"{share} of the cost bought empty or parked time"


def page_of(
    frame: Frame,
    found: Breakdown,
    *,
    view_address: Address,
    choices: dict[str, tuple[PeriodLink, ...]],
    filters: FilterBar,
    closed: Sequence[str] = (),
    files: dict[str, str] | None = None,
    ahead: MonthAhead | None = None,
) -> CostsPage:
    """Lay out the costs; pure."""
    asked, whole = found.asked, row_of((None,), (found.asked.by,), found.whole)
    rows, sort = sort_rows(view_address, found.rows, columns_of(found), "-cost")
    times = times_of(found, view_address, closed)
    per = asked.per.value
    cost = whole.cost_usd
    before = None
    if found.before is not None:
        known = [one.spend_usd for one in found.before.values() if one.spend_usd is not None]
        before = sum(known, Decimal(0)) if known else None
    headline = "No price is known for these GPUs" if cost is None else f"{formats.money(cost)} of GPU time"
    if cost is not None and whole.idle_cost_usd:
        headline += f", {formats.money(whole.idle_cost_usd)} of it idle"
    chart = None
    if cost is not None:
        title = conclusion(found)
        chart = chart_of(
            found.layers, found.buckets, label=f"{title}. Cost per {per} by {NAME[asked.by]}, US dollars."
        )
    return CostsPage(
        frame=frame,
        headline=headline,
        lede="Cost is rate × clock time from a GPU's first to its last sample. Time without samples is neither idle nor "
        "free: it is in the cost, and “not seen” says how much of it.",
        by_name=NAME[asked.by],
        per_name=per,
        choices=choices,
        filters=filters,
        whole=whole,
        change=formats.change(cost, before),
        title=conclusion(found).replace(formats.NBSP, " "),
        chart=chart,
        legend=found.layers,
        use_title=_use_title(whole),
        use_chart=use_chart(times, whole, per),
        lines=tuple(lines_of(found, view_address, rows[:MOST_LINES])),
        sort=sort,
        left_out=found.left_out + max(0, len(rows) - MOST_LINES),
        times=tuple(times),
        all_times=all_times_of(found, view_address, whole),
        closed=tuple(closed),
        is_shared=asked.idle is not IdlePolicy.KEEP,
        files=files or {},
        ahead=ahead,
        bases=tuple(b for b in (whole.price_basis or "").split("; ") if b),
        carbon=""
        if whole.carbon_code is None
        else f"{whole.carbon_code}{f' {whole.carbon_year}' if whole.carbon_year else ''}, {whole.carbon_method}",
    )


def build_costs(view: View) -> CostsPage:
    """The page over the view's window. Raises ``UsageError`` for what cannot be grouped by."""
    asked: Asked = asked_of(view)
    found = breakdown(view, asked, MONEY, spend)
    return page_of(
        build_frame(view, active="costs", title="Costs", periods=period_bar(view)),
        found,
        view_address=view.address,
        choices=choices_of(view.address, asked, view.scope.window),
        filters=filters_of(view),
        closed=months_closed(view.scope),
        files=files_of(view, asked, "costs"),
        ahead=month_ahead(view),
    )


@router.get("/costs", response_class=HTMLResponse)
def costs_page(view: ViewDep) -> str:
    """The costs as HTML."""
    return render("pages/costs.html", build_costs(view))
