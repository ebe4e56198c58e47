"""What GPUs drew while empty or parked, and what all drew hour by hour: sums of days and hours, never of samples."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from core.evidence import Window
from core.units import DAY_MS
from store.models.day_pending import DayPendingRow
from store.models.gpu import GpuRow
from store.models.gpu_day import GpuDayRow
from store.models.gpu_hour import GpuHourRow
from store.models.host import HostRow
from store.queries.hours import within


class IdleEnergy(NamedTuple):
    """Joules and seconds of empty and of parked GPUs; joules None: none is known."""

    empty_j: float | None
    parked_j: float | None
    empty_s: float
    parked_s: float

    def plus(self, other: "IdleEnergy") -> "IdleEnergy":
        """Both."""
        return IdleEnergy(
            _added(self.empty_j, other.empty_j),
            _added(self.parked_j, other.parked_j),
            self.empty_s + other.empty_s,
            self.parked_s + other.parked_s,
        )


NOTHING = IdleEnergy(None, None, 0.0, 0.0)


def idle_energy(session: Session, window: Window, gpu_ids: Collection[int] | None = None) -> IdleEnergy:
    """Of the window: whole UTC days from their day rows, its edges and days that wait to be made from hours."""
    first, last = -(-window.from_ms // DAY_MS) * DAY_MS, window.to_ms // DAY_MS * DAY_MS
    if last <= first:
        return _of(session, GpuHourRow, list(within(GpuHourRow.hour_ms, window)), gpu_ids)
    pending = set(
        session.execute(
            select(DayPendingRow.day_ms)
            .where(DayPendingRow.kind == "gpu", DayPendingRow.day_ms >= first, DayPendingRow.day_ms < last)
            .distinct()
        ).scalars()
    )
    days = [GpuDayRow.day_ms >= first, GpuDayRow.day_ms < last]
    if pending:
        days.append(GpuDayRow.day_ms.not_in(pending))
    found = _of(session, GpuDayRow, days, gpu_ids)
    spans = [(window.from_ms, first), (last, window.to_ms), *((day, day + DAY_MS) for day in sorted(pending))]
    for from_ms, to_ms in spans:
        if from_ms < to_ms:
            hours = list(within(GpuHourRow.hour_ms, Window(from_ms, to_ms)))
            found = found.plus(_of(session, GpuHourRow, hours, gpu_ids))
    return found


def energy_by_host_hour(
    session: Session, window: Window, gpu_ids: Collection[int] | None = None
) -> list[tuple[str | None, int, float]]:
    """Host, start of the hour, joules of its GPUs in hours that overlap the window; unknown joules are left out."""
    row = GpuHourRow
    statement = (
        select(HostRow.name, row.hour_ms, func.sum(row.energy_j))
        .join(GpuRow, GpuRow.id == row.gpu_id)
        .outerjoin(HostRow, HostRow.id == GpuRow.host_id)
        .where(*within(row.hour_ms, window), row.energy_j.is_not(None))
        .group_by(HostRow.name, row.hour_ms)
    )
    if gpu_ids is not None:
        statement = statement.where(row.gpu_id.in_(gpu_ids))
    return [(host, hour_ms, joules or 0.0) for host, hour_ms, joules in session.execute(statement)]


def _of(
    session: Session,
    row: type[GpuHourRow] | type[GpuDayRow],
    where: Sequence[ColumnElement[bool]],
    gpu_ids: Collection[int] | None,
) -> IdleEnergy:
    statement = select(
        func.sum(row.empty_j), func.sum(row.parked_j), func.sum(row.empty_s), func.sum(row.parked_s)
    ).where(*where)
    if gpu_ids is not None:
        statement = statement.where(row.gpu_id.in_(gpu_ids))
    empty_j, parked_j, empty_s, parked_s = session.execute(statement).one()
    return IdleEnergy(empty_j, parked_j, empty_s or 0.0, parked_s or 0.0)


def _added(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else one + other
