"""Good values for pages of money: two teams, nobody, a gap, three days."""

from dataclasses import replace
from decimal import Decimal

from api.pages.breakdown import Asked, Breakdown
from api.pages.breakdown_rows import Bucket, layers_of, rows_of
from api.resources.budgets import BudgetView
from api.resources.by import By
from api.resources.idle_sharing import IdlePolicy
from api.resources.report_filters import NO_FILTERS
from api.resources.report_parts import Part
from api.resources.report_sum import LineSum, Sums, merged
from core.units import DAY_MS, HOUR_MS
from store.queries.ledger_sums import Grid, Rate
from tests.contract.page_fixtures import WINDOW

RATE = Rate("your price for H100 of 2025-10-01", 2_000_000, "reserved", 7)
GRID = Grid("WLD", 2024, "life cycle", "hall 1", "flat, from the settings", 1.25, 0.3, "setting")
DAYS = tuple(
    Bucket(
        f"2025-11-{17 + n}",
        f"{17 + n} Nov",
        WINDOW.to_ms - (3 - n) * DAY_MS,
        WINDOW.to_ms - (2 - n) * DAY_MS,
        n > 0,
    )
    for n in range(3)
)


def lines(label: str, hours: int, *, kind: str = "workload", rate: Rate | None = RATE) -> LineSum:
    """So many GPU-hours of one kind as a sum of lines."""
    ms = hours * HOUR_MS
    one = LineSum(label)
    amounts = {
        "known_ms": ms,
        "covered_ms": 0 if kind == "gap" else ms,
        "energy_mj": hours * 1_800_000_000,
        "energy_covered_ms": ms,
        "energy_method": "counter",
        "site_energy_mj": hours * 2_925_000_000,
        "cost_usd": None if rate is None else hours * 2_000_000,
        "idle_cost_usd": None if rate is None else hours * 500_000,
        "energy_usd": hours * 97_500,
        "billed_energy_usd": None,
        "carbon_ug": hours * 390_000_000,
    }
    one.add(Part(kind=kind, rate=rate, grid=GRID), amounts)
    return one


def breakdown(*labels: str, by: By = By.OWNER, rate: Rate | None = RATE) -> Breakdown:
    """Groups of these names, each smaller than the one before; the last is nobody's. None: nothing at all."""
    found: Sums = {}
    cells: Sums = {}
    for n, label in enumerate(labels):
        key = None if n == len(labels) - 1 else f"key {n}"
        hours = 10 * (len(labels) - n)
        found[key,] = lines(label, 3 * hours, rate=rate)
        for bucket in DAYS:
            cells[key, bucket.key] = lines(f"{label} · {bucket.key}", hours, rate=rate)
    totals = tuple(
        merged(one for key, one in cells.items() if key[1] == bucket.key) if labels else None
        for bucket in DAYS
    )

    def figure(one: LineSum) -> Decimal | None:
        return one.spend_usd

    rows = rows_of(found, figure)
    shown = [row for row in rows if figure(row.lines)][:7]
    return Breakdown(
        asked=Asked(by, By.DAY, IdlePolicy.KEEP, NO_FILTERS),
        rows=tuple(rows),
        whole=merged(found.values()),
        before=None,
        buckets=DAYS,
        totals=totals,
        layers=layers_of(shown, cells, DAYS, totals, figure, by=by),
    )


def budget(**changes: object) -> BudgetView:
    """A budget of a team that is at risk in November."""
    base = BudgetView(
        id=3,
        name="Research",
        scope_kind="team",
        scope_value="research",
        amount_usd=Decimal(1000),
        from_month="2025-10",
        to_month=None,
        note="",
        month="2025-11",
        status="at_risk",
        spent_usd=Decimal(700),
        spent_ratio=0.7,
        p10_usd=Decimal(950),
        p50_usd=Decimal(1100),
        p90_usd=Decimal(1200),
        breaks_on="2025-11-27",
        breaks_earliest="2025-11-25",
        breaks_latest=None,
        left_usd=Decimal(300),
        left_usd_per_day=Decimal("27.27"),
        days_left=11,
        is_over=False,
        data_until=None,
        history_days=40,
        left_out_days={},
        why=None,
    )
    return replace(base, **changes)  # type: ignore[arg-type]
