"""Marks of hours to roll up: read in order, re-set when a join changed, removed only when nothing came in between."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from secrets import randbits
from typing import Final

from sqlalchemy import BigInteger, Connection, bindparam, delete, func, select, text, tuple_, update

from store.known import KnownEngine, KnownGpu
from store.ledger_marks import mark_joined
from store.models.engine import EngineRow
from store.models.rollup_pending import RollupPendingRow

ON_CONFLICT: Final = "ON CONFLICT (hour_ms, kind, entity_id) DO UPDATE SET mark = excluded.mark"


@dataclass(frozen=True, slots=True)
class Mark:
    """One hour of one GPU or engine whose samples changed; ``mark`` tells one change from the next."""

    hour_ms: int
    kind: str
    entity_id: int
    mark: int

    @property
    def place(self) -> tuple[int, str, int]:
        """Its key, and its place in the order of reading."""
        return (self.hour_ms, self.kind, self.entity_id)


def next_marks(
    connection: Connection, after: tuple[int, str, int] | None, until_ms: int, limit: int
) -> list[Mark]:
    """Marks after ``after`` in order of time, of hours that begin by ``until_ms``."""
    row = RollupPendingRow
    statement = select(row.hour_ms, row.kind, row.entity_id, row.mark).where(row.hour_ms <= until_ms)
    if after is not None:
        statement = statement.where(tuple_(row.hour_ms, row.kind, row.entity_id) > after)
    statement = statement.order_by(row.hour_ms, row.kind, row.entity_id).limit(limit)
    return [Mark(*found) for found in connection.execute(statement)]


def unchanged(connection: Connection, marks: Sequence[Mark]) -> set[Mark]:
    """Those of ``marks`` that are still as they were read, locked until the end of the transaction."""
    row = RollupPendingRow
    hours = [mark.hour_ms for mark in marks]
    statement = (
        select(row.hour_ms, row.kind, row.entity_id, row.mark)
        .where(row.hour_ms >= min(hours), row.hour_ms <= max(hours))
        .order_by(row.hour_ms, row.kind, row.entity_id)
        .with_for_update()
    )
    return {Mark(*found) for found in connection.execute(statement)} & set(marks)


def remove(connection: Connection, marks: Iterable[Mark]) -> None:
    """Delete marks whose hours are written."""
    row = RollupPendingRow
    rows = [{"h": mark.hour_ms, "k": mark.kind, "e": mark.entity_id} for mark in marks]
    if rows:
        connection.execute(
            delete(row).where(
                row.hour_ms == bindparam("h"), row.kind == bindparam("k"), row.entity_id == bindparam("e")
            ),
            rows,
        )


def count(connection: Connection) -> int:
    """Marks left."""
    return connection.execute(select(func.count()).select_from(RollupPendingRow)).scalar_one()


def mark_changed_joins(
    connection: Connection, engines: Sequence[KnownEngine], gpus: Sequence[KnownGpu]
) -> None:
    """Mark the hours of every engine that is now told to run on other GPUs than when they were rolled up.

    Their days in the ledger too, by themselves: samples behind the hours may be gone, and then no hour is written again.
    """
    ids = {gpu.identity.gpu_uuid: gpu.id for gpu in gpus}
    for engine in engines:
        now = sorted(ids[uuid] for uuid in engine.join.gpu_uuids if uuid in ids)
        before: list[int] = json.loads(engine.joined_gpu_ids or "[]")
        if engine.joined_gpu_ids is not None and now == before:
            continue
        mark_joined(connection, engine.id, set(before) ^ set(now))
        for gpu_id in set(before) - set(now):
            _mark_hours_of(connection, engine.id, "gpu", gpu_id)
        _mark_hours_of(connection, engine.id, "engine", engine.id)
        connection.execute(
            update(EngineRow).where(EngineRow.id == engine.id).values(joined_gpu_ids=json.dumps(now))
        )


def _mark_hours_of(connection: Connection, engine_id: int, kind: str, entity_id: int) -> None:
    """Mark the hours in which an engine was seen, for itself or for a GPU it is no longer on."""
    statement = text(
        "INSERT INTO rollup_pending (hour_ms, kind, entity_id, mark) "
        "SELECT hour_ms, CAST(:kind AS text), CAST(:entity_id AS integer), CAST(:mark AS bigint) "
        f"FROM engine_hour WHERE engine_id = :engine_id {ON_CONFLICT}"
    ).bindparams(bindparam("mark", type_=BigInteger))
    connection.execute(
        statement, {"kind": kind, "entity_id": entity_id, "engine_id": engine_id, "mark": randbits(62)}
    )
