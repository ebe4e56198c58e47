"""Figures of a few GPUs, or of a host, over time in even steps: added up by the database from hours."""

from collections.abc import Collection
from typing import Any, Final, NamedTuple

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from core.activity import Activity
from core.evidence import Window
from store.models.gpu_hour import GpuHourRow
from store.models.host import HostRow
from store.models.host_hour import HostHourRow
from store.queries.plain_rows import plain_rows

VALUES: Final = (
    "busy_ratio",
    "power_w",
    "memory_used_bytes",
    "sm_active_ratio",
    "dram_active_ratio",
    "tensor_active_ratio",
)
"""Columns of which a mean over time can be asked."""
OF_HOST: Final = (
    "cpu_busy_ratio",
    "cpu_busiest_ratio",
    "iowait_ratio",
    "host_memory_used_bytes",
    "host_power_w",
)


class Step(NamedTuple):
    """A GPU's step of time; ``value``: mean over covered time, None: not measured in it."""

    gpu_id: int
    from_ms: int
    value: float | None


def activity_steps(
    session: Session, window: Window, step_ms: int, gpu_ids: Collection[int]
) -> dict[tuple[int, int], dict[Activity, float]]:
    """Seconds by activity by GPU and start of the step; steps without samples are not there."""
    table = GpuHourRow.__table__.c
    sums = [func.sum(table[f"{activity.value}_s"]) for activity in Activity]
    statement = _by_step(table, window, step_ms, gpu_ids, sums)
    return {
        (gpu_id, from_ms): {a: s for a, s in zip(Activity, seconds, strict=True) if s}
        for gpu_id, from_ms, *seconds in plain_rows(session, statement)
    }


def value_steps(
    session: Session, window: Window, step_ms: int, gpu_ids: Collection[int], name: str
) -> list[Step]:
    """Mean of one of ``VALUES`` by GPU and step."""
    table = GpuHourRow.__table__.c
    statement = _by_step(table, window, step_ms, gpu_ids, [_mean(table, name)])
    return [Step._make(row) for row in plain_rows(session, statement)]


def host_steps(
    session: Session, window: Window, step_ms: int, host: str
) -> dict[int, dict[str, float | None]]:
    """Means of ``OF_HOST`` by start of the step."""
    table = HostHourRow.__table__.c
    start = table.hour_ms - table.hour_ms % step_ms
    columns: tuple[Any, ...] = (start, *(_mean(table, name) for name in OF_HOST))
    statement: Select[Any] = (
        select(*columns)
        .join(HostRow, HostRow.id == table.host_id)
        .where(
            HostRow.name == host,
            table.hour_ms >= window.from_ms,
            table.hour_ms < window.to_ms,
            table.covered_s > 0,
        )
        .group_by(start)
    )
    return {
        from_ms: dict(zip(OF_HOST, values, strict=True))
        for from_ms, *values in plain_rows(session, statement)
    }


def _mean(table: Any, name: str) -> Any:
    known = table[name].is_not(None)
    return func.sum(table[name] * table.covered_s) / func.nullif(func.sum(table.covered_s).filter(known), 0)


def _by_step(
    table: Any, window: Window, step_ms: int, gpu_ids: Collection[int], figures: list[Any]
) -> Select[Any]:
    start = table.hour_ms - table.hour_ms % step_ms
    return (
        select(table.gpu_id, start, *figures)
        .where(
            table.gpu_id.in_(gpu_ids),
            table.hour_ms >= window.from_ms,
            table.hour_ms < window.to_ms,
            table.covered_s > 0,
        )
        .group_by(table.gpu_id, start)
    )
