"""An engine's GPU waits for the host between decode steps.

What it finds
    Engines that use under half of the memory bandwidth and under a fifth of the arithmetic although requests run, and
    whose steps either take more than 1.8 times what weights, KV cache and arithmetic explain, or are so short that the
    fixed cost of a step (2 ms + 42 µs a sequence) is over 40 % of them while the GPU has no kernel for 15 % of the time.

Why it costs
    Scheduler, tokenizer, sampling and kernel launches run on a few CPU threads. While they do, the GPU is held, billed
    and idle; faster memory, fewer bytes a weight or a newer GPU change nothing about it.

When it is wrong
    The formula is off for this model (custom kernels, adapters, a vision tower, very new GPUs), the weights are wider
    than they seem, or the link between ranks is slow. A step limited by small kernels of a small model is partly so by
    nature.

What to do
    Turn CUDA graphs back on, give the engine whole CPU cores, let it schedule ahead and split its API server from its
    core. For a small model, put a second replica on the same GPU. Do not change the precision of the weights for it.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final

from pydantic import Field

from advisor import execution_flags as flags
from advisor.confidence import duration
from advisor.engine_finding import EngineLimits, engine_finding, of_each_engine, unjudged
from advisor.engine_settings import speculates
from advisor.estimators import kv_pool
from advisor.estimators.decode_step import SEQUENCE_OVERHEAD_S, STEP_OVERHEAD_S
from advisor.estimators.utilization import MOST_MBU
from advisor.facts import as_facts, time_chart
from advisor.host_signs import HourStep, Supports, hour_steps, mean_of, slowed_ratio, supports, with_gpus
from advisor.model import Rule, Source, Verdict
from advisor.recent import recent_hours
from advisor.serving import Serving, formula_of
from core.evidence import Evidence
from core.finding import Action, Effort, Finding, Grade, NotEvaluated, Range, Risk
from core.percent import percent

RULE_ID: Final = "host-bound-serving"
WRONG_WHEN: Final = (
    "The formula is off for this model (adapters, a vision tower, custom kernels, a very new GPU), its weights are wider"
    " than they seem, or the link between its ranks is slow."
)


class HostBoundServingLimits(EngineLimits):
    """Thresholds of ``host-bound-serving``."""

    max_mbu: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Share of the memory bandwidth from which memory could be what a step waits for (R15)."""
    max_mfu: Annotated[float, Field(gt=0, le=1)] = 0.2
    """The same of the arithmetic (R15)."""
    min_step_factor: Annotated[float, Field(ge=1.2)] = 1.8
    """Measured step over the formula's from which the rest is not the GPU's work (R15)."""
    min_overhead_ratio: Annotated[float, Field(gt=0, lt=1)] = 0.4
    """Share of a step that its fixed cost takes (R15)."""
    max_busy_ratio: Annotated[float, Field(gt=0, le=1)] = 0.85
    """Time with a kernel above which there is no gap to fill (R15)."""
    min_bound_ratio: Annotated[float, Field(ge=0, le=1)] = 0.2
    """Share of busy time in that state before it is worth a word."""
    max_sm_active_ratio: Annotated[float, Field(gt=0, le=1)] = 0.8
    """SM activity from which kernels fill the time, whatever a step should take (section 1: effective at 0.8)."""
    max_slowed_ratio: Annotated[float, Field(ge=0, le=1)] = 0.05
    """Share of the work with throttled clocks above which they may be what is slow (R24)."""


@dataclass(frozen=True, slots=True)
class Case:
    """An engine and its hours in that state.

    Attributes:
        slow: step far above the formula. light: a step that is mostly its own fixed cost.
    """

    evidence: Evidence
    serving: Serving
    steps: Sequence[HourStep]
    slow: Sequence[HourStep]
    light: Sequence[HourStep]
    half_width: float

    @property
    def bound(self) -> Sequence[HourStep]:
        """The hours that the finding is about: the larger kind."""
        return self.slow if _busy_s(self.slow) >= _busy_s(self.light) else self.light


def evaluate(evidence: Evidence, limits: HostBoundServingLimits) -> Iterator[Verdict]:
    """Every engine of the fleet."""
    yield from of_each_engine(evidence, RULE_ID, limits, partial(_engine, evidence, limits))


def _engine(evidence: Evidence, limits: HostBoundServingLimits, serving: Serving) -> Iterator[Verdict]:
    formula = formula_of(serving)
    if formula is None or serving.mbu is None or serving.mfu is None:
        why = "What a step should take needs the model, its precision, the GPU and the contexts."
        yield unjudged(RULE_ID, serving, serving.missing or ("step-time model",), why)
        return
    if speculates(serving.engine.identity.settings):
        why = "It decodes speculatively: several tokens a step, so neither rate nor time between tokens is a step's."
        yield unjudged(RULE_ID, serving, ("steps per second",), why)
        return
    lately = hour_steps(serving, formula, recent_hours(serving.engine))
    if lately and not _may_be(lately, limits):
        return  # nothing of it now: the rest need not be read
    steps = hour_steps(serving, formula, serving.engine.hours) if lately else ()
    if _busy_s(steps) < limits.min_busy_s:
        why = (
            "Requests come and go: without a published time between tokens the batch of a step is not known well enough,"
            " and below one request the GPU waits for requests, not for its host."
        )
        yield unjudged(RULE_ID, serving, ("itl_sum_s", "steady load"), why)
        return
    case = _case(evidence, serving, steps, formula.half_width, limits)
    if not _is_so(case, {step.hour.hour_ms for step in lately}, limits):
        return
    refusal = _other_reasons(case, limits)
    yield refusal if refusal is not None else _finding(case, limits)


def _may_be(steps: Sequence[HourStep], limits: HostBoundServingLimits) -> bool:
    """By the engine's own counters, without those of its GPUs, it is in that state for long enough."""
    bound = [s for s in steps if _is_free(s, limits) and (_is_slow(s, limits) or _is_short(s, limits))]
    return _busy_s(bound) >= limits.min_bound_ratio * _busy_s(steps)


def _is_free(step: HourStep, limits: HostBoundServingLimits) -> bool:
    """Neither memory nor arithmetic is what it waits for."""
    return step.mbu < limits.max_mbu and step.mfu < limits.max_mfu


def _is_slow(step: HourStep, limits: HostBoundServingLimits) -> bool:
    return step.step_s > limits.min_step_factor * step.model_s


def _is_short(step: HourStep, limits: HostBoundServingLimits) -> bool:
    """Mostly its own fixed cost."""
    return not _is_slow(step, limits) and _overhead(step) > limits.min_overhead_ratio


def _case(
    evidence: Evidence,
    serving: Serving,
    steps: Sequence[HourStep],
    half_width: float,
    limits: HostBoundServingLimits,
) -> Case:
    free = with_gpus(serving, [step for step in steps if _is_free(step, limits)])
    slow = [step for step in free if _is_slow(step, limits)]
    light = [
        step
        for step in free
        if _is_short(step, limits) and step.busy_ratio is not None and step.busy_ratio < limits.max_busy_ratio
    ]
    return Case(evidence, serving, steps, slow, light, half_width)


def _is_so(case: Case, lately: Collection[int], limits: HostBoundServingLimits) -> bool:
    """Long enough, and in its recent hours still."""
    recent = [step for step in case.steps if step.hour.hour_ms in lately]
    still = [step for step in case.bound if step.hour.hour_ms in lately]
    needed_s = max(limits.min_busy_s, limits.min_bound_ratio * _busy_s(case.steps))
    return _busy_s(case.bound) >= needed_s and _busy_s(still) >= limits.min_bound_ratio * _busy_s(recent) > 0


def _other_reasons(case: Case, limits: HostBoundServingLimits) -> NotEvaluated | None:
    """What would make a step just as slow; None when none of it is seen."""
    serving = case.serving
    hours = [hour for step in case.bound for hour in step.gpu_hours]
    sm_active = mean_of(hours, "sm_active_ratio")
    measured_mbu = mean_of(hours, "dram_active_ratio")
    if kv_pool.number(serving.engine.identity.settings, "cpu_offload_gb") is not None:
        why = "Weights are kept in host memory: a step waits for the link they come over (see pcie-bound)."
        return unjudged(RULE_ID, serving, ("weights on the GPU",), why)
    if slowed_ratio(hours) > limits.max_slowed_ratio:
        why = f"Its GPUs were throttled for {percent(slowed_ratio(hours))} of the work: clocks can be what is slow (see throttled)."
        return unjudged(RULE_ID, serving, ("steady clocks",), why)
    if sm_active is not None and sm_active >= limits.max_sm_active_ratio:
        why = (
            f"Steps are slower than the formula explains, but the multiprocessors were {percent(sm_active)} active: kernels"
            " fill the time. Precision, contexts or the model are not what they seem."
        )
        return unjudged(RULE_ID, serving, ("consistent counters",), why)
    if measured_mbu is not None and measured_mbu >= limits.max_mbu:
        why = (
            f"By its counters an engine's share of the bandwidth is {percent(_mean(case.bound, 'mbu'))}, by the GPU's"
            f" {percent(measured_mbu)}: precision, contexts or the model are not what they seem."
        )
        return unjudged(RULE_ID, serving, ("consistent counters",), why)
    if (serving.mbu or 0.0) > MOST_MBU:
        return unjudged(RULE_ID, serving, ("consistent counters",), "More bytes than the memory can move.")
    return None


def _finding(case: Case, limits: HostBoundServingLimits) -> Finding:
    serving, bound = case.serving, case.bound
    is_slow = bound is case.slow
    seen = supports(serving, bound)
    step_s, model_s, batch = (_mean(bound, name) for name in ("step_s", "model_s", "batch"))
    most = _most(step_s, model_s, case.half_width)
    why = f"; {' and '.join(seen.words)}" if seen.words else ""
    said = (
        f"a step at a batch of {batch:.3g} takes {1e3 * step_s:.3g} ms where weights, KV cache and arithmetic explain"
        f" {1e3 * model_s:.3g} ms"
        if is_slow
        else f"{percent(_overhead_of(step_s, batch))} of a step of {1e3 * step_s:.3g} ms is its fixed cost, and the GPU runs"
        f" no kernel for {percent(1 - (_known_mean(bound) or 0.0))} of the time"
    )
    facts: dict[str, Any] = {
        "bound_h": _busy_s(bound) / 3600,
        "batch_mean": batch,
        "step_s": step_s,
        "step_model_s": model_s,
        "step_over_model": step_s / model_s,
        "overhead_ratio": _overhead_of(step_s, batch),
        "mbu_ratio": _mean(bound, "mbu"),
        "mfu_ratio": _mean(bound, "mfu"),
        "busy_ratio": _known_mean(bound),
        "cpu_thread_ratio": seen.thread_ratio,
        "power_ratio": seen.power_ratio,
        "cuda_graphs_off": seen.eager,
        "enable_lora": serving.engine.identity.settings.get("enable_lora"),
    }
    if is_slow:
        facts |= as_facts("step_saved_at_most_ratio", most)
    return engine_finding(
        case.evidence,
        serving,
        rule_id=RULE_ID,
        cause="cuda-graphs-off" if seen.eager else "slow-steps" if is_slow else "small-steps",
        title=_title(serving, seen, is_slow=is_slow),
        because=(
            f"For {duration(_busy_s(bound) / 3600)} {said}: {percent(_mean(bound, 'mbu'))} of the memory bandwidth and"
            f" {percent(_mean(bound, 'mfu'))} of the arithmetic are in use{why}."
        ),
        state="host-bound"
        if seen.words or not is_slow
        else "likely host-bound: nothing but the step says so",
        grade=Grade.C if seen.words or not is_slow else Grade.D,
        basis="Step from the engine's counters against the calibrated formula"
        + (
            ""
            if seen.words or not is_slow
            else "; no sign of the host itself (threads, flags, power) supports it"
        ),
        facts=facts,
        actions=_actions(serving, seen, is_slow=is_slow),
        wrong_when=WRONG_WHEN,
        not_claimed="A gain: what the host takes from a step is a bound, not a promise. No other precision of weights and no"
        " other GPU is advised, because neither is what a step waits for.",
        no_figure=_no_figure(most, is_slow=is_slow),
        chart=time_chart(
            ((step.hour.hour_ms, 1e3 * step.step_s) for step in case.steps),
            "ms per step",
            1e3 * limits.min_step_factor * model_s,
        ),
        effort=Effort.LOW if seen.eager else Effort.MEDIUM,
        risk=Risk.LOW,
    )


def _title(serving: Serving, seen: Supports, *, is_slow: bool) -> str:
    if seen.eager:
        return f"Turn CUDA graphs on for {serving.label}"
    if is_slow:
        return f"Free the host threads of {serving.label}: its GPU waits between steps"
    return f"Put a second replica beside {serving.label}: its steps are too short to fill a GPU"


def _actions(serving: Serving, seen: Supports, *, is_slow: bool) -> tuple[Action, ...]:
    kind, model = serving.engine.identity.kind, serving.engine.identity.model
    found: list[Action] = []
    if seen.eager:
        off = flags.GRAPHS_OFF_FLAG.get(kind, "the setting that disables CUDA graphs")
        found.append(
            Action(f"Restart without {off}, with all other flags", flags.filled(flags.GRAPHS_ON, kind, model))
        )
    if is_slow or not seen.eager:
        found.append(
            Action(
                "Give the engine whole CPU cores (no CPU limit below its busy threads), and let it schedule ahead of the GPU"
                " and serve HTTP from processes of their own",
                flags.filled(flags.HOST_RELIEF, kind, model),
            )
        )
    if not is_slow:
        found.append(
            Action(
                "If requests wait or replicas elsewhere could move here, start a second replica on the same GPU, each with"
                " half of the memory, under MPS; two replicas of OPT-1.3B made 35 % more on one H100",
                "nvidia-cuda-mps-control -d",
            )
        )
    return tuple(found)


def _no_figure(most: Range, *, is_slow: bool) -> str:
    if not is_slow:
        return (
            "No figure, because what a second replica on the GPU gives needs a trial: 35 % was seen on one small model, and"
            " it is money only when a GPU elsewhere falls free."
        )
    return (
        f"No figure, because the host's part of a step is an upper bound (at most {percent(most.p50)} of it), and a faster"
        " step is money only when whole replicas fall away (see too-many-replicas afterwards)."
    )


def _most(step_s: float, model_s: float, half_width: float) -> Range:
    """1 − t_model/t_step, with the formula's half-width; never below 0."""
    around = Range.around(model_s, half_width)
    return Range(*(max(0.0, 1 - each / step_s) for each in (around.p90, around.p50, around.p10)))


def _overhead_of(step_s: float, batch: float) -> float:
    return min(1.0, (STEP_OVERHEAD_S + SEQUENCE_OVERHEAD_S * batch) / step_s)


def _overhead(step: HourStep) -> float:
    return _overhead_of(step.step_s, step.batch)


def _busy_s(steps: Sequence[HourStep]) -> float:
    return sum(step.hour.busy_s for step in steps)


def _mean(steps: Sequence[HourStep], name: str) -> float:
    """Over busy time."""
    total = _busy_s(steps)
    return sum(float(getattr(step, name)) * step.hour.busy_s for step in steps) / total


def _known_mean(steps: Sequence[HourStep]) -> float | None:
    """Busy ratio of the GPUs over the hours that know it."""
    known = [step for step in steps if step.busy_ratio is not None]
    return _mean(known, "busy_ratio") if known else None


RULE: Final = Rule(
    id=RULE_ID,
    code="R15",
    title="Keep GPUs from waiting for their host between steps",
    needs=frozenset({"running_requests", "generated_tokens", "prompt_tokens", "kv_used_ratio", "busy_ratio"}),
    limits=HostBoundServingLimits(),
    effort=Effort.MEDIUM,
    risk=Risk.LOW,
    sources=(
        Source("Recasens et al., Mind the Memory Gap", "https://arxiv.org/abs/2503.08311"),
        Source(
            "vLLM: optimization and tuning", "https://docs.vllm.ai/en/latest/configuration/optimization.html"
        ),
    ),
    evaluate=evaluate,
)
