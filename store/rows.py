"""Rows of the sample tables as the samples they hold, for the raw reader and the live view."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Column, Table

from core.activity import Activity
from core.metrics import ENGINE_COLUMNS, GPU_COLUMNS, HOST_COLUMNS
from core.samples import EnergyMethod, EngineSample, GpuSample, HostSample
from store.models.engine_sample import EngineSampleRow
from store.models.gpu_sample import GpuSampleRow
from store.models.host_sample import HostSampleRow
from store.sample_tables import ENGINE_SAMPLE, GPU_SAMPLE, HOST_SAMPLE

# Looked up in a dictionary: calling the enumeration costs more than reading the row.
_ACTIVITIES: Final = {activity.value: activity for activity in Activity}
_METHODS: Final = {None: None} | {method.value: method for method in EnergyMethod}


def _columns(table: Any, names: Sequence[str]) -> tuple[Column[Any], ...]:
    assert isinstance(table, Table)
    return tuple(table.c[name] for name in names)


def gpu_sample_columns(metrics: Sequence[str]) -> tuple[Column[Any], ...]:
    """What to select for ``gpu_sample_of`` with these metrics, in order."""
    return _columns(GpuSampleRow.__table__, (*GPU_SAMPLE.fixed, *metrics))


GPU_SAMPLE_COLUMNS: Final = gpu_sample_columns(GPU_COLUMNS)
"""What to select for ``gpu_sample_of``, in order."""
ENGINE_SAMPLE_COLUMNS: Final = _columns(EngineSampleRow.__table__, ENGINE_SAMPLE.columns)
"""What to select for ``engine_sample_of``, in order."""
HOST_SAMPLE_COLUMNS: Final = _columns(HostSampleRow.__table__, HOST_SAMPLE.columns)
"""What to select for ``host_sample_of``, in order."""


def gpu_sample_of(gpu_uuid: str, row: Sequence[Any], metrics: Sequence[str] = GPU_COLUMNS) -> GpuSample:
    """A row of ``gpu_sample_columns`` as a sample; NULL becomes an absent key."""
    _, ts_ms, span_ms, covered_ms, method, activity, *values = row
    return GpuSample(
        gpu_uuid,
        ts_ms,
        span_ms,
        covered_ms,
        _known(metrics, values),
        _METHODS[method],
        _ACTIVITIES[activity],
    )


def engine_sample_of(engine: str, row: Sequence[Any]) -> EngineSample:
    """A row of ``ENGINE_SAMPLE_COLUMNS`` as a sample; NULL becomes an absent key."""
    _, ts_ms, span_ms, covered_ms, busy_ms, busy_running, *values = row
    return EngineSample(
        engine,
        ts_ms,
        span_ms,
        covered_ms,
        busy_ms,
        busy_running,
        _known(ENGINE_COLUMNS, values),
    )


def host_sample_of(host: str, row: Sequence[Any]) -> HostSample:
    """A row of ``HOST_SAMPLE_COLUMNS`` as a sample; NULL becomes an absent key."""
    _, ts_ms, span_ms, *values = row
    return HostSample(host, ts_ms, span_ms, _known(HOST_COLUMNS, values))


def _known(names: Sequence[str], values: Sequence[float | None]) -> dict[str, float]:
    return {name: value for name, value in zip(names, values, strict=True) if value is not None}
