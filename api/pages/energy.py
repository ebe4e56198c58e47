"""Energy and carbon: what the GPUs drew by any grouping over time, at the GPU and at the meter, what it cost and emitted."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from api import formats
from api.charts_lines import meter
from api.pages.breakdown import NAME, Breakdown, asked_of, breakdown
from api.pages.breakdown_filters import filters_of
from api.pages.breakdown_links import choices_of, files_of, links_of
from api.pages.breakdown_rows import Bucket, Layered, Row, chart_of, short_name, whole_of
from api.pages.filters import FilterBar
from api.pages.frame import Frame, build_frame
from api.pages.period import PeriodLink, period_bar
from api.pages.sorting import Column, SortLink, sort_rows
from api.pages.view import Address, View, ViewDep
from api.resources import costs, energy
from api.resources.cost_parts import EnergyPart, cost_parts
from api.resources.costs import CostRow
from api.resources.energy import EnergyRow
from api.resources.energy_bands import Bands, energy_bands
from api.resources.report_parts import MONEY
from api.resources.report_sum import LineSum
from api.templating import render
from core.units import J_PER_KWH
from store.queries.idle_energy import IdleEnergy, idle_energy

router = APIRouter(include_in_schema=False)

MOST_LINES: Final = 50
AMOUNTS: Final = (*MONEY, "energy_method")
METHOD: Final = {
    "counter": "the cards' own counters",
    "integrated": "power over time",
    "mixed": "counters and power over time",
}


@dataclass(frozen=True, slots=True)
class EnergyLine:
    """One group: energy at the GPU, money and carbon at the site."""

    row: EnergyRow
    cost: CostRow
    count: int
    share: float | None
    change: str
    bar: Markup
    href: str


@dataclass(frozen=True, slots=True)
class EnergyTime:
    """A stretch of time: all of it, and each layer of the chart."""

    bucket: Bucket
    href: str
    row: EnergyRow | None
    cost: CostRow | None
    cells: tuple[float | Decimal | None, ...]


@dataclass(frozen=True, slots=True)
class EnergyPage:
    """Everything the page prints.

    Attributes:
        whole, cost: all groups. method: how energy is known. idle: of empty and parked GPUs; None: filters leave out
            parts of GPUs, of which it cannot be told. bands: cost by the price of a kWh; None: no price changes by the hour.
        times, all_times: stretches of time, and all of them as one. places: terms by place: PUE, host share, tariff, grid.
    """

    frame: Frame
    headline: str
    by_name: str
    per_name: str
    choices: dict[str, tuple[PeriodLink, ...]]
    filters: FilterBar
    whole: EnergyRow
    cost: CostRow
    change: str
    method: str
    idle: IdleEnergy | None
    idle_kwh: float | None
    idle_ratio: float | None
    title: str
    chart: Markup | None
    legend: tuple[Layered, ...]
    times: tuple[EnergyTime, ...]
    all_times: EnergyTime
    lines: tuple[EnergyLine, ...]
    sort: dict[str, SortLink]
    left_out: int
    files: dict[str, str]
    bands: Bands | None
    places: tuple[EnergyPart, ...]

    @property
    def has_sum(self) -> bool:
        """The table has several groups to add up, shown or not."""
        return len(self.lines) + self.left_out > 1


def columns_of(found: Breakdown) -> dict[str, Column]:
    """How the table can be sorted: by the groups, so that only those shown become lines."""
    return {
        "name": Column("Group", lambda row: row.label.lower(), down=False),
        "energy": Column("At the GPUs", lambda row: kwh(row.lines)),
        "change": Column("Change", lambda row: _change_ratio(found, row)),
        "site": Column("At the site", lambda row: row.lines.site_kwh),
        "power": Column("Mean power", lambda row: _row(found, row).mean_power_w),
        "cost": Column("Energy cost", lambda row: row.lines.usd("energy_usd")),
        "carbon": Column("CO₂e", lambda row: row.lines.carbon_g),
        "known": Column("Known", lambda row: _row(found, row).coverage_ratio),
    }


def _row(found: Breakdown, row: Row) -> EnergyRow:
    return energy.row_of((row.key,), (found.asked.by,), row.lines)


def _before(found: Breakdown, row: Row) -> float | None:
    before = None if found.before is None else found.before.get(row.name)
    return None if before is None else kwh(before)


def _change_ratio(found: Breakdown, row: Row) -> float | None:
    drew, was = kwh(row.lines), _before(found, row)
    return None if drew is None or not was else drew / was - 1


def kwh(lines: LineSum) -> float | None:
    """The figure that energy is ordered and drawn by."""
    return None if lines.energy_j is None else lines.energy_j / J_PER_KWH


def axis_kwh(value: float) -> str:
    """Energy on an axis, in kWh: the chart's small print says so."""
    return f"{value:,.10g}"


def lines_of(found: Breakdown, address: Address, rows: Sequence[Row]) -> list[EnergyLine]:
    """Groups as lines."""
    keys, total = (found.asked.by,), kwh(found.whole)
    most = max((kwh(row.lines) or 0.0 for row in found.rows), default=0.0)
    lines = []
    for row in rows:
        drew = kwh(row.lines)
        lines.append(
            EnergyLine(
                _row(found, row),
                costs.row_of((row.key,), keys, row.lines),
                row.count,
                None if drew is None or not total else drew / total,
                formats.change(drew, _before(found, row)),
                meter(
                    None if drew is None or most <= 0 else drew / most,
                    label=f"{short_name(row.label)}: {formats.kwh(drew)}",
                    key="m-used",
                ),
                links_of(address, row, None, found.asked, "/costs/parts"),
            )
        )
    return lines


def times_of(found: Breakdown, address: Address) -> list[EnergyTime]:
    """The time as lines."""
    keys = (found.asked.per,)
    return [
        EnergyTime(
            bucket,
            links_of(address, None, bucket, found.asked, "/costs/parts"),
            None if total is None else energy.row_of((bucket.key,), keys, total),
            None if total is None else costs.row_of((bucket.key,), keys, total),
            tuple(layer.values[at] for layer in found.layers),
        )
        for at, (bucket, total) in enumerate(zip(found.buckets, found.totals, strict=True))
    ]


def all_times_of(found: Breakdown, address: Address, whole: EnergyRow, cost: CostRow) -> EnergyTime:
    """All of the time as one line."""
    href = links_of(address, None, None, found.asked, "/costs/parts")
    return EnergyTime(
        whole_of(found.buckets), href, whole, cost, tuple(layer.total for layer in found.layers)
    )


def conclusion(found: Breakdown) -> str:
    """What the chart shows, in a sentence."""
    total = kwh(found.whole)
    groups = [row for row in found.rows if kwh(row.lines)]
    if not total or not groups:
        return "No energy is known"
    first = groups[0]
    name = short_name(first.label)
    if len(groups) == 1:
        return f"All of it was drawn by {name}"
    return f"{name} drew {formats.percent((kwh(first.lines) or 0.0) / total)} of the energy".replace(
        formats.NBSP, " "
    )


def page_of(
    frame: Frame,
    found: Breakdown,
    *,
    address: Address,
    choices: dict[str, tuple[PeriodLink, ...]],
    filters: FilterBar,
    idle: IdleEnergy | None = None,
    bands: Bands | None = None,
    places: Sequence[EnergyPart] = (),
    files: dict[str, str] | None = None,
) -> EnergyPage:
    """Lay out the energy; pure."""
    keys = (found.asked.by,)
    whole, cost = energy.row_of((None,), keys, found.whole), costs.row_of((None,), keys, found.whole)
    rows, sort = sort_rows(address, found.rows, columns_of(found), "-energy")
    before = None
    if found.before is not None:
        known = [drew for one in found.before.values() if (drew := kwh(one)) is not None]
        before = sum(known) if known else None
    idle_j = None
    if idle is not None and (idle.empty_j is not None or idle.parked_j is not None):
        idle_j = (idle.empty_j or 0.0) + (idle.parked_j or 0.0)
    title, per = conclusion(found), found.asked.per.value
    headline = "No energy is known"
    if whole.energy_kwh is not None:
        headline = f"The GPUs drew {formats.kwh(whole.energy_kwh)}"
        if cost.site_energy_kwh is not None:
            headline += f", {formats.kwh(cost.site_energy_kwh)} at the site"
    return EnergyPage(
        frame=frame,
        headline=headline,
        by_name=NAME[found.asked.by],
        per_name=per,
        choices=choices,
        filters=filters,
        whole=whole,
        cost=cost,
        change=formats.change(whole.energy_kwh, before),
        method="" if whole.method is None else METHOD[whole.method.value],
        idle=idle,
        idle_kwh=None if idle_j is None else idle_j / J_PER_KWH,
        idle_ratio=None if idle_j is None or not whole.energy_j else idle_j / whole.energy_j,
        title=title,
        chart=chart_of(
            found.layers,
            found.buckets,
            label=f"{title}. Energy at the GPUs per {per} by {NAME[found.asked.by]}.",
            text_of=formats.kwh,
            axis_text=axis_kwh,
        ),
        legend=found.layers,
        times=tuple(times_of(found, address)),
        all_times=all_times_of(found, address, whole, cost),
        lines=tuple(lines_of(found, address, rows[:MOST_LINES])),
        sort=sort,
        left_out=found.left_out + max(0, len(rows) - MOST_LINES),
        files=files or {},
        bands=bands,
        places=tuple(places),
    )


def build_energy(view: View) -> EnergyPage:
    """The page over the view's window. Raises ``UsageError`` for what cannot be grouped by."""
    asked, scope = asked_of(view), view.scope
    found = breakdown(view, asked, AMOUNTS, kwh)
    only = asked.filters.only(scope.session)
    # Only whole GPUs are empty or parked: of a team's or a workload's part of one it cannot be told.
    is_of_gpus = only.teams is None and only.workload_ids is None
    parts = cost_parts(scope, asked.per, None, asked.filters)
    return page_of(
        build_frame(view, active="energy", title="Energy and carbon", periods=period_bar(view)),
        found,
        address=view.address,
        choices={**choices_of(view.address, asked, scope.window), "idle": ()},
        filters=filters_of(view),
        idle=idle_energy(scope.session, scope.window, only.gpu_ids) if is_of_gpus else None,
        bands=energy_bands(scope, only.gpu_ids) if is_of_gpus else None,
        places=() if parts is None else parts.energy,
        files=files_of(view, asked, "energy"),
    )


@router.get("/energy", response_class=HTMLResponse)
def energy_page(view: ViewDep) -> str:
    """The energy as HTML."""
    return render("pages/energy.html", build_energy(view))
