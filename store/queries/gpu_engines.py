"""Which engines run on which GPU, without all else that is known of either."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from core.readings import EngineIdentity
from store.joins import PlacedGpu, join_engines
from store.models.engine import EngineRow
from store.models.gpu import GpuRow
from store.models.host import HostRow
from store.queries.plain_rows import plain_rows


@dataclass(frozen=True, slots=True)
class EngineName:
    """An engine by its name, and the model it serves (None: not said)."""

    engine: str
    model: str | None
    kind: str


def engines_by_gpu(session: Session, since_ms: int) -> Mapping[str, tuple[EngineName, ...]]:
    """Engines that were seen after a time, by the UUIDs of their GPUs."""
    engine, gpu = EngineRow, GpuRow
    columns: tuple[Any, ...] = (
        engine.engine,
        HostRow.name,
        engine.kind,
        engine.model,
        engine.settings,
        engine.gpu_uuids,
        engine.seen_until_ms,
    )
    engines: Select[Any] = (
        select(*columns)
        .select_from(engine)
        .outerjoin(HostRow, HostRow.id == engine.host_id)
        .order_by(engine.engine)
    )
    # All of them, however old: what an engine runs on also rests on who else is on the host (store.joins).
    identities, names = [], {}
    for name, host, kind, model, settings, uuids, seen_until_ms in plain_rows(session, engines):
        identities.append(
            EngineIdentity(name, host, kind, model, json.loads(settings), tuple(json.loads(uuids)))
        )
        if seen_until_ms is not None and seen_until_ms > since_ms:
            names[name] = EngineName(name, model, kind)
    if not names:
        return {}
    of_card: tuple[Any, ...] = (gpu.gpu_uuid, HostRow.name, gpu.last_held_ms)
    cards: Select[Any] = select(*of_card).select_from(gpu).outerjoin(HostRow, HostRow.id == gpu.host_id)
    placed = [PlacedGpu(uuid, host, held is not None) for uuid, host, held in plain_rows(session, cards)]
    found: dict[str, tuple[EngineName, ...]] = {}
    for name, join in join_engines(identities, placed).items():
        if name in names:
            for gpu_uuid in join.gpu_uuids:
                found[gpu_uuid] = (*found.get(gpu_uuid, ()), names[name])
    return found
