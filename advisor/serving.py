"""An LLM engine seen through model, GPU and counters: the figures that all serving rules and the engine table share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from advisor import serving_facts as lookups
from advisor.estimators import decode_step, kv_pool, utilization
from advisor.estimators.decode_step import DecodeStep, Weights
from advisor.estimators.precision import Precision
from advisor.memo import OncePerEvidence
from catalog import llm_models
from catalog.gpu_specs import GpuSpec
from catalog.llm_models import LlmSpec
from core.evidence import EngineEvidence, Evidence, GpuEvidence
from core.hours import BatchPoint, EngineHour

BATCH_CEILING: Final = (
    "max_num_seqs",
    "max_running_requests",
    "max_batch_size_runtime",
    "max_batch_size",
    "n_parallel",
)
HOPPER: Final = "Hopper"


@dataclass(frozen=True, slots=True)
class Serving:
    """What is known of one engine; None is unknown, and ``missing`` says what would help.

    Attributes:
        engine, gpus: whose figures these are; its GPUs when they are known.
        llm, gpu_spec: rows of the catalogue.
        tensor_parallel: ranks of one replica.
        precision, weights: of the model's weights; all ranks together.
        kv_token_bytes, pool_tokens, context_tokens: KV cache (advisor-rules 3.1, 3.2).
        prompt_per_generated: computed prompt tokens per generated token.
        running: mean batch while busy. tokens_per_s, prompt_tokens_per_s: over busy time.
        step_s: measured seconds per decode step. itl_s: published mean, else ``step_s``.
        model: the half-saturation law with its basis; None without enough facts.
        mbu, mfu: 0–1.
        data_quality: sentences on what makes the figures weaker.
        missing: names of what is not known, for ``NotEvaluated``.
    """

    engine: EngineEvidence
    gpus: tuple[GpuEvidence, ...]
    llm: LlmSpec | None = None
    gpu_spec: GpuSpec | None = None
    tensor_parallel: int | None = None
    precision: Precision | None = None
    weights: Weights | None = None
    kv_token_bytes: float | None = None
    pool_tokens: float | None = None
    context_tokens: float | None = None
    prompt_per_generated: float | None = None
    running: float | None = None
    tokens_per_s: float | None = None
    prompt_tokens_per_s: float | None = None
    step_s: float | None = None
    itl_s: float | None = None
    model: DecodeStep | None = None
    mbu: float | None = None
    mfu: float | None = None
    data_quality: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """``llama-2-13b on gpu-node-02:8000``: model and scrape target, because a host may serve a model twice."""
        identity = self.engine.identity
        name = (identity.model or identity.kind).rstrip("/").rsplit("/", 1)[-1]
        return f"{name} on {identity.engine.removesuffix('/0')}"

    @property
    def half_batch(self) -> float | None:
        """Batch at half of the reachable rate."""
        return None if self.model is None else self.model.half_batch

    @property
    def batch_ceiling(self) -> float | None:
        """Limit on the batch that the engine publishes (``max_num_seqs`` and its kin)."""
        return kv_pool.number(self.engine.identity.settings, *BATCH_CEILING)

    @property
    def usd_per_hour(self) -> float | None:
        """Price of the replica's GPUs; None when one of them has none."""
        prices = [float(gpu.price.usd_per_gpu_hour) for gpu in self.gpus if gpu.price is not None]
        return sum(prices) if prices and len(prices) == len(self.gpus) else None


def _servings(evidence: Evidence) -> tuple[Serving, ...]:
    """Every engine of the fleet, in the evidence's order."""
    gpus = {gpu.gpu_uuid: gpu for gpu in evidence.gpus}
    neighbours = lookups.by_gpu(evidence.engines)
    return tuple(serving(engine, gpus, neighbours) for engine in evidence.engines)


servings = OncePerEvidence(_servings)


def serving(
    engine: EngineEvidence,
    gpus: Mapping[str, GpuEvidence],
    neighbours: Mapping[str, Sequence[EngineEvidence]],
) -> Serving:
    """One engine's figures over the window.

    Args:
        engine: its hours. gpus: the fleet by UUID. neighbours: engines by GPU, to see who shares one.
    """
    facts = lookups.Facts()
    joined = tuple(gpus[uuid] for uuid in engine.gpu_uuids if uuid in gpus)
    tp, mine = lookups.ranks_of(engine, joined, facts)
    llm = llm_models.resolve(engine.identity.model)
    facts.need("model architecture", llm)
    gpu_spec = lookups.gpu_spec_of(mine, facts)
    if lookups.is_shared(engine, mine, neighbours):
        facts.missing.append("a GPU of its own")
        facts.quality.append("shares its GPU with another engine: its step time is not its own")
    pool = kv_pool.pool_tokens(engine.identity.settings)
    running = lookups.running_of(engine)
    context, per_generated = lookups.context_of(engine, pool, running, facts)
    kv_bytes = lookups.kv_bytes_of(llm, engine.identity.settings, context)
    known = lookups.find_precision(engine, mine, llm, pool, tp)
    facts.need("weight precision", known)
    rate, prompt_rate = _rates(engine)
    facts.need("generated_tokens", rate)
    step = utilization.step_s(running=running, tokens_per_s=rate)
    itl_sum, itl_count = engine.total("itl_sum_s"), engine.total("itl_count")
    found = Serving(
        engine=engine,
        gpus=mine,
        llm=llm,
        gpu_spec=gpu_spec,
        tensor_parallel=tp,
        precision=known,
        weights=None if llm is None or known is None else weights_of(llm, known),
        kv_token_bytes=kv_bytes,
        pool_tokens=pool,
        context_tokens=context,
        prompt_per_generated=per_generated,
        running=running,
        tokens_per_s=rate,
        prompt_tokens_per_s=prompt_rate,
        step_s=step,
        itl_s=itl_sum / itl_count if itl_sum and itl_count else step,
    )
    mbu = _mbu(found, running, context, step)
    mfu = _mfu(found, rate, prompt_rate)
    if mbu is not None and mbu > utilization.MOST_MBU:
        facts.quality.append(
            f"MBU {mbu:.2f} is above what the memory can move: precision, GPU or counters are not what they seem"
        )
    return replace(
        found,
        model=_model(found),
        mbu=mbu,
        mfu=mfu,
        data_quality=tuple(facts.quality),
        missing=tuple(facts.missing),
    )


def weights_of(llm: LlmSpec, known: Precision) -> Weights:
    """Bytes of weights, split into what every step reads and the routed experts."""
    width, kernel = known.bytes_per_weight, decode_step.KERNEL.get(known.bits, 1.0)
    if not llm.experts or not llm.experts_per_token:
        return Weights(llm.parameters * width, kernel=kernel)
    return Weights(
        llm.shared_parameters * width,
        llm.expert_parameters * width,
        llm.experts_per_token / llm.experts,
        kernel,
    )


def _rates(engine: EngineEvidence) -> tuple[float | None, float | None]:
    """Generated and computed prompt tokens per second of busy time."""
    generated = engine.total("busy_generated_tokens")
    if not generated or engine.busy_s <= 0:
        return None, None
    prompt, cached = engine.total("prompt_tokens"), engine.total("cached_prompt_tokens")
    computed = None if prompt is None else max(0.0, prompt - (cached or 0.0)) / engine.busy_s
    return generated / engine.busy_s, computed


def hour_shares(found: Serving, hour: EngineHour) -> tuple[float | None, float | None]:
    """MBU and MFU of one hour, with the engine's own facts; each None when one of its inputs is unknown."""
    running = hour.running.mean() or None
    if hour.busy_s <= 0 or not hour.busy_generated_tokens or running is None:
        return None, None
    rate = hour.busy_generated_tokens / hour.busy_s
    context = kv_pool.mean_context_tokens(
        kv_used_ratio=hour.kv_used.mean(), pool=found.pool_tokens, running=running
    )
    prompt = None
    if hour.prompt_tokens is not None:
        prompt = max(0.0, hour.prompt_tokens - (hour.cached_prompt_tokens or 0.0)) / hour.busy_s
    return (
        _mbu(
            found,
            running,
            found.context_tokens if context is None else context,
            utilization.step_s(running=running, tokens_per_s=rate),
        ),
        _mfu(found, rate, prompt),
    )


def half_width(llm: LlmSpec, gpu_spec: GpuSpec, known: Precision | None) -> float:
    """How far the formula is trusted: by the public rows on Hopper, wide where there is none (2.2 validity, 7.3)."""
    bits = 16 if known is None else known.bits
    if gpu_spec.architecture != HOPPER or llm.mla_dim is not None or bits not in {8, 16}:
        return decode_step.HALF_WIDTH_ELSEWHERE
    if llm.experts or llm.sliding_window is not None or bits == 8:
        return decode_step.HALF_WIDTH_HOPPER
    return decode_step.HALF_WIDTH_DENSE_HOPPER


def profile_of(engine: EngineEvidence) -> Mapping[float, BatchPoint]:
    """The batch profiles of all hours together."""
    parts = engine.parts
    if len(parts) == 1:
        return parts[0].profile
    whole: dict[float, BatchPoint] = {}
    for hour in parts:
        for batch, point in hour.profile.items():
            have = whole.get(batch, BatchPoint(0.0, 0.0, 0.0))
            whole[batch] = BatchPoint(
                have.seconds + point.seconds,
                have.generated_tokens + point.generated_tokens,
                have.prompt_tokens + point.prompt_tokens,
            )
    return whole


def _model(found: Serving) -> DecodeStep | None:
    """Site fit where the profile allows it, else the formula, else its slope through the measured step."""
    prior = formula_of(found)
    fitted = decode_step.fit(profile_of(found.engine), prior)
    if fitted is not None:
        return fitted if prior is None else decode_step.with_compute_term(fitted, prior)
    if prior is None or found.weights is not None:
        return prior
    if found.running is None or found.step_s is None:
        return None
    return decode_step.anchored(prior, batch=found.running, step_s=found.step_s)


def formula_of(found: Serving) -> DecodeStep | None:
    """The formula; with unknown weights only its slope means something."""
    llm, gpu_spec = found.llm, found.gpu_spec
    if (
        llm is None
        or gpu_spec is None
        or found.tensor_parallel is None
        or found.kv_token_bytes is None
        or found.context_tokens is None
        or found.prompt_per_generated is None
        or not gpu_spec.bf16_flops
    ):
        return None
    return decode_step.formula(
        weights=found.weights or Weights(0.0),
        layers=llm.layers,
        active_parameters=llm.active_parameters,
        kv_bytes_per_token=found.kv_token_bytes,
        context_tokens=found.context_tokens,
        prompt_per_generated=found.prompt_per_generated,
        tensor_parallel=found.tensor_parallel,
        bandwidth_bytes_per_s=gpu_spec.bandwidth_bytes_per_s,
        flops=gpu_spec.bf16_flops,
        half_width=half_width(llm, gpu_spec, found.precision),
    )


def _mbu(found: Serving, running: float | None, context: float | None, step_s: float | None) -> float | None:
    """None when one of its inputs is unknown."""
    if (
        found.gpu_spec is None
        or found.tensor_parallel is None
        or found.weights is None
        or found.kv_token_bytes is None
        or context is None
        or running is None
        or step_s is None
    ):
        return None
    return utilization.mbu(
        weight_bytes=found.weights.read_bytes(running),
        running=running,
        context_tokens=context,
        kv_bytes_per_token=found.kv_token_bytes,
        tensor_parallel=found.tensor_parallel,
        bandwidth_bytes_per_s=found.gpu_spec.bandwidth_bytes_per_s,
        step_s=step_s,
    )


def _mfu(found: Serving, rate: float | None, prompt_rate: float | None) -> float | None:
    """None when one of its inputs is unknown."""
    if (
        found.llm is None
        or found.gpu_spec is None
        or not found.gpu_spec.bf16_flops
        or found.tensor_parallel is None
        or rate is None
        or prompt_rate is None
    ):
        return None
    return utilization.mfu(
        active_parameters=found.llm.active_parameters,
        generated_tokens_per_s=rate,
        prompt_tokens_per_s=prompt_rate,
        tensor_parallel=found.tensor_parallel,
        flops=found.gpu_spec.bf16_flops,
    )
