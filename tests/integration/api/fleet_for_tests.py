"""A small fleet with figures that fit on a napkin: three GPUs, two hours, ten-minute samples, one engine, one process.

GPU-a  H100 on h1   00:00 memory-bound 30 min at 500 W, parked 30 min at 100 W (counter);
                    01:00 empty 20 min at 70 W, a gap of 20 min, empty 20 min
GPU-b  H100 on h1   busy without counters, two hours at 200 W (integrated), held by ann's process
GPU-c  on h2        busy one hour, a card of no catalogue, without power and without price
engine on GPU-a     30 min at batch 8, 4 waiting, 54,000 tokens generated, 18,000 prompt tokens
"""

from contextlib import closing
from decimal import Decimal
from typing import Final

from core.activity import Activity
from core.readings import EngineIdentity, GpuIdentity, WorkloadKey
from core.samples import EnergyMethod, EngineSample, GpuSample, ProcessSample
from core.settings import Settings
from store.dbapi import open_connection
from store.engine import make_engine, session_scope
from store.ingest import Ingest
from store.queries import prices
from store.rollup import roll_up

T0: Final = 1_791_158_400_000  # 2026-10-05T00:00:00Z, a Monday
MINUTE: Final = 60_000
HOUR: Final = 60 * MINUTE
SPAN: Final = 10 * MINUTE
NOW: Final = T0 + 2 * HOUR + 5_000
GIB: Final = 1 << 30
H100: Final = "NVIDIA H100 80GB HBM3"
ENGINE: Final = "h1:8000/0"
ANN: Final = WorkloadKey("process", "4242:1791158000000", "train.py", user="ann", host="h1")
A, B, C = "GPU-a", "GPU-b", "GPU-c"

COUNTERS: Final = {
    "busy_ratio": 1.0,
    "sm_active_ratio": 0.6,
    "dram_active_ratio": 0.7,
    "tensor_active_ratio": 0.1,
}


def settings_for(url: str) -> Settings:
    """A site with a tariff, and factors that make site energy 1.5 × GPU energy."""
    return Settings(
        database_url=url, tariff_usd_per_kwh=0.10, pue=1.25, host_share_ratio=0.2, carbon_g_per_kwh=400.0
    )


def sample(uuid: str, slot: int, activity: Activity, watts: float | None, **values: float) -> GpuSample:
    """One ten-minute sample; energy by counter on GPU-a, integrated on the others."""
    known = dict(values)
    method = None
    if watts is not None:
        known |= {"power_w": watts, "energy_j": watts * 600}
        method = EnergyMethod.COUNTER if uuid == A else EnergyMethod.INTEGRATED
    return GpuSample(uuid, T0 + slot * SPAN, SPAN, SPAN, known, method, activity)


def gpu_samples() -> list[GpuSample]:
    """All samples of the fleet."""
    held = {"memory_used_bytes": 70.0 * GIB, "process_count": 1.0}
    work = [sample(A, slot, Activity.MEMORY_BOUND, 500.0, **COUNTERS, **held) for slot in range(3)]
    parked = [sample(A, slot, Activity.PARKED, 100.0, busy_ratio=0.0, **held) for slot in range(3, 6)]
    empty = [
        sample(A, slot, Activity.EMPTY, 70.0, busy_ratio=0.0, memory_used_bytes=0.0, process_count=0.0)
        for slot in (6, 7, 10, 11)
    ]
    busy = [sample(B, slot, Activity.BUSY, 200.0, busy_ratio=0.9, **held) for slot in range(12)]
    other = [sample(C, slot, Activity.BUSY, None, busy_ratio=0.5) for slot in range(6)]
    return [*work, *parked, *empty, *busy, *other]


def engine_samples() -> list[EngineSample]:
    """Thirty minutes of work, then thirty without a request."""
    busy = [
        EngineSample(
            ENGINE,
            T0 + slot * SPAN,
            SPAN,
            SPAN,
            SPAN,
            8.0,
            {
                "running_requests": 8.0,
                "running_max_requests": 8.0,
                "waiting_requests": 4.0,
                "kv_used_ratio": 0.25,
                "kv_used_max_ratio": 0.5,
                "generated_tokens": 18_000.0,
                "prompt_tokens": 6_000.0,
                "itl_sum_s": 3_600.0,
                "itl_count": 18_000.0,
            },
        )
        for slot in range(3)
    ]
    idle = [
        EngineSample(
            ENGINE,
            T0 + slot * SPAN,
            SPAN,
            SPAN,
            0,
            None,
            {"running_requests": 0.0, "waiting_requests": 0.0, "generated_tokens": 0.0, "prompt_tokens": 0.0},
        )
        for slot in range(3, 6)
    ]
    return [*busy, *idle]


def fill(url: str, *, price_usd: str | None = "2.00") -> None:
    """Store the fleet and roll it up; ``price_usd`` is the user's price of every H100-hour."""
    with closing(open_connection(url)) as connection:
        ingest = Ingest(connection)
        ingest.gpus(
            [
                GpuIdentity(A, "h1", 0, H100, 80 * GIB),
                GpuIdentity(B, "h1", 1, H100, 80 * GIB),
                GpuIdentity(C, "h2", 0, "Card Of Nobody", 16 * GIB),
            ]
        )
        ingest.engines([EngineIdentity(ENGINE, "h1", "vllm", "acme/secret-7b", {}, (A,))])
        ingest.gpu_samples(gpu_samples())
        ingest.process_samples(
            [ProcessSample(B, T0 + slot * SPAN, SPAN, ANN, 70.0 * GIB, None, 1) for slot in range(12)]
        )
        ingest.engine_samples(engine_samples())
        ingest.commit()
    engine = make_engine(url)
    result = roll_up(engine, now_ms=NOW)
    assert result.pending_left == 0
    if price_usd is None:
        return
    with session_scope(engine) as session:
        prices.add(
            session,
            scope_kind="model",
            scope_value=H100,
            usd_per_gpu_hour=Decimal(price_usd),
            billing="on_demand",
            gpus_per_unit=1,
            valid_from_ms=0,
            valid_to_ms=None,
            note="",
        )
