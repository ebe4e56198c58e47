"""Costs: what the GPUs cost by any key and day by day, what of it was idle, energy and carbon beside it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final
from urllib.parse import urlencode

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from api import formats
from api.charts import Layer, stacked_bars
from api.charts_lines import meter
from api.deps import ScopeDep
from api.pages.frame import DEFAULT_PERIOD, Frame, PeriodLink, build_frame, period_links
from api.resources.by import By
from api.resources.costs import CostRow, rows
from api.resources.scope import Scope
from api.templating import render
from core.clock import to_ms
from core.errors import UsageError

router = APIRouter(include_in_schema=False)

GROUPS: Final = (
    (By.OWNER, "owner"),
    (By.HOST, "host"),
    (By.GPU, "GPU"),
    (By.MODEL, "GPU model"),
    (By.WORKLOAD, "workload"),
    (By.USER, "user"),
    (By.NAMESPACE, "namespace"),
    (By.ENGINE, "engine"),
    (By.ACTIVITY, "activity"),
    (By.KIND, "who held it"),
)


MOST_LINES: Final = 100
"""Lines of the table; the rest is in the REST answer."""


@dataclass(frozen=True, slots=True)
class CostLine:
    """One group with its share of the dearest as a bar; ``count`` groups of the same name are one line."""

    row: CostRow
    count: int
    bar: Markup


@dataclass(frozen=True, slots=True)
class CostsPage:
    """Everything the page prints; ``days`` are the rows by day, oldest first."""

    frame: Frame
    headline: str
    by_name: str
    by_key: str
    groups: tuple[PeriodLink, ...]
    lines: tuple[CostLine, ...]
    left_out: int
    days: tuple[CostRow, ...]
    chart: Markup | None
    has_unseen: bool
    bases: tuple[str, ...]
    carbon: str


def total(found: Sequence[CostRow]) -> Decimal | None:
    """Cost of all rows; None when none is priced."""
    return _sum(row.cost_usd for row in found)


def by_name(found: Sequence[CostRow]) -> list[tuple[CostRow, int]]:
    """Rows that people cannot tell apart (runs of one program) as one, with their number; the dearest first."""
    groups: dict[tuple[bool, str], list[CostRow]] = {}
    for row in found:
        groups.setdefault((row.key is None, row.label), []).append(row)
    merged = [(_added(rows_), len(rows_)) for rows_ in groups.values()]
    return sorted(
        merged, key=lambda item: (item[0].key is None, -(item[0].cost_usd or Decimal(0)), item[0].label)
    )


def _added(same: Sequence[CostRow]) -> CostRow:
    if len(same) == 1:
        return same[0]
    return replace(
        same[0],
        cost_usd=total(same),
        idle_cost_usd=_sum(row.idle_cost_usd for row in same),
        energy_cost_usd=_sum(row.energy_cost_usd for row in same),
        unseen_cost_usd=_sum(row.unseen_cost_usd for row in same),
        carbon_g=_known(row.carbon_g for row in same),
        site_energy_kwh=_known(row.site_energy_kwh for row in same),
        gpu_h=sum(row.gpu_h for row in same),
    )


def _sum(values: Iterable[Decimal | None]) -> Decimal | None:
    known = [value for value in values if value is not None]
    return sum(known, Decimal(0)) if known else None


def _known(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def chart_of(days: Sequence[CostRow]) -> Markup | None:
    """Cost per day: used, idle, not seen; None when nothing is priced."""
    if total(days) is None:
        return None
    wasted, unseen = _sum(row.idle_cost_usd for row in days), _sum(row.unseen_cost_usd for row in days)
    label = f"Cost per day in US dollars over {len(days)} days: {formats.money(total(days))}, of it"
    label += f" {formats.money(wasted)} idle"
    layers = [
        Layer("m-used", "used", tuple(_float(_used(row)) for row in days)),
        Layer("m-idle", "idle", tuple(_float(row.idle_cost_usd) for row in days)),
    ]
    if unseen:
        layers.append(Layer("a-unknown", "not seen", tuple(_float(row.unseen_cost_usd) for row in days)))
        label += f", {formats.money(unseen)} not seen"
    return stacked_bars([formats.day(_day_ms(row.key)) for row in days], layers, label=label)


def _used(row: CostRow) -> Decimal | None:
    """Cost that is neither idle nor of a gap; energy is in it where the site pays for power."""
    if row.cost_usd is None:
        return None
    return row.cost_usd - (row.idle_cost_usd or Decimal(0)) - (row.unseen_cost_usd or Decimal(0))


def _float(amount: Decimal | None) -> float | None:
    return None if amount is None else float(amount)


def _day_ms(key: str | None) -> int:
    return to_ms(datetime.fromisoformat(key or "1970-01-01").replace(tzinfo=UTC))


def page_of(
    frame: Frame, found: Sequence[CostRow], days: Sequence[CostRow], *, by: By, since: str
) -> CostsPage:
    """Lay out the costs; pure."""
    ordered = by_name(found)
    most = max((float(row.cost_usd) for row, _ in ordered if row.cost_usd is not None), default=0.0)
    spent = total(days)
    factor = next((row for row in days if row.carbon_code), None)
    return CostsPage(
        frame=frame,
        headline=f"{formats.money(spent)} of GPU time"
        if spent is not None
        else "No price is known for these GPUs",
        by_name=dict(GROUPS)[by],
        by_key=by.value,
        groups=tuple(
            PeriodLink(name, f"/costs?{urlencode({'since': since, 'by': key.value})}", key is by)
            for key, name in GROUPS
        ),
        lines=tuple(
            CostLine(
                row,
                count,
                meter(
                    None if row.cost_usd is None or most <= 0 else float(row.cost_usd) / most,
                    label=f"{row.label}: {formats.money(row.cost_usd)}",
                    key="m-used",
                ),
            )
            for row, count in ordered[:MOST_LINES]
        ),
        left_out=max(0, len(ordered) - MOST_LINES),
        days=tuple(days),
        chart=chart_of(days),
        has_unseen=any(row.unseen_cost_usd for row in days),
        bases=tuple(dict.fromkeys(b for row in found for b in (row.price_basis or "").split("; ") if b)),
        carbon=""
        if factor is None
        else f"{factor.carbon_code}{f' {factor.carbon_year}' if factor.carbon_year else ''}, {factor.carbon_method}",
    )


def build_costs(scope: Scope, *, by: str, since: str) -> CostsPage:
    """The page over the scope's window. Raises ``UsageError`` for a key that cannot be grouped by."""
    allowed = {key.value: key for key, _ in GROUPS}
    if by not in allowed:
        raise UsageError(f"by is {by!r}: use one of {', '.join(allowed)}")
    frame = build_frame(
        scope, active="costs", title="Costs", periods=period_links("/costs", since, keep={"by": by})
    )
    return page_of(
        frame,
        rows(scope, allowed[by]),
        rows(scope, By.DAY),
        by=allowed[by],
        since=since,
    )


@router.get("/costs", response_class=HTMLResponse)
def costs_page(scope: ScopeDep, since: str = DEFAULT_PERIOD, by: str = By.HOST.value) -> str:
    """The costs as HTML."""
    return render("pages/costs.html", build_costs(scope, by=by, since=since))
