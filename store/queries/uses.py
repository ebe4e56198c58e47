"""Who held which GPU over a window: added up by the database, from days where they tell and from hours elsewhere."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from core.days import day_of
from core.evidence import Window, WorkloadUse
from core.units import DAY_MS, HOUR_MS
from store.models.usage_day import UsageDayRow
from store.models.usage_hour import UsageHourRow
from store.queries.hours import within
from store.queries.plain_rows import plain_rows
from store.queries.workloads import workload_keys


@dataclass(slots=True)
class _Sum:
    """One workload on one GPU so far; ``cpu`` and ``thread`` are ratio × seconds and the seconds behind them."""

    first_ms: int
    last_ms: int
    allocated_s: float = 0.0
    active_s: float = 0.0
    cpu: list[float] = field(default_factory=lambda: [0.0, 0.0])
    thread: list[float] = field(default_factory=lambda: [0.0, 0.0])
    shared: bool = False


def workload_uses(
    session: Session, window: Window, gpu_ids: Collection[int], stale: Collection[int]
) -> Mapping[int, tuple[WorkloadUse, ...]]:
    """Uses of GPUs by their keys, most GPU-seconds first; ``stale`` are days of which only the hours tell."""
    found: dict[tuple[int, int], _Sum] = {}
    for row in plain_rows(session, _of_days(window, gpu_ids, stale)):
        _add(found, row)
    for day_ms in sorted(stale):
        for row in plain_rows(session, _of_hours(window, gpu_ids, day_ms)):
            _add(found, row)
    names = workload_keys(session, {workload_id for _, workload_id in found})
    uses: dict[int, list[WorkloadUse]] = {}
    for (gpu_id, workload_id), total in found.items():
        uses.setdefault(gpu_id, []).append(
            WorkloadUse(
                names[workload_id],
                total.first_ms,
                total.last_ms,
                total.allocated_s,
                total.active_s,
                _ratio(total.cpu),
                _ratio(total.thread),
                total.shared,
            )
        )
    return {
        gpu_id: tuple(sorted(of, key=lambda use: (-use.allocated_s, use.first_ms, use.workload.key)))
        for gpu_id, of in uses.items()
    }


def _sums(row: Any) -> tuple[Any, ...]:
    return (
        func.sum(row.allocated_s),
        func.sum(row.active_s),
        func.sum(row.cpu_ratio * row.allocated_s),
        func.sum(row.allocated_s).filter(row.cpu_ratio.is_not(None)),
        func.sum(row.cpu_thread_ratio * row.allocated_s),
        func.sum(row.allocated_s).filter(row.cpu_thread_ratio.is_not(None)),
    )


def _of_days(window: Window, gpu_ids: Collection[int], stale: Collection[int]) -> Any:
    row = UsageDayRow
    return (
        select(
            row.gpu_id,
            row.workload_id,
            func.min(row.first_ms),
            func.max(row.last_ms),
            func.count().filter(row.shared.is_(True)),
            *_sums(row),
        )
        .where(
            row.gpu_id.in_(gpu_ids),
            row.workload_id.is_not(None),
            row.day_ms >= day_of(window.from_ms),
            row.day_ms < window.to_ms,
            row.day_ms.not_in(stale),
        )
        .group_by(row.gpu_id, row.workload_id)
    )


def _of_hours(window: Window, gpu_ids: Collection[int], day_ms: int) -> Any:
    row = UsageHourRow
    here = (
        row.gpu_id.in_(gpu_ids),
        row.workload_id.is_not(None),
        row.hour_ms >= day_ms,
        row.hour_ms < day_ms + DAY_MS,
        *within(row.hour_ms, window),
    )
    holders = (
        select(row.gpu_id.label("gpu_id"), row.hour_ms.label("hour_ms"), func.count().label("holders"))
        .where(*here)
        .group_by(row.gpu_id, row.hour_ms)
        .subquery()
    )
    return (
        select(
            row.gpu_id,
            row.workload_id,
            func.min(row.hour_ms),
            func.max(row.hour_ms) + HOUR_MS,
            func.count().filter(holders.c.holders > 1),
            *_sums(row),
        )
        .join(holders, (holders.c.gpu_id == row.gpu_id) & (holders.c.hour_ms == row.hour_ms))
        .where(*here)
        .group_by(row.gpu_id, row.workload_id)
    )


def _add(found: dict[tuple[int, int], _Sum], row: Any) -> None:
    gpu_id, workload_id, first_ms, last_ms, shared, allocated_s, active_s, *ratios = row
    total = found.setdefault((gpu_id, workload_id), _Sum(first_ms, last_ms))
    total.first_ms, total.last_ms = min(total.first_ms, first_ms), max(total.last_ms, last_ms)
    total.allocated_s += allocated_s
    total.active_s += active_s
    total.shared |= shared > 0
    for at, value in enumerate(ratios):
        (total.cpu if at < 2 else total.thread)[at % 2] += value or 0.0


def _ratio(pair: list[float]) -> float | None:
    weighted, seconds = pair
    return weighted / seconds if seconds > 0 else None
