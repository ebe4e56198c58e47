"""What must be rolled up together: GPUs and engines that are joined, directly or through one another."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from store.known import KnownEngine, KnownGpu, KnownHost


@dataclass(frozen=True, slots=True)
class Component:
    """GPUs and engines whose hours depend on each other: an engine's energy on its GPUs, usage on the engine.

    Attributes:
        number: of the component, to group by.
        gpus, engines, hosts: its members. Most components are a single GPU; a host depends on nothing.
    """

    number: int
    gpus: tuple[KnownGpu, ...]
    engines: tuple[KnownEngine, ...]
    hosts: tuple[KnownHost, ...] = ()

    @property
    def size(self) -> int:
        """Members."""
        return len(self.gpus) + len(self.engines) + len(self.hosts)


def components(
    gpus: Sequence[KnownGpu],
    engines: Sequence[KnownEngine],
    hosts: Sequence[KnownHost] = (),
    cards: Mapping[str, str] | None = None,
) -> list[Component]:
    """Every GPU, engine and host in exactly one component; ``cards``: of MIG slices whose card is shared out by them."""
    by_uuid = {gpu.identity.gpu_uuid: gpu.id for gpu in gpus}
    leader: dict[int, int] = {gpu.id: gpu.id for gpu in gpus}

    def lead(key: int) -> int:
        while leader[key] != key:
            leader[key] = leader[leader[key]]
            key = leader[key]
        return key

    joined = {engine.id: _ids(engine, by_uuid) for engine in engines}
    for ids in joined.values():
        for other in ids[1:]:
            leader[lead(other)] = lead(ids[0])
    for slice_uuid, card_uuid in (cards or {}).items():
        leader[lead(by_uuid[slice_uuid])] = lead(by_uuid[card_uuid])
    members: dict[int, tuple[list[KnownGpu], list[KnownEngine]]] = {}
    for gpu in gpus:
        members.setdefault(lead(gpu.id), ([], []))[0].append(gpu)
    alone: list[tuple[list[KnownGpu], list[KnownEngine]]] = []
    for engine in engines:
        ids = joined[engine.id]
        if ids:
            members[lead(ids[0])][1].append(engine)
        else:
            alone.append(([], [engine]))
    parts: Iterable[tuple[list[KnownGpu], list[KnownEngine]]] = (*members.values(), *alone)
    found = [Component(number, tuple(part[0]), tuple(part[1])) for number, part in enumerate(parts)]
    return found + [Component(number, (), (), (host,)) for number, host in enumerate(hosts, len(found))]


def _ids(engine: KnownEngine, by_uuid: dict[str, int]) -> list[int]:
    return [by_uuid[uuid] for uuid in engine.join.gpu_uuids if uuid in by_uuid]
