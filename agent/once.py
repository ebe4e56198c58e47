"""One sample of every GPU of this host, as JSON-ready objects: a look at what the agent would store."""

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Final

from agent.fold import GpuFold
from agent.sources.live import LiveSource
from core.clock import iso, now_ms
from core.metrics import GPU_COLUMNS
from core.readings import GpuIdentity, GpuReading, ProcessReading

READINGS: Final = 5
DISTANCE_S: Final = 0.5
"""Five readings over two seconds: means are means, and a power figure is an average over a second anyway."""
_ONE_INTERVAL_MS: Final = 1 << 60
"""A span that no border of ours falls into."""


def once(
    source: LiveSource, *, clock: Callable[[], int] = now_ms, wait: Callable[[float], None] = time.sleep
) -> list[dict[str, Any]]:
    """Read every GPU for two seconds.

    Args:
        source: the GPUs. clock: epoch milliseconds. wait: lets seconds pass.

    Returns:
        One object per GPU: identity, interval, activity, every metric of the catalogue (null: unknown), processes.
    """
    fold = GpuFold(span_ms=_ONE_INTERVAL_MS)
    identities: dict[str, GpuIdentity] = {}
    first_ms: dict[str, int] = {}
    processes: dict[str, dict[int, ProcessReading]] = {}
    for number in range(READINGS):
        if number:
            wait(DISTANCE_S)
        for thing in source.tick(clock):
            if isinstance(thing, GpuIdentity):
                identities[thing.gpu_uuid] = thing
                fold.identify(thing)
            elif isinstance(thing, GpuReading):
                first_ms.setdefault(thing.gpu_uuid, thing.ts_ms)
                fold.add(thing)
            elif isinstance(thing, ProcessReading):
                processes.setdefault(thing.gpu_uuid, {})[thing.pid] = thing
    return [
        {
            **asdict(identities[sample.gpu_uuid]),
            "at": iso(first_ms[sample.gpu_uuid]),
            "covered_s": sample.covered_ms / 1000,
            "activity": sample.activity.value,
            "energy_method": None if sample.energy_method is None else sample.energy_method.value,
            **{name: sample.values.get(name) for name in GPU_COLUMNS},
            "processes": [_process(one) for one in processes.get(sample.gpu_uuid, {}).values()],
        }
        for sample in fold.flush()
    ]


def _process(reading: ProcessReading) -> dict[str, Any]:
    workload = reading.workload
    return {
        "pid": reading.pid,
        "name": workload.name,
        "user": workload.user,
        "memory_used_bytes": reading.memory_used_bytes,
    }
