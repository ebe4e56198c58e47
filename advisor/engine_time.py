"""An engine as a subject: its name, and how well its time is covered."""

from advisor.serving import Serving
from core.evidence import EngineEvidence
from core.finding import Subject
from core.series import HourSeries
from core.units import HOUR_MS


def engine_subject(serving: Serving) -> Subject:
    """The engine as what a finding is about."""
    return Subject("engine", serving.engine.identity.engine, serving.label)


def engine_span_h(engine: EngineEvidence) -> float:
    """Hours from its first to its last hour; of these two only what was seen, because they need not be whole."""
    if not engine.hours:
        return 0.0
    (first_ms, first_s), (last_ms, last_s) = _ends(engine)
    if first_ms == last_ms:
        return first_s / 3600
    between = (last_ms - first_ms) / HOUR_MS - 1
    return between + (first_s + last_s) / 3600


def _ends(engine: EngineEvidence) -> tuple[tuple[int, float], tuple[int, float]]:
    """Start of the first and of the last hour, and what was seen of each; of stored hours to the second."""
    hours = engine.hours
    if not isinstance(hours, HourSeries):
        first, last = hours[0], hours[-1]
        return (first.hour_ms, first.covered_s), (last.hour_ms, last.covered_s)
    (first_ms, last_ms), (first_s, last_s) = hours.edges_ms(), hours.ends_s()
    return (first_ms, first_s), (last_ms, last_s)


def engine_coverage(engine: EngineEvidence) -> float:
    """Share of that time for which samples vouch, 0–1."""
    span_h = engine_span_h(engine)
    return min(1.0, engine.covered_s / 3600 / span_h) if span_h > 0 else 0.0
