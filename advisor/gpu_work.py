"""What a GPU did lately while it worked: the few hours that rules on hardware look at before they read all of them.

Advice on clocks, links and pipes holds only when it is still so. The last day of work therefore decides who is a
candidate, and only candidates are read in full: a fleet of thousands stays cheap.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field

from advisor.confidence import duration, seen_share, widened
from advisor.digest import digest
from advisor.fleet import month_h
from advisor.idle_hours import silence_h
from advisor.memo import OncePerEvidence
from advisor.model import Limits, counted
from advisor.waterfall import base_of
from core.activity import Activity
from core.evidence import Evidence, GpuEvidence
from core.finding import Grade, NotEvaluated, Range, Subject
from core.hour_columns import SECONDS_OF, rows_of
from core.hours import GpuHour
from core.percent import percent
from core.series import HourSeries, each_since, hours_since
from core.units import HOUR_MS

FLEET: Final = Subject("fleet", "fleet", "the fleet")
WHOLE: Final = 0.95
"""Share of an hour with work from which its means describe the work and not the pauses."""
RECENT_WORK_HOURS: Final = 24
"""A day of work, so that day and night are both in it."""
RECENT_SPAN_H: Final = 72
"""Work that ended longer ago is not the present."""


class WorkLimits(Limits):
    """Thresholds that rules on working GPUs share."""

    min_work_h: Annotated[float, Field(gt=0, le=336)] = 1.0
    """Hours of recent work below which start and end of a job weigh too much."""
    min_coverage_ratio: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Samples received over samples due. A gap must never read as anything."""
    max_silence_h: Annotated[float, Field(gt=0, le=168)] = 3.0
    """Without samples for longer, nobody knows what the GPU is doing now."""


@dataclass(frozen=True, slots=True)
class Recent:
    """A GPU's last day of work.

    Attributes:
        active: hours at work for at least half of their covered time, of the last three days, newest last.
        whole: those of them at work throughout, whose means describe the work.
    """

    active: Sequence[GpuHour]
    whole: Sequence[GpuHour]


NO_WORK: Final = Recent((), ())


def _recents(evidence: Evidence) -> dict[str, Recent]:
    """Every GPU's last day of work, by UUID, read together; of stored hours only those are read."""
    since_ms = recent_from_ms(evidence)
    first = [(gpu, _first_worth(gpu, since_ms)) for gpu in evidence.gpus]
    wanted = [(gpu, from_ms) for gpu, from_ms in first if from_ms is not None]
    read = each_since([(gpu.hours, from_ms) for gpu, from_ms in wanted])
    found = {gpu.gpu_uuid: _recent_of(hours) for (gpu, _), hours in zip(wanted, read, strict=True)}
    return {gpu.gpu_uuid: found.get(gpu.gpu_uuid, NO_WORK) for gpu in evidence.gpus}


recents = OncePerEvidence(_recents)
"""A whole fleet in chunks begins with none (``put``): of it a few are asked for, and then read one by one."""


def recent(evidence: Evidence, gpu: GpuEvidence) -> Recent:
    """The GPU's last day of work."""
    kept = recents(evidence)
    found = kept.get(gpu.gpu_uuid)
    if found is None:
        from_ms = _first_worth(gpu, recent_from_ms(evidence))
        found = NO_WORK if from_ms is None else _recent_of(hours_since(gpu.hours, from_ms))
        kept[gpu.gpu_uuid] = found
    return found


def recent_from_ms(evidence: Evidence) -> int:
    """Where the present begins."""
    return evidence.window.to_ms - RECENT_SPAN_H * HOUR_MS


def _recent_of(hours: Sequence[GpuHour]) -> Recent:
    times = rows_of(hours, "active_s", "covered_s")
    active = [
        (hour, active_s >= WHOLE * covered_s)
        for hour, (active_s, covered_s) in zip(hours, times, strict=True)
        if active_s >= 0.5 * covered_s > 0
    ][-RECENT_WORK_HOURS:]
    return Recent([hour for hour, _ in active], [hour for hour, is_whole in active if is_whole])


def _first_worth(gpu: GpuEvidence, since_ms: int) -> int | None:
    """From when on the last day of work is read: what the days tell of it, where they are stored; None: no such hour."""
    if not isinstance(gpu.hours, HourSeries):
        return since_ms
    found: list[int] = []
    for day in reversed(gpu.days):
        start_ms, seconds = day.day_ms, zip(day.active_s, day.covered_s, strict=True)
        at_work = [
            n for n, (active_s, covered_s) in enumerate(seconds) if active_s + 1 >= 0.5 * covered_s > 0
        ]
        found += [start for n in reversed(at_work) if (start := start_ms + n * HOUR_MS) >= since_ms]
        if len(found) >= RECENT_WORK_HOURS or start_ms < since_ms:
            break
    return found[:RECENT_WORK_HOURS][-1] if found else None


def whole_hours(hours: Iterable[GpuHour]) -> Sequence[GpuHour]:
    """Hours at work throughout."""
    found = list(hours)
    times = rows_of(found, "active_s", "covered_s")
    return [
        hour
        for hour, (active_s, covered_s) in zip(found, times, strict=True)
        if active_s >= WHOLE * covered_s > 0
    ]


def hours_of(hours: Iterable[GpuHour]) -> float:
    """Covered time of the hours, in hours."""
    return sum(hour.covered_s for hour in hours) / 3600


def mean(hours: Iterable[GpuHour], name: str) -> float | None:
    """Mean of a column over covered time; None when it is known for less than half of that."""
    total = known = weighted = 0.0
    for covered_s, value in rows_of(list(hours), "covered_s", name):
        total += covered_s
        if value is not None:
            known += covered_s
            weighted += value * covered_s
    return weighted / known if known > 0 and known >= 0.5 * total else None


def means(hours: Sequence[GpuHour], *names: str) -> dict[str, float]:
    """The known means by name, rounded, as facts of a finding."""
    found = {name: mean(hours, name) for name in names}
    return {name: round(value, 4) for name, value in found.items() if value is not None}


def share(hours: Sequence[GpuHour], *kinds: Activity) -> float:
    """Share of the hours' covered time in these activities, 0–1; 0 without any time."""
    rows = rows_of(hours, "covered_s", *[SECONDS_OF[kind] for kind in kinds])
    covered_s = sum([row[0] for row in rows])
    named_s = sum([seconds for row in rows for seconds in row[1:]])
    return min(1.0, named_s / covered_s) if covered_s > 0 else 0.0


def memory_bound(hours: Sequence[GpuHour]) -> bool | None:
    """Nature of the work by its activities: mostly memory-bound, mostly compute-bound or mixed, or not known."""
    bound = share(hours, Activity.MEMORY_BOUND)
    known = bound + share(hours, Activity.COMPUTE_BOUND, Activity.MIXED)
    return None if known < 0.5 else bound >= 0.5 * known


def unfit(evidence: Evidence, gpu: GpuEvidence, limits: WorkLimits) -> tuple[tuple[str, ...], str] | None:
    """What is missing and why that matters when a candidate's data cannot carry a finding; None when it can."""
    seen = digest(evidence, gpu)
    work_h = hours_of(recent(evidence, gpu).active)
    if silence_h(evidence, gpu) > limits.max_silence_h:
        late = duration(silence_h(evidence, gpu))
        return ("recent samples",), f"The last sample is {late} old: what the GPU does now is not known."
    if seen.coverage < limits.min_coverage_ratio:
        return ("samples",), f"Samples cover {percent(seen.coverage)} of the time; a gap is unknown."
    if work_h < limits.min_work_h:
        due = duration(limits.min_work_h)
        return ("time",), f"At work for {duration(work_h)} of the last three days; {due} are needed."
    return None


def is_dark(evidence: Evidence, gpu: GpuEvidence) -> bool:
    """Utilization was not read for most of its time, as on a card split by MIG: whether it works is not known."""
    seen = digest(evidence, gpu)
    return seen.unknown_h > 0.5 * seen.covered_h


def unread(
    rule_id: str, blind: Sequence[GpuEvidence], missing: tuple[str, ...], why: str
) -> Iterator[NotEvaluated]:
    """One sentence for all GPUs that lack the same counter; nothing when none does."""
    if blind:
        lack = f"without {' or '.join(missing)}: {why}"
        yield counted(rule_id, missing, len(blind), f"1 GPU {lack}", f"{{count}} GPUs {lack}")


def freed(evidence: Evidence, gpus: Sequence[GpuEvidence], hours: float, grade: Grade) -> Range:
    """GPU-hours of the window as a month's range on these GPUs, never more than the month has of them."""
    window_h = evidence.window.hours
    most = sum(base_of(gpu, digest(evidence, gpu), window_h).capacity for gpu in gpus)
    return widened(month_h(evidence, hours), grade, most=most, seen=seen_share(window_h))


def little_work(hours: Sequence[GpuHour]) -> str:
    """A sentence for a GPU that shows full utilization and does little; empty where it does not, or nothing tells."""
    busy, sm = mean(hours, "busy_ratio"), mean(hours, "sm_active_ratio")
    if busy is None or sm is None or busy < 0.9 or sm >= 0.5:
        return ""
    return (
        f" Utilization of {percent(busy)} only says that some kernel was running:"
        f" the multiprocessors were {percent(sm)} active."
    )
