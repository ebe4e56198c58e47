"""Which GPUs have regular off hours, and when a whole host has: one answer for every finding about them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from advisor.digest import digest
from advisor.estimators.off_hours import (
    WEEK_H,
    BackTest,
    Hour,
    Schedule,
    back_test,
    in_common,
    schedule_of,
)
from advisor.fleet import Release, releases
from core.activity import Activity
from core.evidence import EngineEvidence, Evidence, GpuEvidence
from core.series import HourSeries
from core.units import DAY_MS, HOUR_MS


@dataclass(frozen=True, slots=True)
class Habit:
    """A GPU's week.

    Attributes:
        schedule: made from all weeks. tested: a schedule made without the last week, run over that week; None when
            the earlier weeks alone give none.
        hours: hours judged, with the share of active time.
        parked_w: mean power while parked, weighted by time; None when it was never read.
    """

    schedule: Schedule
    tested: BackTest | None
    hours: Sequence[Hour]
    parked_w: float | None


def active_hours(
    gpu: GpuEvidence, engines: Sequence[EngineEvidence], min_coverage_ratio: float
) -> list[Hour]:
    """Hours that are covered well enough, with the share in which something was or may have been active.

    Idle is what was measured as idle: starved and unknown time is not. A request that an engine served counts, also
    where the GPU was hardly busy with it.
    """
    served: dict[int, float] = {}
    for engine in engines:
        for hour_ms, busy_s in _busy(engine):
            served[hour_ms] = max(served.get(hour_ms, 0.0), min(1.0, busy_s / 3600))
    least_s = max(1.0, min_coverage_ratio * 3600)
    shares = [
        (hour_ms, active_s / covered_s if active_s < covered_s else 1.0)
        for start_ms, *hours in _seen(gpu)
        for hour_ms, covered_s, active_s in zip(
            range(start_ms, start_ms + DAY_MS, HOUR_MS), *hours, strict=False
        )
        if covered_s >= least_s
    ]
    return [(at, max(share, served.get(at, 0.0))) for at, share in shares] if served else shares


def _seen(gpu: GpuEvidence) -> Iterator[tuple[int, Sequence[float], Sequence[float]]]:
    """Starts, each with the covered seconds of hours from there on, and those of them not measured as idle.

    Days where they tell, else hours, which are then read.
    """
    known = not any(part.seconds.get(Activity.UNKNOWN, 0.0) > 0 for part in gpu.parts)
    if isinstance(gpu.hours, HourSeries) and known:
        for day in gpu.days:
            yield day.day_ms, day.covered_s, day.active_s
        return
    for hour in gpu.hours:
        idle_s = hour.seconds.get(Activity.EMPTY, 0.0) + hour.seconds.get(Activity.PARKED, 0.0)
        yield hour.hour_ms, (hour.covered_s,), (max(0.0, hour.covered_s - idle_s),)


def _busy(engine: EngineEvidence) -> Iterator[tuple[int, float]]:
    """Each hour's start and seconds with requests running."""
    if isinstance(engine.hours, HourSeries):
        for day in engine.days:
            for at, busy_s in enumerate(day.busy_s):
                yield day.day_ms + at * HOUR_MS, busy_s
        return
    for hour in engine.hours:
        yield hour.hour_ms, hour.busy_s


def idle_h(evidence: Evidence, gpu: GpuEvidence) -> float:
    """Hours empty or parked: the cheap look before the whole week is read."""
    seen = digest(evidence, gpu)
    return seen.empty_h + seen.parked_h


def tested_on_last_week(
    hours: Sequence[Hour], *, max_active: float, weeks_ratio: float, min_block_h: int
) -> BackTest | None:
    """A schedule from the earlier weeks, run over the last; None when they give none."""
    since_ms = max(at for at, _ in hours) - (WEEK_H - 1) * HOUR_MS
    earlier = [hour for hour in hours if hour[0] < since_ms]
    schedule = schedule_of(
        earlier, min_weeks=1, max_active=max_active, weeks_ratio=weeks_ratio, min_block_h=min_block_h
    )
    return None if schedule is None else back_test(schedule, [hour for hour in hours if hour[0] >= since_ms])


def parked_power_w(gpu: GpuEvidence) -> float | None:
    """Mean power while parked, weighted by time."""
    known = [
        (hour.parked_power_w, seconds)
        for hour in gpu.parts
        if hour.parked_power_w is not None and (seconds := hour.seconds.get(Activity.PARKED, 0.0)) > 0
    ]
    total = sum(seconds for _, seconds in known)
    return sum(watts * seconds for watts, seconds in known) / total if total > 0 else None


def host_schedules(
    evidence: Evidence, habits: Mapping[str, Habit], always_off: Collection[str], min_block_h: int
) -> Mapping[str | None, Schedule]:
    """When every GPU of a host is off; GPUs that stand idle anyway do not hold it up. Hosts without such hours are absent."""
    members: dict[str | None, list[Schedule]] = {}
    broken: set[str | None] = set()
    for gpu in evidence.gpus:
        host = gpu.identity.host
        if gpu.gpu_uuid in habits:
            members.setdefault(host, []).append(habits[gpu.gpu_uuid].schedule)
        elif gpu.gpu_uuid not in always_off:
            broken.add(host)
    found = {
        host: in_common(schedules, min_block_h) for host, schedules in members.items() if host not in broken
    }
    return {host: schedule for host, schedule in found.items() if schedule is not None}


def paid_schedules(
    evidence: Evidence,
    habits: Mapping[str, Habit],
    always_off: Collection[str],
    by_host: Mapping[str | None, Schedule],
) -> Mapping[str, tuple[Schedule | None, Release]]:
    """For each GPU with a habit, the hours in which its billing unit could be handed back, and why not otherwise.

    A unit of one GPU follows its own week, a larger one the hours that its host has in common (``by_host``).
    """
    release = releases(evidence, set(habits) | set(always_off))
    found: dict[str, tuple[Schedule | None, Release]] = {}
    for gpu in evidence.gpus:
        habit = habits.get(gpu.gpu_uuid)
        if habit is None:
            continue
        answer = release[gpu.gpu_uuid]
        if not answer.cash:
            found[gpu.gpu_uuid] = None, answer
            continue
        alone = gpu.host_gpu_count <= 1 or (
            gpu.price is not None and gpu.price.from_user and gpu.price.gpus_per_unit <= 1
        )
        schedule = habit.schedule if alone else by_host.get(gpu.identity.host)
        why = None if schedule else "its host has no hours in which all of its GPUs are off"
        found[gpu.gpu_uuid] = schedule, Release(schedule is not None, why)
    return found
