"""A good GPU page, with hostile names wherever somebody outside chooses them."""

from dataclasses import replace
from decimal import Decimal

from api.charts_lanes import Instant
from api.pages import gpu, gpu_charts, gpu_days, gpu_health, gpu_holders, gpu_memory, gpu_money, gpu_series
from api.pages.frame import Frame
from api.rec_row import row_of
from api.words import Mark
from core.activity import Activity
from core.evidence import Window
from core.readings import GpuHealth
from core.samples import GpuEvent
from core.units import GIB, HOUR_MS
from store.queries.gpu_trace import Held
from tests.contract import page_fixtures as good

HOUR = Window(good.WINDOW.to_ms - HOUR_MS, good.WINDOW.to_ms)
MEASURED = {
    "power_w": 410.0,
    "power_max_w": 440.0,
    "busy_ratio": 0.95,
    "sm_active_ratio": 0.6,
    "tensor_active_ratio": 0.1,
    "dram_active_ratio": 0.7,
    "memory_used_bytes": 70.0 * GIB,
    "sm_clock_hz": 1.755e9,
    "memory_clock_hz": 2.619e9,
    "temperature_c": 64.0,
    "pcie_rx_bytes_per_s": 2e8,
    "pcie_tx_bytes_per_s": 1e8,
    "nvlink_rx_bytes_per_s": 5e10,
    "event_reasons_flags": float(0x04),
}


def series(activity: Activity = Activity.MEMORY_BOUND, **values: float) -> gpu_series.GpuSeries:
    """An hour of samples with a gap."""
    samples = [good.sample(i, activity, **(values or MEASURED)) for i in range(360)]
    return gpu_series.from_samples(samples[:100] + samples[150:], HOUR)


def held(points: gpu_series.GpuSeries) -> gpu_memory.Layers:
    """Two workloads and a rest."""
    rows = [
        Held(point.ts_ms, key, size * GIB * point.covered_s)
        for point in points.points
        for key, size in ((1, 40.0), (2, 20.0))
    ]
    return gpu_memory.layers(points, rows, {1: "train.py", 2: good.HOSTILE})


def holder(**changes: object) -> gpu_holders.Holder:
    """A workload somebody named to hurt."""
    base = gpu_holders.Holder(
        name=good.HOSTILE,
        href="/workloads/7",
        kind="process",
        owner=gpu_holders.Link(good.HOSTILE, "/owners/x"),
        user=None,
        share_ratio=0.5,
        active_ratio=None,
        shared=True,
        cost_usd=Decimal("12.50"),
        memory_bytes=None,
        first_ms=HOUR.from_ms,
        last_ms=HOUR.to_ms,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def money(**changes: object) -> gpu_money.GpuMoney:
    """Unpriced, unless said otherwise."""
    base = gpu_money.GpuMoney(
        widened=True,
        price=None,
        why_unpriced="no price fits Card Of Nobody: add one",
        cost_usd=None,
        idle_usd=None,
        unseen_usd=None,
        idle_h=0.0,
        clock_h=24.0,
        rate_usd=None,
        power=gpu_money.Power(None, "not measured", None),
        days=(
            gpu_days.DayLine(
                "2025-11-19", "/gpus/GPU-0/hours?day=2025-11-19", 24.0, 12.0, 11.0, 1.0, None, None
            ),
        ),
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def page(frame: Frame, points: gpu_series.GpuSeries | None = None, **changes: object) -> gpu.GpuPage:
    """The page."""
    points = series() if points is None else points
    layers = held(points)
    event = GpuEvent("GPU-0", HOUR.from_ms + 60_000, good.HOSTILE, good.HOSTILE)
    marks = (Instant(event.ts_ms, Mark.BAD, good.HOSTILE, "#events"),)
    base = gpu.GpuPage(
        frame=frame,
        gpu=good.gpu(),
        name="GPU 0 on gpu-node-01",
        headline="GPU 0 on gpu-node-01 worked 97 % of the time",
        aside="",
        latest=good.gpu().latest,
        limit_w=None,
        window=points.window,
        from_at="2025-11-19T23:00:00Z",
        to_at="2025-11-20T00:00:00Z",
        newest_at="2025-11-20T00:00:00Z",
        path="/gpus/GPU-0",
        parts_href="/costs/parts?by=gpu&key=GPU-0",
        reload_href="/gpus/GPU-0?since=1h",
        go=gpu.links("/gpus/GPU-0", points.window, points.window.to_ms),
        series=points,
        drawing=gpu_charts.draw(points, good.gpu().identity, 700.0, layers, marks),
        steps=gpu_charts.steps_table(points),
        memory=gpu_charts.memory_table(points, layers),
        activities=(Activity.MEMORY_BOUND,),
        covered_ratio=0.86,
        money=money(),
        alarms=(gpu_health.Said(Mark.BAD, good.HOSTILE),),
        health=gpu_health.health_block(
            GpuHealth("GPU-0", good.NOW_MS, {"ecc_mode": "disabled", "compute_mode": good.HOSTILE}),
            good.NOW_MS,
        ),
        events=gpu_health.event_lines([event]),
        events_left_out=3,
        holders=tuple(holder() for _ in range(14)),
        holders_left_out=2,
        recommendations=(row_of("2", good.finding()),),
    )
    return replace(base, **changes)  # type: ignore[arg-type]
