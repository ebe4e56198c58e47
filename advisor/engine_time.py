"""An engine as a subject: its name, and how well its time is covered."""

from advisor.serving import Serving
from core.evidence import EngineEvidence
from core.finding import Subject
from core.units import HOUR_MS


def engine_subject(serving: Serving) -> Subject:
    """The engine as what a finding is about."""
    return Subject("engine", serving.engine.identity.engine, serving.label)


def engine_span_h(engine: EngineEvidence) -> float:
    """Hours from its first to its last hour; of these two only what was seen, because they need not be whole."""
    if not engine.hours:
        return 0.0
    first, last = engine.hours[0], engine.hours[-1]
    if first.hour_ms == last.hour_ms:
        return first.covered_s / 3600
    between = (last.hour_ms - first.hour_ms) / HOUR_MS - 1
    return between + (first.covered_s + last.covered_s) / 3600


def engine_coverage(engine: EngineEvidence) -> float:
    """Share of that time for which samples vouch, 0–1."""
    span_h = engine_span_h(engine)
    return min(1.0, engine.covered_s / 3600 / span_h) if span_h > 0 else 0.0
