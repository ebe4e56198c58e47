"""Whether a GPU's work was effective, told by the rate of the engine on it where no counter tells (design section 2). Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from core.activity import is_effective
from core.samples import EngineSample, GpuSample
from store.usage_shares import Holder

EFFECTIVE_RATE_SHARE: Final = 0.5
"""Of the rate that the engine can reach (design section 2: at ≥ half of it)."""
UNTOLD: Final[Mapping[int, bool]] = {}


def by_engine_rate(
    samples: Iterable[EngineSample],
    reachable_tokens_per_s: float | None,
    of_gpu: Mapping[int, GpuSample],
    holders: Mapping[int, Sequence[Holder]],
) -> Mapping[int, bool]:
    """By ``ts_ms``, whether the only engine of a GPU generated at least half of what it can.

    An interval is left out where the engine's rate is not known, where it is not the GPU's own interval, and where
    somebody else held the GPU too: its work may have been theirs.
    """
    if reachable_tokens_per_s is None:
        return UNTOLD
    least = EFFECTIVE_RATE_SHARE * reachable_tokens_per_s
    found: dict[int, bool] = {}
    for sample in samples:
        gpu = of_gpu.get(sample.ts_ms)
        tokens = sample.values.get("generated_tokens")
        if gpu is None or gpu.span_ms != sample.span_ms or tokens is None or sample.covered_ms <= 0:
            continue
        if len(holders.get(sample.ts_ms, ())) <= 1:
            found[sample.ts_ms] = tokens * 1000 / sample.covered_ms >= least
    return found


def effective(sample: GpuSample, by_engine: Mapping[int, bool]) -> bool | None:
    """Whether the work of an active sample was effective; None where nothing can tell."""
    told = is_effective(sample.activity, sample.values)
    return by_engine.get(sample.ts_ms) if told is None and by_engine else told
