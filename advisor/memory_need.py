"""How much memory an engine needs for a load: never what its process holds, which is only the reservation."""

from advisor.estimators import kv_need, kv_pool
from advisor.replica_group import peak_running
from advisor.serving import Serving
from core.finding import Range


def needed_bytes(serving: Serving, batch: float) -> Range | None:
    """Of one GPU: weights, KV cache of ``batch`` requests at once with R13's reserve, overhead.

    None where weights, KV use or the pool are not known, and where a sliding window makes the pool no measure.
    """
    llm, weights, pool = serving.llm, serving.weights, serving.pool_tokens
    kv_max = serving.engine.kv_used.max()
    if llm is None or llm.sliding_window is not None or weights is None or pool is None or kv_max is None:
        return None
    more = max(1.0, batch / max(1.0, peak_running(serving)))
    settings = serving.engine.identity.settings
    tokens = max(kv_need.RESERVE * kv_max * more * pool, kv_pool.number(settings, "max_model_len") or 0.0)
    return kv_need.needed_bytes(
        weight_bytes=weights.total_bytes,
        tokens=tokens,
        kv_bytes_per_token=kv_pool.token_bytes(llm, settings),
        tensor_parallel=1,
    )
