"""Figures of a few GPUs, or of a host, over time in even steps: added up by the database from hours; and quarters of hours."""

from collections.abc import Collection
from typing import Any, NamedTuple

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from core.activity import Activity
from core.evidence import Window
from core.quarters import OF_GPU, OF_HOST, Quarters
from store.models.gpu_hour import GpuHourRow
from store.models.host import HostRow
from store.models.host_hour import HostHourRow
from store.quarter_rows import quarters_in
from store.queries.plain_rows import plain_rows


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
    """Mean of one of ``OF_GPU`` by GPU and step."""
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


def gpu_quarters(
    session: Session, window: Window, gpu_ids: Collection[int]
) -> dict[tuple[int, int], Quarters | None]:
    """Quarters by GPU and start of the hour; None where an hour with samples keeps none."""
    table = GpuHourRow.__table__.c
    statement = select(table.gpu_id, table.hour_ms, table.quarters).where(
        table.gpu_id.in_(gpu_ids),
        table.hour_ms >= window.from_ms,
        table.hour_ms < window.to_ms,
        table.covered_s > 0,
    )
    return {
        (gpu_id, hour_ms): quarters_in(column, OF_GPU)
        for gpu_id, hour_ms, column in plain_rows(session, statement)
    }


def host_quarters(session: Session, window: Window, host: str) -> dict[int, Quarters | None]:
    """The same of a host, by start of the hour."""
    table = HostHourRow.__table__.c
    statement = (
        select(table.hour_ms, table.quarters)
        .join(HostRow, HostRow.id == table.host_id)
        .where(
            HostRow.name == host,
            table.hour_ms >= window.from_ms,
            table.hour_ms < window.to_ms,
            table.covered_s > 0,
        )
    )
    return {hour_ms: quarters_in(column, OF_HOST) for hour_ms, column in plain_rows(session, statement)}


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
