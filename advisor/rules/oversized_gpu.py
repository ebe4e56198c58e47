"""An LLM engine runs on a GPU far larger than its load needs, and a cheaper one would carry it.

What it finds
    Engines on one GPU whose peaks of two weeks fit a cheaper card of the catalogue: weights, KV cache and overhead in 90 %
    of its memory, the token rate of the busiest time (p99) at 70 % of what it makes within the promise, long prompts read
    in time; all of that with the step time at the slow end of its range.

Why it costs
    The dearer card is paid by the hour whether its bandwidth is used or not. At a small batch most of it is not, so that
    the same tokens cost a multiple: dollars per million tokens are compared at the same load.

When it is wrong
    The promise is tighter than the limit used here, the load or the contexts are about to grow, the card is reserved, or
    the cheaper one cannot be had in the region. Estimated step times away from Hopper err by up to half.

What to do
    Start one replica on the cheaper card, send it a tenth of the requests for a busy day, and compare time to first token
    and between tokens. Then move the rest and hand back the larger card. Fill the batch or drop replicas first where that
    is possible: what is left over for this rule is smaller.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Annotated, Any, Final

from pydantic import Field

from advisor import kv_flags
from advisor.confidence import graded, seen_share, widened
from advisor.digest import digest
from advisor.engine_finding import engine_finding
from advisor.engine_time import engine_span_h, engine_subject
from advisor.estimators import decode_step, shard, smaller_gpu
from advisor.estimators.decode_step import DecodeStep
from advisor.estimators.replicas import UTILIZATION
from advisor.estimators.smaller_gpu import Carried
from advisor.facts import as_facts, price_facts, time_chart
from advisor.fleet import Release, month_h, releases
from advisor.gpu_offers import Offer, cheaper
from advisor.memory_need import needed_bytes
from advisor.model import Limits, Rule, Source, Verdict
from advisor.replica_group import peak_running, peak_tokens_per_s
from advisor.serving import Serving, formula_of, half_width, profile_of, servings
from advisor.serving_checks import Refusal, no_engines, refusal, shared_gpu, short_of_peaks
from catalog.gpu_specs import GpuSpec
from core.evidence import Evidence, Price
from core.finding import Action, Effort, Finding, Grade, NotEvaluated, Range, Risk, Saving
from core.percent import percent
from core.units import GIB

RULE_ID: Final = "oversized-gpu"


class OversizedGpuLimits(Limits):
    """Thresholds of ``oversized-gpu``."""

    usable_ratio: Annotated[float, Field(gt=0, le=1)] = smaller_gpu.USABLE
    """Share of the cheaper card's memory that the need may fill (R20)."""
    utilization: Annotated[float, Field(gt=0, le=1)] = UTILIZATION
    """Share of its rate within the promise that the cheaper card may be planned for (R08)."""
    itl_limit_s: Annotated[float | None, Field(gt=0)] = None
    """Your promise for the time between tokens. None: ``max_itl_s``, and no more than ``max_slowdown`` times today's."""
    max_itl_s: Annotated[float, Field(gt=0)] = 0.05
    """Without a promise: 20 tokens/s, about twice as fast as people read."""
    max_slowdown: Annotated[float, Field(ge=1)] = 3.0
    """Without a promise: more than this times today's step is another service, whatever it saves."""
    max_prefill_s: Annotated[float, Field(gt=0)] = 1.0
    """Time to read a long prompt (p95), which comes on top of the queue before the first token."""
    max_waiting: Annotated[float, Field(ge=0)] = 1.0
    """Waiting requests (p95) from which the load seen is not all of the demand."""
    min_saving_ratio: Annotated[float, Field(gt=0, lt=1)] = 0.15
    """Share of the price below which a move is not worth it: the shipped prices differ by more between providers."""
    min_busy_s: Annotated[float, Field(ge=60)] = 3600.0
    """Busy time below which no peak was seen."""
    min_coverage_ratio: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Samples received over samples due."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What an engine must be known by before another GPU can be thought of."""

    spec: GpuSpec
    price: Price
    correction: float
    load_tokens_per_s: float
    promise_s: float


@dataclass(frozen=True, slots=True)
class Move:
    """A cheaper GPU that carries the load: how, and with how much memory; ``half_width`` is that of its step time."""

    offer: Offer
    half_width: float
    carried: Carried
    needed: Range
    prefill_s: float


def evaluate(evidence: Evidence, limits: OversizedGpuLimits) -> Iterator[Verdict]:
    """Every engine of the fleet; what can be handed back is asked for all of them together."""
    if not evidence.engines:
        yield no_engines(RULE_ID)
        return
    found: list[tuple[Serving, Facts, Move]] = []
    for serving in servings(evidence):
        known = _known(evidence, serving, limits)
        if not isinstance(known, Facts):
            yield NotEvaluated(RULE_ID, engine_subject(serving), *known)
            continue
        if (serving.engine.waiting.quantile(0.95) or 0.0) >= max(limits.max_waiting, 1e-9):
            continue  # requests wait: the load seen is not all of it, and a slower card is no help
        move = best_move(evidence, serving, known, limits)
        if move is not None:
            found.append((serving, known, move))
    release = releases(evidence, {gpu.gpu_uuid for serving, _, _ in found for gpu in serving.gpus})
    for serving, known, move in found:
        yield _finding(evidence, serving, known, move, release[serving.gpus[0].gpu_uuid])


def _known(evidence: Evidence, serving: Serving, limits: OversizedGpuLimits) -> Facts | Refusal:
    """The facts, or what is missing and why that matters."""
    engine = serving.engine
    basic = (
        refusal(evidence, engine, min_busy_s=limits.min_busy_s, min_coverage_ratio=limits.min_coverage_ratio)
        or shared_gpu(serving)
        or short_of_peaks(engine)
    )
    if basic is not None:
        return basic
    if serving.tensor_parallel is None or len(serving.gpus) != 1 or serving.tensor_parallel > 1:
        return (
            ("a replica on one GPU",),
            "A split replica on smaller cards also changes the links between them: no estimate covers that.",
        )
    if engine.waiting.total_s <= 0:
        return (
            "waiting_requests",
        ), "Without the queue nobody knows whether the load seen is all of the demand."
    spec, price, prior = serving.gpu_spec, serving.gpus[0].price, formula_of(serving)
    if (
        spec is None
        or serving.weights is None
        or prior is None
        or not serving.running
        or serving.step_s is None
    ):
        missing = serving.missing or ("step-time model",)
        return (
            missing,
            "The formula needs model, weights, contexts and GPU to say what another card would do.",
        )
    if serving.llm is None or serving.llm.sliding_window is not None:
        return ("a memory model of sliding windows",), "Layers with a window keep less than the pool says."
    if serving.pool_tokens is None or engine.kv_used.max() is None:
        return (
            "KV pool size",
            "kv_used_ratio",
        ), "Memory in use is only the reservation; need is told by KV use."
    if price is None:
        return ("a price",), "Without the price of this GPU no other is cheaper."
    ratio = smaller_gpu.correction(prior, profile_of(serving.engine))
    if ratio is None:
        why = "Its step is far from what weights, KV cache and bandwidth make of it; what holds it here may hold it there."
        return ("a step time that the formula explains",), why
    promise = limits.itl_limit_s or min(limits.max_itl_s, limits.max_slowdown * serving.step_s)
    return Facts(spec, price, ratio, peak_tokens_per_s(serving), promise)


def best_move(evidence: Evidence, serving: Serving, known: Facts, limits: OversizedGpuLimits) -> Move | None:
    """The cheapest card that carries the load; None when none does, or none is cheap enough."""
    assert serving.precision is not None
    most = known.price.usd_per_gpu_hour * (1 - Decimal(str(limits.min_saving_ratio)))
    for offer in cheaper(evidence, known.spec, known.price, serving.precision):
        if offer.usd_per_gpu_hour > most:
            return None
        move = _move(serving, known, offer, limits)
        if move is not None:
            return move
    return None


def _move(serving: Serving, known: Facts, offer: Offer, limits: OversizedGpuLimits) -> Move | None:
    """How that card carries the load; None when it does not."""
    llm, weights, context, ratio = (
        serving.llm,
        serving.weights,
        serving.context_tokens,
        serving.prompt_per_generated,
    )
    assert llm is not None
    assert weights is not None
    assert context is not None
    assert ratio is not None
    assert offer.spec.bf16_flops is not None
    prefill_s = smaller_gpu.prefill_s(
        active_parameters=llm.active_parameters,
        prompt_tokens=smaller_gpu.prompt_tokens_p95(context_tokens=context, prompt_per_generated=ratio),
        flops=offer.spec.bf16_flops,
    )
    if prefill_s > limits.max_prefill_s:
        return None
    law = law_on(serving, offer.spec, known.correction)
    load = smaller_gpu.carried(
        law,
        load_tokens_per_s=known.load_tokens_per_s,
        promise_s=known.promise_s,
        ceiling=serving.batch_ceiling,
        utilization=limits.utilization,
    )
    if load is None:
        return None
    needed = needed_bytes(serving, load.batch)
    if needed is None or needed.p90 > limits.usable_ratio * offer.spec.memory_bytes:
        return None
    return Move(offer, law.half_width, load, needed, prefill_s)


def law_on(serving: Serving, spec: GpuSpec, correction: float) -> DecodeStep:
    """The formula of 2.2 on another card, with what software adds on this one and that card's uncertainty."""
    prior = formula_of(replace(serving, gpu_spec=spec))
    assert prior is not None
    assert serving.llm is not None
    width = half_width(serving.llm, spec, serving.precision)
    return replace(shard.scaled(prior, correction), half_width=width)


def _finding(evidence: Evidence, serving: Serving, known: Facts, move: Move, release: Release) -> Finding:
    offer, load = move.offer, move.carried
    formula_grade = Grade.C if move.half_width <= decode_step.HALF_WIDTH_DENSE_HOPPER else Grade.D
    saving, no_figure = _saving(evidence, serving, (known, move), formula_grade, release)
    name = offer.spec.gpu_key
    return engine_finding(
        evidence,
        serving,
        rule_id=RULE_ID,
        cause=f"fits-{name}",
        title=f"Move {serving.label} from {known.spec.gpu_key} to {name}",
        because=(
            f"Its busiest time (p99) makes {known.load_tokens_per_s:.0f} tokens/s with {peak_running(serving):.0f} requests"
            f" at once and needs about {move.needed.p50 / GIB:.0f} GiB. {name} has {offer.spec.memory_bytes / GIB:.0f} GiB and"
            f" carries it at {percent(load.load_ratio)} of its rate, with {load.step_p50_s * 1000:.0f} to"
            f" {load.step_s * 1000:.0f} ms between tokens instead of {(serving.itl_s or 0.0) * 1000:.0f}."
        ),
        state="larger than the load",
        grade=formula_grade,
        basis="Step time on the other card from the calibrated formula, stretched by what this engine adds to it here",
        facts=_facts(serving, known, move),
        actions=_actions(serving, offer),
        wrong_when="The promise is tighter, the load or the contexts grow, the card is committed, or the cheaper one is not"
        " to be had where this runs.",
        not_claimed="The work of the move, a changed time to first token beyond reading the prompt, and prices not in force.",
        no_figure=no_figure,
        saving=saving,
        stage="consolidate",
        effort=Effort.MEDIUM,
        risk=Risk.MEDIUM,
        chart=time_chart(
            (
                (hour.hour_ms, None if hour.generated_tokens is None else hour.generated_tokens / 3600)
                for hour in serving.engine.hours
            ),
            "tokens/s",
            known.load_tokens_per_s / load.load_ratio * UTILIZATION,
        ),
    )


def _saving(
    evidence: Evidence, serving: Serving, swap: tuple[Facts, Move], grade: Grade, release: Release
) -> tuple[Saving, str | None]:
    """Price difference × hours, where handing back the larger card ends what is paid for it."""
    if not release.cash:
        return (
            Saving(),
            f"No figure, because {release.why_not}: a cheaper card beside it would cost more, not less.",
        )
    gpu, engine = serving.gpus[0], serving.engine
    rate, then = (float(each.usd_per_gpu_hour) for each in (swap[0].price, swap[1].offer))
    hours = month_h(evidence, min(digest(evidence, gpu).covered_h, engine.covered_s / 3600))
    lower, _ = graded(grade, "", span_h=engine_span_h(engine), covered_h=engine.covered_s / 3600)
    cash = widened((rate - then) * hours, lower, most=rate * hours, seen=seen_share(evidence.window.hours))
    return Saving(cash_usd_month=cash), None


def _facts(serving: Serving, known: Facts, move: Move) -> Mapping[str, Any]:
    rate = serving.engine.total("generated_tokens")
    hourly = None if not rate or serving.engine.covered_s <= 0 else rate / serving.engine.covered_s * 3600
    price, then = float(known.price.usd_per_gpu_hour), float(move.offer.usd_per_gpu_hour)
    return {
        **price_facts(known.price),
        "gpu_key_now": known.spec.gpu_key,
        "gpu_key_then": move.offer.spec.gpu_key,
        "usd_per_gpu_hour_then": round(then, 4),
        "price_basis_then": move.offer.basis,
        "price_as_of_then": move.offer.as_of,
        "usd_per_million_tokens_now": None if hourly is None else price / hourly * 1e6,
        "usd_per_million_tokens_then": None if hourly is None else then / hourly * 1e6,
        **as_facts("needed_bytes", move.needed),
        "memory_bytes_then": move.offer.spec.memory_bytes,
        "load_tokens_per_s_p99": known.load_tokens_per_s,
        "running_p99": peak_running(serving),
        "running_p99_then": move.carried.batch,
        "load_ratio_then": move.carried.load_ratio,
        "itl_s": serving.itl_s,
        "itl_then_s_p50": move.carried.step_p50_s,
        "itl_then_s_p90": move.carried.step_s,
        "itl_limit_s": known.promise_s,
        "prefill_p95_then_s": move.prefill_s,
        "measured_over_formula_ratio": known.correction,
    }


def _actions(serving: Serving, offer: Offer) -> tuple[Action, ...]:
    identity = serving.engine.identity
    flag = kv_flags.flagged(identity.kind, identity.model, kv_flags.MEMORY_SHARE, smaller_gpu.USABLE)
    return (
        Action(
            f"Start one replica on {offer.spec.gpu_key} and send it a tenth of the requests for a busy day; compare time to"
            " first token and between tokens",
            flag or kv_flags.START.get(identity.kind, "").format(model=identity.model or "MODEL") or None,
        ),
        Action("Then move the rest and hand the larger card back: both running save nothing"),
    )


RULE: Final = Rule(
    id=RULE_ID,
    code="R20",
    title="Run engines on the smallest GPU that carries their peak",
    needs=frozenset(
        {"running_requests", "waiting_requests", "kv_used_ratio", "generated_tokens", "prompt_tokens"}
    ),
    limits=OversizedGpuLimits(),
    effort=Effort.MEDIUM,
    risk=Risk.MEDIUM,
    sources=(
        Source("Recasens et al., Mind the Memory Gap", "https://arxiv.org/abs/2503.08311"),
        Source("Azure LLM inference traces 2023", "https://github.com/Azure/AzurePublicDataset"),
    ),
    evaluate=evaluate,
)
