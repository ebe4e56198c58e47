"""From the text of a series to whose it is and what it means; GPUs and engines as they become known."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import PureWindowsPath
from sys import float_info
from typing import Final

from agent.engines import EngineSeries, engine_series, is_engine_name
from agent.sources import dcgm
from agent.sources.exposition import LineError, labels_of, name_of
from agent.sources.workload_labels import Pod, pod_behind, pod_of, workload_of
from agent.track import LONGEST_MS
from core.plausible import bounds
from core.readings import (
    EngineIdentity,
    EngineReading,
    GpuIdentity,
    GpuReading,
    ProcessReading,
    WorkloadKey,
)

Thing = GpuIdentity | EngineIdentity | GpuReading | EngineReading | ProcessReading

LOWEST: Final = -float_info.max
"""Every finite value is at or above it; minus infinity is below and no value."""
HELD_BY: Final = "DCGM_FI_DEV_FB_USED"
"""The series whose labels say who holds a GPU or a MIG slice: every card has it."""
_UUID_PREFIXES: Final = ("GPU-", "MIG-")


@dataclass(frozen=True, slots=True)
class Slot:
    """One value of an entity at an instant: its reading name, rank among alternatives, whether series add up.

    ``holder``: it is memory that a process (number and executable) or a workload held.
    """

    reading: str
    rank: int = 0
    summed: bool = False
    holder: tuple[int, str] | WorkloadKey | None = None


@dataclass(slots=True)
class GpuEntity:
    """A GPU or MIG instance, as far as it is known. ``held``: by slot of a workload the last instant at which it held it."""

    identity: GpuIdentity
    told: GpuIdentity | None = None
    held: dict[int, int] = field(default_factory=dict)

    def learn(self, **facts: object) -> None:
        """Take facts that are not None."""
        known = {name: fact for name, fact in facts.items() if fact is not None}
        if known:
            self.identity = replace(self.identity, **known)  # type: ignore[arg-type]

    def things(self, ts_ms: int, instant: Mapping[int, float], slots: list[Slot]) -> list[Thing]:
        """Identity when it is news, the reading, and the readings of its processes."""
        values: dict[str, float] = {}
        ranks: dict[str, int] = {}
        processes: list[Thing] = []
        uuid = self.identity.gpu_uuid
        for number, value in instant.items():
            slot = slots[number]
            name = slot.reading
            if slot.holder is not None:
                processes.append(_held(self.identity, ts_ms, slot.holder, value))
                if isinstance(slot.holder, WorkloadKey):
                    self.held[number] = max(ts_ms, self.held.get(number, 0))
            elif name not in values or slot.rank < ranks.get(name, 0):
                values[name] = value
                if slot.rank:
                    ranks[name] = slot.rank
                else:
                    ranks.pop(name, None)
        self._learn_from(values)
        things: list[Thing] = []
        if self.identity != self.told:
            self.told = self.identity
            things.append(self.identity)
        if values:
            things.append(GpuReading(uuid, ts_ms, values))
        return things + processes

    def _learn_from(self, values: dict[str, float]) -> None:
        free, total = values.pop(dcgm.FREE, None), values.pop(dcgm.TOTAL, None)
        if self.identity.memory_total_bytes is None:
            used = values.get("memory_used_bytes")
            if total is None and free is not None and used is not None:
                # dcgm-exporter has no total by default; the parts add up to it within a few MiB.
                total = used + free + values.get("memory_reserved_bytes", 0.0)
            if total:
                self.learn(memory_total_bytes=round(total))
        index, clock = values.pop(dcgm.INDEX, None), values.pop(dcgm.MAX_SM_CLOCK, None)
        limit = values.pop(dcgm.DEFAULT_LIMIT, None)
        self.learn(
            index=None if index is None else int(index), max_sm_clock_hz=clock, power_limit_default_w=limit
        )


@dataclass(slots=True)
class EngineEntity:
    """An engine, as far as it is known. ``pod``: that serves it."""

    identity: EngineIdentity
    told: EngineIdentity | None = None
    pod: Pod | None = None

    def learn(self, model: str | None, settings: Mapping[str, str]) -> None:
        """Take a model name and settings."""
        merged = {**self.identity.settings, **settings}
        self.identity = replace(self.identity, model=model or self.identity.model, settings=merged)

    def place(self, gpu_uuids: tuple[str, ...], host: str | None) -> None:
        """Take the GPUs that it was seen to hold, and the host that they are in."""
        host = host or self.identity.host
        self.identity = replace(self.identity, gpu_uuids=gpu_uuids, host=host)

    def things(self, ts_ms: int, instant: Mapping[int, float], slots: list[Slot]) -> list[Thing]:
        """Identity when it is news, and the reading."""
        values: dict[str, float] = {}
        ranks: dict[str, int] = {}
        for number, value in instant.items():
            slot = slots[number]
            if slot.reading not in values or slot.rank < ranks[slot.reading]:
                values[slot.reading], ranks[slot.reading] = value, slot.rank
        things: list[Thing] = []
        if self.identity != self.told:
            self.told = self.identity
            things.append(self.identity)
        if values:
            things.append(EngineReading(self.identity.engine, ts_ms, values))
        return things


Entity = GpuEntity | EngineEntity


@dataclass(slots=True)
class Series:
    """One series: where its values go, and the last one, to see time going backwards and counters reset.

    ``most`` is the largest raw figure that needs no second look; of a gauge ``last_value`` is the smallest.
    ``dcgm`` series have DCGM's figures for "no value". ``settings`` are keys that the value itself fills (a limit
    published as a gauge).
    """

    entity: int
    slots: tuple[tuple[int, float], ...]
    counter: bool
    most: float = float_info.max
    dcgm: bool = False
    settings: tuple[str, ...] = ()
    last_ms: int = 0
    last_value: float = LOWEST

    def is_blank(self, value: float) -> bool:
        """Whether the figure says that there is no value."""
        if not isfinite(value):
            return True
        return self.dcgm and (value >= dcgm.BLANK or (not self.counter and value in dcgm.BLANKS_32))


@dataclass(slots=True)
class Registry:
    """Entities and slots of one import, shared by all its files: several files of one GPU join on its UUID.

    ``relabelled``: whoever scraped renames labels of what it scrapes (``exported_pod``); learned from the first such label.
    """

    host: str | None = None
    relabelled: bool = False
    entities: list[Entity] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list)
    _by_key: dict[tuple[str, str], int] = field(default_factory=dict)
    _by_slot: dict[Slot, int] = field(default_factory=dict)

    def knows(self, name: str) -> bool:
        """Whether a series of that name may mean something; cheap, for the many that do not."""
        if name in dcgm.NAMES:
            return True
        return not name.startswith(dcgm.PREFIXES) and is_engine_name(name)

    def resolve(self, text: str, fallback: str) -> Series | None:
        """The series of that text; None when it is none of ours. Raises ``LineError`` for one that cannot be placed.

        Args:
            text: name and labels as they stand in the file.
            fallback: engine instance for text without an ``instance`` label (a scrape saved by hand).
        """
        return self.place(name_of(text), labels_of(text), fallback)

    def place(self, name: str, labels: Mapping[str, str], fallback: str) -> Series | None:
        """The series of that name and labels, as ``resolve``."""
        gpu = dcgm.NAMES.get(name)
        if gpu is not None:
            return self._gpu_series(name, gpu, labels)
        engine = engine_series(name, labels)
        return None if engine is None else self._engine_series(name, engine, labels, fallback)

    def _gpu_series(self, name: str, gpu: dcgm.GpuName, labels: Mapping[str, str]) -> Series:
        uuid = labels.get("UUID") or labels.get("uuid") or labels.get("gpu_uuid")
        if not uuid:
            raise LineError(f"{name} has no UUID label: it cannot be told which GPU it is")
        if not uuid.startswith(_UUID_PREFIXES):
            uuid = f"GPU-{uuid}"
        part = labels.get("GPU_I_ID", "")
        model = labels.get("modelName") or None
        if part and gpu.instance:
            uuid = f"MIG-{uuid}/{part}/0"
            model = f"{model} MIG {labels.get('GPU_I_PROFILE', '')}".strip() if model else None
        number = self._number(("gpu", uuid), lambda: GpuEntity(GpuIdentity(uuid)))
        entity = self.entities[number]
        assert isinstance(entity, GpuEntity)
        index = labels.get("gpu", "")
        entity.learn(
            host=self.host or labels.get("Hostname") or _host(labels.get("instance")),
            index=int(index) if index.isdecimal() else None,
            model=model,
            pci_bus_id=labels.get("pci_bus_id") or None,
            driver_version=labels.get("DCGM_FI_DRIVER_VERSION") or labels.get("driver_version") or None,
        )
        if gpu.reading == dcgm.INFO:
            info_index = labels.get("index", "")
            entity.learn(
                model=labels.get("name") or None, index=int(info_index) if info_index.isdecimal() else None
            )
            return Series(number, (), counter=False)
        process = None
        if gpu.reading == dcgm.PROCESS_MEMORY:
            pid = labels.get("pid", "")
            if not pid.isdecimal():
                raise LineError(f"{name} has no pid label")
            process = (int(pid), labels.get("process_name", ""))
        slots = [(self._slot(Slot(gpu.reading, gpu.rank, holder=process)), gpu.factor)]
        if name == HELD_BY:
            self.relabelled = self.relabelled or bool(labels.get("exported_pod"))
            workload = workload_of(labels, entity.identity.host, relabelled=self.relabelled)
            if workload is not None:
                slots.append((self._slot(Slot(gpu.reading, gpu.rank, holder=workload)), gpu.factor))
        least, most = bounds(gpu.reading.lstrip("@"))
        most = min(most / gpu.factor, dcgm.BLANK - 1)
        if name.startswith("DCGM_") and not gpu.counter:
            most = min(most, dcgm.BLANKS_32.start - 1)
        return Series(number, tuple(slots), gpu.counter, most, dcgm=True, last_value=least / gpu.factor)

    def _engine_series(
        self, name: str, found: EngineSeries, labels: Mapping[str, str], fallback: str
    ) -> Series:
        instance = labels.get("instance") or self.host or fallback
        key = f"{instance}/{found.core}"
        host = self.host or _host(labels.get("instance"))
        number = self._number(
            ("engine", key), lambda: EngineEntity(EngineIdentity(key, host, found.kind, found.model))
        )
        entity = self.entities[number]
        assert isinstance(entity, EngineEntity)
        entity.learn(found.model, found.settings)
        entity.pod = pod_of(labels) or entity.pod
        slots = tuple(
            (self._slot(Slot(metric.reading, metric.rank, metric.summed)), 1.0)
            for metric in found.metrics
            if not metric.setting
        )
        settings = tuple(metric.reading for metric in found.metrics if metric.setting)
        counter = name.endswith(("_total", "_sum", "_count"))
        # A limit goes the careful way every time: no value is above infinity.
        ranges = [bounds(metric.reading) for metric in found.metrics if not metric.setting]
        last = float("inf") if settings else max((least for least, _most in ranges), default=LOWEST)
        most = min((most for _least, most in ranges), default=float_info.max)
        return Series(number, slots, counter, most, settings=settings, last_value=last)

    def seat(self, engine: EngineEntity, held: Collection[str]) -> None:
        """Give an engine the cards among the GPUs that its pod holds; then it sits where they do."""
        cards = sorted(uuid for uuid in held if uuid.startswith("GPU-"))
        if cards:
            hosts = {
                known.identity.host
                for known in self.entities
                if isinstance(known, GpuEntity) and known.identity.gpu_uuid in cards
            }
            engine.place(tuple(cards), hosts.pop() if len(hosts) == 1 else None)

    def seat_all(self) -> None:
        """Give each engine the cards that its pod held last: a pod of the same name may have held others before."""
        last: dict[Pod, dict[str, int]] = {}
        for gpu in self.entities:
            if not isinstance(gpu, GpuEntity):
                continue
            for slot, ts_ms in gpu.held.items():
                pod = pod_behind(self.slots[slot].holder)
                if pod is not None:
                    last.setdefault(pod, {})[gpu.identity.gpu_uuid] = ts_ms
        for engine in self.entities:
            if isinstance(engine, EngineEntity) and engine.pod in last:
                held = last[engine.pod]
                newest_ms = max(held.values())
                self.seat(engine, [uuid for uuid, ts_ms in held.items() if ts_ms > newest_ms - LONGEST_MS])

    def _number(self, key: tuple[str, str], make: Callable[[], Entity]) -> int:
        number = self._by_key.get(key)
        if number is None:
            number = self._by_key[key] = len(self.entities)
            self.entities.append(make())
        return number

    def _slot(self, slot: Slot) -> int:
        number = self._by_slot.get(slot)
        if number is None:
            number = self._by_slot[slot] = len(self.slots)
            self.slots.append(slot)
        return number


def _held(
    identity: GpuIdentity, ts_ms: int, holder: tuple[int, str] | WorkloadKey, memory: float
) -> ProcessReading:
    pid, path = (0, "") if isinstance(holder, WorkloadKey) else holder
    workload = holder if isinstance(holder, WorkloadKey) else process_key(pid, path, identity.host)
    return ProcessReading(identity.gpu_uuid, ts_ms, pid, workload, memory_used_bytes=memory)


def process_key(pid: int, path: str, host: str | None) -> WorkloadKey:
    """Workload of a process known by number and executable only; the path is cut to its last part.

    Without a start time a reused PID with the same executable looks like the same process.
    """
    name = PureWindowsPath(path).name if path and not path.startswith("[") else f"pid {pid}"
    return WorkloadKey("process", f"{pid}:{name}", name, host=host)


def _host(instance: str | None) -> str | None:
    """Host part of an ``instance`` label, ``host:port`` or ``[v6]:port``."""
    if not instance:
        return None
    if instance.startswith("["):
        return instance[1:].partition("]")[0] or None
    return instance.rpartition(":")[0] or instance
