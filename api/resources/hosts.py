"""Every host: its GPUs, what they do, how well it is seen, what it costs."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Annotated

from api.resources import costs, gpus, usage
from api.resources.book import book_for
from api.resources.by import By
from api.resources.columns import about
from api.resources.gpus import GpuRow
from api.resources.scope import Scope
from core.readings import SLICE_PREFIX


@dataclass(frozen=True, slots=True)
class HostRow:
    """One host over the window."""

    host: Annotated[str | None, about("Name as the source gives it; null: GPUs whose host is not known.")]
    gpu_count: Annotated[int, about("GPUs ever seen in it.")]
    models: Annotated[tuple[str, ...], about("Product names of its GPUs.")]
    activities: Annotated[Mapping[str, int], about("GPUs by activity of their newest sample.")]
    power_w: Annotated[float | None, about("Sum of the newest power readings; null when any GPU has none.")]
    total_gpu_h: Annotated[float | None, about("GPU-hours in the window.")]
    active_gpu_h: Annotated[float | None, about("GPU-hours with work; null when nothing could tell.")]
    coverage_ratio: Annotated[float | None, about("Share of its GPU time that samples vouch for.")]
    cost_usd: Annotated[
        Decimal | None, about("Cost of its clock time in the window, gaps included; null: no price.")
    ]
    idle_cost_usd: Annotated[
        Decimal | None, about("Cost of empty and parked time, a part of it; null: no price.")
    ]
    price_usd_per_hour: Annotated[
        Decimal | None, about("All its GPUs for an hour, now; null: one is unpriced.")
    ]
    last_sample_at: Annotated[datetime | None, about("End of its newest sample, UTC.")]


def rows(scope: Scope) -> list[HostRow]:
    """Every host ever seen, by name; GPUs without a known host come last."""
    book = book_for(scope, By.HOST)
    cost = {row.key: row for row in costs.rows(scope, By.HOST, book=book)}
    used = {row.key: row for row in usage.rows(scope, By.HOST, book=book)}
    by_host: dict[str | None, list[GpuRow]] = {}
    for gpu in gpus.rows(scope, book=book):
        if gpu.gpu_uuid.startswith(SLICE_PREFIX):
            continue  # its card is there
        by_host.setdefault(gpu.host, []).append(gpu)
    return [_row(host, by_host[host], cost.get(host), used.get(host)) for host in usage.in_order(by_host)]


def _row(
    host: str | None, held: list[GpuRow], cost: costs.CostRow | None, used: usage.UsageRow | None
) -> HostRow:
    power = [gpu.power_w for gpu in held if gpu.power_w is not None]
    prices = [gpu.price_usd_per_hour for gpu in held if gpu.price_usd_per_hour is not None]
    return HostRow(
        host=host,
        gpu_count=len(held),
        models=tuple(sorted({gpu.model for gpu in held if gpu.model is not None})),
        activities=dict(
            sorted(Counter(gpu.activity.value for gpu in held if gpu.activity is not None).items())
        ),
        power_w=sum(power) if len(power) == len(held) else None,
        total_gpu_h=None if used is None else used.total_gpu_h,
        active_gpu_h=None if used is None else used.active_gpu_h,
        coverage_ratio=None if used is None else used.coverage_ratio,
        cost_usd=None if cost is None else cost.cost_usd,
        idle_cost_usd=None if cost is None else cost.idle_cost_usd,
        price_usd_per_hour=sum(prices, Decimal(0)) if len(prices) == len(held) else None,
        last_sample_at=max(
            (gpu.last_sample_at for gpu in held if gpu.last_sample_at is not None), default=None
        ),
    )
