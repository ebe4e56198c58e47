"""Good values for the page tests: a small fleet over thirty days, findings with and without a figure."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from api.pages.frame import Frame, nav, tools
from api.pages.period import DEFAULT_PERIOD, PERIODS, PeriodBar, links_of
from api.pages.view import Address
from api.resources.funnel import FunnelRow
from api.resources.overview_model import Day, HostLine, Money, Overview, Previous, Proven
from api.resources.waste import Waste, WasteKind
from core.activity import Activity
from core.clock import from_ms
from core.evidence import Window
from core.finding import (
    Action,
    Effort,
    Finding,
    Grade,
    Range,
    Risk,
    Saving,
    Status,
    Subject,
    Totals,
)
from core.readings import GpuIdentity
from core.samples import EnergyMethod, GpuSample
from core.units import DAY_MS, GIB, HOUR_MS
from core.verification import Ledger
from store.queries.fleet import FleetGpu
from store.queries.recommendations import Recommendation

NOW_MS = 1_763_596_800_000 + 12_000  # 2025-11-20 00:00:12 UTC
WINDOW = Window(NOW_MS - 12_000 - 30 * DAY_MS, NOW_MS - 12_000)
HOSTILE = "<script>alert(1)</script>\"'&\u202e"
"""What a host or a model may call itself."""

DAY_COST: Mapping[Activity, int] = {
    Activity.COMPUTE_BOUND: 900,
    Activity.MEMORY_BOUND: 420,
    Activity.MIXED: 90,
    Activity.BUSY: 130,
    Activity.STARVED: 110,
    Activity.SPINNING: 60,
    Activity.PARKED: 410,
    Activity.EMPTY: 620,
    Activity.UNKNOWN: 45,
}


def finding(**changes: object) -> Finding:
    """A parked-model finding with a cash figure, a command and a chart."""
    start = WINDOW.to_ms - 14 * DAY_MS
    base = Finding(
        rule_id="small-batch",
        subject=Subject("engine", "gpu-node-02:8000/0", "llama-70b on gpu-node-02"),
        cause="configuration",
        title="Raise the batch of llama-70b on gpu-node-02",
        because="Runs 8 requests where 71 reach half its rate; 340 wait; KV cache 9 % full: the limit is the setting.",
        state="configuration-limited",
        confidence="fitted on this engine's own hours; batch sizes seen from 1 to 8",
        grade=Grade.B,
        effort=Effort.LOW,
        risk=Risk.LOW,
        saving=Saving(cash_usd_month=Range(1800, 3120, 4300)),
        evidence={
            "window_from": "2025-10-21T00:00:00Z",
            "window_to": "2025-11-20T00:00:00Z",
            "coverage_ratio": 0.992,
            "running_mean": 8.0,
            "half_batch": 71,
            "waiting_mean": 340.2,
            "kv_used_p95_ratio": 0.09,
            "power_w": 412.0,
            "cost_usd_month": 5470.0,
        },
        actions=(
            Action("Raise the limit on running sequences.", "vllm serve … --max-num-seqs 96"),
            Action("Watch the time between tokens while you do."),
        ),
        wrong_when="The service promises a time between tokens below 20 ms.",
        not_claimed="No gain is claimed for prefill.",
        gpu_uuids=("GPU-0",),
        chart={
            "series": [[start + i * HOUR_MS, 8 + (i * 7 % 5) / 5] for i in range(14 * 24)],
            "unit": "requests",
            "threshold": 71.0,
        },
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def recommendation(id_: int = 1, status: Status = Status.OPEN, **changes: object) -> Recommendation:
    """A recorded finding."""
    return Recommendation(
        finding=finding(**changes),
        status=status,
        opened_at_ms=WINDOW.to_ms - 5 * DAY_MS,
        seen_at_ms=WINDOW.to_ms,
        snoozed_until_ms=None,
        note=None,
        id=id_,
    )


def recommendations() -> tuple[Recommendation, ...]:
    """Cash, capacity, energy, and no figure with its reason."""
    return (
        recommendation(
            1,
            rule_id="empty-gpu",
            title="Release gpu-node-07: eight empty H100s",
            because="No process on any of its GPUs since 3 Nov; the whole node can be returned.",
            actions=(Action("Stop the instance.", "gcloud compute instances stop gpu-node-07"),),
            saving=Saving(cash_usd_month=Range(4900, 5470, 5900)),
            grade=Grade.A,
            chart={
                "series": [[WINDOW.from_ms + i * HOUR_MS, 0.0] for i in range(200)],
                "unit": "busy share",
                "threshold": 0.05,
            },
        ),
        recommendation(2),
        recommendation(
            3,
            rule_id="parked-model",
            title="Merge three parked embedding servers",
            because="Memory held, no request for 19 h a day; 41 GiB together on one 80 GiB card.",
            actions=(Action("Place them on one GPU."),),
            saving=Saving(capacity_gpu_h_month=Range(1050, 1240, 1400)),
            effort=Effort.MEDIUM,
        ),
        recommendation(
            4,
            rule_id="memory-bound-decode",
            title="Decode on gpu-node-05 is memory-bound",
            because="DRAM 71 % active, tensor 6 %, 212 W of 700 W.",
            saving=Saving(),
            no_figure="needs engine metrics",
            grade=Grade.C,
            chart={},
        ),
    )


def day(i: int, *, seen: bool = True) -> Day:
    """Day ``i`` of the window; ``seen`` False is a day without samples."""
    share = 1 + (i * 13 % 7) / 20
    unseen_usd, unseen_s = Decimal(12 if seen else 2700), (12 if seen else 2700) * 900.0
    cost = {a: Decimal(usd) * Decimal(str(share)) for a, usd in DAY_COST.items()}
    seconds = {a: float(usd) * 900 for a, usd in cost.items()}
    seconds[Activity.UNKNOWN] -= unseen_s
    from_ms_ = WINDOW.from_ms + i * DAY_MS
    return Day(
        day=f"{from_ms(from_ms_):%Y-%m-%d}",
        from_ms=from_ms_,
        cost_by_activity=cost if seen else {Activity.UNKNOWN: unseen_usd},
        seconds_by_activity=seconds if seen else {},
        unseen_usd=unseen_usd,
        unseen_s=unseen_s,
    )


def host_lines() -> tuple[HostLine, ...]:
    """Eight hosts of four GPUs, each with its own day; the empty one has most idle money."""
    days: tuple[tuple[Activity | None, ...], ...] = (
        (Activity.EMPTY,) * 24,
        (Activity.STARVED,) * 3
        + (Activity.COMPUTE_BOUND,) * 13
        + (Activity.STARVED,) * 2
        + (Activity.COMPUTE_BOUND,) * 6,
        (Activity.MEMORY_BOUND,) * 24,
        (Activity.PARKED,) * 7 + (Activity.MEMORY_BOUND,) * 13 + (Activity.PARKED,) * 4,
        (Activity.MIXED, Activity.BUSY) * 12,
        (Activity.UNKNOWN,) * 10 + (None,) * 6 + (Activity.BUSY,) * 8,
        (Activity.COMPUTE_BOUND,) * 14 + (Activity.SPINNING,) * 10,
        (None,) * 24,
    )
    recs = recommendations()
    return tuple(
        HostLine(
            host=f"gpu-node-{h + 1:02d}",
            gpus=4,
            cost_usd=Decimal("8640.00"),
            idle_usd=Decimal(8640) if strip[-1] is Activity.EMPTY else Decimal(60 * (8 - h)),
            hours=tuple({} if activity is None else {activity: 4} for activity in strip),
            advice=recs[0] if strip[-1] is Activity.EMPTY else recs[1] if h == 1 else None,
        )
        for h, strip in enumerate(days)
    )


def overview(**changes: object) -> Overview:
    """Thirty days of that fleet; day 12 has no samples."""
    recs = recommendations()
    base = Overview(
        window=WINDOW,
        now_ms=NOW_MS,
        simulated=False,
        has_data=True,
        freshness_s=12.0,
        coverage_ratio=0.992,
        host_count=8,
        gpu_count=32,
        money=Money(
            spend_usd=Decimal("84310.20"),
            idle_usd=Decimal("31870.00"),
            empty_usd=Decimal("18550.00"),
            parked_usd=Decimal("13320.00"),
            unseen_usd=Decimal("3048.00"),
            energy_usd=None,
            energy_in_spend=False,
            priced_ratio=1.0,
        ),
        previous=Previous(
            Window(WINDOW.from_ms - 30 * DAY_MS, WINDOW.from_ms), Decimal(81000), Decimal(30000), 0.0409
        ),
        price_note="catalogue: median on-demand of H100-SXM5-80GB, 9 providers, 2025-11-09",
        energy_kwh=9214.0,
        site_kwh=15571.0,
        carbon_g=7.4e6,
        carbon_note="475 gCO2e/kWh: WLD, 2024, life cycle, location-based",
        funnel=(
            FunnelRow("total", 23040.0, 0.0, 1.0, Decimal(84310)),
            FunnelRow("allocated", 17970.0, 200.0, 0.78, Decimal(65760)),
            FunnelRow("active", 14290.0, 200.0, 0.62, Decimal(52440)),
            FunnelRow("effective", 9450.0, 1320.0, 0.41, Decimal(34600)),
        ),
        days=tuple(day(i, seen=i != 12) for i in range(30)),
        totals=Totals(Range(7100, 9400, 11300), Range(1800, 2310, 2700), None, 84310.0),
        recommendations=recs,
        open_count=14,
        not_evaluated_count=9,
        waste=(
            Waste(WasteKind.BROKEN, 41.0, Decimal("120.00")),
            Waste(WasteKind.UNOCCUPIED, 5070.0, Decimal("18550.00")),
            Waste(WasteKind.IDLE, 3680.0, Decimal("13320.00")),
            Waste(WasteKind.INEFFICIENT, 3520.0, Decimal("12900.00")),
        ),
        proven=(Proven(Ledger.CASH, 6020.0, 7300.0, 5),),
        hosts=host_lines(),
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def empty_overview() -> Overview:
    """A database in which nothing was stored yet."""
    nothing = Money(None, None, None, None, None, None, False, None)
    return overview(
        has_data=False,
        freshness_s=None,
        coverage_ratio=None,
        host_count=0,
        gpu_count=0,
        money=nothing,
        previous=None,
        energy_kwh=None,
        site_kwh=None,
        carbon_g=None,
        funnel=tuple(
            FunnelRow(step, None, 0.0, None, None) for step in ("total", "allocated", "active", "effective")
        ),
        days=(),
        totals=None,
        recommendations=(),
        open_count=0,
        not_evaluated_count=None,
        waste=(),
        proven=(),
        hosts=(),
    )


def frame(active: str = "overview", **changes: object) -> Frame:
    """The frame of a live fleet."""
    base = Frame(
        title="Overview",
        nav=nav(active, 14),
        tools=tools(active),
        periods=PeriodBar(links_of(Address("/"), PERIODS, DEFAULT_PERIOD)),
        simulated=False,
        newest_ms=NOW_MS - 12_000,
        now_ms=NOW_MS,
        coverage_ratio=0.992,
        coverage_text="",
        hosts=8,
        gpus=32,
        window_text="21 Oct – 19 Nov 2025",
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def sample(i: int, activity: Activity, **values: float) -> GpuSample:
    """Sample ``i`` (10 s each) of the last hour."""
    return GpuSample(
        "GPU-0",
        WINDOW.to_ms - HOUR_MS + i * 10_000,
        10_000,
        10_000,
        values,
        EnergyMethod.COUNTER,
        activity,
    )


def gpu() -> FleetGpu:
    """A card with a newest sample."""
    identity = GpuIdentity(
        "GPU-0",
        host="gpu-node-01",
        index=0,
        model="NVIDIA H100 80GB HBM3",
        memory_total_bytes=80 * GIB,
        driver_version="580.95.05",
        max_sm_clock_hz=1.98e9,
        power_limit_default_w=700.0,
    )
    latest = sample(
        359, Activity.PARKED, power_w=118.0, busy_ratio=0.0, memory_used_bytes=41.0 * GIB, power_limit_w=700.0
    )
    return FleetGpu(identity, WINDOW.from_ms, WINDOW.to_ms, latest)
