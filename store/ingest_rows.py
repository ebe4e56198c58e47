"""Samples as rows of their tables: small keys for names, unknown for what is no number.

Rows of a batch have the columns of which any sample knows a value, and no more: to bind a NULL costs Python's SQLite
driver several times what a number costs, and most sources know half of the metrics.
"""

from collections.abc import Mapping, Sequence
from math import isfinite

from core.metrics import ENGINE_COLUMNS, GPU_COLUMNS, HOST_COLUMNS
from core.samples import EngineSample, GpuSample, HostSample, ProcessSample
from store.identities import Identities
from store.sample_tables import ENGINE_SAMPLE, GPU_SAMPLE, HOST_SAMPLE, PROCESS_SAMPLE, Row

Rows = tuple[tuple[str, ...], list[Row]]
"""Columns, and rows of them."""


def gpu_rows(identities: Identities, samples: Sequence[GpuSample]) -> Rows:
    """Rows of ``GPU_SAMPLE``; the hottest of these loops."""
    ids, register = identities.gpu_ids, identities.gpu_id
    metrics = _told(GPU_COLUMNS, samples)
    rows: list[Row] = []
    append = rows.append
    for s in samples:
        values = s.values
        if not isfinite(sum(values.values())):
            values = _finite(values)
        append(
            (
                ids.get(s.gpu_uuid) or register(s.gpu_uuid),
                s.ts_ms,
                s.span_ms,
                s.covered_ms,
                None if s.energy_method is None else s.energy_method.value,
                s.activity.value,
                *map(values.get, metrics),
            )
        )
    return (*GPU_SAMPLE.fixed, *metrics), rows


def process_rows(identities: Identities, samples: Sequence[ProcessSample]) -> Rows:
    """Rows of ``PROCESS_SAMPLE``."""
    gpu_id, workload_id = identities.gpu_id, identities.workload_id
    return PROCESS_SAMPLE.columns, [
        (
            gpu_id(s.gpu_uuid),
            s.ts_ms,
            workload_id(s.workload),
            s.span_ms,
            _known(s.memory_used_bytes),
            _known(s.busy_ratio),
            s.process_count,
            _known(s.cpu_ratio),
            _known(s.cpu_thread_ratio),
        )
        for s in samples
    ]


def engine_rows(identities: Identities, samples: Sequence[EngineSample]) -> Rows:
    """Rows of ``ENGINE_SAMPLE``."""
    engine_id = identities.engine_id
    metrics = _told(ENGINE_COLUMNS, samples)
    return (*ENGINE_SAMPLE.fixed, *metrics), [
        (
            engine_id(s.engine),
            s.ts_ms,
            s.span_ms,
            s.covered_ms,
            s.busy_ms,
            _known(s.busy_running_requests),
            *map(_finite(s.values).get, metrics),
        )
        for s in samples
    ]


def host_rows(identities: Identities, samples: Sequence[HostSample]) -> Rows:
    """Rows of ``HOST_SAMPLE``."""
    host_id = identities.host_id
    metrics = _told(HOST_COLUMNS, samples)
    return (*HOST_SAMPLE.fixed, *metrics), [
        (host_id(s.host), s.ts_ms, s.span_ms, *map(_finite(s.values).get, metrics)) for s in samples
    ]


def _told(
    metrics: Sequence[str], samples: Sequence[GpuSample] | Sequence[EngineSample] | Sequence[HostSample]
) -> tuple[str, ...]:
    """Those of ``metrics`` that any of the samples tells, in their order."""
    told: set[str] = set().union(*[s.values for s in samples])
    return tuple(name for name in metrics if name in told)


def _finite(values: Mapping[str, float]) -> Mapping[str, float]:
    """Without what is no number: an unknown value is absent."""
    return {name: value for name, value in values.items() if isfinite(value)}


def _known(value: float | None) -> float | None:
    return None if value is None or not isfinite(value) else value
