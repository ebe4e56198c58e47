"""Every GPU: what it does now, how well it is seen, what it costs."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Annotated

from api.resources.by import By
from api.resources.columns import about, metric
from api.resources.pricing import PriceLookup, price_lookup, spec_of
from api.resources.report import Question, report
from api.resources.report_filters import NO_FILTERS, Filters
from api.resources.report_parts import TIME
from api.resources.report_sum import LineSum, ratio
from api.resources.scope import Scope
from core.activity import Activity
from core.clock import from_ms
from store.queries import fleet
from store.queries.fleet import FleetGpu


@dataclass(frozen=True, slots=True)
class GpuRow:
    """One GPU: its newest sample, its coverage over the window, its price."""

    gpu_uuid: Annotated[str, about("UUID as the driver gives it; the key of everything.")]
    host: Annotated[str | None, about("Host it sits in; null when the source does not say.")]
    model: Annotated[str | None, about("Product name as the driver gives it.")]
    memory_total_bytes: Annotated[int | None, about("Device memory including the driver's reserve.")]
    activity: Annotated[
        Activity | None, about("What it was doing in its newest sample; null without a sample.")
    ]
    busy_ratio: Annotated[float | None, metric("busy_ratio")]
    power_w: Annotated[float | None, metric("power_w")]
    memory_used_bytes: Annotated[float | None, metric("memory_used_bytes")]
    sm_active_ratio: Annotated[float | None, metric("sm_active_ratio")]
    tensor_active_ratio: Annotated[float | None, metric("tensor_active_ratio")]
    dram_active_ratio: Annotated[float | None, metric("dram_active_ratio")]
    sm_clock_hz: Annotated[float | None, metric("sm_clock_hz")]
    last_sample_at: Annotated[datetime | None, about("End of the newest sample, UTC.")]
    coverage_ratio: Annotated[
        float | None,
        about("Share of the time between first and last sample of the window that samples vouch for."),
    ]
    price_usd_per_hour: Annotated[Decimal | None, about("Price of a GPU-hour now; null: unpriced.")]
    index: Annotated[int | None, about("Number on its host; a label, never a key.")]
    gpu_key: Annotated[str | None, about("Row of the GPU catalogue; null when the name resolves to none.")]
    price_basis: Annotated[str | None, about("Where the price comes from, with its date.")]
    power_limit_w: Annotated[float | None, metric("power_limit_w")]
    temperature_c: Annotated[float | None, metric("temperature_c")]
    process_count: Annotated[float | None, metric("process_count")]
    first_sample_at: Annotated[datetime | None, about("Start of the oldest sample, UTC.")]


def rows(scope: Scope, filters: Filters = NO_FILTERS) -> list[GpuRow]:
    """Every GPU ever seen, by host, index and UUID; ``filters`` only spares the coverage of others."""
    prices = price_lookup(scope.session, scope.settings)
    seen = report(scope, Question((By.GPU,), TIME, filters=filters))
    found = []
    for gpu in fleet.gpus(scope.session):
        one = seen.get((gpu.identity.gpu_uuid,), LineSum())
        found.append(_row(gpu, prices, scope.now_ms, ratio(one.whole("covered_ms"), one.whole("known_ms"))))
    return sorted(
        found,
        key=lambda row: (row.host or "~", row.index if row.index is not None else 1 << 20, row.gpu_uuid),
    )


def _row(gpu: FleetGpu, prices: PriceLookup, now_ms: int, coverage_ratio: float | None) -> GpuRow:
    identity, latest = gpu.identity, gpu.latest
    spec = spec_of(identity)
    gpu_key = None if spec is None else spec.gpu_key
    price = prices(identity, gpu_key, now_ms)
    values = {} if latest is None else latest.values
    return GpuRow(
        gpu_uuid=identity.gpu_uuid,
        host=identity.host,
        model=identity.model,
        memory_total_bytes=identity.memory_total_bytes,
        activity=None if latest is None else latest.activity,
        busy_ratio=values.get("busy_ratio"),
        power_w=values.get("power_w"),
        memory_used_bytes=values.get("memory_used_bytes"),
        sm_active_ratio=values.get("sm_active_ratio"),
        tensor_active_ratio=values.get("tensor_active_ratio"),
        dram_active_ratio=values.get("dram_active_ratio"),
        sm_clock_hz=values.get("sm_clock_hz"),
        last_sample_at=None if gpu.last_seen_ms is None else from_ms(gpu.last_seen_ms),
        coverage_ratio=coverage_ratio,
        price_usd_per_hour=None if price is None else price.usd_per_gpu_hour,
        index=identity.index,
        gpu_key=gpu_key,
        price_basis=None if price is None else price.basis,
        power_limit_w=values.get("power_limit_w"),
        temperature_c=values.get("temperature_c"),
        process_count=values.get("process_count"),
        first_sample_at=None if gpu.first_seen_ms is None else from_ms(gpu.first_seen_ms),
    )
