"""A deep-learning job keeps the multiprocessors busy and leaves the tensor cores idle.

What it finds
    GPUs on which a Python process works with SM activity above 0.6, tensor activity under 0.05 and fp32 activity
    above 0.2 for an hour or longer: plain fp32 arithmetic. And, under its own name and without any figure, GPUs whose
    utilization says 100 % while the multiprocessors are under 0.3 active: high utilization, little work.

Why it costs
    Tensor cores multiply matrices several times as fast as the fp32 pipe. Work that could use them and does not
    takes more GPU-hours than it needs.

When it is wrong
    Simulation in double precision, sparse or element-wise work, decoding with few sequences, or a computation whose
    result needs every bit of fp32. Tensor cores help only that part of the time that multiplies matrices.

What to do
    Allow TF32, or train with bf16 autocast, and compare the loss curve. For high utilization with little work, take a
    profile: many small kernels want CUDA graphs, larger batches or fused operations.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Field

from advisor.confidence import duration, graded
from advisor.digest import digest
from advisor.facts import price_facts, rounded, time_chart, window_facts
from advisor.fleet import gpu_subject, label
from advisor.gpu_jobs import is_python, main_use, names_no_program, served
from advisor.gpu_work import (
    WorkLimits,
    freed,
    hours_of,
    is_dark,
    little_work,
    mean,
    means,
    recent,
    share,
    unfit,
    unread,
    whole_hours,
)
from advisor.model import Rule, Source, Verdict
from catalog import gpu_specs
from core.activity import Activity
from core.evidence import Evidence, GpuEvidence
from core.finding import Action, Effort, Finding, Grade, NotEvaluated, Range, Risk, Saving
from core.hours import GpuHour
from core.percent import percent

RULE_ID: Final = "tensor-cores-unused"
COUNTERS: Final = ("sm_active_ratio", "tensor_active_ratio", "fp32_active_ratio")
TF32_CODE: Final = 'torch.set_float32_matmul_precision("high")'


class TensorCoresUnusedLimits(WorkLimits):
    """Thresholds of ``tensor-cores-unused``."""

    min_sm_ratio: Annotated[float, Field(gt=0, lt=1)] = 0.6
    """SM activity above which the multiprocessors do work (R28)."""
    max_tensor_ratio: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """Tensor activity below which the tensor cores are unused (R28)."""
    min_fp32_ratio: Annotated[float, Field(gt=0, lt=1)] = 0.2
    """fp32 activity above which plain arithmetic does the work (R28)."""
    max_fp64_ratio: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """fp64 activity above which it is a simulation, not deep learning (R28)."""
    min_full_busy_ratio: Annotated[float, Field(gt=0, le=1)] = 0.9
    """Utilization that looks like a full card."""
    max_little_sm_ratio: Annotated[float, Field(gt=0, lt=1)] = 0.3
    """SM activity below which a full-looking card does little (below 0.5 is ineffective by NVIDIA's guide [S1])."""


@dataclass(frozen=True, slots=True)
class Looks:
    """Hours of one kind of look: ``fp32`` or ``little-work``."""

    cause: str
    hours: Sequence[GpuHour]


def evaluate(evidence: Evidence, limits: TensorCoresUnusedLimits) -> Iterator[Verdict]:
    """Every GPU at work that no LLM engine serves from."""
    blind: list[GpuEvidence] = []
    engines = served(evidence)
    for gpu in evidence.gpus:
        lately = recent(evidence, gpu).whole
        if not lately or gpu.gpu_uuid in engines:
            blind += [gpu] if not lately and is_dark(evidence, gpu) else []
            continue
        if any(mean(lately, name) is None for name in COUNTERS):
            blind.append(gpu)
            continue
        looks = _looks(lately, limits)
        if looks is None:
            continue
        refusal = unfit(evidence, gpu, limits) or _refusal(gpu, looks, limits)
        if refusal is not None:
            yield NotEvaluated(RULE_ID, gpu_subject(gpu), *refusal)
        elif looks.cause == "fp32":
            yield _fp32(evidence, gpu, limits)
        else:
            yield _little(evidence, gpu, looks.hours)
    yield from unread(
        RULE_ID, blind, COUNTERS, "which pipes work is not known (profiling counters of Hopper or DCGM)."
    )


def _is_fp32(hour: GpuHour, limits: TensorCoresUnusedLimits) -> bool:
    return (
        hour.sm_active_ratio is not None
        and hour.tensor_active_ratio is not None
        and hour.fp32_active_ratio is not None
        and hour.sm_active_ratio > limits.min_sm_ratio
        and hour.tensor_active_ratio < limits.max_tensor_ratio
        and hour.fp32_active_ratio > limits.min_fp32_ratio
        and (hour.fp64_active_ratio is None or hour.fp64_active_ratio <= limits.max_fp64_ratio)
    )


def _looks(hours: Sequence[GpuHour], limits: TensorCoresUnusedLimits) -> Looks | None:
    fp32 = [hour for hour in hours if _is_fp32(hour, limits)]
    if hours_of(fp32) >= 0.5 * hours_of(hours) > 0:
        return Looks("fp32", fp32)
    little = [
        hour
        for hour in hours
        if (hour.busy_ratio or 0.0) >= limits.min_full_busy_ratio
        and hour.sm_active_ratio is not None
        and hour.sm_active_ratio < limits.max_little_sm_ratio
        and share([hour], Activity.MEMORY_BOUND, Activity.SPINNING) < 0.5
    ]
    if hours_of(little) >= 0.5 * hours_of(hours) > 0:
        return Looks("little-work", little)
    return None


def _refusal(
    gpu: GpuEvidence, looks: Looks, limits: TensorCoresUnusedLimits
) -> tuple[tuple[str, ...], str] | None:
    """Less than an hour of it, or a program that is not known to be deep learning."""
    if hours_of(looks.hours) < limits.min_work_h:
        due = duration(limits.min_work_h)
        return ("time",), f"It looks so for {duration(hours_of(looks.hours))}; {due} are needed."
    if looks.cause != "fp32":
        return None
    use = main_use(gpu)
    if use is None:
        return (
            ("workload",),
            "Plain fp32 arithmetic, but not known whose: a simulation does not want tensor cores.",
        )
    if not is_python(use) and not names_no_program(use):
        return (
            ("a deep-learning process",),
            f"Plain fp32 arithmetic of {use.workload.name}, which is not known to be deep learning.",
        )
    return None


def _speedup_share(gpu: GpuEvidence, hours: Sequence[GpuHour]) -> float | None:
    """Upper bound of the time saved: the fp32 share of SM activity at the tensor cores' rate instead (Amdahl).

    1 − fp32/tf32 of the data sheet; without TF32 hardware the half-precision rate. None for an unknown card or one
    without tensor cores.
    """
    spec = gpu_specs.by_key(gpu.gpu_key)
    fp32, sm = mean(hours, "fp32_active_ratio"), mean(hours, "sm_active_ratio")
    if spec is None or not spec.fp32_flops or not fp32 or not sm or (spec.compute_capability or 0.0) < 7.0:
        return None
    tensor_flops = spec.tf32_flops or spec.bf16_flops
    if not tensor_flops or tensor_flops <= spec.fp32_flops:
        return None
    return min(1.0, fp32 / sm) * (1 - spec.fp32_flops / tensor_flops)


def _fp32(evidence: Evidence, gpu: GpuEvidence, limits: TensorCoresUnusedLimits) -> Finding:
    hours = [hour for hour in whole_hours(gpu.hours) if _is_fp32(hour, limits)]
    most = _speedup_share(gpu, hours)
    seen = digest(evidence, gpu)
    use = main_use(gpu)
    basis = "The pipes are measured; what tensor cores give is half of an upper bound from the data sheet"
    if use is not None and names_no_program(use):
        basis += ", and what runs inside is not told"
    grade, confidence = graded(Grade.D, basis, span_h=seen.observed_h, covered_h=seen.covered_h)
    capacity = None if most is None else _half_of(freed(evidence, [gpu], hours_of(hours), Grade.A), most)
    fp32, tensor = mean(hours, "fp32_active_ratio") or 0.0, mean(hours, "tensor_active_ratio") or 0.0
    sm = mean(hours, "sm_active_ratio") or 0.0
    return Finding(
        rule_id=RULE_ID,
        subject=gpu_subject(gpu),
        cause="fp32",
        title=f"Use the tensor cores of {label(gpu)}",
        because=(
            f"For {duration(hours_of(hours))} the multiprocessors were {percent(sm)} active and the fp32 pipe {percent(fp32)},"
            f" the tensor cores {percent(tensor)}: full utilization that leaves the fast pipes idle."
        ),
        state="plain fp32 arithmetic",
        confidence=confidence,
        grade=grade,
        effort=Effort.LOW,
        risk=Risk.MEDIUM,
        saving=Saving(capacity_gpu_h_month=capacity),
        no_figure=None
        if capacity is not None
        else "No figure: the catalogue knows no tensor cores faster than the fp32 pipe for this card.",
        evidence=_facts(evidence, gpu, hours, {"time_saved_most_ratio": most}),
        actions=_fp32_actions(gpu),
        wrong_when=(
            "It is a simulation, sparse or element-wise work, or decoding with few sequences, or the result needs"
            " every bit of fp32."
        ),
        not_claimed="Equal accuracy: compare the loss curve or your own evaluation. Money, until whole GPUs fall away.",
        gpu_uuids=(gpu.gpu_uuid,),
        chart=time_chart(
            ((h.hour_ms, h.tensor_active_ratio) for h in gpu.hours[-24 * 14 :]),
            "share of time",
            limits.max_tensor_ratio,
        ),
    )


def _half_of(hours: Range, most: float) -> Range:
    """Half the upper bound as the middle, a quarter as the low end, the bound as the high one."""
    return Range(hours.p10 * most / 4, hours.p50 * most / 2, min(hours.p90, hours.p50) * most)


def _fp32_actions(gpu: GpuEvidence) -> tuple[Action, ...]:
    spec = gpu_specs.by_key(gpu.gpu_key)
    has_tf32 = spec is None or bool(spec.tf32_flops)
    tf32 = Action("PyTorch: let fp32 matrix products use TF32", TF32_CODE)
    mixed = Action(
        "PyTorch: run forward and loss in mixed precision",
        "with torch.autocast('cuda', dtype=torch.bfloat16): ..."
        if has_tf32
        else "with torch.autocast('cuda', dtype=torch.float16): ...  # with torch.amp.GradScaler",
    )
    check = Action("Compare loss curve and evaluation with the run in fp32 before you keep it.")
    return (tf32, mixed, check) if has_tf32 else (mixed, check)


def _little(evidence: Evidence, gpu: GpuEvidence, hours: Sequence[GpuHour]) -> Finding:
    seen = digest(evidence, gpu)
    grade, confidence = graded(
        Grade.A, "Both counters are measured", span_h=seen.observed_h, covered_h=seen.covered_h
    )
    return Finding(
        rule_id=RULE_ID,
        subject=gpu_subject(gpu),
        cause="little-work",
        title=f"Find out why {label(gpu)} does little at full utilization",
        because=little_work(hours).strip(),
        state="high utilization, little work",
        confidence=confidence,
        grade=grade,
        effort=Effort.MEDIUM,
        risk=Risk.LOW,
        saving=Saving(),
        no_figure="No figure: counters show that little is done, not what keeps the kernels small.",
        evidence=_facts(evidence, gpu, hours, {"little_work_h": hours_of(hours)}),
        actions=(
            Action(
                "Take a profile of a minute of it",
                "nsys profile -t cuda,nvtx,osrt -d 60 -o gpu-profile PROGRAM",
            ),
            Action("Many small kernels: torch.compile, CUDA graphs, larger batches, fused optimizers."),
            Action("Few long kernels with few blocks: a larger problem per launch, or share the GPU."),
        ),
        wrong_when="The work cannot be made wider: a sequential algorithm, or a barrier that others are late for.",
        not_claimed="That another job would run beside it without slowing it down.",
        gpu_uuids=(gpu.gpu_uuid,),
        chart=time_chart(
            ((h.hour_ms, h.sm_active_ratio) for h in gpu.hours[-24 * 14 :]), "share of time", 0.3
        ),
    )


def _facts(
    evidence: Evidence, gpu: GpuEvidence, hours: Sequence[GpuHour], more: dict[str, Any]
) -> dict[str, Any]:
    use = main_use(gpu)
    return {
        **window_facts(evidence, digest(evidence, gpu).coverage),
        **price_facts(gpu.price),
        **means(hours, "busy_ratio", *COUNTERS, "fp64_active_ratio", "dram_active_ratio", "power_w"),
        **rounded({"hours": hours_of(hours), **more}),
        **({} if use is None else {"workload": use.workload.name}),
    }


RULE: Final = Rule(
    id=RULE_ID,
    code="R28",
    title="Use the tensor cores",
    needs=frozenset(COUNTERS),
    limits=TensorCoresUnusedLimits(),
    effort=Effort.LOW,
    risk=Risk.MEDIUM,
    sources=(
        Source(
            "DCGM: profiling metrics",
            "https://docs.nvidia.com/datacenter/dcgm/latest/user-guide/feature-overview.html",
        ),
        Source("PyTorch: TensorFloat-32", "https://docs.pytorch.org/docs/stable/notes/cuda.html"),
    ),
    evaluate=evaluate,
)
