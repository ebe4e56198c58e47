"""The KV cache overflows: requests are thrown out while they run and computed again, or wait for room.

What it finds
    Engines that preempt more than one in a hundred of their requests (act from one in ten), or whose cache is above 95 %
    (p95) while requests wait. Only what is still so in the last busy hours.

Why it costs
    A preempted request loses its place and most often its cache, so that its prompt is computed twice. The rate suffers
    little; the slowest answers get much slower. It is a broken promise rather than waste.

When it is wrong
    One burst of very long contexts, a load test, or an offline batch that nobody waits for. A full cache without a queue
    is a well-used cache.

What to do
    In the engine's own order: give the cache more of the GPU, let fewer requests run at once, then spread the model over
    more GPUs. An 8-bit cache and a shorter longest context make room as well.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor
from typing import Annotated, Any, Final

from pydantic import Field

from advisor import flags, kv_flags
from advisor.batch import pressure
from advisor.confidence import duration
from advisor.engine_time import engine_coverage, engine_subject
from advisor.estimators import kv_pool
from advisor.facts import rounded, time_chart, window_facts
from advisor.model import Limits, Rule, Source, Verdict
from advisor.recent import recent_hours
from advisor.serving import Serving, servings
from advisor.serving_checks import Refusal, highest, merged, no_engines, publishes, quality, refusal, total
from advisor.small_batch_advice import kv_batch
from core.days import day_of
from core.evidence import EngineEvidence, Evidence
from core.finding import Action, Effort, Finding, Grade, NotEvaluated, Risk, Saving
from core.hours import EngineHour
from core.percent import percent
from core.series import HourSeries
from core.units import DAY_MS, HOUR_MS

RULE_ID: Final = "kv-thrash"
MOST_MEMORY: Final = 0.95
"""Share of a GPU's memory beyond which an engine itself may run out."""
MEMORY_STEP: Final = 0.05


class KvThrashLimits(Limits):
    """Thresholds of ``kv-thrash``."""

    warn_ratio: Annotated[float, Field(gt=0, le=1)] = 0.01
    """Preemptions per finished request from which to warn (R12)."""
    act_ratio: Annotated[float, Field(gt=0)] = 0.1
    """Preemptions per finished request from which to act (R12)."""
    min_preemptions: Annotated[float, Field(ge=1)] = 5.0
    """Preemptions in the last busy hours below which a share of few requests says nothing."""
    max_kv_used_ratio: Annotated[float, Field(gt=0, le=1)] = 0.95
    """KV-cache use (p95) above which a queue waits for room (R12)."""
    min_waiting: Annotated[float, Field(gt=0)] = 1.0
    """Waiting requests (p95) that make a full cache a shortage."""
    min_busy_s: Annotated[float, Field(ge=60)] = 180.0
    """Busy time below which nothing is judged: health takes minutes, not days."""
    min_coverage_ratio: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Samples received over samples due: preemptions that were counted are facts also beside gaps."""


@dataclass(frozen=True, slots=True)
class Thrash:
    """How the cache did over some hours; None is not published.

    Attributes:
        per_request: preemptions per finished request. preemptions: how many.
        kv_p95: use of the cache. waiting_p95: requests that wait.
    """

    per_request: float | None
    preemptions: float | None
    kv_p95: float | None
    waiting_p95: float | None

    def state(self, limits: KvThrashLimits) -> str | None:
        """What it is; None where it is well, or where nothing tells."""
        if self.is_counted(limits):
            return "thrashing" if (self.per_request or 0.0) > limits.act_ratio else "preempting"
        return "full, with requests waiting" if self.is_full(limits) else None

    def is_counted(self, limits: KvThrashLimits) -> bool:
        """Preemptions themselves are too many."""
        return (
            self.per_request is not None
            and self.per_request > limits.warn_ratio
            and (self.preemptions or 0.0) >= limits.min_preemptions
        )

    def is_full(self, limits: KvThrashLimits) -> bool:
        """Above the limit while requests wait."""
        return (
            self.kv_p95 is not None
            and self.kv_p95 > limits.max_kv_used_ratio
            and self.waiting_p95 is not None
            and self.waiting_p95 >= limits.min_waiting
        )


def thrash(hours: Sequence[EngineHour]) -> Thrash:
    """Over ``hours`` of one engine; requests and preemptions are compared in hours that know both."""
    both = [h for h in hours if h.preemption_count is not None and h.finished_requests is not None]
    count, finished = total(both, "preemption_count"), total(both, "finished_requests")
    return Thrash(
        per_request=count / finished if count is not None and finished else None,
        preemptions=total(hours, "preemption_count"),
        kv_p95=merged(hours, "kv_used").quantile(0.95),
        waiting_p95=merged(hours, "waiting").quantile(0.95),
    )


def evaluate(evidence: Evidence, limits: KvThrashLimits) -> Iterator[Verdict]:
    """Every engine of the fleet."""
    if not evidence.engines:
        yield no_engines(RULE_ID)
        return
    for serving in servings(evidence):
        reason = refusal(
            evidence,
            serving.engine,
            min_busy_s=limits.min_busy_s,
            min_coverage_ratio=limits.min_coverage_ratio,
        )
        if reason is None and _was_never_short(serving.engine, limits):
            continue
        lately = thrash(recent_hours(serving.engine))
        state = lately.state(limits)
        if reason is None and state is None:
            reason = _blind(serving.engine, lately)
        if reason is not None:
            yield NotEvaluated(RULE_ID, engine_subject(serving), *reason)
        elif state is not None:
            yield _finding(evidence, serving, state, lately, limits)


def _was_never_short(engine: EngineEvidence, limits: KvThrashLimits) -> bool:
    """Nothing in its window can be a shortage, and that is seen: told without its hours.

    No preemption in all of it, the cache never above the limit, its use known in the last hour of work, and the queue.
    """
    hours = engine.hours
    if (
        not isinstance(hours, HourSeries)
        or engine.total("preemption_count")
        or not publishes(hours, "waiting")
    ):
        return False
    most, busy = highest(hours, "kv_used"), engine.busy_hours
    if most is None or most > limits.max_kv_used_ratio or not busy:
        return False
    last = engine.days[-1]
    return day_of(busy[-1]) == last.day_ms and last.kv_mean[busy[-1] % DAY_MS // HOUR_MS] > 0


def _blind(engine: EngineEvidence, lately: Thrash) -> Refusal | None:
    """Neither sign is there: not thrashing cannot be told from not seen."""
    full_is_known = lately.kv_p95 is not None and publishes(engine.hours, "waiting")
    if lately.per_request is not None or full_is_known:
        return None
    missing = tuple(
        name
        for name, known in (
            ("preemption_count", lately.preemptions is not None),
            ("finished_requests", engine.total("finished_requests") is not None),
            ("kv_used_ratio", lately.kv_p95 is not None),
            ("waiting_requests", publishes(engine.hours, "waiting")),
        )
        if not known
    )
    return missing or (
        "finished_requests",
    ), "Neither preemptions per request nor a full cache with a queue can be seen."


def _finding(
    evidence: Evidence, serving: Serving, state: str, lately: Thrash, limits: KvThrashLimits
) -> Finding:
    engine = serving.engine
    lately_h = sum(hour.busy_s for hour in recent_hours(engine)) / 3600
    counted = lately.is_counted(limits)
    return Finding(
        rule_id=RULE_ID,
        subject=engine_subject(serving),
        cause="preemption" if counted else "full",
        title=f"Stop the KV cache of {serving.label} from overflowing",
        because=_because(lately, lately_h),
        state=state,
        confidence="High: counted by the engine itself." + quality(serving)
        if counted
        else "Good: the full cache and the queue are measured; that the queue waits for the cache is inferred."
        + quality(serving),
        grade=Grade.A if counted else Grade.B,
        effort=Effort.LOW,
        risk=Risk.MEDIUM if state == "thrashing" else Risk.LOW,
        saving=Saving(),
        no_figure="No figure, because what suffers is the slowest answers, not the rate: money follows only from fewer replicas.",
        evidence=_facts(evidence, serving, lately, limits),
        actions=tuple(_levers(serving)),
        wrong_when="It was one burst of very long contexts, a load test, or a batch that nobody waits for.",
        not_claimed="A higher rate, and that another GPU is needed: the cheap levers come first.",
        gpu_uuids=tuple(gpu.gpu_uuid for gpu in serving.gpus),
        stage="workload",
        chart=_chart(engine.hours, limits, counted=counted),
    )


def _because(lately: Thrash, lately_h: float) -> str:
    parts = []
    if lately.preemptions:
        rate = "" if lately.per_request is None else f", {lately.per_request:.2g} per finished request"
        parts.append(f"{lately.preemptions:.0f} requests were thrown out of the cache{rate}")
    if lately.kv_p95 is not None:
        parts.append(f"{percent(lately.kv_p95)} of it was in use (p95)")
    if lately.waiting_p95:
        parts.append(f"{lately.waiting_p95:.0f} requests waited (p95)")
    return f"In the last {duration(lately_h)} of work {', '.join(parts)}."


def _levers(serving: Serving) -> Iterator[Action]:
    """VLLM's order: more memory, fewer at once, more ranks; then an 8-bit cache and a shorter longest context."""
    identity = serving.engine.identity
    kind, model, settings = identity.kind, identity.model, identity.settings
    yield from _more_memory(serving)
    fewer = fewer_at_once(serving)
    if fewer is not None:
        yield Action(
            f"Let at most {fewer} requests run at once: what the cache holds without preemption",
            flags.batch_command(kind, model, fewer),
        )
    elif kind in kv_flags.BATCH_TOKENS:
        yield Action(
            f"Lower {flags.batch_flag(kind)} or {kv_flags.BATCH_TOKENS[kind]}, so that fewer tokens are at work at once"
        )
    if kind == "sglang":
        yield Action(
            "Let the scheduler admit requests more carefully",
            kv_flags.command(kind, model, "--schedule-conservativeness 1.3"),
        )
    if serving.tensor_parallel is not None and kind in kv_flags.RANKS:
        yield Action(
            "If that is not enough, spread the weights over more GPUs: it costs those GPUs",
            kv_flags.flagged(kind, model, kv_flags.RANKS, 2 * serving.tensor_parallel),
        )
    if kv_pool.cache_element_bytes(settings) > 1:
        yield Action(
            "Or keep the cache at 8 bits (see kv-cache-precision); validate on your own evaluation set",
            flags.kv_precision_command(kind, model),
        )
    longest = kv_pool.number(settings, "max_model_len")
    if kind in kv_flags.CONTEXT and longest is not None:
        yield Action(f"Or accept shorter contexts than {longest:.0f} tokens ({kv_flags.CONTEXT[kind]})")


def _more_memory(serving: Serving) -> Iterator[Action]:
    """The share one step up, where what is in force is known and there is room."""
    identity = serving.engine.identity
    if identity.kind not in kv_flags.MEMORY_SHARE:
        return
    name, default = kv_flags.MEMORY_SETTINGS[identity.kind]
    share = kv_pool.number(identity.settings, name) or default
    flag = kv_flags.MEMORY_SHARE[identity.kind]
    if share is None:
        yield Action(f"Give the cache more of the GPU: raise {flag} by {MEMORY_STEP:g}")
    elif share + 1e-9 < MOST_MEMORY:
        more = min(MOST_MEMORY, share + MEMORY_STEP)
        yield Action(
            f"Give the cache more of the GPU: {flag} from {share:g} to {more:.2f}",
            kv_flags.flagged(identity.kind, identity.model, kv_flags.MEMORY_SHARE, f"{more:.2f}"),
        )


def fewer_at_once(serving: Serving) -> int | None:
    """The batch that the cache holds, below what ran; None where the pool or the contexts are not known."""
    seen = pressure(recent_hours(serving.engine), serving.batch_ceiling)
    if seen is None:
        return None
    room = kv_batch(serving, seen)
    if room is None:
        return None
    batch = max(1, min(room, floor(seen.running_p95) - 1))
    return batch if batch < seen.running_p95 else None


def _facts(evidence: Evidence, serving: Serving, lately: Thrash, limits: KvThrashLimits) -> dict[str, Any]:
    engine, whole = serving.engine, thrash(serving.engine.hours)
    recent = recent_hours(engine)
    return rounded(
        {
            **window_facts(evidence, engine_coverage(engine)),
            "preemptions_per_finished_request": lately.per_request,
            "preemption_count": lately.preemptions,
            "preemptions_per_finished_request_window": whole.per_request,
            "kv_used_p95_ratio": lately.kv_p95,
            "waiting_p95": lately.waiting_p95,
            "running_p95": merged(recent, "running").quantile(0.95),
            "recent_busy_h": sum(hour.busy_s for hour in recent) / 3600,
            "warn_ratio": limits.warn_ratio,
            "act_ratio": limits.act_ratio,
            "pool_tokens": serving.pool_tokens,
            "context_tokens": serving.context_tokens,
            "batch_limit": serving.batch_ceiling,
        }
    )


def _chart(hours: Sequence[EngineHour], limits: KvThrashLimits, *, counted: bool) -> Mapping[str, Any]:
    """Preemptions per finished request by hour, or the use of the cache, against what is too much."""
    if not counted:
        points = ((hour.hour_ms, hour.kv_used.quantile(0.95)) for hour in hours)
        return time_chart(points, "ratio", limits.max_kv_used_ratio)
    rates = ((hour.hour_ms, thrash([hour]).per_request) for hour in hours)
    return time_chart(rates, "preemptions per request", limits.warn_ratio)


RULE: Final = Rule(
    id=RULE_ID,
    code="R12",
    title="Stop the KV cache from overflowing",
    needs=frozenset({"preemption_count", "finished_requests", "kv_used_ratio", "waiting_requests"}),
    limits=KvThrashLimits(),
    effort=Effort.LOW,
    risk=Risk.MEDIUM,
    sources=(
        Source("vLLM: preemption", "https://docs.vllm.ai/en/latest/configuration/optimization.html#preemption"),
        Source("SGLang: hyperparameter tuning", "https://docs.sglang.ai/advanced_features/hyperparameter_tuning.html"),
    ),
    evaluate=evaluate,
)  # fmt: skip
