"""An engine runs short of KV cache and keeps it at 16 bits.

What it finds
    Engines whose KV-cache use is above 80 % (p95), or that preempt requests, with a 16-bit cache on a GPU that reads an
    8-bit one, now too. An 8-bit cache holds twice the tokens in the same memory.

Why it costs
    Where requests wait for room in the cache, the batch cannot grow and each step reads all weights for too few tokens.
    Where they do not wait, room is what is won, and next to no speed: 1.6 % was measured.

When it is wrong
    Long contexts and reasoning are where an 8-bit cache was seen to lose accuracy first: yours to judge. A quantised
    checkpoint may bring an 8-bit cache of its own without saying so. A batch limit that is reached first leaves the room
    unused.

What to do
    Start one replica with the 8-bit cache as a canary, validate on your own evaluation set, and compare preemptions, the
    queue and the time between tokens at equal load before the others follow.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Field

from advisor import flags
from advisor.batch import KV_FULL
from advisor.confidence import graded
from advisor.engine_time import engine_coverage, engine_span_h, engine_subject
from advisor.estimators import kv_pool
from advisor.estimators.kv_need import with_half_the_kv_bytes
from advisor.estimators.replicas import dropped
from advisor.facts import as_facts, price_facts, rounded, time_chart, window_facts
from advisor.model import Limits, Rule, Source, Verdict
from advisor.recent import recent_hours
from advisor.replica_group import Fall, Outcome, peak_running, peak_tokens_per_s, replica_key, without_saving
from advisor.serving import Serving, servings
from advisor.serving_checks import (
    STEP_GRADE,
    Refusal,
    allowed_step_s,
    highest,
    merged,
    no_engines,
    publishes,
    quality,
    refusal,
    replica_groups,
    shared_gpu,
    total,
)
from core.evidence import EngineEvidence, Evidence
from core.finding import Action, Effort, Finding, Grade, NotEvaluated, Range, Risk
from core.hours import EngineHour
from core.percent import percent

RULE_ID: Final = "kv-cache-precision"
EIGHT_BIT: Final = ("fp8", "int8", "q8", "q4", "q5", "iq4", "nvfp4")
CACHE_SETTINGS: Final = (*kv_pool.CACHE_TYPES, "cache_type_k", "cache_type_v")


class KvCachePrecisionLimits(Limits):
    """Thresholds of ``kv-cache-precision``."""

    min_kv_used_ratio: Annotated[float, Field(gt=0, lt=1)] = 0.8
    """KV-cache use (p95) above which room is short (R11)."""
    min_preemption_ratio: Annotated[float, Field(ge=0)] = 0.001
    """Preemptions per finished request from which room is short; any at all where requests are not counted (R11: > 0)."""
    min_compute_capability: Annotated[float, Field(ge=0)] = 8.9
    """GPUs below it do not read FP8 in hardware; llama.cpp's q8_0 runs on all."""
    itl_limit_s: Annotated[float | None, Field(gt=0)] = None
    """Your promise for the time between tokens. None: the knee t(B) ≤ 5·t(1), as the BSC advisor sets it [S4]."""
    knee_factor: Annotated[float, Field(gt=1)] = 5.0
    """Step time over that of a single sequence up to which a batch may grow when no promise is given."""
    min_busy_s: Annotated[float, Field(ge=60)] = 300.0
    """Busy time below which start and end of a load weigh too much."""
    min_coverage_ratio: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Samples received over samples due."""


@dataclass(frozen=True, slots=True)
class Shortage:
    """How short the cache is over some hours.

    Attributes:
        kv_p95: None: not published. preemptions, per_request: None: not counted. waiting_p95: None: not published.
    """

    kv_p95: float | None
    preemptions: float | None
    per_request: float | None
    waiting_p95: float | None

    def is_short(self, limits: KvCachePrecisionLimits) -> bool:
        """By use, or by preemptions."""
        if self.kv_p95 is not None and self.kv_p95 > limits.min_kv_used_ratio:
            return True
        if not self.preemptions:
            return False
        return self.per_request is None or self.per_request >= max(limits.min_preemption_ratio, 1e-12)

    @property
    def limits_batch(self) -> bool:
        """The cache is full while requests wait (R07c): more room is more batch."""
        return (
            self.kv_p95 is not None
            and self.kv_p95 >= KV_FULL
            and self.waiting_p95 is not None
            and self.waiting_p95 >= 1
        )


def shortage(hours: Sequence[EngineHour]) -> Shortage:
    """Over ``hours`` of one engine."""
    count, finished = total(hours, "preemption_count"), total(hours, "finished_requests")
    return Shortage(
        kv_p95=merged(hours, "kv_used").quantile(0.95),
        preemptions=count,
        per_request=count / finished if count is not None and finished else None,
        waiting_p95=merged(hours, "waiting").quantile(0.95),
    )


@dataclass(frozen=True, slots=True)
class Case:
    """One engine short of cache. ``speed`` is throughput over today's where more batch is what it gives, else None."""

    serving: Serving
    seen: Shortage
    batch_then: float | None = None
    speed: Range | None = None


def evaluate(evidence: Evidence, limits: KvCachePrecisionLimits) -> Iterator[Verdict]:
    """Every engine of the fleet."""
    if not evidence.engines:
        yield no_engines(RULE_ID)
        return
    groups: dict[object, list[Case]] = {}
    for serving in servings(evidence):
        reason = _refusal(evidence, serving, limits)
        if reason is not None:
            yield NotEvaluated(RULE_ID, engine_subject(serving), *reason)
            continue
        case = _case(serving, limits)
        if case is not None:
            groups.setdefault((replica_key(serving), case.speed is None), []).append(case)
    for same in groups.values():
        fall = _fall(evidence, same)
        for case in same:
            yield _finding(evidence, fall, case, limits)


def _refusal(evidence: Evidence, serving: Serving, limits: KvCachePrecisionLimits) -> Refusal | None:
    """What is missing and why that matters; None when the engine can be judged."""
    engine = serving.engine
    if _is_eight_bit(serving):
        return None
    basic = refusal(
        evidence, engine, min_busy_s=limits.min_busy_s, min_coverage_ratio=limits.min_coverage_ratio
    )
    if basic is not None:
        return basic
    if not publishes(engine.hours, "kv_used") and engine.total("preemption_count") is None:
        missing = ("kv_used_ratio", "preemption_count")
        return (
            missing,
            "Neither KV-cache use nor preemptions are published: whether it is short of room is not known.",
        )
    known = _capability(serving) is not None or _is_llama(serving)
    if not known and _may_be_short(engine, limits) and shortage(recent_hours(engine)).is_short(limits):
        return ("GPU model in the catalogue",), "Whether the GPU reads an 8-bit cache is not known."
    return None


def _is_eight_bit(serving: Serving) -> bool:
    """The cache is published as 8 bits or fewer."""
    settings = serving.engine.identity.settings
    words = [settings.get(name, "").lower() for name in CACHE_SETTINGS]
    return any(form in word for word in words for form in EIGHT_BIT)


def _is_llama(serving: Serving) -> bool:
    return serving.engine.identity.kind == "llamacpp"


def _capability(serving: Serving) -> float | None:
    return None if serving.gpu_spec is None else serving.gpu_spec.compute_capability


def _case(serving: Serving, limits: KvCachePrecisionLimits) -> Case | None:
    """None when the cache is not short, over the window or of late, or cannot be kept at 8 bits here."""
    if _is_eight_bit(serving):
        return None
    capability = _capability(serving)
    if not _is_llama(serving) and (capability or 0.0) < limits.min_compute_capability:
        return None
    if not _may_be_short(serving.engine, limits):
        return None
    lately = shortage(recent_hours(serving.engine))
    if not lately.is_short(limits):
        return None
    seen = shortage(serving.engine.hours)
    if not seen.is_short(limits):
        return None
    if seen.limits_batch and lately.limits_batch:
        return _faster(serving, seen, limits) or Case(serving, seen)
    return Case(serving, seen)


def _may_be_short(engine: EngineEvidence, limits: KvCachePrecisionLimits) -> bool:
    """Whether some of its hours can be: told by their sums."""
    most = highest(engine.hours, "kv_used")
    return bool(engine.total("preemption_count")) or (most is not None and most > limits.min_kv_used_ratio)


def _faster(serving: Serving, seen: Shortage, limits: KvCachePrecisionLimits) -> Case | None:
    """Twice the batch within latency and the engine's limit, each sequence reading half of its cache; None: unknown."""
    model, spec, context = serving.model, serving.gpu_spec, serving.context_tokens
    allowed = allowed_step_s(serving, itl_limit_s=limits.itl_limit_s, knee_factor=limits.knee_factor)
    if (
        model is None
        or spec is None
        or context is None
        or allowed is None
        or serving.kv_token_bytes is None
        or serving.tensor_parallel is None
        or shared_gpu(serving) is not None
    ):
        return None
    then = with_half_the_kv_bytes(
        model,
        context_tokens=context,
        kv_bytes_per_token=serving.kv_token_bytes,
        tensor_parallel=serving.tensor_parallel,
        bandwidth_bytes_per_s=spec.bandwidth_bytes_per_s,
    )
    now = max(1.0, peak_running(serving))
    most = [2 * now, then.largest_batch_within(allowed)]
    if serving.batch_ceiling is not None:
        most.append(serving.batch_ceiling)
    batch = max(now, min(most))
    middle = then.tokens_per_s(batch) / model.tokens_per_s(now)
    return Case(serving, seen, batch, Range.around(middle, model.width_at(batch)))


def _fall(evidence: Evidence, same: Sequence[Case]) -> Fall:
    """Replicas that fall away when all of these are changed: their busiest time (p99) must be carried."""
    members = [case.serving for case in same]
    beside = next(
        len(group) for group in replica_groups(evidence) if replica_key(group[0]) == replica_key(members[0])
    )
    gone = (0, 0, 0)
    if all(case.speed is not None for case in same):
        rates = [(case.speed, peak_tokens_per_s(case.serving)) for case in same]
        load = sum(rate for _, rate in rates)
        sums = (
            sum(getattr(speed, quantile) * rate for speed, rate in rates)
            for quantile in ("p10", "p50", "p90")
        )
        gone = dropped(len(same), load, Range(*(max(load, each) / len(same) for each in sums)))
    return Fall.of(evidence, members, gone, beside=beside - len(same))


def _finding(evidence: Evidence, fall: Fall, case: Case, limits: KvCachePrecisionLimits) -> Finding:
    serving, engine = case.serving, case.serving.engine
    grade, confidence = _grade(case)
    result = _outcome(fall, case, grade)
    fits_own = serving.precision is not None and not serving.precision.is_16_bit
    identity = engine.identity
    return Finding(
        rule_id=RULE_ID,
        subject=engine_subject(serving),
        cause="kv" if case.speed is not None else "room",
        title=f"Try an 8-bit KV cache on {serving.label}",
        because=_because(case),
        state="kv-limited, 16-bit cache" if case.speed is not None else "short of room, 16-bit cache",
        confidence=confidence
        + (" A quantised checkpoint may bring an 8-bit cache of its own." if fits_own else "")
        + quality(serving),
        grade=grade,
        effort=Effort.LOW,
        risk=Risk.MEDIUM,
        saving=result.saving,
        no_figure=result.no_figure,
        evidence=_facts(evidence, case, result),
        actions=(
            Action(
                "Start one replica with an 8-bit cache, validate on your own evaluation set, and compare preemptions and the"
                " queue at equal load",
                flags.kv_precision_command(identity.kind, identity.model),
            ),
        ),
        wrong_when="Answers over long contexts get worse on your task, the cache is 8-bit already, or the batch limit comes first.",
        not_claimed="Accuracy on your task: validate on your own evaluation set."
        + (
            " A speed-up by itself: without a queue for the cache the claim is room."
            if case.speed is None
            else ""
        ),
        gpu_uuids=result.gpu_uuids,
        stage="workload",
        chart=time_chart(
            ((hour.hour_ms, hour.kv_used.quantile(0.95)) for hour in engine.hours),
            "ratio",
            limits.min_kv_used_ratio,
        ),
    )


def _grade(case: Case) -> tuple[Grade, str]:
    engine, model = case.serving.engine, case.serving.model
    if case.speed is None or model is None:
        grade, basis = (
            Grade.B,
            "The shortage is measured; that half the bytes hold twice the tokens is arithmetic",
        )
    else:
        how = "fitted here" if model.basis == "fit" else "from the calibrated formula"
        grade, basis = STEP_GRADE[model.basis], f"Step time {how}, with half of the cache read per sequence"
    return graded(grade, basis, span_h=engine_span_h(engine), covered_h=engine.covered_s / 3600)


def _outcome(fall: Fall, case: Case, grade: Grade) -> Outcome:
    """Only a speed that is claimed counts in replicas."""
    if case.speed is not None:
        return fall.outcome(case.serving, grade)
    why = "No figure, because twice the room is not fewer GPUs by itself: the claim is room and fewer preemptions, not speed."
    return without_saving(case.serving, why, len(fall.rank_from_end) + fall.beside)


def _because(case: Case) -> str:
    seen = case.seen
    parts = []
    if seen.kv_p95 is not None:
        parts.append(f"{percent(seen.kv_p95)} of the KV cache is in use (p95)")
    if seen.preemptions:
        each = "" if seen.per_request is None else f", {seen.per_request:.2g} per finished request"
        parts.append(f"{seen.preemptions:.0f} requests were preempted{each}")
    if case.speed is not None and seen.waiting_p95 is not None:
        parts.append(f"{seen.waiting_p95:.0f} wait")
    pool = case.serving.pool_tokens
    room = "twice the tokens" if pool is None else f"{2 * pool:,.0f} tokens instead of {pool:,.0f}"
    text = ", ".join(parts)
    gain = "" if case.speed is None else (
        f" A batch of {case.batch_then or 0.0:.0f} would give {case.speed.p10:.2f}–{case.speed.p90:.2f} times the rate."
    )  # fmt: skip
    return f"{text[0].upper()}{text[1:]}; 8 bits hold {room}.{gain}"


def _facts(evidence: Evidence, case: Case, result: Outcome) -> dict[str, Any]:
    serving, seen = case.serving, case.seen
    facts: dict[str, Any] = {
        **window_facts(evidence, engine_coverage(serving.engine)),
        **(price_facts(serving.gpus[0].price) if serving.gpus else {}),
        "kv_used_p95_ratio": seen.kv_p95,
        "preemption_count": seen.preemptions,
        "preemptions_per_finished_request": seen.per_request,
        "waiting_p95": seen.waiting_p95,
        "running_p99": peak_running(serving),
        "pool_tokens_now": serving.pool_tokens,
        "pool_tokens_then": None if serving.pool_tokens is None else 2 * serving.pool_tokens,
        "compute_capability": _capability(serving),
        "batch_limit": serving.batch_ceiling,
        "batch_then": case.batch_then,
        "replicas_now": result.replicas_now,
        "replicas_then": result.replicas_then,
    }
    if case.speed is not None:
        facts |= as_facts("gain", case.speed)
    return rounded(facts)


RULE: Final = Rule(
    id=RULE_ID,
    code="R11",
    title="Keep the KV cache at 8 bits where it is short",
    needs=frozenset({"kv_used_ratio", "waiting_requests", "preemption_count"}),
    limits=KvCachePrecisionLimits(),
    effort=Effort.LOW,
    risk=Risk.MEDIUM,
    sources=(
        Source("vLLM: quantized KV cache", "https://docs.vllm.ai/en/latest/features/quantization/quantized_kvcache.html"),
        Source("Kurtic et al., accuracy of quantised LLMs", "https://arxiv.org/abs/2411.02355"),
    ),
    evaluate=evaluate,
    scope="fleet",
)  # fmt: skip
