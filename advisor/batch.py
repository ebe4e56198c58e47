"""Why an engine's batch is as small as it is: told from running, waiting and KV use (advisor-rules R07)."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from core.histogram import Histogram
from core.hours import EngineHour
from core.percent import percent
from core.series import parts_of

AT_CEILING: Final = 0.95
"""Running p95 at or above this share of the limit: the limit is what stops it (R07a)."""
KV_FREE: Final = 0.8
KV_FULL: Final = 0.95
"""KV use p95 below the first: memory is not what stops it; at or above the second: it is (R07a, R07c)."""
PLATEAU_SHARE: Final = 0.5
"""Share of busy time at the top before a top is taken for an unpublished limit."""


class Cause(StrEnum):
    """What keeps the batch small."""

    CONFIGURATION = "configuration"
    DEMAND = "demand"
    KV = "kv"


@dataclass(frozen=True, slots=True)
class Pressure:
    """What pushes on the batch over some hours of one engine.

    Attributes:
        running_p50, running_p95: batch while busy. waiting_p95: requests waiting; None: not published.
        kv_p95: KV-cache use; None: not published.
        ceiling: limit on the batch; None: neither published nor visible. inferred: read off a plateau.
        hours: the hours looked at, merged where days tell enough.
    """

    running_p50: float
    running_p95: float
    waiting_p95: float | None
    kv_p95: float | None
    ceiling: float | None
    inferred: bool
    hours: Sequence[EngineHour]

    @property
    def at_ceiling(self) -> bool:
        """The batch touches its limit."""
        return self.ceiling is not None and self.running_p95 >= AT_CEILING * self.ceiling


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The cause, or None with the reason why it cannot be told; ``note`` qualifies a near call."""

    cause: Cause | None
    missing: tuple[str, ...] = ()
    why: str = ""
    note: str = ""


def pressure(hours: Sequence[EngineHour], published: float | None) -> Pressure | None:
    """Quantiles over ``hours`` of one engine; None when it was never busy in them.

    Args:
        hours: those that count.
        published: the engine's own batch limit; None: look for a plateau.
    """
    chosen = [part for part in parts_of(hours) if part.busy_s > 0]
    running = Histogram.merged(hour.running for hour in chosen)
    waiting = Histogram.merged(hour.waiting for hour in chosen)
    kv_used = Histogram.merged(hour.kv_used for hour in chosen)
    median, high = running.quantile(0.5), running.quantile(0.95)
    if median is None or high is None:
        return None
    ceiling = published if published is not None else _plateau(running, waiting)
    return Pressure(
        running_p50=median,
        running_p95=high,
        waiting_p95=waiting.quantile(0.95),
        kv_p95=kv_used.quantile(0.95),
        ceiling=ceiling,
        inferred=published is None and ceiling is not None,
        hours=chosen,
    )


def _plateau(running: Histogram, waiting: Histogram) -> float | None:
    """The top of the batch, when it stays there for most of the time while requests wait."""
    top, high, queue = running.max(), running.quantile(0.95), waiting.quantile(0.5)
    if top is None or high is None or not queue:
        return None
    held = running.share_at_least(AT_CEILING * top) or 0.0
    return round(top) if high >= AT_CEILING * top and held >= PLATEAU_SHARE else None


def diagnose(seen: Pressure) -> Diagnosis:
    """The cause of a small batch, or a refusal when the signs do not decide."""
    if seen.waiting_p95 is None:
        return Diagnosis(
            None, ("waiting_requests",), "Without the queue a limit and a lack of requests look the same."
        )
    if seen.kv_p95 is not None and seen.kv_p95 >= KV_FULL:
        return Diagnosis(Cause.KV)  # also without a queue: more requests would only preempt
    if seen.waiting_p95 == 0 or (seen.waiting_p95 < 1 and not seen.at_ceiling):
        return Diagnosis(Cause.DEMAND)
    if seen.kv_p95 is None:
        return Diagnosis(
            None,
            ("kv_used_ratio",),
            "Requests wait; without KV-cache use the limit cannot be told from full memory.",
        )
    if seen.at_ceiling:
        if seen.kv_p95 < KV_FREE:
            return Diagnosis(Cause.CONFIGURATION)
        nearer_kv = seen.kv_p95 >= (KV_FREE + KV_FULL) / 2
        return Diagnosis(
            Cause.KV if nearer_kv else Cause.CONFIGURATION,
            note=f"KV-cache use is at {percent(seen.kv_p95)}: the batch limit and the KV cache are close to each other.",
        )
    return Diagnosis(
        None,
        ("max_num_seqs",) if seen.ceiling is None else ("the scheduler's reason for waiting",),
        f"Requests wait (p95 {seen.waiting_p95:g}) although the batch is below its limit and the KV cache has room"
        f" ({percent(seen.kv_p95)}): bursts, long prompts and token limits look alike from here.",
    )
