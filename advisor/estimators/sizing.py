"""How many GPUs of a model serve an LLM at a load, how fast, and at what energy: the calculator ``plan size``.

Every way to split the model within a node is tried (``sizing_replica``); the one that needs the fewest GPUs is taken, of
equals the fastest. Times are the advisor's step law with its own uncertainty; a speed that the catalogue or the rules
have no figure for is None with the reason, and the memory is still given. GPUs are counted at the law's middle, and again
with every time at its slow and its fast end.

The old rule of thumb, parameters × bits ÷ 8 × 1.25, stands beside it: it knows neither context nor load (advisor-rules 5).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import ceil
from typing import Final

from advisor.estimators import precision, utilization
from advisor.estimators.kv_need import OVERHEAD_BYTES
from advisor.estimators.shard import USABLE
from advisor.estimators.sizing_hardware import support
from advisor.estimators.sizing_load import Load
from advisor.estimators.sizing_power import draw
from advisor.estimators.sizing_replica import (
    NODE_GPUS,
    Fleet,
    Replica,
    copies,
    fleet,
    replicas,
    room,
    sizes,
    weights,
)
from advisor.serving import half_width
from catalog.gpu_specs import GpuSpec
from core.finding import Range
from core.percent import percent

THUMB: Final = 1.25
SATURATED: Final = 0.75
"""Share of its limit above which a replica's rate hardly grows with memory: arithmetic and overhead bind it."""
TTFT_WIDTH: Final = 0.5
"""Of the time to the first token: no public row says anything (advisor-rules 7.3)."""


@dataclass(frozen=True, slots=True)
class Speed:
    """What the chosen fleet does. Rates are of the whole service, times of one request, power of one GPU.

    Attributes:
        batch: requests at once in one replica; below 1: mean, idle in between. concurrency: of all replicas.
        most: largest batch of a replica that memory and promise allow.
        tokens_per_s: generated; under a request rate what is asked for. capacity_tokens_per_s: at the largest batch.
        itl_s, itl_median_s: time between tokens: mean, and of a step that carries nobody's prompt.
        ttft_s: time to the first token without a queue.
        power_w, j_per_token: of GPUs at work, without their host.
        uncertainty_ratio: relative half-width of times and rates.
    """

    batch: float
    concurrency: float
    most: float
    tokens_per_s: Range
    capacity_tokens_per_s: Range
    itl_s: Range
    itl_median_s: Range
    ttft_s: Range
    power_w: Range
    j_per_token: Range
    uncertainty_ratio: float


@dataclass(frozen=True, slots=True)
class Sized:
    """One GPU model's answer; None is not known, and ``why_not`` says why.

    Attributes:
        gpus, gpus_p10, gpus_p90: needed, at the law's middle, fast and slow end; None at the slow end: at none.
        tensor_parallel, replicas: how they are split.
        weight_bytes: one copy. kv_token_bytes: of a token. kv_bytes: of all requests at their full length, one copy.
        activation_bytes, overhead_bytes: on each GPU. per_gpu_bytes: all of it on one GPU of a replica.
        fits: weights and at least one request fit in a node.
        slo_met: at the law's middle; None: no promise, or no speed.
        bound_by: ``memory``, ``slo`` or ``compute``: what asks for more than one GPU; None: one carries it.
    """

    spec: GpuSpec
    fits: bool
    weight_bytes: float
    kv_token_bytes: float
    kv_bytes: float | None
    activation_bytes: Range
    overhead_bytes: float
    per_gpu_bytes: float | None
    thumb_bytes: float
    thumb_gpus: int
    gpus: int | None = None
    gpus_p10: int | None = None
    gpus_p90: int | None = None
    tensor_parallel: int | None = None
    replicas: int | None = None
    speed: Speed | None = None
    slo_met: bool | None = None
    bound_by: str | None = None
    why_not: str | None = None
    notes: tuple[str, ...] = ()


def size(load: Load, spec: GpuSpec) -> Sized:
    """What this GPU model needs for the load."""
    how = support(spec, load.form)
    known = replace(_in_memory(load, spec), notes=tuple(_notes(spec, how.note)))
    if not known.fits:
        return replace(known, why_not=_too_large(load, spec))
    if how.why_not is not None:
        return replace(known, why_not=how.why_not)
    ways = tuple(replicas(load, spec, weights_only=how.weights_only))
    chosen, why_not = _fewest(load, ways), None
    promised = load.itl_slo_s is not None or load.ttft_slo_s is not None
    slo_met = chosen is not None if promised else None
    if chosen is None:
        why_not, load = _unmet(load, ways), _without_promise(load)
        chosen = _fewest(load, ways)
        assert chosen is not None, "without a promise whatever fits runs"
    fast, slow = (
        _fewest(load, [way.stretched(1 + sign * way.step.half_width) for way in ways]) for sign in (-1, 1)
    )
    speed = _speed(load, spec, chosen)
    return replace(
        known,
        kv_bytes=speed.concurrency * load.sequence_bytes,
        per_gpu_bytes=_per_gpu_bytes(load, chosen),
        gpus=chosen.gpus,
        gpus_p10=chosen.gpus if fast is None else fast.gpus,
        gpus_p90=None if slow is None else slow.gpus,
        tensor_parallel=chosen.replica.tensor_parallel,
        replicas=chosen.count,
        speed=speed,
        slo_met=slo_met,
        bound_by=_bound_by(load, ways, chosen) if slo_met is not False else "slo",
        why_not=why_not,
    )


def speed_as(load: Load, spec: GpuSpec, tensor_parallel: int) -> Speed | None:
    """What one replica of that split does with all of a concurrency, however many it should have; None: it cannot hold one.

    For engines that run already: what they do can be laid beside it.
    """
    how = support(spec, load.form)
    if how.why_not is not None or load.concurrency is None:
        return None
    batch = float(load.concurrency)
    ways = (way for way in replicas(load, spec, weights_only=how.weights_only) if batch <= way.ceiling)
    way = next((way for way in ways if way.tensor_parallel == tensor_parallel), None)
    return None if way is None else _speed(load, spec, Fleet(way, 1, batch, max(batch, way.most(load))))


def _fewest(load: Load, ways: Iterable[Replica]) -> Fleet | None:
    """The fleet of fewest GPUs, of equals the fastest."""
    found = [one for way in ways if (one := fleet(load, way)) is not None]
    return min(found, key=lambda one: (one.gpus, one.itl_s), default=None)


def _without_promise(load: Load) -> Load:
    return replace(load, itl_slo_s=None, ttft_slo_s=None)


def _bound_by(load: Load, ways: Iterable[Replica], chosen: Fleet) -> str | None:
    if chosen.gpus == 1:
        return None
    free = _fewest(_without_promise(load), ways)
    if free is not None and free.gpus < chosen.gpus:
        return "slo"
    saturated = chosen.replica.step.saturation(chosen.most) >= SATURATED
    return "compute" if load.requests_per_s is not None and saturated else "memory"


def _speed(load: Load, spec: GpuSpec, chosen: Fleet) -> Speed:
    step, ranks = chosen.replica.step, chosen.replica.tensor_parallel
    width, batch = step.half_width, max(1.0, chosen.batch)
    rate = step.tokens_per_s(batch)
    concurrency = load.concurrency if load.concurrency is not None else chosen.batch * chosen.count
    demand = load.generated_per_s
    power = draw(
        tdp_w=spec.tdp_w,
        bandwidth_bytes_per_s=spec.bandwidth_bytes_per_s,
        mbu=min(1.0, _mbu(load, spec, ranks, batch, chosen.itl_s)),
        mfu=min(1.0, _mfu(load, spec, ranks, rate)),
        step_half_width=half_width(load.llm, spec, load.form.precision),
    )
    return Speed(
        batch=chosen.batch,
        concurrency=concurrency,
        most=chosen.most,
        tokens_per_s=Range.around(concurrency / chosen.itl_s, width)
        if demand is None
        else Range(demand, demand, demand),
        capacity_tokens_per_s=Range.around(chosen.count * step.tokens_per_s(chosen.most), width),
        itl_s=Range.around(chosen.itl_s, width),
        itl_median_s=Range.around(chosen.itl_median_s(load.output_tokens), width),
        ttft_s=Range.around(chosen.ttft_s, TTFT_WIDTH),
        power_w=power.watts,
        j_per_token=power.joules_per_token(gpus=ranks, tokens_per_s=rate, step_half_width=width),
        uncertainty_ratio=width,
    )


def _mbu(load: Load, spec: GpuSpec, ranks: int, batch: float, step_s: float) -> float:
    return utilization.mbu(
        weight_bytes=weights(load).read_bytes(batch),
        running=batch,
        context_tokens=load.mean_context_tokens,
        kv_bytes_per_token=load.read_bytes / load.mean_context_tokens * copies(load.llm, ranks),
        tensor_parallel=ranks,
        bandwidth_bytes_per_s=spec.bandwidth_bytes_per_s,
        step_s=step_s,
    )


def _mfu(load: Load, spec: GpuSpec, ranks: int, tokens_per_s: float) -> float:
    assert spec.bf16_flops
    return utilization.mfu(
        active_parameters=load.llm.active_parameters,
        generated_tokens_per_s=tokens_per_s,
        prompt_tokens_per_s=tokens_per_s * load.prompt_per_generated,
        tensor_parallel=ranks,
        flops=spec.bf16_flops,
    )


def thumb_bytes(load: Load) -> float:
    """Parameters × bits ÷ 8 × 1.25, of weights alone."""
    return load.llm.parameters * load.form.bits / 8 * THUMB


def _in_memory(load: Load, spec: GpuSpec) -> Sized:
    """What is known without any speed."""
    low, middle, high = (each - precision.OVERHEAD_BYTES for each in OVERHEAD_BYTES)
    requests = load.concurrency
    return Sized(
        spec=spec,
        fits=any(room(load, spec, ranks) >= 1 for ranks in sizes(load.llm)),
        weight_bytes=weights(load).total_bytes,
        kv_token_bytes=load.kv_token_bytes,
        kv_bytes=None if requests is None else requests * load.sequence_bytes,
        activation_bytes=Range(low, middle, high),
        overhead_bytes=precision.OVERHEAD_BYTES,
        per_gpu_bytes=None,
        thumb_bytes=thumb_bytes(load),
        thumb_gpus=ceil(thumb_bytes(load) / spec.memory_bytes),
    )


def _per_gpu_bytes(load: Load, chosen: Fleet) -> float:
    """Weights, KV cache of the replica's requests at full length, and the middle of the overhead."""
    ranks = chosen.replica.tensor_parallel
    held = ceil(chosen.batch) * load.sequence_bytes * copies(load.llm, ranks)
    return (weights(load).total_bytes + held) / ranks + OVERHEAD_BYTES[1]


def _notes(spec: GpuSpec, note: str | None) -> Iterator[str]:
    if note is not None:
        yield note
    if spec.inferred:
        yield f"partly inferred in the catalogue: {', '.join(spec.uncertain_fields)}"


def _too_large(load: Load, spec: GpuSpec) -> str:
    most = max(sizes(load.llm))
    free = USABLE * spec.memory_bytes - OVERHEAD_BYTES[2]
    held = weights(load).total_bytes + load.sequence_bytes * copies(load.llm, most)
    if free <= 0:
        return f"{percent(USABLE)} of its memory is less than an engine's overhead"
    node = "" if most == NODE_GPUS else f"; its {load.llm.heads} heads split over {most} at most"
    return f"weights and one request need {ceil(held / free)} GPUs, more than a node of {NODE_GPUS} can split{node}"


def _unmet(load: Load, ways: Iterable[Replica]) -> str:
    """Why no way keeps the promise."""
    fastest = min(ways, key=lambda way: way.step.step_s(1))
    on = f"one request alone on {fastest.tensor_parallel} GPUs"
    itl_s = fastest.step.step_s(1)
    if load.itl_slo_s is not None and itl_s > load.itl_slo_s:
        return f"ITL of {on} is {itl_s * 1000:.3g} ms, over {load.itl_slo_s * 1000:.3g} ms"
    first = min(ways, key=lambda way: way.prefill_s + way.step.step_s(1))
    ttft_s = first.prefill_s + first.step.step_s(1)
    return f"TTFT of one request alone on {first.tensor_parallel} GPUs is {ttft_s * 1000:.3g} ms, over {(load.ttft_slo_s or 0) * 1000:.3g} ms"
