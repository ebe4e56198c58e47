"""The rules, one file each. ``RULES`` is written out, so that a reader sees what runs; a test compares it with the folder."""

from typing import Final

from advisor.model import Rule
from advisor.rules import (
    empty_gpu,
    host_bound_serving,
    input_bound,
    kv_cache_precision,
    kv_overprovisioned,
    kv_thrash,
    memory_bound_decode,
    no_prefix_cache,
    off_hours,
    orphan_memory,
    overload,
    parked_model,
    pcie_bound,
    quantization_candidate,
    rent_or_buy,
    slow_clock,
    small_batch,
    speculative_decoding,
    stuck_job,
    tensor_cores_unused,
    throttled,
    too_many_replicas,
    unhealthy_gpu,
)

RULES: Final[tuple[Rule, ...]] = (
    empty_gpu.RULE,
    parked_model.RULE,
    orphan_memory.RULE,
    off_hours.RULE,
    memory_bound_decode.RULE,
    small_batch.RULE,
    too_many_replicas.RULE,
    overload.RULE,
    quantization_candidate.RULE,
    kv_cache_precision.RULE,
    kv_thrash.RULE,
    kv_overprovisioned.RULE,
    no_prefix_cache.RULE,
    host_bound_serving.RULE,
    input_bound.RULE,
    pcie_bound.RULE,
    throttled.RULE,
    slow_clock.RULE,
    unhealthy_gpu.RULE,
    stuck_job.RULE,
    tensor_cores_unused.RULE,
    speculative_decoding.RULE,
    rent_or_buy.RULE,
)
"""In the order of the advisor rules (R01, R02, R06, …)."""
