"""Samples as rows of their tables: small keys for names, unknown for what is no number."""

from collections.abc import Mapping, Sequence
from math import isfinite

from core.metrics import ENGINE_COLUMNS, GPU_COLUMNS, HOST_COLUMNS
from core.samples import EngineSample, GpuSample, HostSample, ProcessSample
from store.identities import Identities
from store.sample_tables import Row


def gpu_rows(identities: Identities, samples: Sequence[GpuSample]) -> list[Row]:
    """Rows of ``GPU_SAMPLE``; the hottest of these loops."""
    ids, register = identities.gpu_ids, identities.gpu_id
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
                *map(values.get, GPU_COLUMNS),
            )
        )
    return rows


def process_rows(identities: Identities, samples: Sequence[ProcessSample]) -> list[Row]:
    """Rows of ``PROCESS_SAMPLE``."""
    gpu_id, workload_id = identities.gpu_id, identities.workload_id
    return [
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


def engine_rows(identities: Identities, samples: Sequence[EngineSample]) -> list[Row]:
    """Rows of ``ENGINE_SAMPLE``."""
    engine_id = identities.engine_id
    return [
        (
            engine_id(s.engine),
            s.ts_ms,
            s.span_ms,
            s.covered_ms,
            s.busy_ms,
            _known(s.busy_running_requests),
            *map(_finite(s.values).get, ENGINE_COLUMNS),
        )
        for s in samples
    ]


def host_rows(identities: Identities, samples: Sequence[HostSample]) -> list[Row]:
    """Rows of ``HOST_SAMPLE``."""
    host_id = identities.host_id
    return [(host_id(s.host), s.ts_ms, s.span_ms, *map(_finite(s.values).get, HOST_COLUMNS)) for s in samples]


def _finite(values: Mapping[str, float]) -> Mapping[str, float]:
    """Without what is no number: an unknown value is absent."""
    return {name: value for name, value in values.items() if isfinite(value)}


def _known(value: float | None) -> float | None:
    return None if value is None or not isfinite(value) else value
