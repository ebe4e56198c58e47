"""Over how many GPUs to split a model: what fits, what each GPU makes at the latency promise, how many GPUs a load needs.

Tensor parallelism shortens a step by less than the GPUs it takes (T_fix keeps 2 ms and grows by the all-reduces), so
that tokens per second *per GPU* fall with it at equal batch. But it also frees memory: weights are held once over all
ranks, and what they leave is KV cache. A split is therefore compared at the batch that latency and KV cache allow it,
never at equal batch (advisor-rules R19: a 32B model makes 961 tok/s per GPU on one GPU, 2,577 on two).

    room = (TP·0.9·VRAM − W − overhead·TP)/(kv·copies)       tokens of KV cache
    B    = min(B with t(B) ≤ promise, room/context at a request's end, the engine's own limit)
    X    = B/t(B),   GPUs = TP·ceil(λ_p99/(0.7·X))
"""

from dataclasses import dataclass, replace
from math import floor
from typing import Final

from advisor.estimators.decode_step import DecodeStep
from advisor.estimators.kv_need import OVERHEAD_BYTES
from advisor.estimators.replicas import UTILIZATION, for_rate
from core.finding import Range

USABLE: Final = 0.9
"""Share of a GPU's memory that an engine takes unless told otherwise (vLLM's default)."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One way to split.

    Attributes:
        tensor_parallel: GPUs of a replica. batch: B at the promise. step_s: t(B).
        room_tokens: KV cache in tokens.
        replica_tokens_per_s: X at that batch, with the step law's uncertainty.
    """

    tensor_parallel: int
    batch: float
    step_s: float
    room_tokens: float
    replica_tokens_per_s: Range

    @property
    def tokens_per_s_per_gpu(self) -> Range:
        """What counts: X over the GPUs it takes."""
        return self.replica_tokens_per_s.scaled(1 / self.tensor_parallel)

    def replicas_for(self, load_p99: float, utilization: float = UTILIZATION) -> tuple[int, int, int] | None:
        """Replicas for ``load_p99`` tokens/s when the rate is at its low, middle and high end; None without a rate."""
        rate = self.replica_tokens_per_s
        low, middle, high = (for_rate(load_p99, each, utilization) for each in (rate.p10, rate.p50, rate.p90))
        if low is None or middle is None or high is None:
            return None
        return low, middle, high


def smaller_sizes(tensor_parallel: int, heads: int) -> tuple[int, ...]:
    """Sizes below ``tensor_parallel`` into which its GPUs and the model's heads divide evenly, ascending."""
    return tuple(
        size for size in range(1, tensor_parallel) if tensor_parallel % size == 0 and heads % size == 0
    )


def room_tokens(
    *,
    tensor_parallel: int,
    memory_bytes: float,
    weight_bytes: float,
    kv_bytes_per_token: float,
    copies: float = 1.0,
    usable_ratio: float = USABLE,
) -> float:
    """Tokens of KV cache that fit beside weights and overhead; 0 when the weights alone do not fit.

    The overhead counted is the high end of what engines need, so that a fit is a fit.
    """
    free = tensor_parallel * (usable_ratio * memory_bytes - OVERHEAD_BYTES[2]) - weight_bytes
    return max(0.0, float(floor(free / (kv_bytes_per_token * copies))))


def shard(
    step: DecodeStep,
    *,
    tensor_parallel: int,
    room: float,
    end_tokens: float,
    promise_s: float,
    ceiling: float | None = None,
) -> Shard | None:
    """What one replica of this size makes at the promise; None when not one sequence fits, in time or in memory.

    Args:
        step: its step law. room: tokens of KV cache. end_tokens: tokens of a sequence when it ends.
        promise_s: longest step allowed. ceiling: the engine's own limit on the batch; None: not known.
    """
    if room < end_tokens or end_tokens <= 0:
        return None
    batch = min(step.largest_batch_within(promise_s), room / end_tokens)
    if ceiling is not None:
        batch = min(batch, ceiling)
    if batch < 1:
        return None
    return Shard(
        tensor_parallel,
        batch,
        step.step_s(batch),
        room,
        Range.around(step.tokens_per_s(batch), step.width_at(batch)),
    )


def scaled(step: DecodeStep, factor: float) -> DecodeStep:
    """The law with every time ``factor`` as long: as this site measures it (measured over predicted), or on a slower card."""
    return replace(
        step,
        fixed_s=step.fixed_s * factor,
        sequence_s=step.sequence_s * factor,
        experts_s=step.experts_s * factor,
        flop_s=step.flop_s * factor,
    )


def batch_for(step: DecodeStep, tokens_per_s: float, most: float) -> float | None:
    """Batch at which a replica makes ``tokens_per_s``; None when it does not at any up to ``most``."""
    if most <= 0 or step.tokens_per_s(most) < tokens_per_s:
        return None
    low, high = 0.0, most
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if step.tokens_per_s(middle) < tokens_per_s else (low, middle)
    return high
