"""One good value of everything a rule sees; tests ``replace()`` the field they are about."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from core.activity import IDLE, Activity
from core.evidence import EngineEvidence, Evidence, GpuEvidence, Price, Site, Window, WorkloadUse
from core.finding import (
    Advice,
    Effort,
    Finding,
    Grade,
    NotEvaluated,
    Range,
    Risk,
    Saving,
    Subject,
)
from core.histogram import Histogram
from core.hours import BatchPoint, EngineHour, GpuHour
from core.readings import EngineIdentity, GpuIdentity, WorkloadKey
from core.samples import EnergyMethod
from core.units import DAY_MS, GIB, HOUR_MS

START_MS = 1_790_000_000_000 // DAY_MS * DAY_MS
FORTNIGHT_H = 336

SITE = Site(
    tariff_usd_per_kwh=0.12,
    pue=1.3,
    host_share_ratio=0.3,
    carbon_g_per_kwh=400.0,
    pays_for_power=False,
    billing="on_demand",
)
PRICE = Price(Decimal("2.50"), "your price of 2026-09-01", "on_demand", 1, "2026-09-01", from_user=True)


def gpu_hour(
    index: int = 0,
    activity: Activity = Activity.BUSY,
    *,
    uuid: str = "GPU-a",
    seconds: float = 3600.0,
    **more: Any,
) -> GpuHour:
    """An hour of one activity: 80 W empty, 120 W parked, 500 W at work."""
    watts = {Activity.EMPTY: 80.0, Activity.PARKED: 120.0}.get(activity, 500.0)
    known = activity is not Activity.UNKNOWN
    return replace(
        GpuHour(
            gpu_uuid=uuid,
            hour_ms=START_MS + index * HOUR_MS,
            covered_s=seconds,
            seconds={activity: seconds},
            joules={activity: watts * seconds},
            energy_j=watts * seconds,
            energy_method=EnergyMethod.COUNTER,
            energy_covered_s=seconds,
            allocated_s=seconds if known and activity is not Activity.EMPTY else 0.0,
            active_s=seconds if known and activity not in IDLE else 0.0,
            effective_s=0.0,
            effective_unknown_s=0.0,
            busy_ratio=None if not known else 0.0 if activity in IDLE else 0.95,
            memory_used_bytes=float(GIB) * (0 if activity is Activity.EMPTY else 60),
            power_w=watts,
            empty_power_w=80.0 if activity is Activity.EMPTY else None,
            parked_power_w=120.0 if activity is Activity.PARKED else None,
        ),
        **more,
    )


def gpu_hours(
    count: int, activity: Activity = Activity.BUSY, *, uuid: str = "GPU-a", start: int = 0
) -> tuple[GpuHour, ...]:
    """``count`` whole hours of one activity."""
    return tuple(gpu_hour(start + i, activity, uuid=uuid) for i in range(count))


def gpu(
    hours: Sequence[GpuHour] = (), *, uuid: str = "GPU-a", host: str = "node-1", **more: Any
) -> GpuEvidence:
    """An H100 SXM at 2.50 USD/h that can be released alone."""
    own = tuple(replace(hour, gpu_uuid=uuid) for hour in (hours or gpu_hours(FORTNIGHT_H)))
    last = own[-1]
    return replace(
        GpuEvidence(
            identity=GpuIdentity(
                gpu_uuid=uuid,
                host=host,
                index=0,
                model="NVIDIA H100 80GB HBM3",
                memory_total_bytes=80 * GIB,
                power_limit_default_w=700.0,
            ),
            gpu_key="H100-SXM5-80GB",
            hours=own,
            first_sample_ms=own[0].hour_ms,
            last_sample_ms=last.hour_ms
            + (HOUR_MS if last.covered_s >= 3600 else round(last.covered_s * 1000)),
            price=PRICE,
            bare_idle_w=80.0,
            host_gpu_count=1,
        ),
        **more,
    )


def use(
    kind: str = "process",
    key: str = "10:5",
    *,
    name: str = "python",
    user: str | None = None,
    host: str = "node-1",
    from_h: int = 0,
    to_h: int = FORTNIGHT_H,
    **more: Any,
) -> WorkloadUse:
    """A workload that held a GPU through these hours, at work throughout."""
    seconds = (to_h - from_h) * 3600.0
    return replace(
        WorkloadUse(
            WorkloadKey(kind, key, name, user=user, host=host),
            START_MS + from_h * HOUR_MS,
            START_MS + to_h * HOUR_MS,
            seconds,
            seconds,
        ),
        **more,
    )


def histogram(*levels: tuple[float, float]) -> Histogram:
    """Seconds by level."""
    found = Histogram()
    for level, seconds in levels:
        found.add(level, seconds)
    return found


def engine_hour(
    index: int = 0,
    *,
    running: float = 8.0,
    waiting: float = 0.0,
    kv_used: float = 0.1,
    step_s: float = 0.0075,
    prompt_per_generated: float = 1.0,
    seconds: float = 3600.0,
    **more: Any,
) -> EngineHour:
    """An hour at one batch size: rate = running / step time."""
    generated = running / step_s * seconds
    return replace(
        EngineHour(
            engine="node-1:8000/0",
            hour_ms=START_MS + index * HOUR_MS,
            covered_s=seconds,
            busy_s=seconds,
            running=histogram((running, seconds)),
            waiting=histogram((waiting, seconds)),
            kv_used=histogram((kv_used, seconds)),
            profile={running: BatchPoint(seconds, generated, generated * prompt_per_generated)},
            generated_tokens=generated,
            busy_generated_tokens=generated,
            prompt_tokens=generated * prompt_per_generated,
            cached_prompt_tokens=None,
            preemption_count=0.0,
            finished_requests=None,
            ttft_sum_s=None,
            ttft_count=None,
            itl_sum_s=None,
            itl_count=None,
            busy_energy_j=None,
        ),
        **more,
    )


def engine_hours(count: int, **more: Any) -> tuple[EngineHour, ...]:
    """``count`` equal hours."""
    return tuple(engine_hour(i, **more) for i in range(count))


SETTINGS: Mapping[str, str] = {
    "num_gpu_blocks": "25000",
    "block_size": "16",
    "quantization": "None",
    "dtype": "bfloat16",
    "tensor_parallel_size": "1",
}
"""400,000 tokens of KV pool; at ``running`` 8 and ``kv_used`` 0.01 that is a mean context of 500 tokens."""


def engine(
    hours: Sequence[EngineHour] = (),
    *,
    name: str = "node-1:8000/0",
    uuid: str = "GPU-a",
    model: str = "meta-llama/Llama-3.1-8B-Instruct",
    kind: str = "vllm",
    settings: Mapping[str, str] = SETTINGS,
    **more: Any,
) -> EngineEvidence:
    """vLLM with Llama-3.1-8B in bf16, alone on its GPU."""
    return replace(
        EngineEvidence(
            identity=EngineIdentity(name, name.split(":", maxsplit=1)[0], kind, model, settings),
            gpu_uuids=(uuid,),
            join="process",
            hours=tuple(
                replace(hour, engine=name) for hour in (hours or engine_hours(FORTNIGHT_H, kv_used=0.01))
            ),
        ),
        **more,
    )


def evidence(
    gpus: Sequence[GpuEvidence] = (),
    engines: Sequence[EngineEvidence] = (),
    *,
    hours: float | None = None,
    **more: Any,
) -> Evidence:
    """The fleet over a window that ends with the newest sample; ``hours`` sets its length."""
    end = max((gpu.last_sample_ms for gpu in gpus), default=START_MS + FORTNIGHT_H * HOUR_MS)
    begin = min((gpu.first_sample_ms for gpu in gpus), default=START_MS)
    if hours is not None:
        begin = end - round(hours * HOUR_MS)
    return replace(Evidence(end, Window(begin, end), tuple(gpus), tuple(engines), SITE), **more)


def claim(rule_id: str = "small-batch", **more: Any) -> Finding:
    """A finding of 100 dollars a month on GPU-a."""
    return replace(
        Finding(
            rule_id=rule_id,
            subject=Subject("gpu", "GPU-a"),
            cause="any",
            title="",
            because="",
            state="",
            confidence="Fitted here.",
            grade=Grade.B,
            effort=Effort.LOW,
            risk=Risk.LOW,
            saving=Saving(cash_usd_month=Range(80.0, 100.0, 120.0)),
            evidence={},
            actions=(),
            wrong_when="",
            gpu_uuids=("GPU-a",),
        ),
        **more,
    )


def found(advice: Advice, rule_id: str) -> list[Finding]:
    """Findings of one rule."""
    return [finding for finding in advice.findings if finding.rule_id == rule_id]


def refused(advice: Advice, rule_id: str) -> list[NotEvaluated]:
    """What one rule could not judge."""
    return [item for item in advice.not_evaluated if item.rule_id == rule_id]
