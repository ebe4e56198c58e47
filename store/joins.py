"""Which GPUs an LLM engine runs on: told by its processes, else by a host that leaves no choice, else not told."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from core.readings import EngineIdentity

BY_PROCESS: Final = "process"
BY_HOST: Final = "host"
UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True)
class PlacedGpu:
    """A GPU, where it sits, and whether anything was ever seen to hold it."""

    gpu_uuid: str
    host: str | None
    held: bool


@dataclass(frozen=True, slots=True)
class EngineJoin:
    """GPUs of one engine, and how that was told (``process``, ``host``, ``unknown``)."""

    gpu_uuids: tuple[str, ...]
    join: str


def join_engines(engines: Iterable[EngineIdentity], gpus: Iterable[PlacedGpu]) -> Mapping[str, EngineJoin]:
    """The join of every engine, by its name.

    A host with one GPU gives it to every engine there (they share it). With several GPUs the one engine of the
    host gets those that are held, if its ``tensor_parallel_size`` is their number. All else is ambiguous.
    """
    engines = list(engines)
    per_host = Counter(_host(engine.host) for engine in engines)
    on_host: defaultdict[str, list[PlacedGpu]] = defaultdict(list)
    for gpu in sorted(gpus, key=lambda gpu: gpu.gpu_uuid):
        if gpu.host is not None:
            on_host[_host(gpu.host)].append(gpu)
    return {
        engine.engine: _join(engine, on_host.get(_host(engine.host), []), per_host[_host(engine.host)])
        for engine in engines
    }


@lru_cache(maxsize=8_192)
def _host(name: str | None) -> str:
    return "" if name is None else name.casefold()


def _join(engine: EngineIdentity, gpus: Sequence[PlacedGpu], engines_on_host: int) -> EngineJoin:
    if engine.gpu_uuids:
        return EngineJoin(tuple(sorted(engine.gpu_uuids)), BY_PROCESS)
    if len(gpus) == 1:
        return EngineJoin((gpus[0].gpu_uuid,), BY_HOST)
    held = tuple(gpu.gpu_uuid for gpu in gpus if gpu.held)
    if engines_on_host == 1 and held and engine.settings.get("tensor_parallel_size") == str(len(held)):
        return EngineJoin(held, BY_HOST)
    return EngineJoin((), UNKNOWN)
