"""Every host: its GPUs, what they do, how well it is seen, what it costs; and how machine and agent fare."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Final

from api.resources import costs, gpus, usage
from api.resources.by import By
from api.resources.columns import about, metric
from api.resources.gpus import GpuRow
from api.resources.scope import Scope
from core.clock import from_ms
from core.metrics import HOST_COLUMNS
from core.ownership import HostFacts
from core.readings import SLICE_PREFIX
from store.queries import host_samples
from store.queries.host_facts import host_facts
from store.queries.host_samples import AgentHost


@dataclass(frozen=True, slots=True)
class HostRow:
    """One host over the window."""

    host: Annotated[str | None, about("Name as the source gives it; null: GPUs whose host is not known.")]
    cluster: Annotated[str | None, about("Cluster or site it stands in, as you say; null: not said.")]
    instance_type: Annotated[str | None, about("As its provider calls it, as you say.")]
    region: Annotated[str | None, about("Cloud region or place, as you say.")]
    labels: Annotated[Mapping[str, str], about("Everything else that you say of it, by name.")]
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
    last_sample_at: Annotated[datetime | None, about("End of the newest sample of its GPUs, UTC.")]
    cpu_busy_ratio: Annotated[float | None, metric("cpu_busy_ratio")]
    cpu_busiest_ratio: Annotated[float | None, metric("cpu_busiest_ratio")]
    iowait_ratio: Annotated[float | None, metric("iowait_ratio")]
    host_memory_used_bytes: Annotated[float | None, metric("host_memory_used_bytes")]
    host_memory_total_bytes: Annotated[float | None, metric("host_memory_total_bytes")]
    host_power_w: Annotated[float | None, metric("host_power_w")]
    cpu_count: Annotated[int | None, about("Logical processors.")]
    last_host_sample_at: Annotated[
        datetime | None,
        about(
            "End of the newest sample of the host itself, which the figures from cpu_busy_ratio on are of."
        ),
    ]
    agent_version: Annotated[str | None, about("Version of its agent; null: none speaks for it.")]
    last_delivery_at: Annotated[
        datetime | None, about("When its agent's last delivery was stored, UTC; null: none has come.")
    ]
    agent_cpu_ratio: Annotated[float | None, metric("agent_cpu_ratio")]
    agent_memory_bytes: Annotated[float | None, metric("agent_memory_bytes")]
    agent_tick_s: Annotated[float | None, metric("agent_tick_s")]
    agent_tick_max_s: Annotated[float | None, metric("agent_tick_max_s")]
    agent_skipped_count: Annotated[float | None, metric("agent_skipped_count")]
    agent_dropped_count: Annotated[float | None, metric("agent_dropped_count")]
    agent_waiting_count: Annotated[float | None, metric("agent_waiting_count")]


OF_SAMPLE: Final = tuple(field.name for field in fields(HostRow) if field.name in HOST_COLUMNS)


def rows(scope: Scope) -> list[HostRow]:
    """Every host with GPUs or an agent, by name; GPUs without a known host come last."""
    cost = {row.key: row for row in costs.rows(scope, By.HOST)}
    used = {row.key: row for row in usage.rows(scope, By.HOST)}
    machines = {machine.identity.name: machine for machine in host_samples.hosts(scope.session)}
    facts = host_facts(scope.session)
    by_host: dict[str | None, list[GpuRow]] = {
        name: [] for name, machine in machines.items() if machine.agent_seen_ms or machine.last_seen_ms
    }
    for gpu in gpus.rows(scope):
        if gpu.gpu_uuid.startswith(SLICE_PREFIX):
            continue  # its card is there
        by_host.setdefault(gpu.host, []).append(gpu)
    return [
        _row(
            facts.get(host or "", HostFacts(host or "")),
            by_host[host],
            cost.get(host),
            used.get(host),
            machines.get(host or ""),
        )
        for host in sorted(by_host, key=lambda name: (name is None, name or ""))
    ]


def _row(
    facts: HostFacts,
    held: list[GpuRow],
    cost: costs.CostRow | None,
    used: usage.UsageRow | None,
    machine: AgentHost | None,
) -> HostRow:
    power = [gpu.power_w for gpu in held if gpu.power_w is not None]
    prices = [gpu.price_usd_per_hour for gpu in held if gpu.price_usd_per_hour is not None]
    return HostRow(
        host=facts.host or None,
        cluster=facts.cluster,
        instance_type=facts.instance_type,
        region=facts.region,
        labels=dict(facts.labels),
        gpu_count=len(held),
        models=tuple(sorted({gpu.model for gpu in held if gpu.model is not None})),
        activities=dict(
            sorted(Counter(gpu.activity.value for gpu in held if gpu.activity is not None).items())
        ),
        power_w=sum(power) if held and len(power) == len(held) else None,
        total_gpu_h=None if used is None else used.total_gpu_h,
        active_gpu_h=None if used is None else used.active_gpu_h,
        coverage_ratio=None if used is None else used.coverage_ratio,
        cost_usd=None if cost is None else cost.cost_usd,
        idle_cost_usd=None if cost is None else cost.idle_cost_usd,
        price_usd_per_hour=sum(prices, Decimal(0)) if held and len(prices) == len(held) else None,
        last_sample_at=max(
            (gpu.last_sample_at for gpu in held if gpu.last_sample_at is not None), default=None
        ),
        cpu_count=None if machine is None else machine.identity.cpu_count,
        last_host_sample_at=None if machine is None else _at(machine.last_seen_ms),
        agent_version=None if machine is None else machine.identity.agent_version,
        last_delivery_at=None if machine is None else _at(machine.agent_seen_ms),
        **_figures(machine),
    )


def _figures(machine: AgentHost | None) -> dict[str, Any]:
    """Figures of its newest sample; the size of its memory is told without one too."""
    latest = None if machine is None or machine.latest is None else machine.latest.values
    found: dict[str, float | None] = {name: (latest or {}).get(name) for name in OF_SAMPLE}
    if found["host_memory_total_bytes"] is None and machine is not None:
        found["host_memory_total_bytes"] = machine.identity.memory_total_bytes
    return found


def _at(ts_ms: int | None) -> datetime | None:
    return None if ts_ms is None else from_ms(ts_ms)
