"""Hosts, GPUs, engines and workloads by their names at the edge: the small keys that sample rows carry."""

import json
from collections.abc import Iterable
from typing import Any

from core.readings import EngineIdentity, GpuIdentity, WorkloadKey
from store.dbapi import Connection
from store.engine_models import Exchanged, exchanged
from store.keys import DAY_SUMS_LOCK, attributes_text, workload_key
from store.ledger_late_facts import mark_gpu, mark_workload

_UPSERT_GPU = """
    INSERT INTO gpu (gpu_uuid, host_id, gpu_index, model, memory_total_bytes, pci_bus_id, driver_version,
                     max_sm_clock_hz, power_limit_default_w, compute_capability, power_averaging_s)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (gpu_uuid) DO UPDATE SET
        host_id = COALESCE(excluded.host_id, gpu.host_id),
        gpu_index = COALESCE(excluded.gpu_index, gpu.gpu_index),
        model = COALESCE(excluded.model, gpu.model),
        memory_total_bytes = COALESCE(excluded.memory_total_bytes, gpu.memory_total_bytes),
        pci_bus_id = COALESCE(excluded.pci_bus_id, gpu.pci_bus_id),
        driver_version = COALESCE(excluded.driver_version, gpu.driver_version),
        max_sm_clock_hz = COALESCE(excluded.max_sm_clock_hz, gpu.max_sm_clock_hz),
        power_limit_default_w = COALESCE(excluded.power_limit_default_w, gpu.power_limit_default_w),
        compute_capability = COALESCE(excluded.compute_capability, gpu.compute_capability),
        power_averaging_s = COALESCE(excluded.power_averaging_s, gpu.power_averaging_s)
"""
_UPSERT_ENGINE = """
    INSERT INTO engine (engine, host_id, kind, model, settings, gpu_uuids) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (engine) DO UPDATE SET
        host_id = COALESCE(excluded.host_id, engine.host_id),
        kind = excluded.kind,
        model = COALESCE(excluded.model, engine.model),
        settings = excluded.settings,
        gpu_uuids = excluded.gpu_uuids
"""


def _became_known(stored: tuple[Any, ...] | None, identity: GpuIdentity) -> int | None:
    """Key of a GPU that samples told of before anybody said what it is and where: days of it may be priced as that.

    One that moves to another host is none of them: what was charged where it was stays so.
    """
    told = (identity.host, identity.model, identity.memory_total_bytes)
    if stored is None or not any(
        new is not None and old is None for old, new in zip(stored[1:], told, strict=True)
    ):
        return None
    return int(stored[0])


class Identities:
    """Small keys, looked up once and remembered; things not seen before are registered."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.gpu_ids: dict[str, int] = {}
        self.engine_ids: dict[str, int] = {}
        self._host_ids: dict[str, int] = {}
        self._workload_ids: dict[WorkloadKey, int] = {}
        self._known_gpus: dict[str, GpuIdentity] = {}
        self._known_engines: dict[str, EngineIdentity] = {}
        self.exchanged: dict[str, Exchanged] = {}
        """Engines that were seen to serve another model, until a sample says since when."""

    def forget(self) -> None:
        """After a rollback: rows registered in it are gone."""
        for known in (
            self.gpu_ids,
            self.engine_ids,
            self._host_ids,
            self._workload_ids,
            self._known_gpus,
            self._known_engines,
            self.exchanged,
        ):
            known.clear()

    def put_gpus(self, identities: Iterable[GpuIdentity]) -> None:
        """Register GPUs, or complete what is known of them; an unknown field never erases a known one."""
        for identity in sorted(identities, key=lambda gpu: gpu.gpu_uuid):
            if self._known_gpus.get(identity.gpu_uuid) == identity:
                continue
            self._connection.begin()
            stored = self._stored(identity)
            became_known = _became_known(stored, identity)
            if stored is not None and identity.model not in {None, stored[2]}:
                self._forget_demand()
            self._connection.execute(
                _UPSERT_GPU,
                (
                    identity.gpu_uuid,
                    self._host_id(identity.host),
                    identity.index,
                    identity.model,
                    identity.memory_total_bytes,
                    identity.pci_bus_id,
                    identity.driver_version,
                    identity.max_sm_clock_hz,
                    identity.power_limit_default_w,
                    identity.compute_capability,
                    identity.power_averaging_s,
                ),
            )
            if became_known is not None:
                mark_gpu(self._connection, became_known)
            self._known_gpus[identity.gpu_uuid] = identity

    def _stored(self, identity: GpuIdentity) -> tuple[Any, ...] | None:
        """Key, host, model and memory of a GPU as they are known; None: it is new."""
        rows = self._connection.fetch(
            "SELECT id, host_id, model, memory_total_bytes FROM gpu WHERE gpu_uuid = ?", (identity.gpu_uuid,)
        )
        return rows[0] if rows else None

    def _forget_demand(self) -> None:
        """Hours that are added up by model (``store.day_sums``) are so under another name of one."""
        if self._connection.dialect == "postgresql":
            self._connection.fetch("SELECT pg_advisory_xact_lock(?)", (DAY_SUMS_LOCK,))
        self._connection.execute("DELETE FROM demand_day")

    def put_engines(self, identities: Iterable[EngineIdentity]) -> None:
        """Register engines, or complete what is known of them; published settings are merged by name."""
        for identity in sorted(identities, key=lambda engine: engine.engine):
            if self._known_engines.get(identity.engine) == identity:
                continue
            self._connection.begin()
            stored = self._connection.fetch(
                "SELECT settings, gpu_uuids, model, joined_gpu_ids FROM engine WHERE engine = ?",
                (identity.engine,),
            )
            settings = (json.loads(stored[0][0]) if stored else {}) | dict(identity.settings)
            gpu_uuids = identity.gpu_uuids or (json.loads(stored[0][1]) if stored else ())
            self._connection.execute(
                _UPSERT_ENGINE,
                (
                    identity.engine,
                    self._host_id(identity.host),
                    identity.kind,
                    identity.model,
                    json.dumps(settings, sort_keys=True),
                    json.dumps(sorted(gpu_uuids)),
                ),
            )
            self._known_engines[identity.engine] = identity
            if stored:
                ids = [self.gpu_id(uuid) for uuid in gpu_uuids] or json.loads(stored[0][3] or "[]")
                note = exchanged(identity, stored[0][2], ids)
                if note is not None:
                    self.exchanged[identity.engine] = note

    def gpu_id(self, gpu_uuid: str) -> int:
        """Key of a GPU; registers it when a sample is the first to name it."""
        found = self.gpu_ids.get(gpu_uuid)
        if found is None:
            found = self.gpu_ids[gpu_uuid] = self._id(
                "gpu", "gpu_uuid", gpu_uuid, "INSERT INTO gpu (gpu_uuid) VALUES (?)", (gpu_uuid,)
            )
        return found

    def engine_id(self, engine: str) -> int:
        """Key of an engine; registers it, of unknown kind, when a sample is the first to name it."""
        found = self.engine_ids.get(engine)
        if found is None:
            found = self.engine_ids[engine] = self._id(
                "engine",
                "engine",
                engine,
                "INSERT INTO engine (engine, kind, settings, gpu_uuids) VALUES (?, 'unknown', '{}', '[]')",
                (engine,),
            )
        return found

    def workload_id(self, workload: WorkloadKey) -> int:
        """Key of a workload; registers it, or completes its attributes."""
        found = self._workload_ids.get(workload)
        if found is None:
            natural = workload_key(workload)
            found = self._id(
                "workload",
                "natural_key",
                natural,
                "INSERT INTO workload (natural_key, host_id, kind, key, name, user_name) VALUES (?, ?, ?, ?, ?, ?)",
                (
                    natural,
                    self._host_id(workload.host),
                    workload.kind,
                    workload.key,
                    workload.name,
                    workload.user,
                ),
            )
            if workload.attributes:
                self._complete_attributes(found, workload.attributes)
            self._workload_ids[workload] = found
        return found

    def _complete_attributes(self, workload_id: int, attributes: Iterable[tuple[str, str]]) -> None:
        """Add what is newly known of a workload; what is known and not told again stays."""
        self._connection.begin()
        ((text,),) = self._connection.fetch("SELECT attributes FROM workload WHERE id = ?", (workload_id,))
        stored: dict[str, str] = json.loads(text)
        completed = stored | dict(attributes)
        if completed != stored:
            self._connection.execute(
                "UPDATE workload SET attributes = ? WHERE id = ?", (attributes_text(completed), workload_id)
            )
            mark_workload(self._connection, workload_id)

    def host_id(self, name: str) -> int:
        """Key of a host; registers it."""
        found = self._host_ids.get(name)
        if found is None:
            found = self._host_ids[name] = self._id(
                "host", "name", name, "INSERT INTO host (name) VALUES (?)", (name,)
            )
        return found

    def _host_id(self, name: str | None) -> int | None:
        return None if name is None else self.host_id(name)

    def _id(self, table: str, column: str, name: str, insert_sql: str, values: tuple[object, ...]) -> int:
        query = f"SELECT id FROM {table} WHERE {column} = ?"
        rows = self._connection.fetch(query, (name,))
        if not rows:
            self._connection.begin()
            self._connection.execute(f"{insert_sql} ON CONFLICT ({column}) DO NOTHING", values)
            rows = self._connection.fetch(query, (name,))
        return int(rows[0][0])
