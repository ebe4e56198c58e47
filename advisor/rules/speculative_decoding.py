"""An engine decodes one token a step for few requests, where a step has arithmetic to spare.

What it finds
    Memory-bound engines (MBU ≥ 0.6, MFU < 0.25) with a median batch of at most 16 and no speculative decoding: verifying
    a few drafted tokens costs such a step little, because the weights are read for one token or for four.

Why it costs
    Each request waits longer for its answer than the hardware asks for. It costs latency, not money: the same GPUs stay,
    unless shorter answers let whole replicas fall away, which is another finding's business.

When it is wrong
    Drafts are seldom accepted (creative text, high temperature), latency is good enough, or batches are about to grow:
    the gain shrinks with the batch and turns into a loss where arithmetic fills the step. A draft model needs memory.

What to do
    Try n-gram drafting first where answers repeat their prompt (code, extraction, summaries), else a trained draft head,
    on one replica. Keep the acceptance rate in view, and turn it off where batches stay above the break-even.
"""

from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any, Final

from pydantic import Field

from advisor import execution_flags as flags
from advisor.engine_finding import EngineLimits, engine_finding, of_each_engine, unjudged
from advisor.engine_settings import speculates
from advisor.estimators import speculative
from advisor.estimators.utilization import MEMORY_BOUND_MBU, MOST_MBU
from advisor.facts import as_facts, profile_chart
from advisor.model import Rule, Source, Verdict
from advisor.recent import recent_hours
from advisor.serving import Serving
from advisor.serving_checks import merged
from core.evidence import Evidence
from core.finding import Action, Effort, Finding, Grade, Range, Risk
from core.histogram import Histogram
from core.percent import percent

RULE_ID: Final = "speculative-decoding"
NO_FIGURE: Final = (
    "No figure, because it makes answers faster, not GPUs fewer, and how many drafted tokens are accepted is not seen from"
    " here: a trial tells."
)
CHART_BATCHES: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class SpeculativeDecodingLimits(EngineLimits):
    """Thresholds of ``speculative-decoding``."""

    max_running_p50: Annotated[float, Field(ge=1)] = 16.0
    """Median batch above which the arithmetic of verifying is no longer spare (R30)."""
    min_mbu: Annotated[float, Field(gt=0, le=1)] = MEMORY_BOUND_MBU
    """Share of the memory bandwidth in use from which decoding is memory-bound (2.3)."""
    max_mfu: Annotated[float, Field(gt=0, le=1)] = 0.25
    """Share of the arithmetic in use below which there is some to spare (R06)."""
    max_kv_used_ratio: Annotated[float, Field(gt=0, le=1)] = 0.95
    """KV-cache use (p95) from which there is no room for a draft model (R07c)."""
    min_gain: Annotated[float, Field(ge=1)] = 1.1
    """Middle of the gain below which a trial is not worth it."""
    draft_tokens: Annotated[int, Field(ge=1, le=16)] = speculative.DRAFT_TOKENS
    """Tokens drafted per step."""


def evaluate(evidence: Evidence, limits: SpeculativeDecodingLimits) -> Iterator[Verdict]:
    """Every engine of the fleet."""
    yield from of_each_engine(
        evidence,
        RULE_ID,
        limits,
        partial(_engine, evidence, limits),
        concerns=lambda each: not speculates(each.engine.identity.settings),
    )


def _engine(evidence: Evidence, limits: SpeculativeDecodingLimits, serving: Serving) -> Iterator[Verdict]:
    whole = serving.engine.running
    if not _is_small(whole, limits) or not _is_small(merged(recent_hours(serving.engine), "running"), limits):
        return
    ratio = serving.prompt_per_generated
    if serving.mbu is None or serving.mfu is None or serving.model is None or ratio is None:
        why = (
            "Whether a step has arithmetic to spare needs the model, its precision, the GPU and the contexts."
        )
        yield unjudged(RULE_ID, serving, serving.missing or ("step-time model",), why)
        return
    if serving.mbu > MOST_MBU:
        why = (
            f"MBU comes out at {serving.mbu:.2f}, more than the memory can move: it may decode speculatively already, or"
            " precision or GPU are not what they seem."
        )
        yield unjudged(RULE_ID, serving, ("consistent counters",), why)
        return
    if serving.mbu < limits.min_mbu or serving.mfu >= limits.max_mfu:
        return
    if (serving.engine.kv_used.quantile(0.95) or 0.0) >= limits.max_kv_used_ratio:
        return  # no room for a draft; what is short is memory
    batch = max(1.0, whole.quantile(0.5) or 1.0)
    gain = speculative.gain(
        serving.model, batch, prompt_per_generated=ratio, draft_tokens=limits.draft_tokens
    )
    if gain is None:
        why = "What verifying costs needs the arithmetic of a token: model and GPU rate in the catalogue."
        yield unjudged(RULE_ID, serving, ("model architecture",), why)
    elif gain.p50 >= limits.min_gain:
        yield _finding(evidence, limits, serving, batch=batch, ratio=ratio, gain=gain)


def _is_small(running: Histogram, limits: SpeculativeDecodingLimits) -> bool:
    median = running.quantile(0.5)
    return median is not None and median <= limits.max_running_p50


def _finding(
    evidence: Evidence,
    limits: SpeculativeDecodingLimits,
    serving: Serving,
    *,
    batch: float,
    ratio: float,
    gain: Range,
) -> Finding:
    model, identity = serving.model, serving.engine.identity
    assert model is not None
    tokens = limits.draft_tokens
    limit = speculative.break_even_batch(model, prompt_per_generated=ratio, draft_tokens=tokens)
    worst = speculative.break_even_batch(
        model, prompt_per_generated=ratio, draft=speculative.POOR, draft_tokens=tokens
    )
    busiest = serving.engine.running.quantile(0.95) or batch
    at_peak = speculative.gain(model, max(1.0, busiest), prompt_per_generated=ratio, draft_tokens=tokens)
    facts: dict[str, Any] = {
        "running_p50": batch,
        "running_p95": busiest,
        "mbu_ratio": serving.mbu,
        "mfu_ratio": serving.mfu,
        "itl_s_now": serving.itl_s,
        "draft_tokens": tokens,
        **as_facts("gain", gain),
        **({} if at_peak is None else as_facts("gain_at_p95_batch", at_peak)),
        "break_even_batch": None if limit == speculative.LARGEST_BATCH else limit,
        "break_even_batch_poor_drafts": worst,
        "step_basis": model.basis,
    }
    return engine_finding(
        evidence,
        serving,
        rule_id=RULE_ID,
        cause="small-batch-latency",
        title=f"Try speculative decoding on {serving.label} if answers should come faster",
        because=(
            f"Its steps read memory at {percent(serving.mbu or 0.0)} of the bandwidth and use {percent(serving.mfu or 0.0)}"
            f" of the arithmetic at a batch of {batch:g} (median): {tokens} drafted tokens a step could make answers"
            f" {gain.p10:.2g} to {gain.p90:.2g} times as fast."
        ),
        state="memory-bound with few requests",
        grade=Grade.D,
        basis="Acceptance and cost of drafts from the literature, over this engine's step time",
        facts=facts,
        actions=(
            Action(
                f"Start one replica with {tokens} drafted tokens a step and compare time between tokens, acceptance and"
                " answers with the others for a busy day",
                flags.filled(flags.SPECULATE, identity.kind, identity.model, tokens=tokens),
            ),
            Action(
                f"Leave it off where batches stay above about {worst or 1}: with drafts that are seldom accepted, verifying"
                " costs more than it saves there"
            ),
        ),
        wrong_when="Drafts are seldom accepted (creative text, high temperature), latency is good enough, or batches are about"
        " to grow.",
        not_claimed="Money, and any gain at large batches: it shrinks with the batch and can turn into a loss.",
        no_figure=NO_FIGURE,
        chart=profile_chart(
            (
                (float(b), each.p50)
                for b in CHART_BATCHES
                if (each := speculative.gain(model, b, prompt_per_generated=ratio, draft_tokens=tokens))
            ),
            "times today's rate",
            "requests",
            1.0,
        ),
        effort=Effort.MEDIUM,
        risk=Risk.MEDIUM,
    )


RULE: Final = Rule(
    id=RULE_ID,
    code="R30",
    title="Try speculative decoding where few requests wait for memory",
    needs=frozenset({"running_requests", "generated_tokens", "prompt_tokens", "kv_used_ratio"}),
    limits=SpeculativeDecodingLimits(),
    effort=Effort.MEDIUM,
    risk=Risk.MEDIUM,
    sources=(
        Source("Speculative decoding in vLLM, a production study", "https://arxiv.org/abs/2601.11580"),
        Source(
            "Leviathan et al., Fast Inference from Transformers via Speculative Decoding",
            "https://arxiv.org/abs/2211.17192",
        ),
    ),
    evaluate=evaluate,
)
