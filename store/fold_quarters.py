"""Samples of one clock hour folded into its quarters: pure functions, no database.

A sample longer than what is left of its quarter is spread evenly over those that it reaches into, up to the end of the hour.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, TypeVar

from core.activity import Activity
from core.quarters import OF_GPU, OF_HOST, QUARTER_MS, QUARTERS, Quarter, Quarters
from core.samples import GpuSample, HostSample
from store.fold_means import means

S = TypeVar("S", GpuSample, HostSample)
Part = tuple[Sequence[S], Sequence[float]]
"""Samples that reach into a quarter, and of each the milliseconds there for which it vouches."""
_GAP_OF_GPU: Final = Quarter(0.0, None, (None,) * len(OF_GPU))
_GAP_OF_HOST: Final = Quarter(0.0, None, (None,) * len(OF_HOST))


def fold_gpu_quarters(hour_ms: int, samples: Sequence[GpuSample]) -> Quarters:
    """Quarters of the samples of one GPU that start in one hour."""
    parts = _spread(hour_ms, samples, [float(s.covered_ms) for s in samples])
    return tuple(_of_gpu(*part) for part in parts)


def fold_host_quarters(hour_ms: int, samples: Sequence[HostSample]) -> Quarters:
    """Quarters of the samples of one host that start in one hour; each vouches for the whole of its interval."""
    parts = _spread(hour_ms, samples, [float(s.span_ms) for s in samples])
    return tuple(_of_host(*part) for part in parts)


def _spread(hour_ms: int, samples: Sequence[S], covered_ms: Sequence[float]) -> list[Part[S]]:
    if all(QUARTER_MS % span_ms == 0 for span_ms in {sample.span_ms for sample in samples}):
        # Samples begin at multiples of their length: none of these reaches into a second quarter.
        starts = [sample.ts_ms for sample in samples]
        cuts = [bisect_left(starts, hour_ms + at * QUARTER_MS) for at in range(QUARTERS + 1)]
        return [(samples[one:other], covered_ms[one:other]) for one, other in pairwise(cuts)]
    parts: list[tuple[list[S], list[float]]] = [([], []) for _ in range(QUARTERS)]
    for sample, covered in zip(samples, covered_ms, strict=True):
        at, past_ms = divmod(sample.ts_ms - hour_ms, QUARTER_MS)
        left_ms = sample.span_ms
        while left_ms > 0 and at < QUARTERS:
            here_ms = min(left_ms, QUARTER_MS - past_ms)
            parts[at][0].append(sample)
            parts[at][1].append(covered * here_ms / sample.span_ms)
            at, past_ms, left_ms = at + 1, 0, left_ms - here_ms
    return list(parts)


def _of_gpu(samples: Sequence[GpuSample], weights: Sequence[float]) -> Quarter:
    covered_ms = sum(weights)
    if covered_ms <= 0:
        return _GAP_OF_GPU
    values = means(OF_GPU, [sample.values for sample in samples], weights)
    return Quarter(covered_ms / 1000, _main([sample.activity for sample in samples], weights), values)


def _main(activities: Sequence[Activity], weights: Sequence[float]) -> Activity:
    """The activity with most of the time; of equal ones the first in the order of ``Activity``, as strips of hours have it."""
    first = activities[0]
    if activities.count(first) == len(activities):
        return first
    spent = dict.fromkeys(Activity, 0.0)
    for activity, weight in zip(activities, weights, strict=True):
        spent[activity] += weight
    return max(spent, key=spent.__getitem__)


def _of_host(samples: Sequence[HostSample], weights: Sequence[float]) -> Quarter:
    if not samples:
        return _GAP_OF_HOST
    return Quarter(sum(weights) / 1000, None, means(OF_HOST, [sample.values for sample in samples], weights))
