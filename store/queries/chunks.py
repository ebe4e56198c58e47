"""The fleet cut into pieces that no figure of one GPU or engine reaches across."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from store.known import KnownEngine, KnownGpu, KnownHost


@dataclass(slots=True)
class Chunk:
    """Hosts that are read together, with all that runs on them, and strays without a host.

    ``on_host``: GPUs known on each of its hosts, wanted or not.
    """

    gpus: list[KnownGpu] = field(default_factory=list)
    engines: list[KnownEngine] = field(default_factory=list)
    hosts: list[KnownHost] = field(default_factory=list)
    on_host: dict[str, int] = field(default_factory=dict)


def in_chunks(
    gpus: Sequence[KnownGpu],
    engines: Sequence[KnownEngine],
    hosts: Sequence[KnownHost],
    on_host: Mapping[str, int],
    size: int,
) -> Iterator[Chunk]:
    """Units (hosts tied together by engines, strays) in the fleet's order, gathered up to ``size`` GPUs."""
    leader: dict[str, str] = {}

    def lead(name: str) -> str:
        leader.setdefault(name, name)
        while leader[name] != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    home = {gpu.identity.gpu_uuid: _home(gpu) for gpu in gpus}
    engine_home: list[str] = []
    for engine in engines:
        places = [home[uuid] for uuid in engine.join.gpu_uuids if uuid in home]
        if not places:
            host = engine.identity.host
            places = [f"engine {engine.identity.engine}" if host is None else f"host {host}"]
        engine_home.append(places[0])
        for place in places[1:]:
            leader[lead(place)] = lead(places[0])
    units: dict[str, Chunk] = {}
    for gpu in gpus:
        unit = units.setdefault(lead(_home(gpu)), Chunk())
        unit.gpus.append(gpu)
        if gpu.identity.host is not None:
            unit.on_host[gpu.identity.host] = on_host[gpu.identity.host]
    for engine, place in zip(engines, engine_home, strict=True):
        units.setdefault(lead(place), Chunk()).engines.append(engine)
    for known in hosts:
        units.setdefault(lead(f"host {known.name}"), Chunk()).hosts.append(known)
    chunk = Chunk()
    for unit in units.values():
        members = len(unit.gpus) or len(unit.engines) or 1
        if (chunk.gpus or chunk.engines or chunk.hosts) and _size(chunk) + members > size:
            yield chunk
            chunk = Chunk()
        chunk.gpus += unit.gpus
        chunk.engines += unit.engines
        chunk.hosts += unit.hosts
        chunk.on_host |= unit.on_host
    yield chunk


def _size(chunk: Chunk) -> int:
    return max(len(chunk.gpus), len(chunk.engines), len(chunk.hosts))


def _home(gpu: KnownGpu) -> str:
    host = gpu.identity.host
    return f"gpu {gpu.identity.gpu_uuid}" if host is None else f"host {host}"
