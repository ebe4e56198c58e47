"""GPUs, engines and hosts as the store knows them, with the join between them: one answer for roll-up and queries."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, select

from core.readings import EngineIdentity, GpuIdentity
from store.joins import EngineJoin, PlacedGpu, join_engines
from store.models.engine import EngineRow
from store.models.gpu import GpuRow
from store.models.host import HostRow


@dataclass(frozen=True, slots=True)
class KnownGpu:
    """A GPU with its key and the span it was seen in; ``held`` says that something held it at some time."""

    id: int
    identity: GpuIdentity
    first_sample_ms: int | None
    last_sample_ms: int | None
    seen_until_ms: int | None
    held: bool


@dataclass(frozen=True, slots=True)
class KnownEngine:
    """An engine with its key, its span, its GPUs, the GPU keys its hours were last rolled up with, and what it can reach."""

    id: int
    identity: EngineIdentity
    first_sample_ms: int | None
    seen_until_ms: int | None
    join: EngineJoin
    joined_gpu_ids: str | None
    reachable_tokens_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class KnownHost:
    """A host with its key."""

    id: int
    name: str


def known_hosts(connection: Connection) -> list[KnownHost]:
    """Every host, by name."""
    statement = select(HostRow.id, HostRow.name).order_by(HostRow.name)
    return [KnownHost(key, name) for key, name in connection.execute(statement)]


def known_gpus(
    connection: Connection, ids: Collection[int] | None = None, gpu_uuids: Collection[str] | None = None
) -> list[KnownGpu]:
    """Every GPU (or those of these keys, or UUIDs), by host, index and UUID."""
    gpu = GpuRow
    statement = (
        select(
            gpu.id,
            gpu.first_sample_ms,
            gpu.last_sample_ms,
            gpu.seen_until_ms,
            gpu.last_held_ms.is_not(None),
            gpu.gpu_uuid,
            HostRow.name,
            gpu.gpu_index,
            gpu.model,
            gpu.memory_total_bytes,
            gpu.pci_bus_id,
            gpu.driver_version,
            gpu.max_sm_clock_hz,
            gpu.power_limit_default_w,
            gpu.compute_capability,
            gpu.power_averaging_s,
        )
        .outerjoin(HostRow, HostRow.id == GpuRow.host_id)
        .order_by(HostRow.name, GpuRow.gpu_index, GpuRow.gpu_uuid)
    )
    if ids is not None:
        statement = statement.where(GpuRow.id.in_(ids))
    if gpu_uuids is not None:
        statement = statement.where(GpuRow.gpu_uuid.in_(gpu_uuids))
    # The driver's own rows, by place: a page names a thousand GPUs.
    cursor = connection.execute(statement).cursor
    assert cursor is not None
    return [
        KnownGpu(
            row[0],
            GpuIdentity(
                gpu_uuid=row[5],
                host=row[6],
                index=row[7],
                model=row[8],
                memory_total_bytes=row[9],
                pci_bus_id=row[10],
                driver_version=row[11],
                max_sm_clock_hz=row[12],
                power_limit_default_w=row[13],
                compute_capability=row[14],
                power_averaging_s=row[15],
            ),
            row[1],
            row[2],
            row[3],
            bool(row[4]),
        )
        for row in cursor.fetchall()
    ]


def placed_gpus(connection: Connection) -> list[PlacedGpu]:
    """Every GPU with its place alone: what tells which engine runs on it."""
    statement = select(GpuRow.gpu_uuid, HostRow.name, GpuRow.last_held_ms.is_not(None)).outerjoin(
        HostRow, HostRow.id == GpuRow.host_id
    )
    cursor = connection.execute(statement).cursor
    assert cursor is not None
    return [PlacedGpu(uuid, host, bool(held)) for uuid, host, held in cursor.fetchall()]


def known_engines(
    connection: Connection, gpus: Sequence[KnownGpu] | Sequence[PlacedGpu]
) -> list[KnownEngine]:
    """Every engine by name, joined to ``gpus``, which are all of them."""
    statement = (
        select(EngineRow.__table__, HostRow.name.label("host"))
        .outerjoin(HostRow, HostRow.id == EngineRow.host_id)
        .order_by(EngineRow.engine)
    )
    rows = connection.execute(statement).all()
    # Parsed together: a call of the parser costs more than what it parses.
    parsed = iter(json.loads(f"[{','.join(text for row in rows for text in (row.settings, row.gpu_uuids))}]"))
    identities = {
        row.id: EngineIdentity(
            engine=row.engine,
            host=row.host,
            kind=row.kind,
            model=row.model,
            settings=settings,
            gpu_uuids=tuple(uuids),
        )
        for row, settings, uuids in zip(rows, parsed, parsed, strict=True)
    }
    placed = [
        gpu if isinstance(gpu, PlacedGpu) else PlacedGpu(gpu.identity.gpu_uuid, gpu.identity.host, gpu.held)
        for gpu in gpus
    ]
    joins: Mapping[str, EngineJoin] = join_engines(identities.values(), placed)
    return [
        KnownEngine(
            row.id,
            identities[row.id],
            row.first_sample_ms,
            row.seen_until_ms,
            joins[row.engine],
            row.joined_gpu_ids,
            row.reachable_tokens_per_s,
        )
        for row in rows
    ]
