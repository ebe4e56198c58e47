"""An engine serves 16-bit weights on a GPU that runs 8- or 4-bit ones in hardware.

What it finds
    Engines whose weights are known to be 16-bit (by flag, name, or memory), with the scheme their GPU supports, and
    what it would do there: a faster step while decoding is memory-bound, room for more sequences once it is saturated.

Why it costs
    Half the bytes per weight are half of what every decode step reads. At saturation the weights matter less and the
    memory they free matters more: it becomes KV cache.

When it is wrong
    Accuracy is yours to judge: FP8 is nearly lossless, INT8 costs 1–3 %, INT4 is close to INT8, on public evaluations,
    not on your task. Mixtures of experts on many GPUs were seen to get slower. Weight-only INT4 at large batches
    gains nothing or loses. Small models wait for the host, not for weights.

What to do
    Run one replica with the quantised weights as a canary, validate on your own evaluation set, compare tokens per
    second and time between tokens at equal load, then count replicas again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Field

from advisor import flags
from advisor.batch import KV_FULL
from advisor.confidence import duration, graded
from advisor.engine_time import engine_coverage, engine_span_h, engine_subject
from advisor.estimators import decode_step, quantization
from advisor.estimators.quantization import INT4, INT4_BATCH, Scheme
from advisor.estimators.replicas import dropped
from advisor.facts import as_facts, rounded, window_facts
from advisor.model import Limits, Rule, Source, Verdict
from advisor.recent import recent_hours, silence
from advisor.replica_group import (
    Fall,
    Outcome,
    peak_running,
    peak_tokens_per_s,
    replica_key,
    without_saving,
)
from advisor.serving import Serving, servings
from core.evidence import Evidence
from core.finding import Action, Effort, Finding, Grade, NotEvaluated, Range, Risk, Subject
from core.histogram import Histogram
from core.percent import percent
from core.units import GIB

RULE_ID: Final = "quantization-candidate"
GRADE: Final = {"fit": Grade.B, "formula": Grade.C, "anchored": Grade.C}


class QuantizationCandidateLimits(Limits):
    """Thresholds of ``quantization-candidate``."""

    min_speedup: Annotated[float, Field(ge=1)] = 1.1
    """Likely speed-up below which it is not worth a canary for speed."""
    min_freed_ratio: Annotated[float, Field(gt=0, le=1)] = 0.05
    """Memory freed over the GPUs' memory below which it is not worth a canary for room."""
    min_busy_s: Annotated[float, Field(ge=60)] = 300.0
    """Busy time below which start and end of a load weigh too much."""
    min_coverage_ratio: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Samples received over samples due."""


@dataclass(frozen=True, slots=True)
class Gain:
    """What a scheme does to one engine.

    Attributes:
        regime: ``memory-bound``, ``saturated`` or ``mixture-of-experts``.
        speed: throughput over today's at the same batch; may reach below 1. peak_speed: the same at the p99 batch.
        freed_bytes: memory given back, all ranks. room_ratio: KV pool over today's with it; None: pool unknown.
    """

    scheme: Scheme
    regime: str
    speed: Range
    peak_speed: Range
    freed_bytes: float
    room_ratio: float | None
    kv_full: bool


def evaluate(evidence: Evidence, limits: QuantizationCandidateLimits) -> Iterator[Verdict]:
    """Every engine of the fleet."""
    if not evidence.engines:
        yield NotEvaluated(
            RULE_ID, Subject("fleet", "fleet", "the fleet"), ("engine metrics",),
            "No LLM engine is seen: scrape or import its /metrics.",
        )  # fmt: skip
        return
    worthy: list[tuple[Serving, Gain]] = []
    for serving in servings(evidence):
        refusal = _refusal(evidence, serving, limits)
        if refusal is not None:
            yield NotEvaluated(RULE_ID, engine_subject(serving), *refusal)
            continue
        gain = _gain(serving)
        if gain is not None and not _is_still_so(serving):
            why = "Its batch of late is on the other side of half of the reachable rate than over the window."
            yield NotEvaluated(RULE_ID, engine_subject(serving), ("steady recent work",), why)
            continue
        if gain is not None and _is_worth(serving, gain, limits):
            worthy.append((serving, gain))
    groups: dict[object, list[tuple[Serving, Gain]]] = {}
    for serving, gain in worthy:
        groups.setdefault((replica_key(serving), gain.scheme.key, gain.regime), []).append((serving, gain))
    for same in groups.values():
        fall = Fall.of(
            evidence, [serving for serving, _ in same], _dropped(same), beside=_beside(evidence, same)
        )
        for serving, gain in same:
            yield _finding(evidence, fall, serving, gain)


def _is_still_so(serving: Serving) -> bool:
    """The mean batch of its recent work is memory-bound, or saturated, as that of the window is."""
    model, lately = serving.model, Histogram.merged(hour.running for hour in recent_hours(serving.engine))
    mean = lately.mean()
    assert model is not None
    assert serving.running is not None
    if mean is None:
        return True
    return (model.saturation(max(1.0, mean)) < 0.5) == (model.saturation(max(1.0, serving.running)) < 0.5)


def _refusal(
    evidence: Evidence, serving: Serving, limits: QuantizationCandidateLimits
) -> tuple[tuple[str, ...], str] | None:
    """What is missing and why that matters; None when the engine can be judged."""
    engine = serving.engine
    if serving.precision is not None and not serving.precision.is_16_bit:
        return None
    if serving.llm is None:
        return (
            "model architecture",
        ), f"The catalogue does not know {engine.identity.model!r}, so neither its weights nor its work."
    if serving.gpu_spec is None or serving.gpu_spec.compute_capability is None:
        return ("GPU model in the catalogue",), "What the GPU runs in hardware is not known."
    if engine.busy_s < limits.min_busy_s:
        return (
            "busy time",
        ), f"Busy for {duration(engine.busy_s / 3600)}; {duration(limits.min_busy_s / 3600)} are needed."
    silent = silence(engine, evidence.window)
    if silent is not None:
        return silent
    if serving.precision is None:
        return (
            "weight precision",
        ), "Neither flags, nor the model's name, nor memory tell how wide the weights are now."
    if engine_coverage(engine) < limits.min_coverage_ratio:
        return ("samples",), f"Samples cover {percent(engine_coverage(engine))} of the time."
    if "a GPU of its own" in serving.missing:
        return ("a GPU of its own",), "It shares its GPU with another engine: its step time is not its own."
    if serving.model is None or serving.running is None:
        return serving.missing or ("step-time model",), "The step time of this engine cannot be modelled."
    return None


def _gain(serving: Serving) -> Gain | None:
    """None when the weights are not 16-bit or the hardware offers nothing."""
    spec, llm, model, weights = serving.gpu_spec, serving.llm, serving.model, serving.weights
    if (
        spec is None
        or llm is None
        or model is None
        or weights is None
        or serving.running is None
        or serving.tensor_parallel is None
        or serving.precision is None
        or not serving.precision.is_16_bit
    ):
        return None
    batch = max(1.0, serving.running)
    scheme = quantization.scheme_for(spec.compute_capability, batch)
    if scheme is None:
        return None
    speed, peak_speed = (
        quantization.speedup(
            step=model,
            weights=weights,
            scheme=scheme,
            batch=each,
            tensor_parallel=serving.tensor_parallel,
            bandwidth_bytes_per_s=spec.bandwidth_bytes_per_s,
        )
        for each in (batch, max(batch, peak_running(serving)))
    )
    freed = quantization.freed_bytes(weights, scheme)
    pool_bytes = None
    if serving.pool_tokens is not None and serving.kv_token_bytes is not None:
        pool_bytes = serving.pool_tokens * serving.kv_token_bytes
    kv_p95 = serving.engine.kv_used.quantile(0.95)
    if _waits_for_host(serving, batch):
        return None
    regime = "memory-bound" if model.saturation(batch) < 0.5 else "saturated"
    return Gain(
        scheme=scheme,
        regime="mixture-of-experts" if weights.expert_bytes > 0 else regime,
        speed=speed,
        peak_speed=peak_speed,
        freed_bytes=freed,
        room_ratio=None if not pool_bytes else 1 + freed / pool_bytes,
        kv_full=kv_p95 is not None and kv_p95 >= KV_FULL,
    )


def _waits_for_host(serving: Serving, batch: float) -> bool:
    """Launch overhead is most of the step and neither memory nor arithmetic is busy: fewer bytes would not help (R15)."""
    if serving.mbu is None or serving.mfu is None or serving.step_s is None:
        return False
    overhead_s = decode_step.STEP_OVERHEAD_S + decode_step.SEQUENCE_OVERHEAD_S * batch
    return serving.mbu < 0.5 and serving.mfu < 0.2 and overhead_s > 0.4 * serving.step_s


def _is_worth(serving: Serving, gain: Gain, limits: QuantizationCandidateLimits) -> bool:
    """Faster where it is memory-bound, or roomier where the KV cache is what is full."""
    assert serving.gpu_spec is not None
    assert serving.tensor_parallel is not None
    memory = serving.gpu_spec.memory_bytes * serving.tensor_parallel
    roomier = gain.kv_full and gain.freed_bytes >= limits.min_freed_ratio * memory
    if gain.regime == "saturated" and gain.scheme is INT4:
        return roomier
    return roomier or gain.speed.p50 >= limits.min_speedup


def _finding(evidence: Evidence, fall: Fall, serving: Serving, gain: Gain) -> Finding:
    engine, model = serving.engine, serving.model
    assert model is not None
    assert serving.precision is not None
    grade, confidence = graded(
        GRADE[model.basis],
        "Step time "
        + ("fitted here" if model.basis == "fit" else "from the calibrated formula")
        + "; kernel efficiency from published measurements, not from this site",
        span_h=engine_span_h(engine),
        covered_h=engine.covered_s / 3600,
    )
    result = _outcome(fall, serving, gain, grade)
    uncertain = gain.speed.p10 < 1
    return Finding(
        rule_id=RULE_ID,
        subject=engine_subject(serving),
        cause=gain.scheme.key,
        title=f"Try {gain.scheme.title} for {serving.label}",
        because=_because(serving, gain),
        state=_state(gain),
        confidence=confidence
        + (" The sign is not certain: demand a canary run." if uncertain else "")
        + "".join(f" {text[0].upper()}{text[1:]}." for text in serving.data_quality),
        grade=grade,
        effort=Effort.MEDIUM,
        risk=Risk.HIGH if gain.scheme is INT4 or uncertain else Risk.MEDIUM,
        saving=result.saving,
        no_figure=result.no_figure,
        evidence=_facts(evidence, serving, gain, result.replicas_now, result.replicas_then),
        actions=_actions(serving, gain),
        wrong_when="Answers get worse on your task, prompts dominate the work, or another limit (host, network) comes first.",
        not_claimed=_not_claimed(gain),
        gpu_uuids=result.gpu_uuids,
        stage="workload",
        chart={},
    )


def _dropped(same: Sequence[tuple[Serving, Gain]]) -> tuple[int, int, int]:
    """Replicas that fall away when all of them are quantised: their busiest time (p99) must be carried."""
    rates = [(gain.peak_speed, peak_tokens_per_s(serving)) for serving, gain in same]
    load = sum(rate for _, rate in rates)
    then = (
        sum(getattr(speed, quantile) * rate for speed, rate in rates) for quantile in ("p10", "p50", "p90")
    )
    return dropped(len(same), load, Range(*(max(load, total) / len(same) for total in then)))


def _beside(evidence: Evidence, same: Sequence[tuple[Serving, Gain]]) -> int:
    """Busy replicas of the same model that are not judged with these: they stay and keep their load."""
    key = replica_key(same[0][0])
    return sum(each.engine.busy_s > 0 and replica_key(each) == key for each in servings(evidence)) - len(same)


def _outcome(fall: Fall, serving: Serving, gain: Gain, grade: Grade) -> Outcome:
    """Only a speed that is claimed counts in replicas."""
    if gain.regime == "memory-bound":
        return fall.outcome(serving, grade)
    why = (
        "No figure: at this batch the claim is memory and room for more sequences, not speed."
        if gain.regime == "saturated"
        else "No figure: whether a mixture of experts gets faster shows only in a canary run."
    )
    return without_saving(serving, why, len(fall.rank_from_end) + fall.beside)


def _state(gain: Gain) -> str:
    if gain.regime == "mixture-of-experts":
        return "16-bit mixture of experts"
    if gain.regime == "saturated":
        return "16-bit, saturated: capacity, not speed"
    return "16-bit, memory-bound"


def _because(serving: Serving, gain: Gain) -> str:
    assert serving.precision is not None
    known = f"Weights are 16-bit ({serving.precision.basis})"
    freed = f"{gain.scheme.key.upper()} frees {gain.freed_bytes / GIB:.1f} GiB"
    room = "" if gain.room_ratio is None else f", {gain.room_ratio:.1f} times today's KV cache"
    speed = (
        f"{gain.speed.p10:.2f}–{gain.speed.p90:.2f} times the rate at today's batch of {serving.running:.0f}"
    )
    if gain.regime == "memory-bound":
        return f"{known}, and reading them is most of each step: {speed}. {freed}{room}."
    return f"{known}. {freed}{room}; the step itself would give {speed}."


def _not_claimed(gain: Gain) -> str:
    accuracy = "Accuracy on your task: validate on your own evaluation set."
    if gain.regime == "saturated":
        return f"A speed-up by itself: at this batch the claim is capacity. {accuracy}"
    if gain.regime == "mixture-of-experts":
        return f"That it gets faster: on many GPUs it did not always. {accuracy}"
    return accuracy


def _facts(evidence: Evidence, serving: Serving, gain: Gain, now: int, then: int) -> dict[str, Any]:
    assert serving.precision is not None
    assert serving.gpu_spec is not None
    facts: dict[str, Any] = {
        **window_facts(evidence, engine_coverage(serving.engine)),
        "weight_precision": f"{serving.precision.bits}-bit ({serving.precision.basis})",
        "scheme": gain.scheme.key,
        "compute_capability": serving.gpu_spec.compute_capability,
        "regime": gain.regime,
        **as_facts("speedup", gain.speed),
        "freed_bytes": gain.freed_bytes,
        "running_mean": serving.running,
        "half_batch": serving.half_batch,
        "tokens_per_s_now": serving.tokens_per_s,
        "kv_room_factor": gain.room_ratio,
        "replicas_now": now,
        "replicas_then": then,
    }
    if serving.tokens_per_s is not None:
        facts |= as_facts("tokens_per_s_then", gain.speed.scaled(serving.tokens_per_s))
    if serving.step_s is not None:
        slow, middle, fast = (
            serving.step_s / value for value in (gain.speed.p10, gain.speed.p50, gain.speed.p90)
        )
        facts |= as_facts("itl_s_then", Range(fast, middle, slow))
        facts["itl_s_now"] = serving.step_s
    return rounded(facts)


def _actions(serving: Serving, gain: Gain) -> tuple[Action, ...]:
    identity = serving.engine.identity
    canary = Action(
        f"Start one replica with {gain.scheme.title} as a canary",
        flags.quantize_command(identity.kind, identity.model, gain.scheme),
    )
    check = Action(
        "Validate on your own evaluation set, and compare tokens per second and time between tokens at equal load"
    )
    if gain.scheme is INT4:
        return (
            canary,
            check,
            Action(f"Keep the batch at or below {INT4_BATCH}: beyond about 64 the gain is gone"),
        )
    return canary, check


RULE: Final = Rule(
    id=RULE_ID,
    code="R10",
    title="Try quantised weights",
    needs=frozenset(
        {"running_requests", "generated_tokens", "prompt_tokens", "kv_used_ratio", "memory_used_bytes"}
    ),
    limits=QuantizationCandidateLimits(),
    effort=Effort.MEDIUM,
    risk=Risk.MEDIUM,
    sources=(
        Source("Kurtic et al., Give Me BF16 or Give Me Death?", "https://arxiv.org/abs/2411.02355"),
        Source(
            "vLLM: quantization, supported hardware",
            "https://docs.vllm.ai/en/latest/features/quantization/supported_hardware.html",
        ),
    ),
    evaluate=evaluate,
    scope="fleet",
)
