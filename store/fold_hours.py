"""Samples of one clock hour folded into an hour: pure functions, no database."""

from collections.abc import Mapping, Sequence
from typing import Final

from core.activity import Activity, is_active, is_allocated
from core.histogram import Histogram, level
from core.hour_merge import MEANS, MIN_ENERGY_SHARE
from core.hours import BatchPoint, EngineHour, GpuHour
from core.samples import EnergyMethod, EngineSample, GpuSample
from store.engine_effect import UNTOLD, effective
from store.fold_means import means

SLOWED_FLAGS: Final = 0x08 | 0x20 | 0x40 | 0x80
"""Event reasons of heat and power brake: HW slowdown, SW thermal, HW thermal, HW power brake (advisor-rules R24)."""
POWER_SLOWED: Final = ("slowed_power_cap_s", "slowed_board_limit_s")
THERMAL_SLOWED: Final = ("slowed_sw_thermal_s", "slowed_hw_thermal_s", "slowed_power_brake_s")
"""Cumulative times of event reasons that an hour keeps, by what can be done about them."""
FOLDED: Final = (
    *MEANS,
    "power_max_w",
    "power_limit_w",
    "energy_j",
    "sm_clock_hz",
    "temperature_c",
    "event_reasons_flags",
    "pcie_rx_bytes_per_s",
    "pcie_tx_bytes_per_s",
    "nvlink_rx_bytes_per_s",
    "nvlink_tx_bytes_per_s",
    "temperature_margin_c",
    *POWER_SLOWED,
    *THERMAL_SLOWED,
)
"""All metrics that hours and usage are folded from: what the roll-up reads of a sample."""


def fold_gpu_hour(
    gpu_uuid: str, hour_ms: int, samples: Sequence[GpuSample], by_engine: Mapping[int, bool] = UNTOLD
) -> GpuHour | None:
    """Fold the samples of one GPU that start in one hour, in order of time; None when there are none.

    ``by_engine``: whether its engine was at work as it can, by ``ts_ms``: asked where no counter tells what is effective.
    """
    if not samples:
        return None
    seconds: dict[Activity, float] = {}
    joules: dict[Activity, float] = {}
    methods: set[EnergyMethod] = set()
    covered_ms = energy_ms = allocated_ms = active_ms = effective_ms = unknown_ms = 0
    for activity, part in _by_activity(samples).items():
        part_ms = sum(s.covered_ms for s in part)
        covered_ms += part_ms
        seconds[activity] = part_ms / 1000
        with_energy = [s for s in part if "energy_j" in s.values]
        if with_energy:
            joules[activity] = sum(s.values["energy_j"] for s in with_energy)
            energy_ms += sum(s.covered_ms for s in with_energy)
            methods.update(s.energy_method for s in with_energy if s.energy_method is not None)
        if is_allocated(activity):
            allocated_ms += part_ms
        if is_active(activity):
            active_ms += part_ms
            for s in part:
                told = effective(s, by_engine)
                if told is None:
                    unknown_ms += s.covered_ms
                elif told:
                    effective_ms += s.covered_ms
    active = [s for s in samples if is_active(s.activity)]
    mean = means(MEANS, [s.values for s in samples], [s.covered_ms for s in samples])
    return GpuHour(
        gpu_uuid=gpu_uuid,
        hour_ms=hour_ms,
        covered_s=covered_ms / 1000,
        seconds=seconds,
        joules=joules,
        energy_j=sum(joules.values()) if joules else None,
        energy_method=_method(methods),
        energy_covered_s=energy_ms / 1000,
        allocated_s=allocated_ms / 1000,
        active_s=active_ms / 1000,
        effective_s=effective_ms / 1000,
        effective_unknown_s=unknown_ms / 1000,
        memory_used_max_bytes=_max(samples, "memory_used_bytes"),
        power_max_w=_max(samples, "power_max_w", "power_w"),
        power_limit_w=_last(samples, "power_limit_w"),
        empty_power_w=_mean([s for s in samples if s.activity is Activity.EMPTY], "power_w"),
        parked_power_w=_mean([s for s in samples if s.activity is Activity.PARKED], "power_w"),
        sm_clock_hz=_mean(active, "sm_clock_hz"),
        throttled_s=_slowed_s(samples),
        temperature_max_c=_max(samples, "temperature_c"),
        pcie_bytes_per_s=_both_ways(samples, "pcie_rx_bytes_per_s", "pcie_tx_bytes_per_s"),
        nvlink_bytes_per_s=_both_ways(samples, "nvlink_rx_bytes_per_s", "nvlink_tx_bytes_per_s"),
        slowed_power_s=_held_back_s(samples, POWER_SLOWED),
        slowed_thermal_s=_held_back_s(samples, THERMAL_SLOWED),
        temperature_margin_min_c=_min(samples, "temperature_margin_c"),
        **dict(zip(MEANS, mean, strict=True)),
    )


def _by_activity(samples: Sequence[GpuSample]) -> dict[Activity, list[GpuSample]]:
    parts: dict[Activity, list[GpuSample]] = {}
    last, part = None, []
    for sample in samples:
        if sample.activity is not last:
            last = sample.activity
            part = parts.setdefault(last, [])
        part.append(sample)
    return parts


def _method(methods: set[EnergyMethod]) -> EnergyMethod | None:
    if not methods:
        return None
    return methods.copy().pop() if len(methods) == 1 else EnergyMethod.MIXED


def _mean(samples: Sequence[GpuSample], name: str) -> float | None:
    """Mean over the covered time that has the metric."""
    (mean,) = means((name,), [s.values for s in samples], [s.covered_ms for s in samples])
    return mean


def _max(samples: Sequence[GpuSample], *names: str) -> float | None:
    return max((s.values[name] for s in samples for name in names if name in s.values), default=None)


def _min(samples: Sequence[GpuSample], name: str) -> float | None:
    return min((s.values[name] for s in samples if name in s.values), default=None)


def _last(samples: Sequence[GpuSample], name: str) -> float | None:
    return next((s.values[name] for s in reversed(samples) if name in s.values), None)


def _slowed_s(samples: Sequence[GpuSample]) -> float | None:
    with_flags = [s for s in samples if "event_reasons_flags" in s.values]
    if not with_flags:
        return None
    return (
        sum(
            s.covered_ms
            for s in with_flags
            if int(s.values["event_reasons_flags"]) & SLOWED_FLAGS and is_active(s.activity)
        )
        / 1000
    )


def _held_back_s(samples: Sequence[GpuSample], names: Sequence[str]) -> float | None:
    """Time that any of the counters ``names`` counted.

    Two reasons may hold at once: of a sample it is never more than the time that the sample covers.
    """
    told = [name for name in names if any(name in s.values for s in samples)]
    if not told:
        return None
    return sum(min(sum(s.values.get(name, 0.0) for name in told), s.covered_ms / 1000) for s in samples)


def _both_ways(samples: Sequence[GpuSample], received: str, sent: str) -> float | None:
    """Mean of both directions together, over the time that has both."""
    total = weight = 0.0
    for s in samples:
        rx, tx = s.values.get(received), s.values.get(sent)
        if rx is not None and tx is not None:
            total += (rx + tx) * s.covered_ms
            weight += s.covered_ms
    return total / weight if weight else None


def fold_engine_hour(
    engine: str,
    hour_ms: int,
    samples: Sequence[EngineSample],
    gpus: Sequence[Mapping[int, GpuSample]],
) -> EngineHour | None:
    """Fold the samples of one engine that start in one hour; None when there are none.

    Args:
        engine, hour_ms: whose and when.
        samples: in order of time.
        gpus: for each GPU of the engine its samples by ``ts_ms``; empty when its GPUs are not known.
    """
    if not samples:
        return None
    running, waiting, kv_used = Histogram(), Histogram(), Histogram()
    for s in samples:
        if s.busy_ms > 0:
            busy_s = s.busy_ms / 1000
            _count(running, s.busy_running_requests, busy_s)
            _count(waiting, s.values.get("waiting_requests"), busy_s)
            _count(kv_used, s.values.get("kv_used_ratio"), busy_s)
    return EngineHour(
        engine=engine,
        hour_ms=hour_ms,
        covered_s=sum(s.covered_ms for s in samples) / 1000,
        busy_s=sum(s.busy_ms for s in samples) / 1000,
        running=running,
        waiting=waiting,
        kv_used=kv_used,
        profile=_profile(samples),
        generated_tokens=_sum(samples, "generated_tokens"),
        busy_generated_tokens=_sum([s for s in samples if s.busy_ms > 0], "generated_tokens"),
        prompt_tokens=_sum(samples, "prompt_tokens"),
        cached_prompt_tokens=_sum(samples, "cached_prompt_tokens"),
        preemption_count=_sum(samples, "preemption_count"),
        finished_requests=_sum(samples, "finished_requests"),
        ttft_sum_s=_sum(samples, "ttft_sum_s"),
        ttft_count=_sum(samples, "ttft_count"),
        itl_sum_s=_sum(samples, "itl_sum_s"),
        itl_count=_sum(samples, "itl_count"),
        busy_energy_j=_busy_energy(samples, gpus),
    )


def _count(histogram: Histogram, value: float | None, seconds: float) -> None:
    if value is not None:
        histogram.add(value, seconds)


def _sum(samples: Sequence[EngineSample], name: str) -> float | None:
    known = [s.values[name] for s in samples if name in s.values]
    return sum(known) if known else None


def _profile(samples: Sequence[EngineSample]) -> dict[float, BatchPoint]:
    points: dict[float, BatchPoint] = {}
    for s in samples:
        generated = s.values.get("generated_tokens")
        if s.busy_ms <= 0 or s.busy_running_requests is None or generated is None:
            continue
        batch = level(s.busy_running_requests)
        old = points.get(batch, BatchPoint(0.0, 0.0, 0.0))
        points[batch] = BatchPoint(
            old.seconds + s.busy_ms / 1000,
            old.generated_tokens + generated,
            old.prompt_tokens + s.values.get("prompt_tokens", 0.0),
        )
    return points


def _busy_energy(samples: Sequence[EngineSample], gpus: Sequence[Mapping[int, GpuSample]]) -> float | None:
    """Energy of the engine's GPUs over its busy time: each interval's energy times the busy share of it."""
    busy_ms = sum(s.busy_ms for s in samples)
    if not gpus or not busy_ms:
        return None
    energy_j, measured_ms = 0.0, 0
    for s in samples:
        parts = [_energy_while_busy(gpu.get(s.ts_ms), s.busy_ms) for gpu in gpus]
        known = [part for part in parts if part is not None]
        if s.busy_ms > 0 and len(known) == len(gpus):
            energy_j += sum(known)
            measured_ms += s.busy_ms
    return energy_j if measured_ms >= MIN_ENERGY_SHARE * busy_ms else None


def _energy_while_busy(gpu: GpuSample | None, busy_ms: int) -> float | None:
    if gpu is None or gpu.covered_ms <= 0:
        return None
    energy_j = gpu.values.get("energy_j")
    # The GPU's joules belong to its covered time; where that is cut short (start, end), so is the engine's.
    return None if energy_j is None else energy_j * min(1.0, busy_ms / gpu.covered_ms)
