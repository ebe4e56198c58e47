"""Prefill and decode get in each other's way: first tokens and the ones after them are both late.

What it finds
    Engines whose mean time to the first token and mean time between tokens both break their promise in a fifth of busy
    time or more, without a queue, while long prompts and decoding take turns: arithmetic use is high at some moments
    and low at others, or tokens come later than decoding alone explains.

Why it costs
    A long prompt computed in one piece holds up every running request, and running requests hold up the next prompt.
    Replicas added against the latency are paid for a conflict that scheduling can settle.

When it is wrong
    The promise is not yours (set ``ttft_limit_s`` and ``itl_limit_s``), first tokens wait in front of the engine, or the
    batch alone makes decoding too slow. Means hide which requests suffer.

What to do
    Chunked prefill first, with chunks small enough for the time between tokens. Reuse common prefixes. Only a fleet gains
    from separate engines for prefill and decode, and only a trial tells how much.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated, Any, Final

from pydantic import Field

from advisor import execution_flags as flags
from advisor.confidence import duration
from advisor.engine_finding import EngineLimits, engine_finding, of_each_engine, unjudged
from advisor.engine_settings import splits_phases, switch
from advisor.estimators import kv_pool
from advisor.facts import time_chart
from advisor.model import Rule, Source, Verdict
from advisor.phase_signs import Latency, Phases, latencies, phases
from advisor.recent import recent_hours
from advisor.serving import Serving, formula_of
from advisor.serving_checks import merged, replica_groups
from core.evidence import EngineEvidence, Evidence
from core.finding import Action, Effort, Finding, Grade, Risk
from core.percent import percent

RULE_ID: Final = "phase-split"
FAR: Final = 0.1
"""A window's mean below this share of a promise has no fifth of its time above it."""
NO_FIGURE: Final = (
    "No figure, because this is about latency: what keeping the promise is worth is not seen from here."
)


class PhaseSplitLimits(EngineLimits):
    """Thresholds of ``phase-split``."""

    ttft_limit_s: Annotated[float, Field(gt=0)] = 2.0
    """Your promise for the time to the first token; without one MLPerf's for a served Llama-2-70B."""
    itl_limit_s: Annotated[float, Field(gt=0)] = 0.2
    """The same for the time between tokens."""
    min_breach_ratio: Annotated[float, Field(gt=0, le=1)] = 0.2
    """Share of busy time in which both are broken before it is worth a word."""
    min_phase_ratio: Annotated[float, Field(gt=0, le=0.5)] = 0.1
    """Share of that time at high and at low MFU from which the phases take turns (R31)."""
    min_prefill_ratio: Annotated[float, Field(gt=0, lt=1)] = 0.3
    """Share of a step in prefill from which it can be what holds tokens up."""
    min_collision_factor: Annotated[float, Field(ge=1)] = 1.5
    """Time between tokens over that of decoding alone from which something holds tokens up."""
    max_waiting: Annotated[float, Field(ge=0)] = 1.0
    """Waiting requests (p95) from which first tokens are late because of the queue (see ``overload``)."""
    chunk_tokens: Annotated[int, Field(ge=128, le=65536)] = 2048
    """Prefill chunk to start from: small chunks favour the time between tokens (vLLM's documentation)."""
    min_fleet: Annotated[int, Field(ge=2)] = 4
    """Replicas of one model from which engines of their own for each phase are worth a trial."""


def evaluate(evidence: Evidence, limits: PhaseSplitLimits) -> Iterator[Verdict]:
    """Every engine of the fleet."""
    yield from of_each_engine(
        evidence,
        RULE_ID,
        limits,
        partial(_engine, evidence, limits),
        concerns=lambda each: not splits_phases(each.engine.identity.settings),
    )


def _engine(evidence: Evidence, limits: PhaseSplitLimits, serving: Serving) -> Iterator[Verdict]:
    engine = serving.engine
    if not engine.total("ttft_count") or not engine.total("itl_count"):
        missing = ("ttft_sum_s", "itl_sum_s")
        why = "Whether answers are late is only known where the engine publishes both latencies."
        yield unjudged(RULE_ID, serving, missing, why)
        return
    if _far_from(engine, "ttft", limits.ttft_limit_s) or _far_from(engine, "itl", limits.itl_limit_s):
        return
    known = latencies(engine.hours)
    breaches = _breaches(known, limits)
    lately = {hour.hour_ms for hour in recent_hours(engine)}
    recent = [each for each in known if each.hour.hour_ms in lately]
    if not _often(breaches, known, limits) or not _often(_breaches(recent, limits), recent, limits):
        return
    waiting = merged([each.hour for each in breaches], "waiting")
    if waiting.total_s <= 0:
        why = "Without the queue nobody knows whether first tokens are late because of prefill or of waiting."
        yield unjudged(RULE_ID, serving, ("waiting_requests",), why)
        return
    if (waiting.quantile(0.95) or 0.0) >= max(limits.max_waiting, 1e-9):
        why = "Requests wait: the time to the first token holds the queue, and prefill cannot be told from it (see overload)."
        yield unjudged(RULE_ID, serving, ("time to the first token without the queue",), why)
        return
    yield from _judged(evidence, limits, serving, breaches, known)


def _judged(
    evidence: Evidence,
    limits: PhaseSplitLimits,
    serving: Serving,
    breaches: Sequence[Latency],
    known: Sequence[Latency],
) -> Iterator[Verdict]:
    seen = phases(serving, formula_of(serving), breaches)
    if seen.decode_s is not None and seen.decode_s > limits.itl_limit_s:
        return  # the batch alone breaks the promise: splitting phases would not keep it
    if seen.alternates(limits.min_phase_ratio) or seen.collides(
        limits.min_collision_factor, limits.min_prefill_ratio
    ):
        yield _finding(evidence, limits, serving, breaches=breaches, known=known, seen=seen)
        return
    if seen.high_ratio is None and seen.decode_s is None:
        why = "Both latencies break their promise; whether prefill is why needs the model, the GPU and prompt tokens."
        yield unjudged(RULE_ID, serving, serving.missing or ("prompt_tokens",), why)
        return
    why = (
        "Both latencies break their promise, but prefill and decode neither take turns nor does prefill take much of a step:"
        " what holds tokens up is not seen (see host-bound-serving)."
    )
    yield unjudged(RULE_ID, serving, ("a sign of prefill between tokens",), why)


def _far_from(engine: EngineEvidence, name: str, limit_s: float) -> bool:
    """The mean of the whole window is a tenth of the promise: its hours need not be read."""
    total_s, count = engine.total(f"{name}_sum_s"), engine.total(f"{name}_count")
    return bool(count) and (total_s or 0.0) / (count or 1.0) < FAR * limit_s


def _breaches(known: Sequence[Latency], limits: PhaseSplitLimits) -> list[Latency]:
    return [each for each in known if each.ttft_s > limits.ttft_limit_s and each.itl_s > limits.itl_limit_s]


def _often(breaches: Sequence[Latency], known: Sequence[Latency], limits: PhaseSplitLimits) -> bool:
    breach_s = sum(each.hour.busy_s for each in breaches)
    return breach_s > 0 and breach_s >= limits.min_breach_ratio * sum(each.hour.busy_s for each in known)


def _chunking(serving: Serving, limits: PhaseSplitLimits) -> str:
    """``off``, ``large`` or ``on`` (also where nothing is said: current engines chunk by default)."""
    settings = serving.engine.identity.settings
    off = switch(settings, "enable_chunked_prefill") is False
    if off or settings.get("chunked_prefill_size", "").strip().startswith("-"):
        return "off"
    size = kv_pool.number(settings, "chunked_prefill_size", "max_num_batched_tokens")
    return "large" if size is not None and size > limits.chunk_tokens else "on"


def _replicas(evidence: Evidence, serving: Serving) -> int:
    name = serving.engine.identity.engine
    groups = (
        group
        for group in replica_groups(evidence)
        if any(each.engine.identity.engine == name for each in group)
    )
    return len(next(groups, (serving,)))


def _finding(
    evidence: Evidence,
    limits: PhaseSplitLimits,
    serving: Serving,
    *,
    breaches: Sequence[Latency],
    known: Sequence[Latency],
    seen: Phases,
) -> Finding:
    chunking, replicas = _chunking(serving, limits), _replicas(evidence, serving)
    breach_s = sum(each.hour.busy_s for each in breaches)
    first_s = sum(each.hour.ttft_sum_s or 0.0 for each in breaches) / sum(
        each.hour.ttft_count or 0.0 for each in breaches
    )
    facts: dict[str, Any] = {
        "ttft_mean_s": first_s,
        "itl_mean_s": seen.itl_s,
        "ttft_limit_s": limits.ttft_limit_s,
        "itl_limit_s": limits.itl_limit_s,
        "breach_h": breach_s / 3600,
        "high_mfu_ratio": seen.high_ratio,
        "low_mfu_ratio": seen.low_ratio,
        "decode_alone_s": seen.decode_s,
        "prefill_share_ratio": seen.prefill_ratio,
        "prompt_per_generated": serving.prompt_per_generated,
        "chunked_prefill": chunking,
        "replicas": replicas,
    }
    signs = (
        f"arithmetic use is high for {percent(seen.high_ratio or 0.0)} and low for {percent(seen.low_ratio or 0.0)} of that time"
        if seen.alternates(limits.min_phase_ratio)
        else f"decoding alone would take {1e3 * (seen.decode_s or 0.0):.3g} ms a token, and prefill takes"
        f" {percent(seen.prefill_ratio or 0.0)} of a step"
    )
    return engine_finding(
        evidence,
        serving,
        rule_id=RULE_ID,
        cause={"off": "chunked-prefill-off", "large": "large-chunks", "on": "both-phases"}[chunking],
        title={
            "off": f"Turn chunked prefill on for {serving.label}",
            "large": f"Compute prompts of {serving.label} in smaller chunks",
            "on": f"Keep long prompts of {serving.label} from holding up its answers",
        }[chunking],
        because=(
            f"For {duration(breach_s / 3600)} of busy time first tokens took {first_s:.3g} s (promise {limits.ttft_limit_s:g} s)"
            f" and each further one {1e3 * seen.itl_s:.3g} ms (promise {1e3 * limits.itl_limit_s:g} ms) on average, while {signs}."
        ),
        state="prefill and decode in each other's way",
        grade=Grade.C,
        basis="Latencies published by the engine; what ran at each batch size from its counters and the formula",
        facts=facts,
        actions=_actions(serving, chunking, replicas, limits),
        wrong_when="The promise is not yours, first tokens wait in front of the engine, or few very long requests make the mean.",
        not_claimed="Any saving, and the gain of engines of their own for each phase: 1.4 times the rate at 20 % lower cost was"
        " simulated for one fleet (Splitwise).",
        no_figure=NO_FIGURE,
        chart=time_chart(
            ((each.hour.hour_ms, 1e3 * each.itl_s) for each in known),
            "ms between tokens",
            1e3 * limits.itl_limit_s,
        ),
        effort=Effort.LOW if chunking != "on" else Effort.HIGH,
        risk=Risk.LOW if chunking != "on" else Risk.MEDIUM,
    )


def _actions(serving: Serving, chunking: str, replicas: int, limits: PhaseSplitLimits) -> tuple[Action, ...]:
    kind, model = serving.engine.identity.kind, serving.engine.identity.model
    chunk = limits.chunk_tokens if chunking != "on" else max(128, limits.chunk_tokens // 2)
    found = [
        Action(
            f"Compute prompts in chunks of {chunk} tokens on one replica, and compare both latencies through a busy hour",
            flags.filled(flags.CHUNKED_ON, kind, model, tokens=chunk),
        )
    ]
    if chunking == "on":
        found.append(
            Action(
                "Reuse common prefixes (see no-prefix-cache) and route the longest prompts to a replica of their own"
            )
        )
        if replicas >= limits.min_fleet:
            found.append(
                Action(
                    f"With {replicas} replicas, try engines of their own for prefill and for decode on two of them; it takes a"
                    " fast link between them"
                )
            )
    return tuple(found)


RULE: Final = Rule(
    id=RULE_ID,
    code="R31",
    title="Keep prefill and decode out of each other's way",
    needs=frozenset(
        {
            "ttft_sum_s",
            "itl_sum_s",
            "waiting_requests",
            "generated_tokens",
            "prompt_tokens",
        }
    ),
    limits=PhaseSplitLimits(),
    effort=Effort.LOW,
    risk=Risk.LOW,
    sources=(
        Source("Patel et al., Splitwise", "https://arxiv.org/abs/2311.18677"),
        Source("MLPerf Inference: Llama 2 70B", "https://mlcommons.org/2024/03/mlperf-llama2-70b/"),
        Source("vLLM: chunked prefill", "https://docs.vllm.ai/en/latest/configuration/optimization.html"),
    ),
    evaluate=evaluate,
    scope="fleet",
)
