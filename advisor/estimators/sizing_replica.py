"""One way to run a model on one GPU model: so many ranks, its step law, what it holds, and how many such replicas a load needs.

    room   = (TP·0.9·VRAM − W − 5 GB·TP)/(KV bytes of a request at its end · copies)     sequences (shard, R13, 3.1)
    B_most = min(room, B with t(B) ≤ promise),  promise = min(ITL, TTFT − prefill)
    at once:  replicas = ⌈N/B_most⌉,  B = ⌈N/replicas⌉
    arriving: Little's law, B = λ/replicas·(n_out·t(B) + prefill), planned for 0.7 of the rate at B_most (R08)

Ranks are powers of two up to a node of 8 that divide the heads, and divide the KV heads or are a multiple of them.
4-bit weights that are unpacked to 16 bits are taken as no faster than those beyond a batch of 64 (R10): such a replica
either stays within 64, or has the step law of 16-bit weights.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, floor, inf
from typing import Final

from advisor.estimators import attention_share, decode_step, shard, smaller_gpu
from advisor.estimators.decode_step import DecodeStep, Weights
from advisor.estimators.kv_need import kv_copies
from advisor.estimators.quantization import INT4_NEUTRAL_BATCH
from advisor.estimators.replicas import UTILIZATION, for_rate
from advisor.estimators.sizing_hardware import Form, form_of
from advisor.estimators.sizing_load import Load
from advisor.serving import half_width, weights_of
from catalog.gpu_specs import GpuSpec
from catalog.llm_models import LlmSpec

NODE_GPUS: Final = 8
"""GPUs that tensor parallelism may span: one node."""
FAST_LINKS: Final = ("SXM", "OAM", "Superchip")
"""Form factors whose GPUs have a fast link between them; the cost of ranks in the step law was measured on such."""
SEEN_SEQUENCE_BYTES: Final = 0.4e9
"""KV cache of one sequence in the rows behind the step law, at most (Llama-2-13B, 500 tokens): longer is stretched."""


@dataclass(frozen=True, slots=True)
class Replica:
    """A way to run the model.

    Attributes:
        tensor_parallel: ranks. step: its law, with how far to trust it. room: sequences whose KV cache fits, 0 when none.
        prefill_s: time to read one prompt. ceiling: largest batch for which the law holds.
    """

    tensor_parallel: int
    step: DecodeStep
    room: int
    prefill_s: float
    ceiling: float = inf

    def stretched(self, factor: float) -> "Replica":
        """The same with every time ``factor`` as long."""
        return replace(self, step=shard.scaled(self.step, factor), prefill_s=self.prefill_s * factor)

    def most(self, load: Load) -> float:
        """Largest batch that memory, law and promise allow; below 1: none."""
        promise = load.itl_slo_s or inf
        if load.ttft_slo_s is not None:
            promise = min(promise, load.ttft_slo_s - self.prefill_s)
        within = float(self.room) if promise == inf else self.step.largest_batch_within(promise)
        return floor(min(self.room, self.ceiling, within) + 1e-9)

    def residence(self, load: Load) -> DecodeStep:
        """The law by which a request stays: its steps and, once, its prefill."""
        return replace(self.step, fixed_s=self.step.fixed_s + self.prefill_s / load.output_tokens)


@dataclass(frozen=True, slots=True)
class Fleet:
    """So many replicas under a load: ``batch`` is what each runs at once, below 1 when it is idle between requests."""

    replica: Replica
    count: int
    batch: float
    most: float

    @property
    def gpus(self) -> int:
        """GPUs of all replicas."""
        return self.count * self.replica.tensor_parallel

    @property
    def itl_s(self) -> float:
        """Mean time between tokens."""
        return self.replica.step.step_s(max(1.0, self.batch))

    def itl_median_s(self, output_tokens: int) -> float:
        """Time between tokens in a step that carries nobody's prompt: without the prompts' share of the mean step."""
        return self.itl_s - max(1.0, self.batch) * self.replica.prefill_s / output_tokens

    @property
    def ttft_s(self) -> float:
        """Time to the first token without a queue: the prompt's own prefill, and the step it waits for."""
        return self.replica.prefill_s + self.itl_s


def sizes(llm: LlmSpec, node_gpus: int = NODE_GPUS) -> tuple[int, ...]:
    """Ranks over which a model can be split within a node, ascending."""
    found = []
    ranks = 1
    while ranks <= node_gpus:
        divides = llm.kv_heads % ranks == 0 or ranks % llm.kv_heads == 0 or llm.mla_dim is not None
        if llm.heads % ranks == 0 and divides:
            found.append(ranks)
        ranks *= 2
    return tuple(found)


def copies(llm: LlmSpec, ranks: int) -> float:
    """How often the KV cache is held over all ranks (3.1)."""
    return kv_copies(kv_heads=llm.kv_heads, is_latent=llm.mla_dim is not None, tensor_parallel=ranks)


def room(load: Load, spec: GpuSpec, ranks: int) -> int:
    """Requests of full length whose KV cache fits beside weights and the high end of the overhead."""
    tokens = shard.room_tokens(
        tensor_parallel=ranks,
        memory_bytes=spec.memory_bytes,
        weight_bytes=weights(load).total_bytes,
        kv_bytes_per_token=load.sequence_bytes / load.context_tokens,
        copies=copies(load.llm, ranks),
    )
    return floor(tokens / load.context_tokens)


def weights(load: Load) -> Weights:
    """Bytes of one copy of the weights."""
    return weights_of(load.llm, load.form.precision)


def replicas(load: Load, spec: GpuSpec, *, weights_only: bool) -> Iterator[Replica]:
    """Every way that holds at least one request."""
    for ranks in sizes(load.llm):
        fits = room(load, spec, ranks)
        if fits < 1:
            continue
        prefill_s = _prefill_s(load, spec, ranks)
        own = Replica(ranks, _law(load, spec, ranks, load.form), fits, prefill_s)
        if not weights_only or load.form.bits != 4:
            yield own
            continue
        yield replace(own, ceiling=float(INT4_NEUTRAL_BATCH))
        yield replace(own, step=_law(load, spec, ranks, SIXTEEN))


def _sixteen() -> Form:
    form = form_of("bf16")
    assert form is not None
    return form


SIXTEEN: Final = _sixteen()


def _law(load: Load, spec: GpuSpec, ranks: int, form: Form) -> DecodeStep:
    """The step law for weights of ``form``, with what prompts attend to on top: unseen at 250 tokens, not at 50,000."""
    assert spec.bf16_flops
    law = decode_step.formula(
        weights=weights_of(load.llm, form.precision),
        layers=load.llm.layers,
        active_parameters=load.llm.active_parameters,
        kv_bytes_per_token=load.read_bytes / load.mean_context_tokens * copies(load.llm, ranks),
        context_tokens=load.mean_context_tokens,
        prompt_per_generated=load.prompt_per_generated,
        tensor_parallel=ranks,
        bandwidth_bytes_per_s=spec.bandwidth_bytes_per_s,
        flops=spec.bf16_flops,
        half_width=_width(load, spec, ranks),
    )
    attention_s = _attention_s(load, spec, ranks) / load.output_tokens
    return replace(law, sequence_s=law.sequence_s + attention_s, flop_s=law.flop_s + attention_s)


def _attention_s(load: Load, spec: GpuSpec, ranks: int) -> float:
    """Time in which one whole prompt attends to itself."""
    assert spec.bf16_flops
    return attention_share.prefill_s(
        load.llm,
        batch=load.prompt_tokens,
        prompt_tokens=load.prompt_tokens,
        prompt_per_generated=1.0,
        tensor_parallel=ranks,
        flops=spec.bf16_flops,
    )


def _width(load: Load, spec: GpuSpec, ranks: int) -> float:
    """The law's own, wider where sequences are longer than any seen, or ranks talk over PCIe."""
    width = half_width(load.llm, spec, load.form.precision)
    if load.read_bytes > SEEN_SEQUENCE_BYTES:
        width = max(width, decode_step.HALF_WIDTH_UNTRIED)
    if ranks > 1 and not spec.form_factor.startswith(FAST_LINKS):
        width = max(width, decode_step.HALF_WIDTH_ELSEWHERE)
    return width


def _prefill_s(load: Load, spec: GpuSpec, ranks: int) -> float:
    """Time of one whole prompt: matrices, and attention over itself."""
    assert spec.bf16_flops
    matrices_s = smaller_gpu.prefill_s(
        active_parameters=load.llm.active_parameters,
        prompt_tokens=load.prompt_tokens,
        flops=ranks * spec.bf16_flops,
    )
    return matrices_s + _attention_s(load, spec, ranks)


def fleet(load: Load, replica: Replica) -> Fleet | None:
    """As few replicas as carry the load; None where a replica cannot run one request within the promise."""
    most = replica.most(load)
    if most < 1:
        return None
    if load.concurrency is not None:
        count = ceil(load.concurrency / most)
        return Fleet(replica, count, float(ceil(load.concurrency / count)), most)
    demand = load.generated_per_s
    assert demand is not None
    stay = replica.residence(load)
    count_at_rate = for_rate(demand, stay.tokens_per_s(most), UTILIZATION)
    assert count_at_rate is not None
    batch = shard.batch_for(stay, demand / count_at_rate, most)
    assert batch is not None
    return Fleet(replica, count_at_rate, batch, most)
