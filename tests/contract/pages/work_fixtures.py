"""Good values for the pages of engines, workloads, teams and users."""

from dataclasses import replace
from decimal import Decimal

from advisor.estimators.decode_step import DecodeStep
from api.pages import engine, engines, owner, owners, user, workload, workloads
from api.pages.frame import Frame
from api.pages.pager import Pager
from api.pages.use_days import UseDay
from api.pages.view import Address
from api.rec_row import rows_of
from api.resources.engine_detail import EngineDetail, Law
from api.resources.engines import EngineRow
from api.resources.idle_sharing import IdlePolicy
from api.resources.report_parts import Part
from api.resources.report_sum import LineSum
from api.resources.who_used import Group, Level, WhoUsed
from api.templating import render
from core.activity import Activity
from core.ownership import Owner
from core.readings import EngineIdentity, GpuIdentity, WorkloadKey
from core.samples import GpuEvent
from core.units import HOUR_MS
from store.queries.advice_heads import AdviceHead
from store.queries.engine_hours import HourOutline
from store.queries.ledger_sums import Grid, Rate
from store.queries.workload_hours import HeldHour, Neighbour
from tests.contract import page_fixtures as good
from tests.contract.test_pages_render import engine_row

HOUR: int = HOUR_MS
TRAIN = WorkloadKey("process", "42:17", "train.py", user="ann", host="h1")


def amounts(**changes: int | None) -> dict[str, int | None]:
    """Ten hours of one GPU at $2: eight active, six effective, one active that nothing can judge."""
    found: dict[str, int | None] = {
        "known_ms": 10 * HOUR,
        "covered_ms": 10 * HOUR,
        "allocated_ms": 10 * HOUR,
        "active_ms": 8 * HOUR,
        "effective_ms": 6 * HOUR,
        "effective_unknown_ms": HOUR,
        "unknown_ms": 0,
        "energy_mj": 3_600_000_000,
        "site_energy_mj": 5_400_000_000,
        "cost_usd": 20_000_000,
        "idle_cost_usd": 4_000_000,
        "billed_energy_usd": None,
        "carbon_ug": 700_000_000,
    }
    return found | changes


def part(work: WorkloadKey | None = TRAIN, team: str | None = "research") -> Part:
    """What the lines are of."""
    return Part(
        kind="idle" if work is None else "workload",
        workload=work,
        owner=None if team is None else Owner(team, "vision", "4711"),
        rate=Rate("your price of 2025-09-01", 2_000_000),
        grid=Grid("DEU", 2024, "life cycle"),
    )


def group(
    key: str | None, work: WorkloadKey | None = TRAIN, team: str | None = "research", **changes: int | None
) -> Group:
    """A row."""
    found = Group(key)
    found.total.add(part(work, team), amounts(**changes))
    found.note(part(work, team))
    return found


def who(*groups: Group, nobody: Group | None = None) -> WhoUsed:
    """Rows with their sum."""
    total = Group("", LineSum())
    for one in groups:
        total.total.merge(one.total)
    return WhoUsed(groups, nobody, total, ("ml",))


def day(key: str = "2025-11-19", **changes: int | None) -> UseDay:
    """A day."""
    of = group(key, **changes)
    return UseDay(key, of.use, of.total, ((10.0, Decimal(2), Decimal(20), "your price of 2025-09-01"),))


def hours(count: int = 6) -> tuple[HourOutline, ...]:
    """Busy hours with growing batches; the last is idle and knows nothing."""
    start = good.WINDOW.to_ms - (count + 1) * HOUR
    found = [
        HourOutline(
            start + at * HOUR, 3600, 1800, 2.0 + at, 0.5, 0.1 * at, 1800 * 80.0 * (2 + at), 0.0, 0.2, 0.02
        )
        for at in range(count)
    ]
    last = HourOutline(start + count * HOUR, 3600, 0, None, None, None, None, None, None, None)
    return (*found, last)


LAW = Law(DecodeStep(0.01, 0.0002, "fit", 0.05, reach=14.0), None, 256.0, 0.05, 120.0)


def detail(**changes: object) -> EngineDetail:
    """An engine with a fitted law."""
    row: EngineRow = engine_row()
    found = EngineDetail(
        EngineIdentity(row.engine, row.host, row.kind, row.model, {"max_num_seqs": "256"}, ("GPU-4",)),
        row,
        LAW,
        hours(),
        (),
        (GpuEvent("GPU-4", good.WINDOW.to_ms - HOUR, "model", "a → b", None),),
        None,
        24.0,
    )
    return replace(found, **changes)  # type: ignore[arg-type]


def engines_html(frame: Frame, *found: EngineRow, seen: int | None = None) -> str:
    """The list."""
    from api.pages.engine_list import COLUMNS
    from api.pages.sorting import sort_rows

    address = Address("/engines")
    _, sort = sort_rows(address, [], COLUMNS, "engine")
    count = len(found)
    advice = {row.engine: [AdviceHead(2, good.recommendation(2).finding)] for row in found}
    choices = {"kind": ["vllm"], "host": [good.HOSTILE]}
    page = engines.page_of(
        frame,
        found,
        advice,
        address,
        Pager(0, count, count),
        sort,
        choices,
        count if seen is None else seen,
    )
    return render("pages/engines.html", page)


def engine_html(frame: Frame, of: EngineDetail | None = None) -> str:
    """One engine."""
    advice = rows_of([good.recommendation(3)], {})
    page = engine.page_of(
        frame, of or detail(), advice, Address("/engines/x", (("since", "7d"),)), good.WINDOW
    )
    return render("pages/engine.html", page)


def workloads_html(frame: Frame, found: WhoUsed, level: Level = Level.JOB) -> str:
    """Workloads of a level."""
    page = workloads.page_of(
        frame,
        found,
        Address("/workloads", (("owner", "research"), ("q", good.HOSTILE))),
        level,
        IdlePolicy.KEEP,
        {"owner": ["research"]},
        "/api/v1/workloads?format=csv",
    )
    return render("pages/workloads.html", page)


def owners_html(frame: Frame, found: WhoUsed) -> str:
    """Teams."""
    page = owners.page_of(frame, found, Address("/owners"), IdlePolicy.KEEP, [], "/api/v1/costs")
    return render("pages/owners.html", page)


def owner_html(frame: Frame, team: str = "research", *days: UseDay) -> str:
    """One team."""
    gpu = group("GPU-4", None)
    used = owner.TeamUse(
        who(group("ann")), who(group("vision")), who(group("ann\nprocess\ntrain.py")), who(gpu)
    )
    names = {"GPU-4": GpuIdentity("GPU-4", "h1", 4, "NVIDIA H100", 80 << 30)}
    page = owner.page_of(frame, team, used, days, (), (), Address("/owners/x"), names)
    return render("pages/owner.html", page)


def user_html(frame: Frame, name: str = "ann", *days: UseDay) -> str:
    """One user."""
    page = user.page_of(frame, name, who(group("ann\nprocess\ntrain.py")), days, Address("/users/x"))
    return render("pages/user.html", page)


def workload_html(frame: Frame, work: WorkloadKey = TRAIN, *, held: bool = True) -> str:
    """One workload that held a GPU for three hours, with a gap between."""
    start = good.WINDOW.to_ms - 10 * HOUR
    found = [
        HeldHour(7, start + at * HOUR, 3600.0, "memory_time", {Activity.COMPUTE_BOUND: 3600.0})
        for at in (0, 1, 4)
    ]
    page = workload.page_of(
        frame,
        work,
        group("x", work),
        found if held else [],
        [day()] if held else [],
        [Neighbour(WorkloadKey("pod", "k", good.HOSTILE, user="bob", host="h1"), 2, 1800.0)],
        {7: GpuIdentity("GPU-4", "h1", 4, "NVIDIA H100", 80 << 30)},
        good.WINDOW,
        Address("/workloads/x"),
    )
    return render("pages/workload.html", page)
