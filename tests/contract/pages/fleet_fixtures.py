"""Good values for the pages of the fleet and of a host: eight hosts of four GPUs, each with its own day."""

from dataclasses import replace
from typing import Any

from api.resources.fleet_rows import FleetGpu
from api.resources.gpu_totals import GpuTotal
from core.activity import Activity
from core.ownership import HostFacts, Owner
from core.units import DAY_MS, GIB, HOUR_MS
from store.queries.advice_heads import AdviceHead
from store.queries.gpu_engines import EngineName
from store.queries.gpu_now import GpuNow
from tests.contract import page_fixtures as good

USD = 1_000_000
RESEARCH = Owner("research")
DAYS: tuple[tuple[Activity | None, ...], ...] = (
    (Activity.STARVED,) * 5 + (Activity.COMPUTE_BOUND,) * 19,
    (Activity.MEMORY_BOUND,) * 24,
    (Activity.PARKED,) * 7 + (Activity.MEMORY_BOUND,) * 13 + (Activity.PARKED,) * 4,
    (Activity.MIXED, Activity.BUSY) * 12,
    (Activity.UNKNOWN,) * 10 + (None,) * 6 + (Activity.BUSY,) * 8,
    (Activity.COMPUTE_BOUND,) * 14 + (Activity.SPINNING,) * 10,
    (Activity.EMPTY,) * 24,
    (None,) * 24,
)


def gpu(host: int = 0, index: int = 0, *, now: dict[str, Any] | None = None, **changes: Any) -> FleetGpu:
    """A GPU of host number ``host``."""
    strip = DAYS[host]
    activity = strip[-1]
    number = 4 * host + index
    idle_ms = sum(3_600_000 for one in strip if one in {Activity.EMPTY, Activity.PARKED})
    total = GpuTotal(
        known_ms=30 * DAY_MS,
        covered_ms=30 * DAY_MS - HOUR_MS * strip.count(None),
        idle_ms=30 * idle_ms,
        energy_mj=200_000_000,
        cost_micro=2_160 * USD,
        idle_micro=90 * USD * idle_ms // HOUR_MS,
        owner_ms={RESEARCH if host < 6 else None: 30 * DAY_MS},
    )
    row = FleetGpu(
        now=GpuNow(
            id=number + 1,
            gpu_uuid=f"GPU-{number}",
            host=f"gpu-node-{host + 1:02d}",
            gpu_index=index,
            model="NVIDIA H100 80GB HBM3",
            memory_total_bytes=80 * GIB,
            first_sample_ms=good.WINDOW.from_ms,
            seen_until_ms=good.WINDOW.to_ms if activity is not None else good.WINDOW.to_ms - 3 * HOUR_MS,
            activity=None if activity is None else activity.value,
            busy_ratio=None if activity is None else 0.93,
            power_w=None if activity is None else 71.5 + 80 * host,
            power_limit_w=700.0,
            memory_used_bytes=None if activity is None else 61.0 * GIB,
            sm_active_ratio=0.55 if host < 3 else None,
            dram_active_ratio=0.61 if host < 3 else None,
        ),
        total=total,
        is_silent=activity is None,
        strip=strip,
        facts=HostFacts(f"gpu-node-{host + 1:02d}", cluster="hall-1", labels=(("rack", f"a{host}"),)),
        engines=(EngineName("gpu-node-02:8000/0", "llama-70b", "vllm"),) if host == 1 else (),
        advice=(AdviceHead(1, good.recommendations()[0].finding),) if activity is Activity.EMPTY else (),
    )
    row = replace(row, **changes)
    return replace(row, now=row.now._replace(**now)) if now else row


def fleet() -> list[FleetGpu]:
    """All of them."""
    return [gpu(host, index) for host in range(len(DAYS)) for index in range(4)]
