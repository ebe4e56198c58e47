"""What every serving rule asks before it judges: is there an engine, enough of its work, seen well enough, up to now."""

from collections.abc import Mapping, Sequence
from typing import Final

from advisor.batch import Pressure, pressure
from advisor.confidence import FLOOR_COVERED_H, FLOOR_DAYS, duration, is_short
from advisor.engine_time import engine_coverage, engine_span_h
from advisor.memo import OncePerEvidence
from advisor.recent import silence
from advisor.replica_group import peak_running, replica_key
from advisor.serving import Serving, servings
from advisor.small_batch_advice import kv_batch
from core.evidence import EngineEvidence, Evidence
from core.finding import Grade, NotEvaluated, Subject
from core.histogram import Histogram
from core.hours import EngineHour
from core.percent import percent
from core.series import parts_of

Refusal = tuple[tuple[str, ...], str]
"""What is missing, and why that matters."""

STEP_GRADE: Final[Mapping[str, Grade]] = {"fit": Grade.B, "formula": Grade.C, "anchored": Grade.C}
"""Grade of a figure by the basis of the step time under it (advisor-rules 7.3)."""
UNPROVEN_STRETCH: Final = 2.0
"""Without a known batch limit and KV room, a batch is trusted up to this many times the largest seen."""


def no_engines(rule_id: str) -> NotEvaluated:
    """A fleet in which no engine is seen."""
    fleet = Subject("fleet", "fleet", "the fleet")
    return NotEvaluated(
        rule_id, fleet, ("engine metrics",), "No LLM engine is seen: scrape or import its /metrics."
    )


def refusal(
    evidence: Evidence, engine: EngineEvidence, *, min_busy_s: float, min_coverage_ratio: float
) -> Refusal | None:
    """Too little work, not seen up to now, or thin samples; None when the engine can be judged."""
    kept, key = _refusals(evidence), (engine.identity.engine, min_busy_s, min_coverage_ratio)
    if key not in kept:
        kept[key] = _refusal(evidence, engine, min_busy_s, min_coverage_ratio)
    return kept[key]


_refusals: Final = OncePerEvidence[dict[tuple[str, float, float], "Refusal | None"]](lambda _: {})
"""What was asked for so far: a dozen rules ask with the same thresholds."""


def _refusal(
    evidence: Evidence, engine: EngineEvidence, min_busy_s: float, min_coverage_ratio: float
) -> Refusal | None:
    if engine.busy_s < min_busy_s:
        return (
            "busy time",
        ), f"Busy for {duration(engine.busy_s / 3600)}; {duration(min_busy_s / 3600)} are needed."
    silent = silence(engine, evidence.window)
    if silent is not None:
        return silent
    share = engine_coverage(engine)
    if share < min_coverage_ratio:
        return ("samples",), f"Samples cover {percent(share)} of the time; a gap is unknown, not quiet."
    return None


def shared_gpu(serving: Serving) -> Refusal | None:
    """Another engine works on its GPU: neither its step time nor the GPU is its own."""
    if "a GPU of its own" not in serving.missing:
        return None
    return ("a GPU of its own",), "It shares its GPU with another engine: its step time is not its own."


def short_of_peaks(engine: EngineEvidence) -> Refusal | None:
    """Less than the floor for spending advice: the peaks of two weeks are not in it."""
    span_h, covered_h = engine_span_h(engine), engine.covered_s / 3600
    if not is_short(span_h, covered_h):
        return None
    why = (
        f"Seen for {duration(covered_h)} over {duration(span_h)}; peaks need {FLOOR_DAYS:.0f} days"
        f" with at least {FLOOR_COVERED_H:.0f} hours of samples."
    )
    return ("time",), why


def _groups(evidence: Evidence) -> tuple[tuple[Serving, ...], ...]:
    """Engines that worked in the window, with those that can take each other's requests together; each by name."""
    found: dict[object, list[Serving]] = {}
    for serving in servings(evidence):
        if serving.engine.busy_s > 0:
            found.setdefault(replica_key(serving), []).append(serving)
    return tuple(
        tuple(sorted(group, key=lambda each: each.engine.identity.engine)) for group in found.values()
    )


replica_groups = OncePerEvidence(_groups)


def publishes(hours: Sequence[EngineHour], name: str) -> bool:
    """Whether ``running``, ``waiting`` or ``kv_used`` is known in any of some hours."""
    return any(getattr(part, name).seconds for part in parts_of(hours))


def highest(hours: Sequence[EngineHour], name: str) -> float | None:
    """Highest level of ``running``, ``waiting`` or ``kv_used`` in some hours; None without time."""
    return max(
        (top for part in parts_of(hours) if (top := getattr(part, name).max()) is not None), default=None
    )


def merged(hours: Sequence[EngineHour], name: str) -> Histogram:
    """The histograms ``running``, ``waiting`` or ``kv_used`` of some hours together."""
    return Histogram.merged(getattr(part, name) for part in parts_of(hours))


def total(hours: Sequence[EngineHour], name: str) -> float | None:
    """Sum of an hour field; None when no hour knows it."""
    known = [value for part in parts_of(hours) if (value := getattr(part, name)) is not None]
    return float(sum(known)) if known else None


def model_name(serving: Serving) -> str:
    """The model for people, without the place it runs at."""
    return serving.label.rsplit(" on ", 1)[0]


def quality(serving: Serving) -> str:
    """What makes its figures weaker, as sentences behind a confidence."""
    return "".join(f" {text[0].upper()}{text[1:]}." for text in serving.data_quality)


def allowed_step_s(serving: Serving, *, itl_limit_s: float | None, knee_factor: float) -> float | None:
    """Longest step of the model that keeps the promise (or the knee): the promise is about the engine, not its model."""
    model, step_s, running = serving.model, serving.step_s, serving.running
    if model is None or step_s is None or running is None:
        return None
    measured = step_s / model.step_s(running)
    return knee_factor * model.step_s(1) if itl_limit_s is None else itl_limit_s / measured


def slo_batch(
    serving: Serving, *, itl_limit_s: float | None, knee_factor: float, keeps_limit: bool = True
) -> float | None:
    """B_SLO: the largest batch within latency, KV cache and the engine's own limit, at least 1; None: no step model.

    Latency is the promise, corrected for how far the model is off the measured step, or without one the knee
    t(B) ≤ knee·t(1). Where neither KV room nor a limit is known, no more than twice the largest batch seen.
    ``keeps_limit`` False asks what a raised limit could give.
    """
    model = serving.model
    allowed = allowed_step_s(serving, itl_limit_s=itl_limit_s, knee_factor=knee_factor)
    if model is None or allowed is None:
        return None
    seen: Pressure | None = pressure(serving.engine.hours, serving.batch_ceiling)
    room = None if seen is None else kv_batch(serving, seen)
    bounds = [model.largest_batch_within(allowed)]
    ceiling = serving.batch_ceiling if keeps_limit else None
    bounds += [float(value) for value in (room, ceiling) if value is not None]
    if len(bounds) == 1:
        bounds.append(UNPROVEN_STRETCH * peak_running(serving))
    return max(1.0, min(bounds))
