"""Long contexts run through an attention kernel that is not a fused one.

What it finds
    Engines with a mean context of 2,000 tokens or more whose own settings say that they do without FlashAttention
    (``-fa off``, a plain attention backend), and the share of their time that attention takes.

Why it costs
    Plain attention writes the whole score matrix to memory and reads it back, so its time and memory grow with the
    square of the context. A fused kernel is two to four times as fast on attention, and on nothing else.

When it is wrong
    The setting names a kernel that is fused on this build, the model needs it (soft caps, special masks), or contexts
    are long only now and then. Most of an engine's time is weights, which no attention kernel reads faster.

What to do
    Turn FlashAttention on, or take the engine's default backend, on one replica; compare answers and time to the first
    token at the longest contexts. Engines that say nothing about their kernel use a fused one already.
"""

from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any, Final

from pydantic import Field

from advisor import execution_flags as flags
from advisor.engine_finding import EngineLimits, engine_finding, of_each_engine, unjudged
from advisor.engine_settings import switch, word
from advisor.estimators import attention_share
from advisor.facts import as_facts, profile_chart
from advisor.model import Rule, Source, Verdict
from advisor.python_work import unseen
from advisor.serving import Serving
from core.evidence import Evidence
from core.finding import Action, Effort, Finding, Grade, Range, Risk
from core.percent import percent

RULE_ID: Final = "slow-attention"
PLAIN_BACKENDS: Final = frozenset({"torch_sdpa", "torch_native", "eager", "math", "vanilla"})
"""Names of attention backends that are plain PyTorch (vLLM, SGLang, TensorRT-LLM)."""
FLASH_CAPABILITY: Final = 8.0
"""FlashAttention 2 needs compute capability 8.0 (Ampere) or newer."""
OLD_CARD_KINDS: Final = frozenset({"llamacpp"})
"""Engines with a fused kernel of their own for older cards."""
CONTEXTS: Final = (500, 1000, 2000, 4000, 8000, 16000, 32000, 64000)
UNSEEN: Final = (
    "which attention kernel a program of its own uses, and at what context, is not seen from here; engines are judged by"
    " their settings."
)


class SlowAttentionLimits(EngineLimits):
    """Thresholds of ``slow-attention``."""

    min_context_tokens: Annotated[float, Field(ge=1)] = 2000.0
    """Mean tokens in cache per sequence below which attention is a small part whatever the kernel (R29: 2k)."""
    min_share: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """Share of the time in attention below which a faster kernel is not worth a restart."""


def evaluate(evidence: Evidence, limits: SlowAttentionLimits) -> Iterator[Verdict]:
    """Every engine; one sentence for Python programs of which nothing tells."""
    yield from of_each_engine(
        evidence,
        RULE_ID,
        limits,
        partial(_engine, evidence, limits),
        concerns=lambda each: bool(kernel_said(each)),
    )
    yield from unseen(evidence, RULE_ID, ("context length", "attention kernel"), UNSEEN)


def kernel_said(serving: Serving) -> str | None:
    """The setting that says that attention is not fused; None where none does: engines' defaults are fused."""
    settings = serving.engine.identity.settings
    if switch(settings, "flash_attn") is False:
        return "flash-attn off"
    backend = word(settings, "attention_backend")
    return f"attention backend {backend}" if backend in PLAIN_BACKENDS else None


def _engine(evidence: Evidence, limits: SlowAttentionLimits, serving: Serving) -> Iterator[Verdict]:
    said = kernel_said(serving) or ""
    context = serving.context_tokens
    if context is None:
        why = f"It runs with {said}; whether that matters depends on its contexts, which are not known."
        yield unjudged(RULE_ID, serving, ("kv_used_ratio and KV pool size",), why)
        return
    if context < limits.min_context_tokens:
        return
    capability = None if serving.gpu_spec is None else serving.gpu_spec.compute_capability
    if serving.engine.identity.kind not in OLD_CARD_KINDS:
        if capability is None:
            why = f"It runs with {said}; whether its GPU can run FlashAttention is not known."
            yield unjudged(RULE_ID, serving, ("GPU model in the catalogue",), why)
            return
        if capability < FLASH_CAPABILITY:
            return  # nothing to turn on
    spent_s = _attention_s(serving, context)
    share = (
        None if spent_s is None or serving.step_s is None else attention_share.share(spent_s, serving.step_s)
    )
    if share is None:
        why = f"It runs with {said}; what share of its time that is needs the model, the GPU and its rates."
        yield unjudged(RULE_ID, serving, serving.missing or ("step time",), why)
    elif share >= limits.min_share:
        yield _finding(evidence, limits, serving, said=said, context=context, share=share)


def _attention_s(serving: Serving, context: float) -> float | None:
    """Attention of one step at this context, decode and prefill, by a fused kernel; None when an input is unknown."""
    llm, spec, tp = serving.llm, serving.gpu_spec, serving.tensor_parallel
    ratio, batch = serving.prompt_per_generated, serving.running
    if (
        llm is None
        or spec is None
        or not spec.bf16_flops
        or tp is None
        or ratio is None
        or batch is None
        or serving.kv_token_bytes is None
    ):
        return None
    decode_s = attention_share.decode_s(
        batch=batch,
        context_tokens=context,
        kv_bytes_per_token=serving.kv_token_bytes,
        tensor_parallel=tp,
        bandwidth_bytes_per_s=spec.bandwidth_bytes_per_s,
    )
    prefill_s = attention_share.prefill_s(
        llm,
        batch=batch,
        prompt_tokens=attention_share.prompt_length(context, ratio),
        prompt_per_generated=ratio,
        tensor_parallel=tp,
        flops=spec.bf16_flops,
    )
    return decode_s + prefill_s


def _course(serving: Serving, context: float) -> Iterator[tuple[float, float]]:
    """Attention's share over the context: the rest of the step stays as it is."""
    now_s, step_s = _attention_s(serving, context), serving.step_s
    if now_s is None or step_s is None or now_s >= step_s:
        return
    for tokens in CONTEXTS:
        then_s = _attention_s(serving, tokens)
        if then_s is not None:
            yield float(tokens), then_s / (step_s - now_s + then_s)


def _finding(
    evidence: Evidence,
    limits: SlowAttentionLimits,
    serving: Serving,
    *,
    said: str,
    context: float,
    share: float,
) -> Finding:
    gain: Range = attention_share.gain(share)
    identity = serving.engine.identity
    facts: dict[str, Any] = {
        "context_tokens": context,
        "attention_share_ratio": share,
        **as_facts("gain", gain),
        "kernel": said,
        "running_mean": serving.running,
        "step_s": serving.step_s,
        "tokens_per_s_now": serving.tokens_per_s,
    }
    return engine_finding(
        evidence,
        serving,
        rule_id=RULE_ID,
        cause="kernel",
        title=f"Turn FlashAttention on for {serving.label}",
        because=(
            f"It runs with {said} at a mean context of {context:.0f} tokens; attention takes at least {percent(share)} of its"
            f" time, so that a kernel two to four times as fast makes {gain.p10:.3g} to {gain.p90:.3g} times today's rate."
        ),
        state="attention kernel not fused",
        grade=Grade.D,
        basis="Attention's share from model, contexts and GPU; speed-up of the kernel from the literature",
        facts=facts,
        actions=(
            Action(
                "Restart one replica with FlashAttention and compare answers and time to the first token at the longest contexts",
                flags.filled(flags.FAST_ATTENTION, identity.kind, identity.model),
            ),
        ),
        wrong_when="The setting names a fused kernel on this build, the model needs it, or contexts are long only now and then.",
        not_claimed="More than attention's share: weights are read no faster. The memory it frees is not counted.",
        no_figure="No figure, because a faster kernel raises the rate of the same GPUs; it is money only when whole replicas"
        " fall away (see too-many-replicas afterwards).",
        chart=profile_chart(
            _course(serving, context),
            "share of the time in attention",
            "tokens of context",
            limits.min_share,
        ),
        effort=Effort.LOW,
        risk=Risk.MEDIUM,
    )


RULE: Final = Rule(
    id=RULE_ID,
    code="R29",
    title="Use a fused attention kernel for long contexts",
    needs=frozenset({"running_requests", "generated_tokens", "prompt_tokens", "kv_used_ratio"}),
    limits=SlowAttentionLimits(),
    effort=Effort.LOW,
    risk=Risk.MEDIUM,
    sources=(
        Source("Dao et al., FlashAttention", "https://arxiv.org/abs/2205.14135"),
        Source(
            "llama.cpp server: flash attention",
            "https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md",
        ),
    ),
    evaluate=evaluate,
)
