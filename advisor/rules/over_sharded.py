"""A model is split over more GPUs than its weights, its KV cache and its latency need.

What it finds
    Tensor-parallel engines whose batch (p95) is below B_half, whose weights and KV cache fit on fewer GPUs, and whose
    GPUs would each make more tokens per second that way *at the latency promise*: a split is compared at the batch that
    latency and KV cache allow it, never at equal batch.

Why it costs
    Every rank runs the same fixed part of a step and waits for the others at each layer. Twice the GPUs make a small
    batch 1.65 to 1.77 times as fast, not twice; the rest of them is paid for nothing.

When it is wrong
    The split is there for latency (a promise tighter than twice today's time between tokens), for long contexts still to
    come, or for peaks outside the window. Engines on uneven links do not follow the formula.

What to do
    Start one replica with the smaller split, compare time between tokens and preemptions at the busiest hour, then move
    the others. GPUs are freed in whole numbers, and money falls only with a whole billing unit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

from pydantic import Field

from advisor import execution_flags as flags
from advisor.confidence import duration
from advisor.engine_finding import EngineLimits, engine_finding, unjudged
from advisor.engine_settings import switch
from advisor.engine_time import engine_span_h
from advisor.estimators import kv_need, kv_pool, shard
from advisor.estimators.decode_step import DecodeStep
from advisor.estimators.replicas import UTILIZATION
from advisor.estimators.shard import Shard
from advisor.facts import as_facts, price_facts, profile_chart
from advisor.freed_gpus import Freed, freed
from advisor.model import Rule, Source, Verdict
from advisor.replica_group import MIN_LOAD_H, peak_tokens_per_s
from advisor.serving import Serving, formula_of
from advisor.serving_checks import Refusal, model_name, no_engines, refusal, replica_groups, shared_gpu
from core.evidence import Evidence
from core.finding import Action, Effort, Finding, Grade, Risk, Saving

RULE_ID: Final = "over-sharded"


class OverShardedLimits(EngineLimits):
    """Thresholds of ``over-sharded``."""

    itl_limit_s: Annotated[float | None, Field(gt=0)] = None
    """Your promise for the time between tokens. None: ``max_itl_factor`` times today's."""
    max_itl_factor: Annotated[float, Field(ge=1)] = 2.0
    """Time between tokens over today's up to which a smaller split is offered when no promise is given."""
    min_gain: Annotated[float, Field(ge=1)] = 1.05
    """Tokens per second per GPU over today's, both at the promise, below which a move is not worth it."""
    utilization: Annotated[float, Field(gt=0, le=1)] = UTILIZATION
    """Share of its rate at the promise that a replica may be planned for (R08)."""
    min_formula_ratio: Annotated[float, Field(gt=0, le=1)] = 0.6
    """Measured step over the formula's below which the formula does not describe this engine."""
    max_formula_ratio: Annotated[float, Field(ge=1)] = 1.6
    """The same above: then something else than the split is slow (see ``host-bound-serving``)."""
    max_waiting: Annotated[float, Field(ge=0)] = 1.0
    """Waiting requests (p95) from which the load seen is not all of the demand."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A smaller split for a group of replicas.

    Attributes:
        group: its replicas. now, then: one replica today and after, each at the promise.
        load: p99 of all replicas, tokens/s. replicas: how many of the new size at the low, middle and high end of
            their rate; never fewer than run today, because fewer replicas are another rule's business.
        promise_s: longest step allowed. step_then_s: at the new replicas' share of the load; None: beyond its reach.
    """

    group: Sequence[Serving]
    now: Shard
    then: Shard
    load: float
    replicas: tuple[int, int, int]
    promise_s: float
    step_then_s: float | None

    @property
    def gpus_now(self) -> int:
        """GPUs of all replicas today."""
        return len(self.group) * self.now.tensor_parallel

    @property
    def gpus_freed(self) -> tuple[int, int, int]:
        """GPUs that fall free at the low, middle and high end, none below 0."""
        low, middle, high = (max(0, self.gpus_now - self.then.tensor_parallel * n) for n in self.replicas)
        return low, middle, high


def evaluate(evidence: Evidence, limits: OverShardedLimits) -> Iterator[Verdict]:
    """Every group of replicas that is split over GPUs."""
    if not evidence.engines:
        yield no_engines(RULE_ID)
        return
    for group in replica_groups(evidence):
        if group[-1].tensor_parallel == 1:
            continue
        reason = _refusal(evidence, group, limits)
        if reason is not None:
            yield unjudged(RULE_ID, group[-1], *reason)
        else:
            yield from _judged(evidence, group, limits)


def _refusal(evidence: Evidence, group: Sequence[Serving], limits: OverShardedLimits) -> Refusal | None:
    """The first thing that keeps the group from being judged."""
    for each in group:
        own = refusal(
            evidence,
            each.engine,
            min_busy_s=limits.min_busy_s,
            min_coverage_ratio=limits.min_coverage_ratio,
        ) or shared_gpu(each)
        if own is not None:
            return own
        settings = each.engine.identity.settings
        if (
            switch(settings, "enable_expert_parallel")
            or switch(settings, "enable_dp_attention")
            or (kv_pool.number(settings, "expert_parallel_size", "data_parallel_size") or 1) > 1
        ):
            return ("a model of mixed parallelism",), "Experts or requests are spread over its GPUs as well."
        if kv_pool.number(settings, "cpu_offload_gb") is not None:
            return (
                "weights on the GPU",
            ), "Part of the weights is kept in host memory: they do not fit as it is."
    return None


def _judged(evidence: Evidence, group: Sequence[Serving], limits: OverShardedLimits) -> Iterator[Verdict]:
    serving = max(group, key=lambda each: each.engine.busy_s)
    formula = formula_of(serving)
    if (
        formula is None
        or serving.weights is None
        or serving.step_s is None
        or serving.running is None
        or serving.llm is None
    ):
        why = "Whether it fits on fewer GPUs needs the model, its precision, the GPU, the contexts and the split."
        yield unjudged(RULE_ID, group[-1], serving.missing or ("step-time model",), why)
        return
    measured = serving.step_s / formula.step_s(serving.running)
    if any((each.engine.running.quantile(0.95) or 0.0) >= formula.half_batch for each in group):
        return  # its batch fills the split
    if any((each.engine.waiting.quantile(0.95) or 0.0) >= max(limits.max_waiting, 1e-9) for each in group):
        return  # requests wait: fewer GPUs would make it worse
    if not limits.min_formula_ratio <= measured <= limits.max_formula_ratio:
        why = (
            f"Its step takes {measured:.2g} times what the formula says: the link between ranks, the host or the precision"
            " is not what the formula takes them for, so what another split does is not known."
        )
        yield unjudged(RULE_ID, group[-1], ("a step that follows the formula",), why)
        return
    plan = _plan(group, serving, measured, limits)
    if plan is not None:
        yield _finding(evidence, plan, serving)


def _plan(
    group: Sequence[Serving], serving: Serving, measured: float, limits: OverShardedLimits
) -> Plan | None:
    """The split that needs the fewest GPUs, the larger of equals; None when today's is as good."""
    assert serving.step_s is not None
    assert serving.tensor_parallel is not None
    assert serving.llm is not None
    promise_s = limits.itl_limit_s or limits.max_itl_factor * serving.step_s
    now = _shard(serving, serving.tensor_parallel, measured, promise_s)
    if now is None:
        return None
    load = sum(peak_tokens_per_s(each) for each in group)
    found: list[Plan] = []
    for size in shard.smaller_sizes(serving.tensor_parallel, serving.llm.heads):
        then = _shard(serving, size, measured, promise_s)
        counts = None if then is None else then.replicas_for(load, limits.utilization)
        if then is None or counts is None:
            continue
        if then.tokens_per_s_per_gpu.p50 < limits.min_gain * now.tokens_per_s_per_gpu.p50:
            continue
        low, middle, high = (max(len(group), count) for count in counts)
        step = _step(serving, size, measured)
        batch = None if step is None else shard.batch_for(step, load / middle, then.batch)
        then_s = None if step is None or batch is None else step.step_s(batch)
        slower = (then_s or promise_s) / serving.step_s
        if _needed_tokens(group, serving) * slower * len(group) / middle > then.room_tokens:
            continue
        found.append(Plan(group, now, then, load, (low, middle, high), promise_s, then_s))
    return min(found, key=lambda plan: (-plan.gpus_freed[1], -plan.then.tensor_parallel), default=None)


def _needed_tokens(group: Sequence[Serving], serving: Serving) -> float:
    """KV cache that a replica was seen to need at most, with a reserve (R13); 0 where the pool is not published.

    Steps that take longer hold it longer: what it needs after the change grows with the step.
    """
    if serving.pool_tokens is None:
        return 0.0
    return kv_need.needed_tokens(
        pool_tokens=serving.pool_tokens,
        kv_used_max_ratio=max(each.engine.kv_used.max() or 0.0 for each in group),
        longest_tokens=kv_pool.number(serving.engine.identity.settings, "max_model_len"),
    )


def _step(serving: Serving, size: int, measured: float) -> DecodeStep | None:
    """The formula for this split, times what this site measures over it today."""
    formula = formula_of(replace(serving, tensor_parallel=size))
    return None if formula is None else shard.scaled(formula, measured)


def _shard(serving: Serving, size: int, measured: float, promise_s: float) -> Shard | None:
    """One replica of this size at the promise; None when it does not fit, in time or in memory."""
    step, llm, gpu_spec = _step(serving, size, measured), serving.llm, serving.gpu_spec
    settings = serving.engine.identity.settings
    assert llm is not None
    assert gpu_spec is not None
    assert serving.weights is not None
    assert serving.context_tokens is not None
    assert serving.prompt_per_generated is not None
    if step is None:
        return None
    room = serving.pool_tokens if size == serving.tensor_parallel else None
    if room is None:
        room = shard.room_tokens(
            tensor_parallel=size,
            memory_bytes=gpu_spec.memory_bytes,
            weight_bytes=serving.weights.total_bytes,
            kv_bytes_per_token=kv_pool.token_bytes(llm, settings),
            copies=kv_need.kv_copies(
                kv_heads=llm.kv_heads, is_latent=llm.mla_dim is not None, tensor_parallel=size
            ),
            usable_ratio=kv_pool.number(settings, "gpu_memory_utilization") or shard.USABLE,
        )
    if room < (kv_pool.number(settings, "max_model_len") or 0.0):
        return None
    return shard.shard(
        step,
        tensor_parallel=size,
        room=room,
        end_tokens=kv_pool.end_context_tokens(serving.context_tokens, serving.prompt_per_generated),
        promise_s=promise_s,
        ceiling=serving.batch_ceiling,
    )


def _finding(evidence: Evidence, plan: Plan, serving: Serving) -> Finding:
    now, then, count = plan.now.tensor_parallel, plan.then.tensor_parallel, plan.replicas[1]
    half_batch = _half_batch(serving)
    p95 = max(each.engine.running.quantile(0.95) or 0.0 for each in plan.group)
    saved = _saved(evidence, plan)
    gain = plan.then.tokens_per_s_per_gpu.p50 / plan.now.tokens_per_s_per_gpu.p50
    facts: dict[str, Any] = {
        **price_facts(serving.gpus[-1].price if serving.gpus else None),
        "tensor_parallel_now": now,
        "tensor_parallel_then": then,
        "replicas_now": len(plan.group),
        "replicas_then": count,
        "gpus_now": plan.gpus_now,
        "gpus_then": plan.gpus_now - plan.gpus_freed[1],
        "running_p95": p95,
        "half_batch": half_batch,
        "load_tokens_per_s_p99": plan.load,
        "itl_promise_s": plan.promise_s,
        "itl_s_now": serving.step_s,
        "itl_s_then_at_peak": plan.step_then_s,
        "batch_at_promise_now": plan.now.batch,
        "batch_at_promise_then": plan.then.batch,
        **as_facts("tokens_per_s_per_gpu_at_promise_now", plan.now.tokens_per_s_per_gpu),
        **as_facts("tokens_per_s_per_gpu_at_promise_then", plan.then.tokens_per_s_per_gpu),
        "kv_room_tokens_now": plan.now.room_tokens,
        "kv_room_tokens_then": plan.then.room_tokens,
    }
    identity = serving.engine.identity
    finding = engine_finding(
        evidence,
        plan.group[-1],
        rule_id=RULE_ID,
        cause="tensor-parallel",
        title=f"Split {model_name(serving)} over {then} GPU{'s' if then > 1 else ''} instead of {now}",
        because=(
            f"Its batch (p95 {p95:g}) is below the {half_batch:.0f} that half of the rate takes, and its weights and KV cache"
            f" fit on {then}: at a promise of {1e3 * plan.promise_s:.3g} ms between tokens a GPU makes {gain:.2g} times as many"
            f" tokens, so that {count * then} GPUs carry the busiest time (p99, {plan.load:.0f} tokens/s) of {plan.gpus_now}."
        ),
        state="split over more GPUs than needed",
        grade=Grade.C,
        basis="Step time of both splits from the calibrated formula, scaled to the step measured here; memory from weights and"
        " KV cache",
        facts=facts,
        actions=(
            Action(
                f"Start one replica over {then} GPU{'s' if then > 1 else ''}, and compare time between tokens, preemptions and"
                " the queue with the others through the busiest hour",
                flags.filled(flags.SHARDS, identity.kind, identity.model, shards=then),
            ),
            Action(f"Then run {count} such replica{'s' if count > 1 else ''} and release the other GPUs"),
        ),
        wrong_when="The split is there for latency, for longer contexts still to come or for peaks outside the window, or the"
        " link between its GPUs is uneven.",
        not_claimed="A faster answer: the time between tokens gets longer, up to the promise. Fewer replicas than today are"
        " not part of it (see too-many-replicas).",
        no_figure=saved.no_figure,
        saving=saved.saving,
        stage="consolidate",
        chart=profile_chart(
            ((float(each.tensor_parallel), each.tokens_per_s_per_gpu.p50) for each in (plan.then, plan.now)),
            "tokens/s per GPU",
            "GPUs per replica",
            plan.now.tokens_per_s_per_gpu.p50,
        ),
        effort=Effort.MEDIUM,
        risk=Risk.MEDIUM,
    )
    return replace(finding, gpu_uuids=saved.gpu_uuids or finding.gpu_uuids)


def _half_batch(serving: Serving) -> float:
    formula = formula_of(serving)
    assert formula is not None
    return formula.half_batch


def _saved(evidence: Evidence, plan: Plan) -> Freed:
    """GPUs that fall free, the last ones by engine and index."""
    ordered = [gpu for each in plan.group for gpu in each.gpus]
    span_h = min(engine_span_h(each.engine) for each in plan.group)
    low, middle, _ = plan.gpus_freed
    if len(ordered) != plan.gpus_now:
        return Freed(Saving(), "No figure, because not all GPUs of the split are known.", ())
    if span_h < MIN_LOAD_H:
        why = f"No figure, because {duration(span_h)} of load do not show the peaks that GPUs are counted for; a day does."
        return Freed(Saving(), why, ())
    if middle == 0:
        why = (
            f"No figure, because {plan.gpus_now} GPUs stay {plan.gpus_now}: at its peak the load takes"
            f" {plan.replicas[1]} replicas of the smaller split. The rate they could make rises, the bill does not fall."
        )
        return Freed(Saving(), why, ())
    return freed(evidence, ordered[-middle:], low, Grade.C)


RULE: Final = Rule(
    id=RULE_ID,
    code="R19",
    title="Split models over no more GPUs than they need",
    needs=frozenset({"running_requests", "generated_tokens", "prompt_tokens", "kv_used_ratio"}),
    limits=OverShardedLimits(),
    effort=Effort.MEDIUM,
    risk=Risk.MEDIUM,
    sources=(
        Source("ML.ENERGY leaderboard data", "https://github.com/ml-energy/leaderboard"),
        Source(
            "vLLM: parallelism and scaling", "https://docs.vllm.ai/en/latest/serving/parallelism_scaling.html"
        ),
    ),
    evaluate=evaluate,
    scope="fleet",
)
