"""What hours without work say of a GPU: memory held, how idle it was, engines beside it, and for how long it is silent."""

from collections.abc import Iterable, Mapping, Sequence
from operator import mul
from typing import Final

from advisor.memo import OncePerEvidence
from core.activity import IDLE_BUSY_RATIO
from core.evidence import EngineEvidence, Evidence, GpuEvidence
from core.percent import percent
from core.units import HOUR_MS

ROUNDING_S: Final = 3
"""By how much sums of a day's whole seconds may be off."""
QUIET_BUSY_RATIO: Final = 0.01
"""Above this mean an idle GPU may be serving now and then."""


def typical_memory_bytes(used_bytes: Iterable[float | None]) -> float | None:
    """Median of the hours' memory in use."""
    known = sorted([held for held in used_bytes if held is not None])
    return known[len(known) // 2] if known else None


def mean_busy_ratio(
    busy_ratio: Sequence[float | None],
    sm_active_ratio: Sequence[float | None],
    covered_s: Sequence[float],
) -> float | None:
    """Mean busy ratio of idle time, weighted by time.

    An hour's mean holds its few seconds of work as well; idle time itself was below the idle limit.
    """
    busy = [sm if ratio is None else ratio for ratio, sm in zip(busy_ratio, sm_active_ratio, strict=True)]
    idle = [ratio if ratio is None or ratio < IDLE_BUSY_RATIO else IDLE_BUSY_RATIO for ratio in busy]
    return weighted_mean(idle, covered_s)


def busy_words(mean_ratio: float | None) -> str:
    """What idle means, and how busy the GPU was on average."""
    mean = "" if mean_ratio is None else f" ({percent(mean_ratio, 1)} on average)"
    return f"under {percent(IDLE_BUSY_RATIO)} busy{mean}"


def may_serve(evidence: Evidence, gpu: GpuEvidence, mean_ratio: float | None) -> bool:
    """Whether the little work seen could be requests: no engine is there to say that it served none."""
    return mean_ratio is not None and mean_ratio > QUIET_BUSY_RATIO and not has_seen_engine(evidence, gpu)


def weighted_mean(values: Sequence[float | None], seconds: Sequence[float]) -> float | None:
    """Mean of what is known, weighted by time."""
    if None in values:
        known_at = [at for at, value in enumerate(values) if value is not None]
        values, seconds = [values[at] for at in known_at], [seconds[at] for at in known_at]
    total = sum(seconds)
    return sum(map(mul, values, seconds)) / total if total > 0 else None


def _seen_engines(evidence: Evidence) -> Mapping[str, Sequence[EngineEvidence]]:
    """Engines with hours, by each of their GPUs."""
    found: dict[str, list[EngineEvidence]] = {}
    for engine in evidence.engines:
        for uuid in engine.gpu_uuids if engine.hours else ():
            found.setdefault(uuid, []).append(engine)
    return found


_engines_on = OncePerEvidence(_seen_engines)


def has_seen_engine(evidence: Evidence, gpu: GpuEvidence) -> bool:
    """An engine ran on it in the window."""
    return gpu.gpu_uuid in _engines_on(evidence)


def serving_hours(evidence: Evidence, gpu: GpuEvidence) -> frozenset[int]:
    """Hours in which an engine of the GPU had requests running."""
    return frozenset().union(*(engine.busy_hours for engine in _engines_on(evidence).get(gpu.gpu_uuid, ())))


def silence_h(evidence: Evidence, gpu: GpuEvidence) -> float:
    """Hours from the GPU's last sample to the end of the window."""
    return (evidence.window.to_ms - gpu.last_sample_ms) / HOUR_MS
