"""Which GPUs stand idle now: one answer for all rules on idle GPUs, so that a node of both kinds is judged as one."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from operator import mul
from typing import Annotated, Final

from pydantic import Field

from advisor.digest import digest
from advisor.fleet import CASH_BILLING, billing
from advisor.memo import OncePerEvidence
from advisor.model import Limits
from core.activity import HELD_MEMORY_BYTES, IDLE_BUSY_RATIO, Activity
from core.days import GpuDay, seen_hours
from core.evidence import EngineEvidence, Evidence, GpuEvidence
from core.hours import GpuHour
from core.parked_hours import ParkedHour, parked_hours, read_together
from core.series import HourSeries
from core.units import DAY_MS, HOUR_MS

WEEK_DAYS: Final = 7
WEEK_H: Final = 24 * WEEK_DAYS
ROUNDING_S: Final = 3
"""By how much sums of a day's whole seconds may be off."""
MIN_ENERGY_RATIO: Final = 0.95
"""Energy known for less of the time than this is no figure for the whole of it."""

QUIET_BUSY_RATIO: Final = 0.01
"""Above this mean an idle GPU may be serving now and then."""


class EmptyGpuLimits(Limits):
    """Thresholds of ``empty-gpu``."""

    min_rented_h: Annotated[float, Field(gt=0, le=8760)] = 24.0
    """Hours a rented GPU must have been empty up to now (R01)."""
    min_owned_h: Annotated[float, Field(gt=0, le=8760)] = 168.0
    """The same for owned or reserved GPUs, where a spare week is normal (R01)."""
    min_coverage_ratio: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Samples received over samples due. A gap must never read as idleness."""
    max_other_ratio: Annotated[float, Field(ge=0, le=0.5)] = 0.01
    """Share of an hour that may be something else and still count as empty: a probe is not work."""
    max_silence_h: Annotated[float, Field(gt=0, le=168)] = 3.0
    """Without samples for longer, nobody knows what the GPU is doing now."""


class ParkedModelLimits(Limits):
    """Thresholds of ``parked-model``."""

    min_days: Annotated[int, Field(ge=1, le=7)] = 3
    """Days of the last seven with at least one whole parked hour (R02)."""
    min_parked_ratio: Annotated[float, Field(gt=0, le=1)] = 0.95
    """Share of the data that makes a GPU parked throughout (R02: 95 % of 14 d)."""
    min_data_h: Annotated[float, Field(gt=0, le=336)] = 1.0
    """Less data than one hour is a pause, not a parked model."""
    min_cash_h: Annotated[float, Field(gt=0, le=336)] = 24.0
    """Less data than a day is no month's money: the hours are told, the cash is not."""
    whole_hour_ratio: Annotated[float, Field(gt=0.5, le=1)] = 0.95
    """Share of an hour that must be parked for it to count whole: pauses between requests are not parking."""
    min_hour_coverage_ratio: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Coverage below which an hour is not judged. A gap must never read as idleness."""
    min_coverage_ratio: Annotated[float, Field(ge=0, le=1)] = 0.8
    """The same for the whole of the GPU's data."""
    newest_h: Annotated[float, Field(gt=0, le=48)] = 3.0
    """Hours before the last sample that are the present: a model that is not held there has been unloaded."""
    max_silence_h: Annotated[float, Field(gt=0, le=168)] = 3.0
    """Without samples for longer, nobody knows what the GPU is doing now."""


@dataclass(frozen=True, slots=True)
class Streak:
    """Hours in which a GPU held nothing, or no more than a small context, unbroken up to its last sample.

    Attributes:
        hours: those hours; a day that was empty throughout stands for its own. count: how many they are.
        idle_h, span_h: idle time, and time from their start to the last sample.
    """

    hours: Sequence[GpuHour]
    count: int
    idle_h: float
    span_h: float

    @property
    def energy_j(self) -> float | None:
        """Energy drawn meanwhile; None when not known for nearly the whole of it."""
        covered_s = sum(hour.covered_s for hour in self.hours)
        known_s = sum(min(hour.energy_covered_s, hour.covered_s) for hour in self.hours)
        if covered_s <= 0 or known_s < MIN_ENERGY_RATIO * covered_s:
            return None
        kinds = (Activity.EMPTY, Activity.PARKED)
        return sum(hour.joules.get(kind, 0.0) for hour in self.hours for kind in kinds)

    @property
    def power_w(self) -> float | None:
        """Mean power while idle, weighted by time."""
        return _weighted(
            [watts for hour in self.hours for watts in (hour.empty_power_w, hour.parked_power_w)],
            [
                hour.seconds.get(kind, 0.0)
                for hour in self.hours
                for kind in (Activity.EMPTY, Activity.PARKED)
            ],
        )

    @property
    def context_hours(self) -> Sequence[GpuHour]:
        """Its hours in which a process held a small context."""
        return [hour for hour in self.hours if hour.seconds.get(Activity.PARKED, 0.0) > 0]


@dataclass(frozen=True)
class Parking:
    """When a GPU was parked; figures of its hours are worked out once."""

    hours: Sequence[ParkedHour]
    parked_h: float
    share: float
    days: int
    throughout: bool
    held_now: bool

    @cached_property
    def memory_bytes(self) -> float | None:
        """Typical memory held."""
        return typical_memory_bytes(self.hours)

    @cached_property
    def power_w(self) -> float | None:
        """Mean power while parked, weighted by time."""
        return _weighted([hour.parked_power_w for hour in self.hours], [hour.parked_s for hour in self.hours])


NEVER_PARKED: Final = Parking((), 0.0, 0.0, 0, throughout=False, held_now=False)


def typical_memory_bytes(hours: Sequence[GpuHour | ParkedHour]) -> float | None:
    """Median of the hours' memory in use."""
    known = sorted([held for hour in hours if (held := hour.memory_used_bytes) is not None])
    return known[len(known) // 2] if known else None


def mean_busy_ratio(hours: Sequence[GpuHour | ParkedHour]) -> float | None:
    """Mean busy ratio of idle time, weighted by time.

    An hour's mean holds its few seconds of work as well; idle time itself was below the idle limit.
    """
    busy = [hour.busy_ratio if hour.busy_ratio is not None else hour.sm_active_ratio for hour in hours]
    return _weighted(
        [ratio if ratio is None or ratio < IDLE_BUSY_RATIO else IDLE_BUSY_RATIO for ratio in busy],
        [hour.covered_s for hour in hours],
    )


def busy_words(mean_ratio: float | None) -> str:
    """What idle means, and how busy the GPU was on average."""
    mean = "" if mean_ratio is None else f" ({mean_ratio:.1%} on average)"
    return f"under {IDLE_BUSY_RATIO:.0%} busy{mean}"


def may_serve(evidence: Evidence, gpu: GpuEvidence, mean_ratio: float | None) -> bool:
    """Whether the little work seen could be requests: no engine is there to say that it served none."""
    return mean_ratio is not None and mean_ratio > QUIET_BUSY_RATIO and not has_seen_engine(evidence, gpu)


def _weighted(values: Sequence[float | None], seconds: Sequence[float]) -> float | None:
    """Mean of what is known, weighted by time."""
    if None in values:
        known_at = [at for at, value in enumerate(values) if value is not None]
        values, seconds = [values[at] for at in known_at], [seconds[at] for at in known_at]
    total = sum(seconds)
    return sum(map(mul, values, seconds)) / total if total > 0 else None


def _seen_engines(evidence: Evidence) -> Mapping[str, Sequence[EngineEvidence]]:
    """Engines with hours, by each of their GPUs."""
    found: dict[str, list[EngineEvidence]] = {}
    for engine in evidence.engines:
        for uuid in engine.gpu_uuids if engine.hours else ():
            found.setdefault(uuid, []).append(engine)
    return found


_engines_on = OncePerEvidence(_seen_engines)


def has_seen_engine(evidence: Evidence, gpu: GpuEvidence) -> bool:
    """An engine ran on it in the window."""
    return gpu.gpu_uuid in _engines_on(evidence)


def serving_hours(evidence: Evidence, gpu: GpuEvidence) -> frozenset[int]:
    """Hours in which an engine of the GPU had requests running."""
    return frozenset().union(*(engine.busy_hours for engine in _engines_on(evidence).get(gpu.gpu_uuid, ())))


def silence_h(evidence: Evidence, gpu: GpuEvidence) -> float:
    """Hours from the GPU's last sample to the end of the window."""
    return (evidence.window.to_ms - gpu.last_sample_ms) / HOUR_MS


def streak_of(evidence: Evidence, gpu: GpuEvidence, limits: EmptyGpuLimits) -> Streak:
    """The unbroken hours up to the last sample in which the GPU did nothing and held next to nothing."""
    kept, key = streaks(evidence), (gpu.gpu_uuid, limits)
    if key not in kept:
        kept[key] = _streak_of(evidence, gpu, limits)
    return kept[key]


def _streaks(_evidence: Evidence) -> dict[tuple[str, EmptyGpuLimits], Streak]:
    """What was asked for so far."""
    return {}


streaks = OncePerEvidence(_streaks)


def _streak_of(evidence: Evidence, gpu: GpuEvidence, limits: EmptyGpuLimits) -> Streak:
    if isinstance(gpu.hours, HourSeries) and _ended_at_work(gpu.days[-1], limits):
        return Streak((), 0, 0.0, 0.0)
    serving = serving_hours(evidence, gpu)
    hours: list[GpuHour] = []
    starts: list[int] = []
    for part, begun in _newest_first(gpu):
        idle_s = _unheld_s(part, serving)
        if part.covered_s <= 0 or idle_s < (1 - limits.max_other_ratio) * part.covered_s:
            break
        hours.append(part)
        starts += reversed(begun)
    hours.reverse()
    if not hours:
        return Streak((), 0, 0.0, 0.0)
    begin = max(starts[-1], gpu.first_sample_ms)
    span_h = (min(starts[0] + HOUR_MS, max(gpu.last_sample_ms, begin)) - begin) / HOUR_MS
    return Streak(hours, len(starts), sum(_unheld_s(hour, serving) for hour in hours) / 3600, span_h)


def _newest_first(gpu: GpuEvidence) -> Iterator[tuple[GpuHour, Sequence[int]]]:
    """Hours of a GPU, a day that was empty throughout as one, with the starts of the hours that each stands for."""
    hours = gpu.hours
    if not isinstance(hours, HourSeries):
        yield from ((hour, (hour.hour_ms,)) for hour in reversed(hours))
        return
    days_read = 0
    for day in reversed(gpu.days):
        if was_empty(day):
            yield day.whole, seen_hours(day.day_ms, day.seen)
            continue
        if days_read == 1:
            hours.all()  # who looks past two days mostly goes far back: one query then
        days_read += 1
        for hour in reversed(hours.of_day(day.day_ms)):
            yield hour, (hour.hour_ms,)


def was_empty(day: GpuDay) -> bool:
    """Whether nothing held the GPU in any of the day's hours, and all were seen in some part."""
    whole, seen = day.whole, day.seen.bit_count()
    return whole.seconds.get(Activity.EMPTY, 0.0) == whole.covered_s and sum(map(bool, day.covered_s)) == seen


def _ended_at_work(day: GpuDay, limits: EmptyGpuLimits) -> bool:
    """Whether the day's last hour was surely no part of a streak: its idle seconds, with a margin, are too few."""
    last = day.seen.bit_length() - 1
    idle_s = day.covered_s[last] - day.active_s[last] - day.parked_s[last] + ROUNDING_S
    return idle_s < (1 - limits.max_other_ratio) * day.covered_s[last]


def _unheld_s(hour: GpuHour, serving: frozenset[int]) -> float:
    """Seconds empty, and those parked with less than a model's memory where no engine served."""
    empty_s = hour.seconds.get(Activity.EMPTY, 0.0)
    memory = hour.memory_used_bytes
    small = memory is not None and memory < HELD_MEMORY_BYTES and hour.hour_ms not in serving
    return empty_s + hour.seconds.get(Activity.PARKED, 0.0) if small else empty_s


def needed_h(evidence: Evidence, gpu: GpuEvidence, limits: EmptyGpuLimits) -> float:
    """Hours a GPU paid like this must have been empty."""
    rented = billing(gpu.price, evidence.site) in CASH_BILLING
    return limits.min_rented_h if rented else limits.min_owned_h


def _parkings(_evidence: Evidence) -> dict[tuple[str, ParkedModelLimits], Parking]:
    """What was asked for so far."""
    return {}


parkings = OncePerEvidence(_parkings)


def parking_of(evidence: Evidence, gpu: GpuEvidence, limits: ParkedModelLimits) -> Parking:
    """When the GPU held a model and did nothing, and whether it still does."""
    kept, key = parkings(evidence), (gpu.gpu_uuid, limits)
    if key not in kept:
        kept[key] = _parking_of(evidence, gpu, limits)
    return kept[key]


def _parking_of(evidence: Evidence, gpu: GpuEvidence, limits: ParkedModelLimits) -> Parking:
    seen = digest(evidence, gpu)
    all_hours = parked_hours(gpu.hours) if _may_park(evidence, gpu, limits.whole_hour_ratio) else ()
    if not all_hours:
        return NEVER_PARKED
    hours = _parked_of(gpu, all_hours, serving_hours(evidence, gpu), limits)
    parked_h = sum([hour.parked_s for hour in hours]) / 3600
    share = parked_h / seen.covered_h if seen.covered_h > 0 else 0.0
    newest_ms = gpu.last_sample_ms - round(limits.newest_h * HOUR_MS) - HOUR_MS
    throughout = (
        share >= limits.min_parked_ratio
        and seen.covered_h >= limits.min_data_h
        and bool(hours)
        and hours[-1].hour_ms > newest_ms
    )
    lately = takewhile(lambda hour: hour.hour_ms > newest_ms, reversed(all_hours if hours else ()))
    held = any(_holds_model(hour) for hour in lately)
    return Parking(hours, parked_h, share, _days(evidence, hours, limits), throughout, held)


def _no_answers(_evidence: Evidence) -> dict[tuple[str, float], bool]:
    """What was asked for so far."""
    return {}


_answers = OncePerEvidence(_no_answers)


def _may_park(evidence: Evidence, gpu: GpuEvidence, share: float) -> bool:
    """Whether some hour could be parked nearly throughout with a model's memory; of stored ones told by the days."""
    kept, key = _answers(evidence), (gpu.gpu_uuid, share)
    found = kept.get(key)
    if found is None:
        found = kept[key] = digest(evidence, gpu).parked_h > 0 and _has_parked_hour(gpu, share)
    return found


def _has_parked_hour(gpu: GpuEvidence, share: float) -> bool:
    if not isinstance(gpu.hours, HourSeries):
        return True
    for day in gpu.days:
        parked_s, covered_s = day.parked_s, day.covered_s
        if max(parked_s) + ROUNDING_S >= share * min(covered_s) and any(
            seconds + ROUNDING_S >= share * covered
            for seconds, covered in zip(parked_s, covered_s, strict=True)
            if seconds
        ):
            return True
    return False


def _days(evidence: Evidence, hours: Sequence[ParkedHour], limits: ParkedModelLimits) -> int:
    """Of the last seven, those with a whole parked hour."""
    end_ms, least_s = evidence.window.to_ms - HOUR_MS, limits.min_hour_coverage_ratio * 3600
    days = {(end_ms - at) // DAY_MS for at, covered_s, *_ in hours[-WEEK_H:] if covered_s >= least_s}
    return len([day for day in days if day < WEEK_DAYS])


def _holds_model(hour: ParkedHour) -> bool:
    return hour.memory_used_bytes is not None and hour.memory_used_bytes >= HELD_MEMORY_BYTES


def _parked_of(
    gpu: GpuEvidence, hours: Sequence[ParkedHour], serving: Collection[int], limits: ParkedModelLimits
) -> list[ParkedHour]:
    """Those parked nearly all the time they were seen, with a model's worth of memory, well covered, nothing served.

    The first and the last hour of the data are covered in part; they count for what they are.
    """
    share, least = limits.whole_hour_ratio, limits.min_hour_coverage_ratio
    first_ms, last_ms = gpu.first_sample_ms, gpu.last_sample_ms
    whole_s, last_whole_ms = least * 3600.0, last_ms - HOUR_MS

    def is_covered(hour: ParkedHour) -> bool:
        begin, end = max(hour.hour_ms, first_ms), min(hour.hour_ms + HOUR_MS, last_ms)
        due_s = (end - begin) / 1000
        return due_s <= 0 or hour.covered_s >= least * due_s

    return [
        hour
        for hour in hours
        if hour.parked_s >= share * hour.covered_s > 0
        and (hour.memory_used_bytes or 0.0) >= HELD_MEMORY_BYTES
        and (hour.covered_s >= whole_s if first_ms <= hour.hour_ms <= last_whole_ms else is_covered(hour))
        and hour.hour_ms not in serving
    ]


def _idle_gpus(evidence: Evidence) -> frozenset[str]:
    """GPUs that could be released now: empty for long enough, or parked throughout, and seen doing so."""
    empty, parked = EmptyGpuLimits(), ParkedModelLimits()
    share = parked.whole_hour_ratio
    read_together([gpu.hours for gpu in evidence.gpus if _may_park(evidence, gpu, share)])
    return frozenset(
        gpu.gpu_uuid
        for gpu in evidence.gpus
        if _stands_empty(evidence, gpu, empty) or _stands_parked(evidence, gpu, parked)
    )


idle_gpus = OncePerEvidence(_idle_gpus)


def _stands_empty(evidence: Evidence, gpu: GpuEvidence, limits: EmptyGpuLimits) -> bool:
    streak = streak_of(evidence, gpu, limits)
    return (
        silence_h(evidence, gpu) <= limits.max_silence_h
        and streak.idle_h >= needed_h(evidence, gpu, limits)
        and streak.idle_h >= limits.min_coverage_ratio * streak.span_h
    )


def _stands_parked(evidence: Evidence, gpu: GpuEvidence, limits: ParkedModelLimits) -> bool:
    seen = digest(evidence, gpu)
    return (
        silence_h(evidence, gpu) <= limits.max_silence_h
        and seen.coverage >= limits.min_coverage_ratio
        and seen.covered_h >= limits.min_cash_h
        and parking_of(evidence, gpu, limits).throughout
    )
