"""How much of bandwidth and arithmetic an engine uses, from its own counters: no GPU profiling needed.

    t_step = running / (generated tokens per second)
    MBU    = (W + running·ctx·kv)/(TP·BW·t_step)
    MFU    = 2·P_act·(generated + computed prompt tokens per second)/(TP·F)

Source: advisor-rules 2.3. Reading: MBU ≥ 0.6 memory-bound, MFU ≥ 0.4 compute- or prefill-bound, in between mixed.
"""

from typing import Final

MEMORY_BOUND_MBU: Final = 0.6
COMPUTE_BOUND_MFU: Final = 0.4
MOST_MBU: Final = 1.1
"""More bytes per second than the memory can move: a counter, the precision or the GPU is not what it seems."""


def step_s(*, running: float | None, tokens_per_s: float | None) -> float | None:
    """Seconds per decode step: running sequences over generated tokens per second; None when either is unknown or 0."""
    return running / tokens_per_s if running and tokens_per_s else None


def mbu(
    *,
    weight_bytes: float,
    running: float,
    context_tokens: float,
    kv_bytes_per_token: float,
    tensor_parallel: int,
    bandwidth_bytes_per_s: float,
    step_s: float,
) -> float:
    """Model bandwidth utilization, 0–1: bytes a step must read over what the memory could move meanwhile."""
    read = weight_bytes + running * context_tokens * kv_bytes_per_token
    return read / (tensor_parallel * bandwidth_bytes_per_s * step_s)


def mfu(
    *,
    active_parameters: float,
    generated_tokens_per_s: float,
    prompt_tokens_per_s: float,
    tensor_parallel: int,
    flops: float,
) -> float:
    """Model FLOP utilization, 0–1, of the dense 16-bit peak; about what ``tensor_active_ratio`` would read."""
    return 2 * active_parameters * (generated_tokens_per_s + prompt_tokens_per_s) / (tensor_parallel * flops)
