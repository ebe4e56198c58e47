"""The seam between the roll-up and raw samples: it asks a reader, never a table by name.

Here raw samples are in the same database; at fleets beyond it they stay in a time-series engine and a reader
that speaks PromQL takes this one's place.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from sqlalchemy import Engine, select

from core.evidence import Window
from core.metrics import GPU_COLUMNS
from core.readings import WorkloadKey
from core.samples import EngineSample, GpuSample, HostSample, ProcessSample
from store.keys import attributes_of
from store.models.engine import EngineRow
from store.models.engine_sample import EngineSampleRow
from store.models.gpu import GpuRow
from store.models.gpu_sample import GpuSampleRow
from store.models.host import HostRow
from store.models.host_sample import HostSampleRow
from store.models.process_sample import ProcessSampleRow
from store.models.workload import WorkloadRow
from store.rows import (
    ENGINE_SAMPLE_COLUMNS,
    HOST_SAMPLE_COLUMNS,
    engine_sample_of,
    gpu_sample_columns,
    gpu_sample_of,
    host_sample_of,
)


class RawReader(Protocol):
    """Gives samples that start within a window, each GPU's (engine's, host's) in order of time."""

    def gpu_samples(self, gpu_uuids: Sequence[str], window: Window) -> Iterable[GpuSample]:
        """Samples of GPUs."""
        ...

    def process_samples(self, gpu_uuids: Sequence[str], window: Window) -> Iterable[ProcessSample]:
        """What workloads held of GPUs."""
        ...

    def engine_samples(self, engines: Sequence[str], window: Window) -> Iterable[EngineSample]:
        """Samples of engines."""
        ...

    def host_samples(self, hosts: Sequence[str], window: Window) -> Iterable[HostSample]:
        """Samples of hosts."""
        ...


class SqlRawReader:
    """Reads the sample tables of the product's own database.

    ``gpu_metrics``: of GPUs only these; the roll-up reads many samples and folds two thirds of what they hold.
    """

    def __init__(self, engine: Engine, gpu_metrics: Sequence[str] = GPU_COLUMNS) -> None:
        self._engine = engine
        self._gpu_metrics = gpu_metrics

    def gpu_samples(self, gpu_uuids: Sequence[str], window: Window) -> Iterable[GpuSample]:
        """Samples of GPUs, by GPU and time."""
        row = GpuSampleRow
        with self._engine.connect() as connection:
            uuids = dict(
                connection.execute(
                    select(GpuRow.id, GpuRow.gpu_uuid).where(GpuRow.gpu_uuid.in_(gpu_uuids))
                ).all()
            )
            statement = (
                select(*gpu_sample_columns(self._gpu_metrics))
                .where(row.gpu_id.in_(uuids), row.ts_ms >= window.from_ms, row.ts_ms < window.to_ms)
                .order_by(row.gpu_id, row.ts_ms)
            )
            return [
                gpu_sample_of(uuids[found[0]], found, self._gpu_metrics)
                for found in connection.execute(statement).all()
            ]

    def process_samples(self, gpu_uuids: Sequence[str], window: Window) -> Iterable[ProcessSample]:
        """What workloads held of GPUs, by GPU and time."""
        row = ProcessSampleRow
        statement = (
            select(
                GpuRow.gpu_uuid,
                row.ts_ms,
                row.span_ms,
                row.workload_id,
                row.memory_used_bytes,
                row.busy_ratio,
                row.process_count,
                row.cpu_ratio,
                row.cpu_thread_ratio,
            )
            .join(GpuRow, GpuRow.id == row.gpu_id)
            .where(GpuRow.gpu_uuid.in_(gpu_uuids), row.ts_ms >= window.from_ms, row.ts_ms < window.to_ms)
            .order_by(row.gpu_id, row.ts_ms, row.workload_id)
        )
        with self._engine.connect() as connection:
            found = connection.execute(statement).all()
            ids = {row[3] for row in found}
            workloads = {
                key: WorkloadKey(kind, natural, name, user, host, attributes_of(attributes))
                for key, kind, natural, name, user, host, attributes in connection.execute(
                    select(
                        WorkloadRow.id,
                        WorkloadRow.kind,
                        WorkloadRow.key,
                        WorkloadRow.name,
                        WorkloadRow.user_name,
                        HostRow.name,
                        WorkloadRow.attributes,
                    )
                    .outerjoin(HostRow, HostRow.id == WorkloadRow.host_id)
                    .where(WorkloadRow.id.in_(ids))
                )
            }
        return [
            ProcessSample(uuid, ts_ms, span_ms, workloads[workload_id], memory, busy, count, cpu, thread)
            for uuid, ts_ms, span_ms, workload_id, memory, busy, count, cpu, thread in found
        ]

    def engine_samples(self, engines: Sequence[str], window: Window) -> Iterable[EngineSample]:
        """Samples of engines, by engine and time."""
        row = EngineSampleRow
        with self._engine.connect() as connection:
            names = dict(
                connection.execute(
                    select(EngineRow.id, EngineRow.engine).where(EngineRow.engine.in_(engines))
                ).all()
            )
            statement = (
                select(*ENGINE_SAMPLE_COLUMNS)
                .where(row.engine_id.in_(names), row.ts_ms >= window.from_ms, row.ts_ms < window.to_ms)
                .order_by(row.engine_id, row.ts_ms)
            )
            return [engine_sample_of(names[found[0]], found) for found in connection.execute(statement).all()]

    def host_samples(self, hosts: Sequence[str], window: Window) -> Iterable[HostSample]:
        """Samples of hosts, by host and time."""
        row = HostSampleRow
        with self._engine.connect() as connection:
            names = dict(
                connection.execute(select(HostRow.id, HostRow.name).where(HostRow.name.in_(hosts))).all()
            )
            statement = (
                select(*HOST_SAMPLE_COLUMNS)
                .where(row.host_id.in_(names), row.ts_ms >= window.from_ms, row.ts_ms < window.to_ms)
                .order_by(row.host_id, row.ts_ms)
            )
            return [host_sample_of(names[found[0]], found) for found in connection.execute(statement).all()]
