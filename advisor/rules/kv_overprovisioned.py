"""An engine reserves far more KV cache than its busiest hour of two weeks has used.

What it finds
    Engines whose KV-cache use stayed below 30 % through 14 days with all their peaks. What they need is weights, 1.3
    times the most ever used and 2–5 GB per GPU; the rest of the reservation is excess.

Why it costs
    Engines take most of a GPU's memory at the start, whatever they need. Memory that is held and never used keeps other
    work off the card, or a larger card in use than the model wants.

When it is wrong
    Replicas are about to become fewer, contexts longer, or the batch limit higher: all of them need the room. The free
    part of the cache may hold shared prefixes for the next requests. An engine does not start when its cache is smaller
    than its longest context.

What to do
    Settle the number of replicas and the batch limit first. Then lower the engine's memory share and put other work
    beside it, or move it to a smaller GPU. Keep it as it is where nothing else wants the memory.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Annotated, Any, Final

from pydantic import Field

from advisor import kv_flags
from advisor.batch import Cause, diagnose, pressure
from advisor.confidence import graded
from advisor.engine_time import engine_coverage, engine_span_h, engine_subject
from advisor.estimators import kv_need, kv_pool
from advisor.estimators.prefix_cache import hit_ratio
from advisor.facts import as_facts, rounded, time_chart, window_facts
from advisor.model import Limits, Rule, Source, Verdict
from advisor.serving import Serving, servings
from advisor.serving_checks import Refusal, highest, no_engines, quality, refusal, short_of_peaks
from core.evidence import Evidence
from core.finding import Action, Effort, Finding, Grade, NotEvaluated, Range, Risk, Saving
from core.percent import percent
from core.units import GIB

RULE_ID: Final = "kv-overprovisioned"
STEP: Final = 0.05
"""Memory shares are advised in steps, rounded towards more memory."""


class KvOverprovisionedLimits(Limits):
    """Thresholds of ``kv-overprovisioned``."""

    max_kv_used_ratio: Annotated[float, Field(gt=0, lt=1)] = 0.3
    """Highest KV-cache use of the window below which the cache is too large (R13)."""
    min_excess_ratio: Annotated[float, Field(gt=0, le=1)] = 0.1
    """Excess (low end) over the GPUs' memory below which nothing else could use it."""
    max_hit_ratio: Annotated[float, Field(ge=0, le=1)] = 0.05
    """Prompt tokens from the prefix cache above which the free part of the cache is in use after all."""
    min_busy_s: Annotated[float, Field(ge=60)] = 3600.0
    """Busy time below which no peak was seen."""
    min_coverage_ratio: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Samples received over samples due."""


@dataclass(frozen=True, slots=True)
class Room:
    """What an engine holds and what it needs, over all its ranks.

    Attributes:
        kv_max: highest use of the cache, 0–1. tokens: it needs. pool_bytes: the cache as it is.
        excess: bytes of the cache beyond the need. needed: of all memory; None: weights are not known.
        memory_bytes: of its GPUs.
    """

    kv_max: float
    tokens: float
    pool_bytes: float
    excess: Range
    needed: Range | None
    memory_bytes: float


def evaluate(evidence: Evidence, limits: KvOverprovisionedLimits) -> Iterator[Verdict]:
    """Every engine of the fleet."""
    if not evidence.engines:
        yield no_engines(RULE_ID)
        return
    for serving in servings(evidence):
        reason = _refusal(evidence, serving, limits)
        if reason is not None:
            yield NotEvaluated(RULE_ID, engine_subject(serving), *reason)
            continue
        room = room_of(serving)
        if room is None or room.kv_max >= limits.max_kv_used_ratio:
            continue
        if room.excess.p10 >= limits.min_excess_ratio * room.memory_bytes:
            reason = _confounded(serving, limits)
            yield (
                _finding(evidence, serving, room, limits)
                if reason is None
                else NotEvaluated(RULE_ID, engine_subject(serving), *reason)
            )


def _refusal(evidence: Evidence, serving: Serving, limits: KvOverprovisionedLimits) -> Refusal | None:
    """What is missing and why that matters; None when the engine can be judged."""
    engine = serving.engine
    basic = refusal(
        evidence, engine, min_busy_s=limits.min_busy_s, min_coverage_ratio=limits.min_coverage_ratio
    )
    if basic is not None:
        return basic
    most = highest(engine.hours, "kv_used")
    if most is None:
        return ("kv_used_ratio",), "KV-cache use is not published, and memory in use is only the reservation."
    if most >= limits.max_kv_used_ratio:
        return None
    early = short_of_peaks(engine)
    if early is not None:
        return early
    if serving.pool_tokens is None:
        return ("KV pool size",), "How many tokens the cache holds is not published."
    if serving.llm is None:
        missing = ("model architecture",)
        return (
            missing,
            f"The catalogue does not know {engine.identity.model!r}, so neither the bytes of a token.",
        )
    if serving.llm.sliding_window is not None:
        missing = ("a memory model of sliding windows",)
        return missing, "Layers with a window keep less than the pool says; how much is not published."
    if not serving.gpus or serving.tensor_parallel is None or _memory_bytes(serving) is None:
        return ("the engine's GPUs",), "Which GPUs it runs on, and with how much memory, is not known."
    return None


def _confounded(serving: Serving, limits: KvOverprovisionedLimits) -> Refusal | None:
    """What may use the room that looks free."""
    engine = serving.engine
    hit = hit_ratio(engine.total("cached_prompt_tokens"), engine.total("prompt_tokens"))
    caches = kv_flags.is_on(engine.identity.settings.get("enable_prefix_caching"))
    if hit is not None and hit > limits.max_hit_ratio:
        missing = ("size of the prefix cache",)
        return (
            missing,
            f"{percent(hit)} of the prompt tokens come from prefixes kept in the free part of the cache.",
        )
    if hit is None and caches:
        missing = ("cached_prompt_tokens",)
        return missing, "Prefix caching is on: how much of the free part it uses is not published."
    seen = pressure(engine.hours, serving.batch_ceiling)
    if seen is not None and seen.waiting_p95 and diagnose(seen).cause is Cause.CONFIGURATION:
        missing = ("a batch limit that holds no request back",)
        return (
            missing,
            "Requests wait at the batch limit: raise it first (small-batch), it will need the room.",
        )
    return None


def _memory_bytes(serving: Serving) -> float | None:
    """Memory of its GPUs together."""
    known = [gpu.identity.memory_total_bytes for gpu in serving.gpus]
    return float(sum(each for each in known if each)) if known and all(known) else None


def room_of(serving: Serving) -> Room | None:
    """Need and excess; None where something it takes is not known, or where pool and weights do not go together."""
    llm, ranks, pool = serving.llm, serving.tensor_parallel, serving.pool_tokens
    memory, kv_max = _memory_bytes(serving), highest(serving.engine.hours, "kv_used")
    if llm is None or ranks is None or pool is None or memory is None or kv_max is None:
        return None
    settings = serving.engine.identity.settings
    token = kv_pool.token_bytes(llm, settings)
    copies = kv_need.kv_copies(
        kv_heads=llm.kv_heads, is_latent=llm.mla_dim is not None, tensor_parallel=ranks
    )
    tokens = kv_need.needed_tokens(
        pool_tokens=pool,
        kv_used_max_ratio=kv_max,
        longest_tokens=kv_pool.number(settings, "max_model_len"),
    )
    pool_bytes, unused = pool * token * copies, (pool - tokens) * token * copies
    needed = None
    if serving.weights is not None:
        needed = kv_need.needed_bytes(
            weight_bytes=serving.weights.total_bytes,
            tokens=tokens,
            kv_bytes_per_token=token,
            tensor_parallel=ranks,
            copies=copies,
        )
    if pool_bytes > memory or (needed is not None and needed.p10 > memory):
        return None
    if needed is None:
        excess = Range(0.8 * unused, unused, unused)
    else:
        spare = [max(0.0, min(unused, memory - each)) for each in (needed.p90, needed.p50, needed.p10)]
        excess = Range(*spare)
    return Room(kv_max, tokens, pool_bytes, excess, needed, memory)


def _finding(evidence: Evidence, serving: Serving, room: Room, limits: KvOverprovisionedLimits) -> Finding:
    engine = serving.engine
    grade, confidence = graded(
        Grade.B if room.needed is not None else Grade.C,
        "Use and size of the cache are the engine's own, bytes of a token the model's"
        + ("" if room.needed is not None else "; what the weights take is not known"),
        span_h=engine_span_h(engine),
        covered_h=engine.covered_s / 3600,
    )
    free = f"{room.excess.p50 / GIB:.0f} GiB"
    need = (
        "" if room.needed is None else f" All it needs is about {room.needed.p50 / GIB:.0f} GiB"
        f" of {room.memory_bytes / GIB:.0f}."
    )  # fmt: skip
    return Finding(
        rule_id=RULE_ID,
        subject=engine_subject(serving),
        cause="excess",
        title=f"Give back {free} of KV cache that {serving.label} never uses",
        because=(
            f"At its peak {percent(room.kv_max)} of a cache of {room.pool_bytes / GIB:.0f} GiB was in use; with a reserve of"
            f" 30 % {free} stay empty.{need}"
        ),
        state="reserved and never used",
        confidence=confidence + quality(serving),
        grade=grade,
        effort=Effort.LOW,
        risk=Risk.LOW,
        saving=Saving(),
        no_figure="No figure, because memory is paid with its GPU: it is worth money only when a smaller GPU (oversized-gpu)"
        " or other work on the same one (shareable-gpu) uses it.",
        evidence=rounded(_facts(evidence, serving, room)),
        actions=_actions(serving, room),
        wrong_when="Replicas become fewer, contexts longer or the batch limit higher; the longest context is larger than the"
        " smaller cache; shared prefixes come into use.",
        not_claimed="Money, speed, and the memory of weights and activations: only the part of the cache beyond 1.3 times its"
        " highest use.",
        gpu_uuids=tuple(gpu.gpu_uuid for gpu in serving.gpus),
        stage="consolidate",
        chart=time_chart(
            ((hour.hour_ms, hour.kv_used.max()) for hour in engine.hours), "ratio", limits.max_kv_used_ratio
        ),
    )


def _actions(serving: Serving, room: Room) -> tuple[Action, ...]:
    """The share that still holds the need; of llama.cpp the tokens."""
    identity = serving.engine.identity
    kind, model = identity.kind, identity.model
    beside = Action("Then put other work beside it, or move it to a smaller GPU; else leave it as it is")
    if kind == "llamacpp":
        tokens = ceil(room.tokens / 1024) * 1024
        text = f"Start it with room for {tokens} tokens over all slots"
        return Action(text, kv_flags.flagged(kind, model, kv_flags.CONTEXT, tokens)), beside
    share = lower_share(serving, room)
    if share is None:
        flag = kv_flags.MEMORY_SHARE.get(kind, "the engine's memory share")
        text = (
            f"Lower {flag} by what the excess is of the GPU ({percent(room.excess.p10 / room.memory_bytes)})"
        )
        return Action(text), beside
    text = f"Restart with {kv_flags.MEMORY_SHARE[kind]} {share:.2f} when its neighbour is ready, and watch preemptions"
    return Action(text, kv_flags.flagged(kind, model, kv_flags.MEMORY_SHARE, f"{share:.2f}")), beside


def lower_share(serving: Serving, room: Room) -> float | None:
    """The memory share that keeps the need, rounded up; None where the share in force is not known or would not fall.

    TensorRT-LLM's is a share of what the weights leave free, so it falls with the tokens; the others' is of the GPU.
    """
    identity = serving.engine.identity
    if identity.kind not in kv_flags.MEMORY_SETTINGS or not serving.pool_tokens:
        return None
    name, default = kv_flags.MEMORY_SETTINGS[identity.kind]
    now = kv_pool.number(identity.settings, name) or default
    if now is None:
        return None
    exact = (
        now * room.tokens / serving.pool_tokens
        if identity.kind == "trtllm"
        else now - room.excess.p10 / room.memory_bytes
    )
    then = max(STEP, ceil(exact / STEP - 1e-9) * STEP)
    return then if then < now - 1e-9 else None


def _facts(evidence: Evidence, serving: Serving, room: Room) -> dict[str, Any]:
    facts: dict[str, Any] = {
        **window_facts(evidence, engine_coverage(serving.engine)),
        "kv_used_max_ratio": room.kv_max,
        "pool_tokens": serving.pool_tokens,
        "needed_pool_tokens": room.tokens,
        "pool_bytes": room.pool_bytes,
        **as_facts("excess_bytes", room.excess),
        "gpu_memory_bytes": room.memory_bytes,
        "weight_bytes": None if serving.weights is None else serving.weights.total_bytes,
        "running_max": highest(serving.engine.hours, "running"),
        "tensor_parallel": serving.tensor_parallel,
        "memory_share_then": lower_share(serving, room),
    }
    if room.needed is not None:
        facts |= as_facts("needed_bytes", room.needed)
    return facts


RULE: Final = Rule(
    id=RULE_ID,
    code="R13",
    title="Give back KV cache that no peak uses",
    needs=frozenset({"kv_used_ratio"}),
    limits=KvOverprovisionedLimits(),
    effort=Effort.LOW,
    risk=Risk.LOW,
    sources=(
        Source("vLLM: engine arguments", "https://docs.vllm.ai/en/latest/configuration/engine_args.html"),
        Source("Recasens et al., Mind the Memory Gap", "https://arxiv.org/abs/2503.08311"),
    ),
    evaluate=evaluate,
)
