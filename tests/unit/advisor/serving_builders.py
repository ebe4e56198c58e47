"""Replicas with GPUs of their own, for the tests of serving rules."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from advice_builders import FORTNIGHT_H, SETTINGS, engine, engine_hours, evidence, gpu, gpu_hour

from advisor.engine import advise
from advisor.model import Limits, Rule
from core.evidence import EngineEvidence, Evidence, GpuEvidence, Price
from core.finding import Advice, Finding, NotEvaluated
from core.hours import EngineHour


def replica(
    index: int = 1, hours: Sequence[EngineHour] = (), *, count: int = FORTNIGHT_H, **more: Any
) -> EngineEvidence:
    """Engine ``index`` alone on ``GPU-index`` of ``node-index``; ``more`` goes to its hours, settings and kind apart."""
    outer = {key: more.pop(key) for key in ("settings", "kind", "model", "uuid") if key in more}
    name = more.pop("name", f"node-{index}:8000/0")
    return engine(
        hours or engine_hours(count, **{"kv_used": 0.01, **more}),
        name=name,
        **{"uuid": f"GPU-{index}", "settings": SETTINGS, **outer},
    )


def fleet(*engines: EngineEvidence, price: Price | None = None, **more: Any) -> Evidence:
    """The engines with their GPUs, each seen as long as its engine is."""
    cards: dict[str, GpuEvidence] = {}
    for each in engines:
        hours = [replace(gpu_hour(seconds=hour.covered_s), hour_ms=hour.hour_ms) for hour in each.hours]
        for uuid in each.gpu_uuids:
            card = gpu(hours, uuid=uuid, host=each.identity.host or "")
            cards[uuid] = card if price is None else replace(card, price=price)
    return evidence(list(cards.values()), engines, **more)


def judge(
    rule: Rule, evidence_: Evidence, limits: Limits | None = None
) -> tuple[list[Finding], list[NotEvaluated]]:
    """Findings and refusals of one rule alone."""
    advice: Advice = advise(evidence_, [rule], None if limits is None else {rule.id: limits})
    return list(advice.findings), list(advice.not_evaluated)
