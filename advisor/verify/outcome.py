"""From hours of GPUs and engines to what a verification compares: outcome and load of one group of GPUs.

What was to fall follows from the ledger, and for capacity from the stage of the waterfall:

energy
    kWh at the GPUs.
capacity, stages ``stop`` and ``schedule``
    GPU-hours in which nothing worked: what such a finding says is idle.
capacity, every other stage
    GPU-hours that workloads held.
cash
    Dollars for the time in which the GPUs were there. A GPU that was last seen within a day of the action and has not
    been since is taken as given back: two signs, what somebody said and what telemetry shows; the invoice has the
    last word. A GPU that went silent at any other time is a gap.

An hour counts when every GPU of the group is vouched for through 80 % of it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import fsum
from typing import Final

from advisor.verify.series import LatencyHour, LoadHour
from core.finding import Finding
from core.hours import EngineHour, GpuHour
from core.units import DAY_MS, HOUR_MS, J_PER_KWH
from core.verification import Ledger

MIN_COVERED_S: Final = 0.8 * 3600
ENGINE_LOADS: Final = ("requests", "prompt tokens", "generated tokens")
GPU_LOADS: Final = ("active GPU-hours",)
IDLE_STAGES: Final = frozenset({"stop", "schedule"})


def ledger_of(finding: Finding) -> Ledger | None:
    """The ledger its saving is checked in: the hardest money it claims; None when it claims nothing."""
    return next((one for one in Ledger if getattr(finding.saving, one.field) is not None), None)


def load_hours(
    gpu_hours: Iterable[GpuHour],
    engine_hours: Sequence[EngineHour],
    *,
    finding: Finding,
    ledger: Ledger,
    price_of: Mapping[str, float],
    released_ms: Mapping[str, int] | None = None,
) -> tuple[list[LoadHour], tuple[str, ...]]:
    """Hours of one group of GPUs with their load, and the loads' names.

    Args:
        gpu_hours: of the group, in any order. engine_hours: of the engines on it; empty: there is none.
        finding: says what was to fall. ledger: of it.
        price_of: dollars of a GPU-hour by UUID; the cash ledger needs all of them.
        released_ms: from when GPUs that were given back cost nothing, by UUID; cash ledger only.
    """
    by_hour: dict[int, dict[str, GpuHour]] = defaultdict(dict)
    uuids: set[str] = set()
    for hour in gpu_hours:
        uuids.add(hour.gpu_uuid)
        if hour.covered_s >= MIN_COVERED_S:
            by_hour[hour.hour_ms][hour.gpu_uuid] = hour
    gone = released_ms or {}
    outcome = _outcome(finding, ledger, price_of)
    if outcome is None or not uuids:
        return [], ()
    is_idle = ledger is Ledger.CAPACITY and finding.stage in IDLE_STAGES
    engine_loads = _engine_loads(engine_hours)
    names = ENGINE_LOADS if engine_loads else () if is_idle else GPU_LOADS
    for at in _last_hours(by_hour, gone):
        by_hour.setdefault(at, {})
    found = []
    for hour_ms, seen in sorted(by_hour.items()):
        due = {uuid for uuid in uuids if not (uuid in gone and hour_ms >= gone[uuid])}
        values = [outcome(hour) for uuid, hour in seen.items() if uuid in due]
        known = [value for value in values if value is not None]
        if not due <= seen.keys() or len(known) < len(due):
            continue
        if engine_loads:
            if hour_ms not in engine_loads:
                continue
            loads = engine_loads[hour_ms]
        else:
            loads = () if is_idle else (fsum(hour.active_s for hour in seen.values()) / 3600,)
        found.append(LoadHour(hour_ms, fsum(known), loads))
    return found, names


def _last_hours(by_hour: Mapping[int, object], gone: Mapping[str, int]) -> Iterable[int]:
    """Hours after everything was given back: they cost nothing, and there is no row to say so."""
    end = gone.get("", 0)
    if not end or not by_hour:
        return range(0)
    return range(max(by_hour) + HOUR_MS, end, HOUR_MS)


def released(last_seen_ms: Mapping[str, int], action_ms: int, until_ms: int) -> dict[str, int]:
    """GPUs taken as given back with the action, by UUID: from when; key ``""`` is the end of what is known of them.

    Args:
        last_seen_ms: end of each GPU's newest sample. until_ms: end of the fleet's newest sample.
    """
    found = {
        uuid: last_ms - last_ms % HOUR_MS
        for uuid, last_ms in last_seen_ms.items()
        if abs(last_ms - action_ms) <= DAY_MS and until_ms - last_ms >= 14 * DAY_MS
    }
    return found | {"": until_ms - until_ms % HOUR_MS} if len(found) == len(last_seen_ms) else found


def _outcome(
    finding: Finding, ledger: Ledger, price_of: Mapping[str, float]
) -> Callable[[GpuHour], float | None] | None:
    if ledger is Ledger.ENERGY:
        return _kwh
    if ledger is Ledger.CASH:
        if any(uuid not in price_of for uuid in finding.gpu_uuids):
            return None
        return lambda hour: price_of.get(hour.gpu_uuid)
    if finding.stage in IDLE_STAGES:
        return lambda hour: (hour.covered_s - hour.active_s) / hour.covered_s
    return lambda hour: hour.allocated_s / hour.covered_s


def _kwh(hour: GpuHour) -> float | None:
    if hour.energy_j is None or hour.energy_covered_s <= 0:
        return None
    return hour.energy_j / hour.energy_covered_s * 3600 / J_PER_KWH


def _engine_loads(hours: Sequence[EngineHour]) -> dict[int, tuple[float, ...]]:
    """Requests, prompt and generated tokens of all engines together, of hours in which every one that lives then is vouched for."""
    lives: dict[str, tuple[int, int]] = {}
    for hour in hours:
        first, last = lives.get(hour.engine, (hour.hour_ms, hour.hour_ms))
        lives[hour.engine] = (min(first, hour.hour_ms), max(last, hour.hour_ms))
    by_hour: dict[int, list[EngineHour]] = defaultdict(list)
    for hour in hours:
        if hour.covered_s >= MIN_COVERED_S and None not in _loads(hour):
            by_hour[hour.hour_ms].append(hour)
    return {
        hour_ms: tuple(
            fsum(3600 / one.covered_s * (value or 0.0) for one, value in zip(seen, column, strict=True))
            for column in zip(*(_loads(one) for one in seen), strict=True)
        )
        for hour_ms, seen in by_hour.items()
        if len(seen) == sum(first <= hour_ms <= last for first, last in lives.values())
    }


def _loads(hour: EngineHour) -> tuple[float | None, float | None, float | None]:
    return hour.finished_requests, hour.prompt_tokens, hour.generated_tokens


def latencies(hours: Sequence[EngineHour]) -> dict[str, list[LatencyHour]]:
    """Sums and counts of the engines' latencies; only those they publish."""
    found: dict[str, list[LatencyHour]] = defaultdict(list)
    for hour in hours:
        for name, total, count in (
            ("time to first token", hour.ttft_sum_s, hour.ttft_count),
            ("inter-token latency", hour.itl_sum_s, hour.itl_count),
        ):
            if total is not None and count:
                found[name].append(LatencyHour(hour.hour_ms, total, count))
    return dict(found)
