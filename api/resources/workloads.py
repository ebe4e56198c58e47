"""Who used what: every workload that held a GPU in the window, with its time, money, energy and carbon."""

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Final

from api.resources import usage
from api.resources.by import By
from api.resources.columns import about
from api.resources.report import Question, report
from api.resources.report_filters import NO_FILTERS, Filters, namespace_of, workload_text
from api.resources.report_parts import MONEY, USAGE, Amounts, Part
from api.resources.report_sum import LineSum
from api.resources.scope import Scope
from core.clock import from_ms
from core.evidence import Window
from core.readings import WorkloadKey
from core.units import J_PER_KWH
from store.queries.workloads import workload_keys
from store.queries.workloads_seen import workloads_seen

AMOUNTS: Final = tuple(dict.fromkeys([*MONEY, *USAGE]))


@dataclass(frozen=True, slots=True)
class WorkloadView:
    """One workload over the window."""

    workload: Annotated[str, about("Kind, host and key in one text, as by=workload and workload= have it.")]
    name: Annotated[str, about("Its name for people.")]
    kind: Annotated[str, about("process, container, pod, slurm_job, unit, engine …")]
    host: Annotated[str | None, about("Host it ran on; null: its name is of more than one.")]
    user: Annotated[str | None, about("Its user; null: not known.")]
    namespace: Annotated[str | None, about("Its Kubernetes namespace; null: none.")]
    owner: Annotated[str | None, about("Team that pays; several joined by a semicolon; null: unowned.")]
    gpu_count: Annotated[int, about("GPUs it held.")]
    allocated_gpu_h: Annotated[float, about("GPU-hours it held.")]
    active_gpu_h: Annotated[float | None, about("Of them hours of work; null when nothing could tell.")]
    effective_gpu_h: Annotated[
        float | None, about("Of them hours known to have used the GPU well; null when nothing could tell.")
    ]
    unknown_gpu_h: Annotated[float, about("Of them hours whose activity could not be named.")]
    cost_usd: Annotated[Decimal | None, about("As in costs; null: no price.")]
    idle_cost_usd: Annotated[Decimal | None, about("Part of it for GPUs held without work.")]
    energy_kwh: Annotated[float | None, about("Energy at the GPUs; null: not known.")]
    carbon_g: Annotated[float | None, about("Of site energy, gCO2e, location-based.")]
    price_basis: Annotated[str | None, about("Where the prices come from.")]
    first_seen_at: Annotated[
        datetime | None, about("Start of its first clock hour, not before the window, UTC.")
    ]
    last_seen_at: Annotated[datetime | None, about("End of its last clock hour, not after the window, UTC.")]


@dataclass(slots=True)
class _Found:
    workload: WorkloadKey
    total: LineSum = field(default_factory=LineSum)
    owners: set[str] = field(default_factory=set)
    gpus: set[str] = field(default_factory=set)


def rows(scope: Scope, filters: Filters = NO_FILTERS) -> list[WorkloadView]:
    """Workloads, the most expensive first, those without a price by the hours they held."""
    found: dict[str, _Found] = {}

    def note(_key: tuple[str | None, ...], part: Part, amounts: Amounts) -> None:
        if part.workload is None:
            return
        text = workload_text(part.workload)
        one = found.setdefault(text, _Found(part.workload))
        one.total.add(part, amounts)
        if part.owner is not None:
            one.owners.add(part.owner.team)
        if part.gpu is not None:
            one.gpus.add(part.gpu.gpu_uuid)

    question = Question(
        (By.KIND,), AMOUNTS, money=True, filters=filters, extra=frozenset({"workload", "owner", "gpu"})
    )
    report(scope, question, note)
    times = workloads_seen(scope.session, scope.window)
    seen = {
        workload_text(workload): times[key] for key, workload in workload_keys(scope.session, times).items()
    }
    listed = [_row(text, found[text], seen.get(text), scope.window) for text in sorted(found)]
    return sorted(listed, key=lambda row: (-(row.cost_usd or Decimal(0)), -row.allocated_gpu_h))


def _row(text: str, found: _Found, seen: tuple[int, int] | None, window: Window) -> WorkloadView:
    workload, one = found.workload, found.total
    used = usage.row_of((text,), (By.WORKLOAD,), one)
    return WorkloadView(
        workload=text,
        name=workload.name,
        kind=workload.kind,
        host=workload.host,
        user=workload.user,
        namespace=namespace_of(workload),
        owner="; ".join(sorted(found.owners)) or None,
        gpu_count=len(found.gpus),
        allocated_gpu_h=one.hours("allocated_ms"),
        active_gpu_h=used.active_gpu_h,
        effective_gpu_h=used.effective_gpu_h,
        unknown_gpu_h=used.unknown_gpu_h,
        cost_usd=one.spend_usd,
        idle_cost_usd=one.usd("idle_cost_usd"),
        energy_kwh=None if one.energy_j is None else one.energy_j / J_PER_KWH,
        carbon_g=one.carbon_g,
        price_basis=one.basis,
        first_seen_at=None if seen is None else from_ms(max(seen[0], window.from_ms)),
        last_seen_at=None if seen is None else from_ms(min(seen[1], window.to_ms)),
    )
