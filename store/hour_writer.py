"""Folded hours into the hour tables: in bulk, one transaction a chunk, never over an hour that knew more."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Engine, Table, bindparam, delete, insert, select, text

from core.hours import EngineHour, GpuHour, UsageHour
from core.readings import WorkloadKey
from store import pending
from store.engine import begin_write
from store.hour_rows import engine_hour_values, gpu_hour_values, usage_hour_values
from store.keys import workload_key
from store.known import KnownEngine, KnownGpu
from store.models.engine_hour import EngineHourRow
from store.models.gpu_hour import GpuHourRow
from store.models.host import HostRow
from store.models.usage_hour import UsageHourRow
from store.models.workload import WorkloadRow
from store.pending import Mark

CLEARLY_LESS: Final = 0.98
"""An hour that covers less than this share of the stored one is not news: its raw samples were purged."""


@dataclass(frozen=True, slots=True)
class Unit:
    """GPUs and engines that depend on each other, in one hour, folded."""

    gpu_hours: tuple[GpuHour, ...]
    engine_hours: tuple[EngineHour, ...]
    usage: Mapping[str, Sequence[UsageHour]]
    """By GPU; a GPU without samples has no entry."""


class HourWriter:
    """Writes chunks of folded hours and counts what it wrote."""

    def __init__(self, engine: Engine, gpus: Sequence[KnownGpu], engines: Sequence[KnownEngine]) -> None:
        self._engine = engine
        self._gpu_ids = {gpu.identity.gpu_uuid: gpu.id for gpu in gpus}
        self._engine_ids = {known.identity.engine: known.id for known in engines}
        self._workload_ids: dict[str, int] = {}
        self.gpu_hours = 0
        self.engine_hours = 0
        self.usage_hours = 0

    def write(
        self,
        units: Iterable[tuple[tuple[int, int], Unit]],
        marks: Mapping[tuple[int, int], Sequence[Mark]],
    ) -> None:
        """Write ``units`` and remove their marks; a unit of which a mark changed meanwhile is left as it is."""
        folded = list(units)
        with self._engine.begin() as connection:
            begin_write(connection)
            same = pending.unchanged(connection, [mark for of_unit in marks.values() for mark in of_unit])
            good = [(key, unit) for key, unit in folded if same.issuperset(marks[key])]
            kept = self._write_gpu_hours(connection, [hour for _, unit in good for hour in unit.gpu_hours])
            self._write_engine_hours(connection, [hour for _, unit in good for hour in unit.engine_hours])
            self._write_usage(connection, [unit for _, unit in good], kept)
            pending.remove(connection, (mark for key, _ in good for mark in marks[key]))

    def _write_gpu_hours(self, connection: Connection, hours: Sequence[GpuHour]) -> set[tuple[str, int]]:
        """Write hours; returns GPU and hour of those that were written."""
        keys = [(self._gpu_ids[hour.gpu_uuid], hour.hour_ms) for hour in hours]
        stored = _covered(connection, GpuHourRow.__table__, "gpu_id", keys)
        better = [
            hour
            for hour in hours
            if hour.covered_s >= CLEARLY_LESS * stored.get((self._gpu_ids[hour.gpu_uuid], hour.hour_ms), 0.0)
        ]
        _replace(
            connection,
            GpuHourRow.__table__,
            [gpu_hour_values(hour, self._gpu_ids[hour.gpu_uuid]) for hour in better],
        )
        self.gpu_hours += len(better)
        return {(hour.gpu_uuid, hour.hour_ms) for hour in better}

    def _write_engine_hours(self, connection: Connection, hours: Sequence[EngineHour]) -> None:
        keys = [(self._engine_ids[hour.engine], hour.hour_ms) for hour in hours]
        stored = _covered(connection, EngineHourRow.__table__, "engine_id", keys)
        better = [
            hour
            for hour in hours
            if hour.covered_s >= CLEARLY_LESS * stored.get((self._engine_ids[hour.engine], hour.hour_ms), 0.0)
        ]
        _replace(
            connection,
            EngineHourRow.__table__,
            [engine_hour_values(hour, self._engine_ids[hour.engine]) for hour in better],
        )
        self.engine_hours += len(better)

    def _write_usage(
        self, connection: Connection, units: Sequence[Unit], written: set[tuple[str, int]]
    ) -> None:
        lines = [
            line
            for unit in units
            for of_gpu in unit.usage.values()
            for line in of_gpu
            if (line.gpu_uuid, line.hour_ms) in written
        ]
        self._register(connection, [line.workload for line in lines if line.workload is not None])
        table = UsageHourRow
        if written:
            connection.execute(
                delete(table).where(table.gpu_id == bindparam("g"), table.hour_ms == bindparam("h")),
                [{"g": self._gpu_ids[uuid], "h": hour_ms} for uuid, hour_ms in sorted(written)],
            )
        if lines:
            connection.execute(
                insert(table),
                [
                    usage_hour_values(
                        line,
                        self._gpu_ids[line.gpu_uuid],
                        None if line.workload is None else self._workload_ids[workload_key(line.workload)],
                    )
                    for line in lines
                ],
            )
        self.usage_hours += len(lines)

    def _register(self, connection: Connection, workloads: Iterable[WorkloadKey]) -> None:
        """Have a key for every workload; engines become workloads here for the first time."""
        wanted = {workload_key(w): w for w in workloads}
        missing = wanted.keys() - self._workload_ids.keys()
        if not missing:
            return
        self._workload_ids |= _workload_ids(connection, missing)
        for natural in sorted(missing - self._workload_ids.keys()):
            workload = wanted[natural]
            host_id = connection.execute(select(HostRow.id).where(HostRow.name == workload.host)).scalar()
            connection.execute(
                text(
                    "INSERT INTO workload (natural_key, host_id, kind, key, name, user_name) "
                    "VALUES (:natural_key, :host_id, :kind, :key, :name, :user_name) "
                    "ON CONFLICT (natural_key) DO NOTHING"
                ),
                {
                    "natural_key": natural,
                    "host_id": host_id,
                    "kind": workload.kind,
                    "key": workload.key,
                    "name": workload.name,
                    "user_name": workload.user,
                },
            )
        self._workload_ids |= _workload_ids(connection, missing)


def _workload_ids(connection: Connection, natural_keys: Iterable[str]) -> dict[str, int]:
    row = WorkloadRow
    found = select(row.natural_key, row.id).where(row.natural_key.in_(list(natural_keys)))
    return dict(connection.execute(found).all())


def _covered(
    connection: Connection, table: Any, key: str, wanted: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], float]:
    """Covered seconds of the stored hours among ``wanted`` (and their neighbours: it reads a rectangle)."""
    if not wanted:
        return {}
    hours = [hour_ms for _, hour_ms in wanted]
    statement = select(table.c[key], table.c.hour_ms, table.c.covered_s).where(
        table.c[key].in_({entity for entity, _ in wanted}),
        table.c.hour_ms >= min(hours),
        table.c.hour_ms <= max(hours),
    )
    return {(entity, hour_ms): covered_s for entity, hour_ms, covered_s in connection.execute(statement)}


def _replace(connection: Connection, table: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows, or overwrite those of the same key: one prepared statement for all."""
    if not rows:
        return
    assert isinstance(table, Table)
    names = [column.name for column in table.columns]
    keys = [column.name for column in table.primary_key.columns]
    updates = ", ".join(f"{name} = excluded.{name}" for name in names if name not in keys)
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    # Straight to the driver: the values are plain, and preparing each row costs more than storing it.
    connection.exec_driver_sql(
        f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({', '.join([mark] * len(names))}) "
        f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {updates}",
        [tuple(row[name] for name in names) for row in rows],
    )
