"""Samples of one host folded over one clock hour. Pure."""

from collections.abc import Sequence
from typing import Any

from core.hour_merge import HOST_MEANS
from core.hours import HostHour
from core.samples import HostSample
from store.fold_means import means


def fold_host_hour(host: str, hour_ms: int, samples: Sequence[HostSample]) -> HostHour | None:
    """Fold the samples of one host that start in one hour; None when there are none."""
    if not samples:
        return None
    spans = [s.span_ms for s in samples]
    values: dict[str, Any] = dict(
        zip(HOST_MEANS, means(HOST_MEANS, [s.values for s in samples], spans), strict=True)
    )
    return HostHour(host, hour_ms, sum(spans) / 1000, **values)
