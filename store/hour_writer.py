"""Folded hours into the hour tables: in bulk, one transaction a chunk, never over an hour that knew more."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, RowMapping, bindparam, delete, insert, select, text

from core.hours import EngineHour, GpuHour, HostHour, UsageHour
from core.quarters import OF_GPU, OF_HOST, merged_quarters
from core.readings import WorkloadKey
from store import pending
from store.bulk import replace_rows
from store.day_writer import mark_days
from store.engine import begin_write
from store.hour_merge import (
    Folded,
    H,
    Span,
    Stored,
    Verdict,
    judge,
    leaves_out,
    merged_engine_hour,
    merged_gpu_hour,
    merged_host_hour,
    merged_usage,
)
from store.hour_rows import (
    engine_hour_of,
    engine_hour_values,
    gpu_hour_of,
    gpu_hour_values,
    host_hour_of,
    host_hour_values,
    usage_hour_values,
)
from store.keys import attributes_text, workload_key
from store.known import KnownEngine, KnownGpu, KnownHost
from store.ledger_marks import mark_engines_seen, mark_hours
from store.models.engine_hour import EngineHourRow
from store.models.gpu_hour import GpuHourRow
from store.models.host import HostRow
from store.models.host_hour import HostHourRow
from store.models.usage_hour import UsageHourRow
from store.models.workload import WorkloadRow
from store.pending import Mark
from store.quarter_rows import packed, quarters_in


@dataclass(frozen=True, slots=True)
class Unit:
    """GPUs and engines that depend on each other, in one hour, folded."""

    gpu_hours: tuple[Folded[GpuHour], ...]
    engine_hours: tuple[Folded[EngineHour], ...]
    usage: Mapping[str, Sequence[UsageHour]]
    """By GPU; a GPU without samples has no entry."""
    host_hours: tuple[Folded[HostHour], ...] = ()


class HourWriter:
    """Writes chunks of folded hours and counts what it wrote."""

    def __init__(
        self,
        engine: Engine,
        gpus: Sequence[KnownGpu],
        engines: Sequence[KnownEngine],
        hosts: Sequence[KnownHost] = (),
    ) -> None:
        self._engine = engine
        self._gpu_ids = {gpu.identity.gpu_uuid: gpu.id for gpu in gpus}
        self._engine_ids = {known.identity.engine: known.id for known in engines}
        self._gpus_of = {
            known.id: [self._gpu_ids[uuid] for uuid in known.join.gpu_uuids if uuid in self._gpu_ids]
            for known in engines
        }
        self._host_ids = {host.name: host.id for host in hosts}
        self._workload_ids: dict[str, int] = {}
        self.gpu_hours = 0
        self.engine_hours = 0
        self.usage_hours = 0
        self.host_hours = 0
        self.partial_hours = 0

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
            self._write_host_hours(connection, [hour for _, unit in good for hour in unit.host_hours])
            self._write_usage(connection, [unit for _, unit in good], kept)
            pending.remove(connection, (mark for key, _ in good for mark in marks[key]))

    def _write_gpu_hours(
        self, connection: Connection, hours: Sequence[Folded[GpuHour]]
    ) -> dict[tuple[str, int], bool]:
        """Write hours; GPU and hour of those that were written, and whether they were merged with the stored one."""
        found = [(self._gpu_ids[one.hour.gpu_uuid], one) for one in hours]
        rows: list[dict[str, Any]] = []
        written: dict[tuple[str, int], bool] = {}
        for gpu_id, one, old in self._chosen(connection, GpuHourRow.__table__, "gpu_id", found):
            hour, span, quarters = one.hour, one.span, one.quarters
            if old is not None:
                parts = _in_order(Folded(gpu_hour_of(old, hour.gpu_uuid), _span(old)), one)
                hour, span = (
                    merged_gpu_hour(parts[0].hour, parts[1].hour),
                    parts[0].span.joined(parts[1].span),
                )
                quarters = merged_quarters(quarters_in(old["quarters"], OF_GPU), quarters)
            rows.append(
                gpu_hour_values(hour, gpu_id) | _span_values(span) | {"quarters": packed(quarters, OF_GPU)}
            )
            written[hour.gpu_uuid, hour.hour_ms] = old is not None
        mark_hours(connection, [(row["gpu_id"], row["hour_ms"]) for row in rows])
        replace_rows(connection, GpuHourRow.__table__, rows)
        mark_days(connection, "gpu", [(row["gpu_id"], row["hour_ms"]) for row in rows])
        self.gpu_hours += len(rows)
        return written

    def _write_engine_hours(self, connection: Connection, hours: Sequence[Folded[EngineHour]]) -> None:
        found = [(self._engine_ids[one.hour.engine], one) for one in hours]
        rows: list[dict[str, Any]] = []
        turned: list[tuple[int, int]] = []
        table = EngineHourRow.__table__
        stored = _stored(connection, table, "engine_id", found)
        for engine_id, one, old in self._chosen(connection, table, "engine_id", found, stored):
            hour, span = one.hour, one.span
            if old is not None:
                hour = merged_engine_hour(engine_hour_of(old, hour.engine), hour)
                span = span.joined(_span(old))
            rows.append(engine_hour_values(hour, engine_id) | _span_values(span))
            before = stored.get((engine_id, hour.hour_ms))
            if (hour.covered_s > 0) != (before is not None and before.covered_s > 0):
                turned += [(gpu_id, hour.hour_ms) for gpu_id in self._gpus_of[engine_id]]
        mark_engines_seen(connection, turned)
        replace_rows(connection, table, rows)
        mark_days(connection, "engine", [(row["engine_id"], row["hour_ms"]) for row in rows])
        self.engine_hours += len(rows)

    def _write_host_hours(self, connection: Connection, hours: Sequence[Folded[HostHour]]) -> None:
        found = [(self._host_ids[one.hour.host], one) for one in hours]
        rows: list[dict[str, Any]] = []
        for host_id, one, old in self._chosen(connection, HostHourRow.__table__, "host_id", found):
            hour, span, quarters = one.hour, one.span, one.quarters
            if old is not None:
                hour = merged_host_hour(host_hour_of(old, hour.host), hour)
                span = span.joined(_span(old))
                quarters = merged_quarters(quarters_in(old["quarters"], OF_HOST), quarters)
            rows.append(
                host_hour_values(hour, host_id) | _span_values(span) | {"quarters": packed(quarters, OF_HOST)}
            )
        replace_rows(connection, HostHourRow.__table__, rows)
        mark_days(connection, "host", [(row["host_id"], row["hour_ms"]) for row in rows])
        self.host_hours += len(rows)

    def _chosen(
        self,
        connection: Connection,
        table: Any,
        key: str,
        found: Sequence[tuple[int, Folded[H]]],
        stored: Mapping[tuple[int, int], Stored] | None = None,
    ) -> Iterator[tuple[int, Folded[H], RowMapping | None]]:
        """Those to write, with the stored row where they are to be merged with it; ``stored``: where it was looked up."""
        known = _stored(connection, table, key, found) if stored is None else stored
        for id_, one in found:
            before = known.get((id_, one.hour.hour_ms))
            verdict = judge(one, before)
            if verdict is Verdict.MERGE:
                row = select(table).where(table.c[key] == id_, table.c.hour_ms == one.hour.hour_ms)
                yield id_, one, connection.execute(row).mappings().one()
                continue
            if verdict is Verdict.KEEP or (before is not None and leaves_out(one, before)):
                self.partial_hours += 1
            if verdict is Verdict.REPLACE:
                yield id_, one, None

    def _write_usage(
        self, connection: Connection, units: Sequence[Unit], written: Mapping[tuple[str, int], bool]
    ) -> None:
        lines = [
            line
            for unit in units
            for of_gpu in unit.usage.values()
            for line in of_gpu
            if (line.gpu_uuid, line.hour_ms) in written
        ]
        self._register(connection, [line.workload for line in lines if line.workload is not None])
        rows = [
            usage_hour_values(
                line,
                self._gpu_ids[line.gpu_uuid],
                None if line.workload is None else self._workload_ids[workload_key(line.workload)],
            )
            for line in lines
        ]
        for (uuid, hour_ms), merged in written.items():
            if merged:
                rows = _with_stored_usage(connection, rows, self._gpu_ids[uuid], hour_ms)
        table = UsageHourRow
        if written:
            connection.execute(
                delete(table).where(table.gpu_id == bindparam("g"), table.hour_ms == bindparam("h")),
                [{"g": self._gpu_ids[uuid], "h": hour_ms} for uuid, hour_ms in sorted(written)],
            )
        if rows:
            connection.execute(insert(table), rows)
        self.usage_hours += len(rows)

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
                    "INSERT INTO workload (natural_key, host_id, kind, key, name, user_name, attributes) "
                    "VALUES (:natural_key, :host_id, :kind, :key, :name, :user_name, :attributes) "
                    "ON CONFLICT (natural_key) DO NOTHING"
                ),
                {
                    "natural_key": natural,
                    "host_id": host_id,
                    "kind": workload.kind,
                    "key": workload.key,
                    "name": workload.name,
                    "user_name": workload.user,
                    "attributes": attributes_text(dict(workload.attributes)),
                },
            )
        self._workload_ids |= _workload_ids(connection, missing)


def _workload_ids(connection: Connection, natural_keys: Iterable[str]) -> dict[str, int]:
    row = WorkloadRow
    found = select(row.natural_key, row.id).where(row.natural_key.in_(list(natural_keys)))
    return dict(connection.execute(found).all())


def _stored(
    connection: Connection, table: Any, key: str, wanted: Sequence[tuple[int, Folded[H]]]
) -> dict[tuple[int, int], Stored]:
    """The stored hours among ``wanted`` (and their neighbours: it reads a rectangle)."""
    if not wanted:
        return {}
    hours = [one.hour.hour_ms for _, one in wanted]
    columns = table.c
    statement = select(
        columns[key], columns.hour_ms, columns.covered_s, columns.sampled_from_ms, columns.sampled_to_ms
    ).where(
        columns[key].in_({entity for entity, _ in wanted}),
        columns.hour_ms >= min(hours),
        columns.hour_ms <= max(hours),
    )
    return {
        (entity, hour_ms): Stored(covered_s, None if from_ms is None else Span(from_ms, to_ms))
        for entity, hour_ms, covered_s, from_ms, to_ms in connection.execute(statement)
    }


def _span(row: RowMapping) -> Span:
    return Span(row["sampled_from_ms"], row["sampled_to_ms"])


def _span_values(span: Span) -> dict[str, int]:
    return {"sampled_from_ms": span.from_ms, "sampled_to_ms": span.to_ms}


def _in_order(one: Folded[H], other: Folded[H]) -> tuple[Folded[H], Folded[H]]:
    return (one, other) if one.span <= other.span else (other, one)


def _with_stored_usage(
    connection: Connection, rows: Sequence[dict[str, Any]], gpu_id: int, hour_ms: int
) -> list[dict[str, Any]]:
    """``rows`` with the stored lines of one GPU's hour in them."""
    table = UsageHourRow.__table__
    columns = [column for column in table.columns if column.name != "id"]
    stored = select(*columns).where(UsageHourRow.gpu_id == gpu_id, UsageHourRow.hour_ms == hour_ms)
    lines = {(row["gpu_id"], row["hour_ms"], row["workload_id"]): row for row in rows}
    for found in connection.execute(stored).mappings():
        key = (gpu_id, hour_ms, found["workload_id"])
        lines[key] = merged_usage(dict(found), lines[key]) if key in lines else dict(found)
    return list(lines.values())
