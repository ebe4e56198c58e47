"""Hours added up by the database over stretches of time: what tables of a month read instead of 720 rows a GPU.

A stretch is a step of the clock (hour, day, or the whole window), cut where prices change. Sums are exact: every
figure of an hour that is summed here adds up.
"""

from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from sqlalchemy import ColumnElement, case, func, literal, select
from sqlalchemy.orm import Session

from core.activity import Activity
from core.evidence import Window
from core.hour_merge import WEAKEST_LAST
from core.readings import WorkloadKey
from core.samples import EnergyMethod
from core.units import HOUR_MS
from store.keys import attributes_of
from store.models.gpu import GpuRow
from store.models.gpu_hour import GpuHourRow
from store.models.host import HostRow
from store.models.usage_hour import UsageHourRow
from store.models.workload import WorkloadRow
from store.queries.hours import within

_ADDED: Final = (
    "covered_s",
    "energy_j",
    "energy_covered_s",
    "allocated_s",
    "active_s",
    "effective_s",
    "effective_unknown_s",
)


@dataclass(frozen=True, slots=True)
class Stretches:
    """How time is cut.

    Attributes:
        step_ms: length of a step, a multiple of an hour; None: one step.
        cuts: further borders, each at the start of an hour, ascending.
    """

    step_ms: int | None = None
    cuts: tuple[int, ...] = field(default=())

    def start_of(self, at_ms: int) -> int:
        """Start of the stretch that ``at_ms`` lies in; 0 before every border."""
        floor = 0 if self.step_ms is None else at_ms - at_ms % self.step_ms
        index = bisect_right(self.cuts, at_ms)
        return max(floor, self.cuts[index - 1]) if index else floor

    def split(self, window: Window) -> list[Window]:
        """A window cut into its stretches."""
        inside = {cut for cut in self.cuts if window.from_ms < cut < window.to_ms}
        if self.step_ms is not None:
            first = window.from_ms - window.from_ms % self.step_ms + self.step_ms
            inside.update(range(first, window.to_ms, self.step_ms))
        edges = [window.from_ms, *sorted(inside), window.to_ms]
        return [Window(a, b) for a, b in pairwise(edges)]


@dataclass(frozen=True, slots=True)
class GpuSum:
    """One GPU's hours of one stretch added up; fields as in ``core.hours.GpuHour``."""

    gpu_uuid: str
    from_ms: int
    covered_s: float
    seconds: dict[Activity, float]
    joules: dict[Activity, float]
    energy_j: float | None
    energy_method: EnergyMethod | None
    energy_covered_s: float
    allocated_s: float
    active_s: float
    effective_s: float
    effective_unknown_s: float


@dataclass(frozen=True, slots=True)
class WorkloadSum:
    """One workload's hours on one GPU in one stretch added up; fields as in ``core.hours.UsageHour``."""

    workload: WorkloadKey
    gpu_uuid: str
    from_ms: int
    allocated_s: float
    active_s: float
    effective_s: float
    energy_j: float | None
    share_method: str


def gpu_sums(
    session: Session, window: Window, stretches: Stretches, gpu_uuids: Collection[str] | None = None
) -> list[GpuSum]:
    """Hours of GPUs (default all) that overlap the window, by GPU and stretch."""
    table = GpuHourRow.__table__
    columns = [func.sum(table.c[name]) for name in _ADDED]
    columns += [func.sum(table.c[f"{activity.value}_{unit}"]) for unit in "sj" for activity in Activity]
    keys = [GpuRow.gpu_uuid, *_stretch(table.c.hour_ms, stretches)]
    statement = (
        select(
            GpuRow.gpu_uuid,
            func.min(table.c.hour_ms),
            func.min(table.c.energy_method),
            func.max(table.c.energy_method),
            *columns,
        )
        .join(GpuRow, GpuRow.id == table.c.gpu_id)
        .where(*within(table.c.hour_ms, window))
        .group_by(*keys)
        .order_by(GpuRow.gpu_uuid, func.min(table.c.hour_ms))
    )
    if gpu_uuids is not None:
        statement = statement.where(GpuRow.gpu_uuid.in_(gpu_uuids))
    return [_gpu_sum(row, stretches) for row in session.execute(statement)]


def _gpu_sum(row: Sequence[Any], stretches: Stretches) -> GpuSum:
    gpu_uuid, hour_ms, method, other, *values = row
    covered_s, energy_j, energy_covered_s, allocated_s, active_s, effective_s, unknown_s, *by_activity = (
        values
    )
    count = len(Activity)
    return GpuSum(
        gpu_uuid=gpu_uuid,
        from_ms=stretches.start_of(hour_ms),
        covered_s=covered_s,
        seconds={a: s for a, s in zip(Activity, by_activity[:count], strict=True) if s},
        joules={a: j for a, j in zip(Activity, by_activity[count:], strict=True) if j is not None},
        energy_j=energy_j,
        energy_method=None
        if method is None
        else EnergyMethod(method)
        if method == other
        else EnergyMethod.MIXED,
        energy_covered_s=energy_covered_s,
        allocated_s=allocated_s,
        active_s=active_s,
        effective_s=effective_s,
        effective_unknown_s=unknown_s,
    )


def workload_sums(session: Session, window: Window, stretches: Stretches) -> list[WorkloadSum]:
    """Usage of known workloads in hours that overlap the window, by GPU, stretch and workload."""
    row = UsageHourRow
    weakness = case(
        *((row.share_method == method.value, at) for at, method in enumerate(WEAKEST_LAST)), else_=0
    )
    inner = (
        select(
            row.gpu_id,
            row.workload_id,
            func.min(row.hour_ms).label("hour_ms"),
            func.sum(row.allocated_s).label("allocated_s"),
            func.sum(row.active_s).label("active_s"),
            func.sum(row.effective_s).label("effective_s"),
            func.sum(row.energy_j).label("energy_j"),
            func.max(weakness).label("weakness"),
        )
        .where(*within(row.hour_ms, window), row.workload_id.is_not(None))
        .group_by(row.gpu_id, row.workload_id, *_stretch(row.hour_ms, stretches))
        .subquery()
    )
    statement = (
        select(
            WorkloadRow.kind,
            WorkloadRow.key,
            WorkloadRow.name,
            WorkloadRow.user_name,
            HostRow.name,
            WorkloadRow.attributes,
            GpuRow.gpu_uuid,
            inner.c.hour_ms,
            inner.c.allocated_s,
            inner.c.active_s,
            inner.c.effective_s,
            inner.c.energy_j,
            inner.c.weakness,
        )
        .join(GpuRow, GpuRow.id == inner.c.gpu_id)
        .join(WorkloadRow, WorkloadRow.id == inner.c.workload_id)
        .outerjoin(HostRow, HostRow.id == WorkloadRow.host_id)
        .order_by(GpuRow.gpu_uuid, inner.c.hour_ms, WorkloadRow.id)
    )
    return [
        WorkloadSum(
            WorkloadKey(kind, key, name, user, host, attributes_of(attributes)),
            gpu_uuid,
            stretches.start_of(hour_ms),
            allocated_s,
            active_s,
            effective_s,
            energy_j,
            WEAKEST_LAST[weakness].value,
        )
        for (
            kind,
            key,
            name,
            user,
            host,
            attributes,
            gpu_uuid,
            hour_ms,
            allocated_s,
            active_s,
            effective_s,
            energy_j,
            weakness,
        ) in session.execute(statement)
    ]


def _stretch(hour_ms: Any, stretches: Stretches) -> list[ColumnElement[Any]]:
    """What hours of one stretch have in common."""
    keys: list[ColumnElement[Any]] = []
    if stretches.step_ms not in {None, HOUR_MS}:
        keys.append(hour_ms - hour_ms % literal(stretches.step_ms))
    elif stretches.step_ms == HOUR_MS:
        keys.append(hour_ms)
    if stretches.cuts:
        keys.append(
            case(*((hour_ms < cut, at) for at, cut in enumerate(stretches.cuts)), else_=len(stretches.cuts))
        )
    return keys
