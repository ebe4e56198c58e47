"""Signs that an engine's GPU waits for its host: step by hour beside what a step should take, and what supports it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from advisor.engine_settings import switch
from advisor.estimators.decode_step import DecodeStep
from advisor.serving import Serving, hour_shares
from core.evidence import GpuEvidence
from core.hours import EngineHour, GpuHour
from core.percent import percent

STEADY: Final = 0.95
"""Share of an hour with requests from which the GPU's mean describes serving, and a gauge the batch."""
BUSY_THREAD: Final = 0.95
"""A thread that does nothing but work (R15)."""
LOW_POWER: Final = 0.4
"""Of the limit in force: below it a support, never a proof (R15)."""


@dataclass(frozen=True, slots=True)
class HourStep:
    """One hour of an engine and of its GPUs.

    Attributes:
        hour, gpu_hours: the hours. batch: mean running. step_s: measured; model_s: what the formula says.
        mbu, mfu: 0–1, at ``step_s``. busy_ratio: of its GPUs while it served all the hour; None: not known.
    """

    hour: EngineHour
    batch: float
    step_s: float
    model_s: float
    mbu: float
    mfu: float
    gpu_hours: Sequence[GpuHour] = ()
    busy_ratio: float | None = None

    @property
    def is_steady(self) -> bool:
        """Requests ran throughout."""
        return self.hour.busy_s >= STEADY * self.hour.covered_s


def hour_steps(serving: Serving, formula: DecodeStep, hours: Iterable[EngineHour]) -> list[HourStep]:
    """Those of its hours whose step is known and that have a request to run, without those of its GPUs.

    The step is running over rate, or the published time between tokens where that is shorter: a gauge that is read
    while requests come and go counts some that had just ended. Without the latter only hours with requests
    throughout count.
    """
    found = (_hour_step(serving, formula, hour) for hour in hours)
    return [step for step in found if step is not None and (step.hour.running.quantile(0.5) or 0.0) >= 1]


def with_gpus(serving: Serving, steps: Iterable[HourStep]) -> list[HourStep]:
    """The same with the hours of its GPUs: read for candidates only."""
    at = _gpu_hours(serving.gpus)
    return [
        replace(
            step,
            gpu_hours=mine,
            busy_ratio=mean_of(mine, "busy_ratio") if step.is_steady else None,
        )
        for step in steps
        for mine in (at.get(step.hour.hour_ms, ()),)
    ]


def _hour_step(serving: Serving, formula: DecodeStep, hour: EngineHour) -> HourStep | None:
    mbu, mfu = hour_shares(serving, hour)
    batch = hour.running.mean()
    if mbu is None or mfu is None or not batch or not hour.busy_generated_tokens:
        return None
    by_rate = batch * hour.busy_s / hour.busy_generated_tokens
    published = hour.itl_sum_s / hour.itl_count if hour.itl_sum_s and hour.itl_count else None
    step_s = by_rate if published is None else min(by_rate, published)
    found = HourStep(
        hour=hour,
        batch=batch,
        step_s=step_s,
        model_s=formula.step_s(batch),
        mbu=mbu * by_rate / step_s,
        mfu=mfu,
    )
    return found if found.is_steady or published is not None else None


def _gpu_hours(gpus: Iterable[GpuEvidence]) -> Mapping[int, Sequence[GpuHour]]:
    found: dict[int, list[GpuHour]] = {}
    for gpu in gpus:
        for hour in gpu.hours:
            if hour.covered_s > 0:
                found.setdefault(hour.hour_ms, []).append(hour)
    return found


def mean_of(hours: Iterable[GpuHour], name: str) -> float | None:
    """Mean of a column over the covered time that knows it; None where none does."""
    known = [(value, hour.covered_s) for hour in hours if (value := getattr(hour, name)) is not None]
    total = sum(seconds for _, seconds in known)
    return sum(value * seconds for value, seconds in known) / total if total > 0 else None


def slowed_ratio(hours: Sequence[GpuHour]) -> float:
    """Share of active time in which heat or the power brake held the clocks back; 0 where nothing tells."""
    active_s = sum(hour.active_s for hour in hours)
    slowed_s = sum(
        hour.slowed_thermal_s if hour.slowed_thermal_s is not None else hour.throttled_s or 0.0
        for hour in hours
    )
    return min(1.0, slowed_s / active_s) if active_s > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Supports:
    """What speaks for the host besides the step.

    Attributes:
        eager: CUDA graphs are off by its settings. thread_ratio: CPU of its busiest thread; None: not known.
        power_ratio: power over the limit in force; None: not known.
    """

    eager: bool
    thread_ratio: float | None
    power_ratio: float | None

    @property
    def words(self) -> tuple[str, ...]:
        """Those that hold, as clauses."""
        found: list[str] = []
        if self.eager:
            found.append("CUDA graphs are off")
        if self.thread_ratio is not None and self.thread_ratio >= BUSY_THREAD:
            found.append(f"its busiest thread takes {percent(self.thread_ratio)} of a core")
        if self.power_ratio is not None and self.power_ratio < LOW_POWER:
            found.append(f"its GPUs draw {percent(self.power_ratio)} of their power limit")
        return tuple(found)


def supports(serving: Serving, steps: Sequence[HourStep]) -> Supports:
    """Of the engine, over these hours of it."""
    hours = [hour for step in steps for hour in step.gpu_hours]
    threads = [
        use.cpu_thread_ratio
        for gpu in serving.gpus
        for use in gpu.uses[:1]
        if use.cpu_thread_ratio is not None
    ]
    power, limit = mean_of(hours, "power_w"), mean_of(hours, "power_limit_w")
    return Supports(
        eager=switch(serving.engine.identity.settings, "enforce_eager") is True,
        thread_ratio=max(threads, default=None),
        power_ratio=power / limit if power is not None and limit else None,
    )
