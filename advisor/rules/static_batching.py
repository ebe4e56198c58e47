"""A language model is served in fixed batches: nobody joins before the longest answer of the batch is done.

What it finds
    Engines whose own settings turn continuous batching off, and GPUs whose workload is by its name a serving stack
    without it (a plain pipeline), reads memory like a decoder, and stops and goes within the hour.

Why it costs
    Short answers are padded to the longest one of their batch and new requests wait for all of it, so the GPU decodes
    for sequences that are over and then stands still. Stacks with continuous batching fill the place of each answer.

When it is wrong
    Requests come one at a time, so there is nothing to batch; the workload is not a language model, or a name says less
    than it seems. Offline batches of equal length lose little.

What to do
    Serve the model with vLLM, SGLang or TensorRT-LLM beside the old stack, send both the same requests for a day, and
    compare tokens per second and latency. Only such a trial gives a number.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated, Any, Final

from pydantic import Field

from advisor.confidence import duration, graded
from advisor.digest import digest
from advisor.engine_finding import EngineLimits, engine_finding, of_each_engine
from advisor.engine_settings import switch
from advisor.facts import rounded, time_chart, window_facts
from advisor.fleet import gpu_subject, label
from advisor.gpu_jobs import main_use, served
from advisor.gpu_work import WorkLimits, memory_bound, recent, unfit
from advisor.model import Rule, Source, Verdict
from advisor.python_work import unseen
from advisor.serving import Serving
from core.evidence import Evidence, GpuEvidence, WorkloadUse
from core.finding import Action, Effort, Finding, Grade, NotEvaluated, Risk, Saving
from core.hours import GpuHour
from core.percent import percent

RULE_ID: Final = "static-batching"
LEGACY: Final = re.compile(
    r"torchserve|hf[-_]?pipeline|hf[-_]inference|huggingface|transformers|fastchat|model[-_]worker"
    r"|text[-_]generation[-_]webui|oobabooga"
)
"""Names of stacks that serve a model without continuous batching, unless told otherwise."""
NOT_LEGACY: Final = re.compile(
    r"vllm|sglang|tgi|text[-_]generation[-_](inference|launcher|server)|trt|triton|llama|lmdeploy|train|tune|sft|embed"
)
"""Names that say continuous batching, another engine, or no serving at all."""
NO_FIGURE: Final = (
    "No figure, because what continuous batching gives depends on how answers differ in length and how requests come: a"
    " trial with your own requests tells."
)


class StaticBatchingLimits(EngineLimits, WorkLimits):
    """Thresholds of ``static-batching``."""

    min_parallel: Annotated[float, Field(ge=1)] = 2.0
    """Sequences at once below which there is no batch to be static."""
    min_pulsing_ratio: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Share of the hours at work that hold both work and standstill: the saw-tooth of fixed batches."""
    min_pause_ratio: Annotated[float, Field(gt=0, lt=0.5)] = 0.1
    """Share of an hour in work and in standstill each before it counts as both."""


def evaluate(evidence: Evidence, limits: StaticBatchingLimits) -> Iterator[Verdict]:
    """Every engine, then GPUs whose workload's name says such a stack; one sentence for those that say nothing."""
    yield from of_each_engine(
        evidence, RULE_ID, limits, partial(_engine, evidence, limits), concerns=partial(_is_static, limits)
    )
    engines = served(evidence)
    named: set[str] = set()
    for gpu in evidence.gpus:
        use = main_use(gpu)
        if gpu.gpu_uuid in engines or use is None or not is_legacy(use):
            continue
        named.add(gpu.gpu_uuid)
        yield from _gpu(evidence, limits, gpu, use)
    why = "whether a language model is served in fixed batches is not seen from here."
    yield from unseen(evidence, RULE_ID, ("engine metrics",), why, but=named)


def is_legacy(use: WorkloadUse) -> bool:
    """A name of the workload says a serving stack without continuous batching."""
    names = [use.workload.name, *(value for _, value in use.workload.attributes)]
    text = " ".join(names).lower()
    return LEGACY.search(text) is not None and NOT_LEGACY.search(text) is None


def _is_static(limits: StaticBatchingLimits, serving: Serving) -> bool:
    """Its settings turn continuous batching off, and it has more than one slot."""
    ceiling = serving.batch_ceiling
    off = switch(serving.engine.identity.settings, "continuous_batching") is False
    return off and (ceiling is None or ceiling >= limits.min_parallel)


def _engine(evidence: Evidence, limits: StaticBatchingLimits, serving: Serving) -> Iterator[Verdict]:
    demand = serving.engine.running.quantile(0.95) or 0.0
    queue = serving.engine.waiting.quantile(0.95)
    if demand < limits.min_parallel and not queue:
        return  # one at a time: nothing to batch
    yield _engine_finding(evidence, serving, demand, queue)


def _engine_finding(evidence: Evidence, serving: Serving, demand: float, queue: float | None) -> Finding:
    facts: dict[str, Any] = {
        "running_p50": serving.engine.running.quantile(0.5),
        "running_p95": demand,
        "waiting_p95": queue,
        "tokens_per_s_now": serving.tokens_per_s,
        "batch_limit": serving.batch_ceiling,
        "continuous_batching": False,
    }
    model = serving.engine.identity.model or "MODEL"
    return engine_finding(
        evidence,
        serving,
        rule_id=RULE_ID,
        cause="setting",
        title=f"Turn continuous batching on for {serving.label}",
        because=(
            f"Its settings turn continuous batching off while up to {demand:g} requests run at once (p95): new ones wait until"
            " a whole batch is done."
        ),
        state="continuous batching off",
        grade=Grade.A,
        basis="The engine's own settings say so",
        facts=facts,
        actions=(
            Action(
                "Restart without --no-cont-batching; it is on by default",
                f"llama-server -m {model} -np {serving.batch_ceiling:.0f} --cont-batching"
                if serving.batch_ceiling is not None and serving.engine.identity.kind == "llamacpp"
                else None,
            ),
        ),
        wrong_when="Requests come in offline batches of equal length.",
        not_claimed="A gain: it depends on the lengths of answers and on how requests come.",
        no_figure=NO_FIGURE,
        chart=time_chart(
            ((hour.hour_ms, hour.running.quantile(0.95)) for hour in serving.engine.hours),
            "requests",
            serving.batch_ceiling,
        ),
    )


def _gpu(
    evidence: Evidence, limits: StaticBatchingLimits, gpu: GpuEvidence, use: WorkloadUse
) -> Iterator[Verdict]:
    """The name alone is no proof: it must read memory like a decoder, and stop and go."""
    if digest(evidence, gpu).active_h < limits.min_work_h:
        return
    refusal = unfit(evidence, gpu, limits)
    if refusal is not None:
        yield NotEvaluated(RULE_ID, gpu_subject(gpu), *refusal)
        return
    hours = recent(evidence, gpu).active
    streams = memory_bound(hours)
    if streams is None:
        why = f"{use.workload.name} may serve a language model in fixed batches; without engine metrics or memory counters its name is all there is."
        missing = ("engine metrics", "dram_active_ratio")
        yield NotEvaluated(RULE_ID, gpu_subject(gpu), missing, why)
    elif streams and (share := pulsing_ratio(hours, limits.min_pause_ratio)) >= limits.min_pulsing_ratio:
        yield _gpu_finding(evidence, limits, gpu, use, hours=hours, share=share)


def pulsing_ratio(hours: Sequence[GpuHour], min_pause_ratio: float) -> float:
    """Share of the hours with both work and standstill in them, 0–1; 0 without hours."""
    both = [
        hour
        for hour in hours
        if min_pause_ratio * hour.covered_s <= hour.active_s <= (1 - min_pause_ratio) * hour.covered_s
    ]
    return len(both) / len(hours) if hours else 0.0


def _gpu_finding(
    evidence: Evidence,
    limits: StaticBatchingLimits,
    gpu: GpuEvidence,
    use: WorkloadUse,
    *,
    hours: Sequence[GpuHour],
    share: float,
) -> Finding:
    seen = digest(evidence, gpu)
    covered_s = sum(hour.covered_s for hour in hours)
    active = sum(hour.active_s for hour in hours) / covered_s
    grade, confidence = graded(
        Grade.D,
        "A name, memory-bound work and pauses within the hour fit fixed batches; requests are not seen",
        span_h=seen.observed_h,
        covered_h=seen.covered_h,
    )
    return Finding(
        rule_id=RULE_ID,
        subject=gpu_subject(gpu),
        cause="name",
        title=f"Try continuous batching for {use.workload.name} on {label(gpu)}",
        because=(
            f"{use.workload.name} is by its name a stack without continuous batching; in its last {duration(covered_s / 3600)}"
            f" of work it read memory like a decoder and was at work for {percent(active)} of the time, with pauses in"
            f" {percent(share)} of the hours."
        ),
        state="possibly static batching",
        confidence=confidence,
        grade=grade,
        effort=Effort.HIGH,
        risk=Risk.MEDIUM,
        saving=Saving(),
        no_figure=NO_FIGURE,
        evidence=rounded(
            {
                **window_facts(evidence, seen.coverage),
                "workload": use.workload.name,
                "work_h": covered_s / 3600,
                "active_ratio": active,
                "pulsing_hours_ratio": share,
            }
        ),
        actions=(
            Action(
                "Serve the same model with vLLM, SGLang or TensorRT-LLM beside it and send both the same requests for a day",
                "vllm serve MODEL",
            ),
        ),
        wrong_when="It is not a language model, requests come one at a time, or its name says less than it seems.",
        not_claimed="A gain, and that it batches at all: requests are not seen from here.",
        gpu_uuids=(gpu.gpu_uuid,),
        stage="workload",
        chart=time_chart(
            ((hour.hour_ms, hour.active_s / hour.covered_s) for hour in hours),
            "share of the hour at work",
            1 - limits.min_pause_ratio,
        ),
    )


RULE: Final = Rule(
    id=RULE_ID,
    code="R34",
    title="Serve language models with continuous batching",
    needs=frozenset({"workloads", "running_requests", "dram_active_ratio"}),
    limits=StaticBatchingLimits(),
    effort=Effort.HIGH,
    risk=Risk.MEDIUM,
    sources=(
        Source(
            "Yu et al., Orca: a distributed serving system for transformer-based generative models",
            "https://www.usenix.org/conference/osdi22/presentation/yu",
        ),
        Source(
            "llama.cpp server: continuous batching",
            "https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md",
        ),
    ),
    evaluate=evaluate,
)
