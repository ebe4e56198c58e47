"""Facts of one engine, looked up one by one; what is not known is named on the way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from advisor.estimators import kv_pool, precision
from advisor.estimators.precision import Precision
from catalog import gpu_specs
from catalog.gpu_specs import GpuSpec
from catalog.llm_models import LlmSpec
from core.evidence import EngineEvidence, GpuEvidence
from core.units import GIB

TENSOR_PARALLEL: Final = ("tensor_parallel_size", "tp_size", "num_shard", "tp")
PIPELINE_PARALLEL: Final = ("pipeline_parallel_size", "pp_size")


@dataclass(slots=True)
class Facts:
    """What was looked up so far, with what was missing on the way."""

    quality: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def need(self, name: str, known: object) -> None:
        """Remember ``name`` as missing when ``known`` is None."""
        if known is None:
            self.missing.append(name)


def gpu_spec_of(mine: Sequence[GpuEvidence], facts: Facts) -> GpuSpec | None:
    """Their common row of the catalogue; a MIG slice has none, because its bandwidth is a part of the card's."""
    if not mine:
        facts.missing.append("the engine's GPUs")
        return None
    if any(gpu.gpu_uuid.startswith("MIG-") or " MIG " in (gpu.identity.model or "") for gpu in mine):
        facts.missing.append("bandwidth of a MIG slice")
        return None
    keys = {gpu.gpu_key for gpu in mine}
    spec = gpu_specs.by_key(keys.pop()) if len(keys) == 1 else None
    facts.need("GPU model in the catalogue", spec)
    if spec is not None and spec.inferred:
        facts.quality.append(f"figures of {spec.gpu_key} are partly inferred")
    return spec


def ranks_of(
    engine: EngineEvidence, joined: tuple[GpuEvidence, ...], facts: Facts
) -> tuple[int | None, tuple[GpuEvidence, ...]]:
    """Tensor-parallel size and the GPUs behind it.

    Published, else as many ranks as the process holds GPUs; where only the host is known, as many as hold memory and
    work while the engine does.
    """
    if (kv_pool.number(engine.identity.settings, *PIPELINE_PARALLEL) or 1) > 1:
        facts.missing.append("a model of pipeline parallelism")
        return None, joined
    published = kv_pool.number(engine.identity.settings, *TENSOR_PARALLEL)
    if published == len(joined) or (published is None and (engine.join == "process" or len(joined) == 1)):
        return len(joined) or None, joined  # nothing to choose from: no hour needs to be read
    half_busy_h = engine.busy_s / 3600 / 2
    at_work = tuple(gpu for gpu in joined if gpu.active_h >= half_busy_h and memory_used_of(gpu) >= GIB)
    if published is not None:
        return int(published), at_work if len(at_work) == published else joined
    facts.need("tensor_parallel_size", at_work or None)
    return len(at_work) or None, at_work or joined


def by_gpu(engines: Sequence[EngineEvidence]) -> Mapping[str, Sequence[EngineEvidence]]:
    """The engines that worked, by each of their GPUs."""
    found: dict[str, list[EngineEvidence]] = {}
    for engine in engines:
        if engine.busy_s > 0:
            for uuid in engine.gpu_uuids:
                found.setdefault(uuid, []).append(engine)
    return found


def is_shared(
    engine: EngineEvidence, mine: Sequence[GpuEvidence], on_gpu: Mapping[str, Sequence[EngineEvidence]]
) -> bool:
    """Another engine lists one of its GPUs, and there are not enough of them for all."""
    own = {gpu.gpu_uuid for gpu in mine}
    name = engine.identity.engine
    neighbours = {
        other.identity.engine: other
        for uuid in own
        for other in on_gpu.get(uuid, ())
        if other.identity.engine != name
    }
    if not neighbours:
        return False
    together = own.union(*(other.gpu_uuids for other in neighbours.values()))
    ranks = sum(
        kv_pool.number(each.identity.settings, *TENSOR_PARALLEL) or len(each.gpu_uuids)
        for each in (engine, *neighbours.values())
    )
    return ranks > len(together)


def memory_used_of(gpu: GpuEvidence) -> float:
    """Typical memory in use over time with work; 0 when none is known (no GPU is chosen by it then)."""
    known = [p.memory_used_bytes for p in gpu.parts if p.memory_used_bytes is not None and p.active_s > 0]
    return median(known) if known else 0.0


def running_of(engine: EngineEvidence) -> float | None:
    """Mean batch over busy time."""
    mean = engine.running.mean()
    return mean or None


def context_of(
    engine: EngineEvidence, pool: float | None, running: float | None, facts: Facts
) -> tuple[float | None, float | None]:
    """Mean tokens in cache per sequence, and prompt tokens per generated token."""
    generated, prompt = engine.total("generated_tokens"), engine.total("prompt_tokens")
    cached, finished = engine.total("cached_prompt_tokens"), engine.total("finished_requests")
    per_generated = (
        max(0.0, prompt - (cached or 0.0)) / generated if generated and prompt is not None else None
    )
    context = kv_pool.mean_context_tokens(kv_used_ratio=engine.kv_used.mean(), pool=pool, running=running)
    if context is None and generated and prompt is not None and finished:
        context = (prompt + generated / 2) / finished  # n_in + n_out/2 (2.2)
        facts.quality.append("context from requests finished: the KV pool is not published")
    facts.need("prompt_tokens", per_generated)
    if context is None:
        facts.missing.append("kv_used_ratio and KV pool size")
    return context, per_generated


def kv_bytes_of(llm: LlmSpec | None, settings: Mapping[str, str], context: float | None) -> float | None:
    """KV bytes read per token of context; past a sliding window that is less than the whole."""
    if llm is None:
        return None
    if context is None:
        return kv_pool.token_bytes(llm, settings)
    return kv_pool.read_bytes_per_token(llm, settings, context)


def find_precision(
    engine: EngineEvidence,
    mine: Sequence[GpuEvidence],
    llm: LlmSpec | None,
    pool: float | None,
    tp: int | None,
) -> Precision | None:
    """In the order of advisor-rules 3.2: flags, name (and published weights), memory."""
    settings = engine.identity.settings
    told = precision.from_settings(settings) or precision.from_name(engine.identity.model)
    if told is not None or llm is None:
        return told
    published = precision.from_published(llm.native_precision)
    if published is not None or pool is None or tp is None or len(mine) != tp or llm.sliding_window:
        return published
    if kv_pool.number(settings, "cpu_offload_gb") is not None:
        return None
    used = [memory_used_of(gpu) for gpu in mine]
    if not all(used):
        return None
    estimate = precision.weight_bytes_estimate(
        memory_used_bytes=sum(used),
        pool_tokens=pool,
        kv_bytes_per_token=kv_pool.token_bytes(llm, settings),
        tensor_parallel=tp,
    )
    return precision.from_memory(estimate, llm.parameters, tp)
