"""Engines with a small batch, and what the rule says of them."""

from dataclasses import replace
from typing import Any

from advice_builders import (
    FORTNIGHT_H,
    SETTINGS,
    START_MS,
    engine,
    engine_hours,
    evidence,
    found,
    gpu,
    gpu_hour,
    gpu_hours,
)

from advisor.engine import advise
from advisor.rules.small_batch import SmallBatchLimits
from core.evidence import EngineEvidence
from core.finding import Advice, Finding
from core.units import HOUR_MS

RULE = "small-batch"
LIMITED = {**SETTINGS, "max_num_seqs": "8"}


def queued(count: int = FORTNIGHT_H, **more: Any) -> EngineEvidence:
    """Batch of 8 at a published limit of 8, 50 requests waiting, KV cache nearly empty."""
    settings = more.pop("settings", LIMITED)
    values: dict[str, Any] = {"running": 8.0, "waiting": 50.0, "kv_used": 0.01, **more}
    return engine(engine_hours(count, **values), settings=settings)


def run(*engines: EngineEvidence, limits: SmallBatchLimits | None = None) -> Advice:
    """The engines on a GPU each, which is seen as long as its engine is."""
    gpus = []
    for each in engines:
        last = (each.hours[-1].hour_ms - START_MS) // HOUR_MS
        cards = (*gpu_hours(last), gpu_hour(last, seconds=each.hours[-1].covered_s))
        gpus.append(gpu(cards, uuid=each.gpu_uuids[0], host=each.identity.host or ""))
    return advise(evidence(gpus, engines), limits=None if limits is None else {RULE: limits})


def only(advice: Advice) -> Finding:
    (finding,) = found(advice, RULE)
    return finding


def replica(index: int, **more: Any) -> EngineEvidence:
    base = queued(**more)
    name = f"node-{index}:8000/0"
    return replace(
        base,
        identity=replace(base.identity, engine=name, host=f"node-{index}"),
        gpu_uuids=(f"GPU-{index}",),
        hours=tuple(replace(hour, engine=name) for hour in base.hours),
    )
