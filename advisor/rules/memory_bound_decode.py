"""Decoding is limited by how fast weights and KV cache can be read, not by arithmetic.

What it finds
    Engines that move at least 60 % of the bytes their memory could (MBU ≥ 0.6) while using under 25 % of the
    arithmetic (MFU < 0.25), for ten minutes or longer. Without engine counters: GPUs whose DRAM, tensor and SM
    activity say so, and last, as *likely*, busy and memory-busy GPUs of a known engine well below their power limit.

Why it costs
    Nothing by itself: this is a classification. It says which changes can pay (more sequences per read, fewer bytes
    per weight, less KV cache, lower clocks) and which cannot (more arithmetic).

When it is wrong
    Any streaming work looks the same on GPU counters: embedding lookups, stencils, optimizer steps. MLA decoding and
    grouped-query models at large batches are mixed. Speculative decoding makes steps look faster than memory allows.

What to do
    Follow ``small-batch`` first, then ``quantization-candidate``. Do not buy arithmetic for it.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

from pydantic import Field

from advisor import gpu_signs
from advisor.confidence import duration, graded
from advisor.digest import digest
from advisor.engine_time import engine_coverage, engine_span_h, engine_subject
from advisor.estimators.utilization import MEMORY_BOUND_MBU, MOST_MBU
from advisor.facts import rounded, time_chart, window_facts
from advisor.fleet import gpu_subject, label
from advisor.model import Limits, Rule, Source, Verdict, counted
from advisor.recent import recent_hours, silence
from advisor.serving import Serving, hour_shares, servings
from core.evidence import Evidence, GpuEvidence
from core.finding import Action, Effort, Finding, Grade, NotEvaluated, Risk, Saving, Subject
from core.hours import EngineHour
from core.percent import percent

RULE_ID: Final = "memory-bound-decode"
NO_FIGURE: Final = "A classification, not a saving: it says which changes can pay."
WRONG_WHEN: Final = (
    "The work streams memory without being a decoder (embedding lookup, stencil, optimizer step), uses latent"
    " attention, or decodes speculatively."
)


class MemoryBoundDecodeLimits(Limits):
    """Thresholds of ``memory-bound-decode``."""

    min_mbu: Annotated[float, Field(gt=0, le=1)] = MEMORY_BOUND_MBU
    """Share of the memory bandwidth in use from which decoding is memory-bound (2.3)."""
    max_mfu: Annotated[float, Field(gt=0, le=1)] = 0.25
    """Share of the arithmetic in use below which it is not compute-bound (R06)."""
    min_bound_s: Annotated[float, Field(ge=60)] = 600.0
    """Time in that state (R06: 10 minutes)."""
    min_bound_ratio: Annotated[float, Field(ge=0, le=1)] = 0.2
    """The same as a share of busy time: ten minutes in a month are no character."""
    min_coverage_ratio: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Samples received over samples due."""
    min_busy_ratio: Annotated[float, Field(gt=0, le=1)] = 0.9
    """NVML-only variant: time with a kernel."""
    min_memory_busy_ratio: Annotated[float, Field(gt=0, le=1)] = 0.8
    """NVML-only variant: time with memory traffic (recall 26 of 39 on public Llama-2-7B traces [S4])."""
    max_power_ratio: Annotated[float, Field(gt=0, le=1)] = 0.8
    """NVML-only variant: power over the limit in force."""

    @property
    def signs(self) -> gpu_signs.Signs:
        """The NVML-only variant's thresholds."""
        return gpu_signs.Signs(self.min_busy_ratio, self.min_memory_busy_ratio, self.max_power_ratio)


def evaluate(evidence: Evidence, limits: MemoryBoundDecodeLimits) -> Iterator[Verdict]:
    """Every engine, then every GPU that no engine was judged on."""
    served: set[str] = set()
    for serving in servings(evidence):
        served.update(serving.engine.gpu_uuids)
        yield from _engine(evidence, serving, limits)
    at_work = [
        gpu
        for gpu in evidence.gpus
        if gpu.gpu_uuid not in served and digest(evidence, gpu).active_h >= limits.min_bound_s / 3600
    ]
    told = [gpu for gpu in at_work if gpu_signs.has_counters(gpu)]
    blind = len(at_work) - len(told)
    if blind:
        why = "worked without engine metrics and without profiling counters: what kind of work ran is not known."
        missing = ("engine metrics", "dram_active_ratio", "sm_active_ratio")
        yield counted(RULE_ID, missing, blind, f"1 GPU {why}", f"{{count}} GPUs {why}")
    for gpu in told:
        yield from _gpu(evidence, gpu, limits)


def _engine(evidence: Evidence, serving: Serving, limits: MemoryBoundDecodeLimits) -> Iterator[Verdict]:
    engine, subject = serving.engine, engine_subject(serving)
    if engine.busy_s < limits.min_bound_s:
        why = f"Busy for {duration(engine.busy_s / 3600)}; {duration(limits.min_bound_s / 3600)} are needed."
        yield NotEvaluated(RULE_ID, subject, ("busy time",), why)
    elif (silent := silence(engine, evidence.window)) is not None:
        yield NotEvaluated(RULE_ID, subject, *silent)
    elif engine_coverage(engine) < limits.min_coverage_ratio:
        yield NotEvaluated(
            RULE_ID, subject, ("samples",), f"Samples cover {percent(engine_coverage(engine))} of the time."
        )
    elif serving.mbu is None or serving.mfu is None or "a GPU of its own" in serving.missing:
        yield from _by_gpus(evidence, serving, limits)
    elif serving.mbu > MOST_MBU:
        why = (
            f"MBU comes out at {serving.mbu:.2f}, more than the memory can move: weight precision, GPU or token counter"
            " are not what they seem (speculative decoding counts several tokens a step)."
        )
        yield NotEvaluated(RULE_ID, subject, ("consistent counters",), why)
    else:
        yield from _by_engine_counters(evidence, serving, limits)


def _by_engine_counters(
    evidence: Evidence, serving: Serving, limits: MemoryBoundDecodeLimits
) -> Iterator[Finding]:
    shares: list[tuple[EngineHour, float, float]] = []
    for hour in serving.engine.hours:
        mbu, mfu = hour_shares(serving, hour)
        if mbu is not None and mfu is not None:
            shares.append((hour, mbu, mfu))
    bound = [(h, mbu, mfu) for h, mbu, mfu in shares if mbu >= limits.min_mbu and mfu < limits.max_mfu]
    bound_s = sum(hour.busy_s for hour, _, _ in bound)
    if bound_s < max(limits.min_bound_s, limits.min_bound_ratio * serving.engine.busy_s):
        return
    lately = recent_hours(serving.engine)
    since_ms = min(hour.hour_ms for hour in lately)
    still_s = sum(hour.busy_s for hour, _, _ in bound if hour.hour_ms >= since_ms)
    if still_s < limits.min_bound_ratio * sum(hour.busy_s for hour in lately):
        return  # it was so, and is no more
    mean_mbu = sum(h.busy_s * mbu for h, mbu, _ in bound) / bound_s
    mean_mfu = sum(h.busy_s * mfu for h, _, mfu in bound) / bound_s
    facts = {
        "mbu_ratio": round(mean_mbu, 4),
        "mfu_ratio": round(mean_mfu, 4),
        "bound_h": round(bound_s / 3600, 3),
        "running_mean": serving.running,
        "half_batch": serving.half_batch,
        "itl_s": serving.step_s,
        "tokens_per_s": serving.tokens_per_s,
        "weight_precision": None
        if serving.precision is None
        else f"{serving.precision.bits}-bit ({serving.precision.basis})",
    }
    yield _finding(
        evidence,
        serving,
        Grade.B,
        cause="engine-counters",
        basis="Bytes and operations per step from the engine's own counters, model and GPU from the catalogue",
        because=f"Decoding uses {percent(mean_mbu)} of the memory bandwidth and {percent(mean_mfu)} of the arithmetic, for {duration(bound_s / 3600)} of busy time.",
        state="memory-bound",
        facts=facts,
        chart=time_chart(((hour.hour_ms, mbu) for hour, mbu, _ in shares), "MBU", limits.min_mbu),
    )


def _by_gpus(evidence: Evidence, serving: Serving, limits: MemoryBoundDecodeLimits) -> Iterator[Verdict]:
    """Without MBU: the GPU's profiling counters, else NVML's utilization as a likely answer."""
    if serving.gpus and all(gpu_signs.has_counters(gpu) for gpu in serving.gpus):
        bound_h = min(digest(evidence, gpu).memory_bound_h for gpu in serving.gpus)
        if _is_bound(bound_h, max(digest(evidence, gpu).active_h for gpu in serving.gpus), limits):
            yield _finding(
                evidence,
                serving,
                Grade.A,
                cause="gpu-counters",
                basis="DRAM, tensor and SM activity of its GPUs",
                because=f"Its GPUs moved memory without much arithmetic for {duration(bound_h)}.",
                state="memory-bound",
                facts={"bound_h": round(bound_h, 3), **gpu_signs.counter_facts(serving.gpus[0])},
                chart={},
            )
        return
    known = [gpu_signs.likely_memory_bound_h(gpu, limits.signs) for gpu in serving.gpus]
    if not known or None in known:
        missing = (*serving.missing, "dram_active_ratio", "power_limit_w")
        why = (
            "MBU needs the model, its precision and the GPU; without GPU profiling counters, memory utilization and a"
            " power limit nothing else tells it."
        )
        yield NotEvaluated(RULE_ID, engine_subject(serving), tuple(dict.fromkeys(missing)), why)
        return
    likely_h = min(hours for hours in known if hours is not None)
    if _is_bound(likely_h, max(digest(evidence, gpu).active_h for gpu in serving.gpus), limits):
        yield _finding(
            evidence,
            serving,
            Grade.C,
            cause="utilization",
            basis="Likely only: utilization and power of an LLM engine's GPU; public traces show that small models are missed",
            because=(
                f"For {duration(likely_h)} a kernel ran and memory moved nearly all the time, at under"
                f" {percent(limits.max_power_ratio)} of the power limit."
            ),
            state="likely memory-bound",
            facts={"bound_h": round(likely_h, 3), "missing": list(serving.missing)},
            chart={},
        )


def _gpu(evidence: Evidence, gpu: GpuEvidence, limits: MemoryBoundDecodeLimits) -> Iterator[Verdict]:
    """A GPU without a known engine: only its profiling counters can say it, and not that it decodes."""
    if digest(evidence, gpu).coverage < limits.min_coverage_ratio:
        why = f"Samples cover {percent(digest(evidence, gpu).coverage)} of the time."
        yield NotEvaluated(RULE_ID, gpu_subject(gpu), ("samples",), why)
        return
    bound_h = digest(evidence, gpu).memory_bound_h
    if not _is_bound(bound_h, digest(evidence, gpu).active_h, limits):
        return
    grade, confidence = graded(
        Grade.B,
        "DRAM, tensor and SM activity say memory-bound; that the work is decoding is not confirmed by an engine",
        span_h=digest(evidence, gpu).observed_h,
        covered_h=digest(evidence, gpu).covered_h,
    )
    yield _shaped(
        subject=gpu_subject(gpu),
        name=label(gpu),
        cause="gpu-counters",
        because=f"Memory moved without much arithmetic for {duration(bound_h)} of {duration(digest(evidence, gpu).active_h)} of work.",
        state="memory-bound, decoding not confirmed",
        grade=grade,
        confidence=confidence,
        facts={
            **window_facts(evidence, digest(evidence, gpu).coverage),
            "bound_h": round(bound_h, 3),
            "active_h": round(digest(evidence, gpu).active_h, 3),
            **gpu_signs.counter_facts(gpu),
        },
        actions=(
            Action(
                "Import or scrape the /metrics of what runs here: with engine counters the next step gets a figure."
            ),
        ),
        gpu_uuids=(gpu.gpu_uuid,),
        chart=time_chart(
            ((hour.hour_ms, hour.dram_active_ratio) for hour in gpu.hours[-24 * 14 :]), "DRAM activity", 0.5
        ),
    )


def _is_bound(bound_h: float, active_h: float, limits: MemoryBoundDecodeLimits) -> bool:
    return bound_h >= max(limits.min_bound_s / 3600, limits.min_bound_ratio * active_h)


def _finding(
    evidence: Evidence,
    serving: Serving,
    grade: Grade,
    *,
    cause: str,
    basis: str,
    because: str,
    state: str,
    facts: dict[str, Any],
    chart: Mapping[str, Any],
) -> Finding:
    engine = serving.engine
    lower, confidence = graded(grade, basis, span_h=engine_span_h(engine), covered_h=engine.covered_s / 3600)
    quality = "".join(f" {text[0].upper()}{text[1:]}." for text in serving.data_quality)
    return _shaped(
        subject=engine_subject(serving),
        name=serving.label,
        cause=cause,
        because=because,
        state=state,
        grade=lower,
        confidence=confidence + quality,
        facts={**window_facts(evidence, engine_coverage(engine)), **rounded(facts)},
        actions=_actions(serving),
        gpu_uuids=tuple(gpu.gpu_uuid for gpu in serving.gpus),
        chart=chart,
    )


def _actions(serving: Serving) -> tuple[Action, ...]:
    bytes_less = Action(
        "Then read fewer bytes: see quantization-candidate for this engine, and validate on your own evaluation set."
    )
    if (
        serving.running is not None
        and serving.half_batch is not None
        and serving.running < serving.half_batch
    ):
        return Action("Serve more sequences per step first: see small-batch for this engine."), bytes_less
    return (bytes_less,)


def _shaped(
    *,
    subject: Subject,
    name: str,
    cause: str,
    because: str,
    state: str,
    grade: Grade,
    confidence: str,
    facts: dict[str, Any],
    actions: tuple[Action, ...],
    gpu_uuids: tuple[str, ...],
    chart: Mapping[str, Any],
) -> Finding:
    return Finding(
        rule_id=RULE_ID,
        subject=subject,
        cause=cause,
        title=f"Tune {name} for memory traffic, not for arithmetic",
        because=because,
        state=state,
        confidence=confidence,
        grade=grade,
        effort=Effort.LOW,
        risk=Risk.LOW,
        saving=Saving(),
        no_figure=NO_FIGURE,
        evidence=facts,
        actions=actions,
        wrong_when=WRONG_WHEN,
        not_claimed="Any saving: it comes from the changes this points to.",
        gpu_uuids=gpu_uuids,
        stage="workload",
        chart=chart,
    )


RULE: Final = Rule(
    id=RULE_ID,
    code="R06",
    title="Tune memory-bound decoding for memory traffic",
    needs=frozenset(
        {
            "running_requests",
            "generated_tokens",
            "prompt_tokens",
            "kv_used_ratio",
            "dram_active_ratio",
            "memory_busy_ratio",
        }
    ),
    limits=MemoryBoundDecodeLimits(),
    effort=Effort.LOW,
    risk=Risk.LOW,
    sources=(
        Source("Recasens et al., Mind the Memory Gap", "https://arxiv.org/abs/2503.08311"),
        Source(
            "NVIDIA DCGM: profiling metrics",
            "https://docs.nvidia.com/datacenter/dcgm/latest/user-guide/feature-overview.html",
        ),
    ),
    evaluate=evaluate,
)
