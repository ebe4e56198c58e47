"""Samples of one host folded over one clock hour. Pure."""

from collections.abc import Sequence
from typing import Any

from core.hour_merge import HOST_MEANS
from core.hours import HostHour
from core.samples import HostSample


def fold_host_hour(host: str, hour_ms: int, samples: Sequence[HostSample]) -> HostHour | None:
    """Fold the samples of one host that start in one hour; None when there are none."""
    if not samples:
        return None
    means: dict[str, Any] = {name: _mean(samples, name) for name in HOST_MEANS}
    return HostHour(host, hour_ms, sum(s.span_ms for s in samples) / 1000, **means)


def _mean(samples: Sequence[HostSample], name: str) -> float | None:
    """Mean over the time that has the metric."""
    known = [(s.values[name], s.span_ms) for s in samples if name in s.values]
    weight = sum(span_ms for _, span_ms in known)
    return sum(value * span_ms for value, span_ms in known) / weight if weight else None
