"""What must be rolled up together."""

from core.readings import EngineIdentity, GpuIdentity
from store.components import components
from store.joins import EngineJoin
from store.known import KnownEngine, KnownGpu, KnownHost


def gpu(key: int) -> KnownGpu:
    return KnownGpu(key, GpuIdentity(f"GPU-{key}"), None, None, None, held=True)


def engine(key: int, *gpus: int) -> KnownEngine:
    join = EngineJoin(tuple(f"GPU-{number}" for number in gpus), "process")
    return KnownEngine(key, EngineIdentity(f"e{key}", "h", "vllm"), None, None, join, None)


def members(*engines: KnownEngine, gpus: int) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    parts = components([gpu(key) for key in range(1, gpus + 1)], engines)
    assert len({part.number for part in parts}) == len(parts)
    return {
        (tuple(sorted(g.id for g in part.gpus)), tuple(sorted(e.id for e in part.engines))) for part in parts
    }


def test_gpus_without_engines_stand_alone() -> None:
    assert members(gpus=2) == {((1,), ()), ((2,), ())}


def test_engines_tie_gpus_together_through_one_another() -> None:
    assert members(engine(1, 1, 2), engine(2, 2, 3), gpus=4) == {((1, 2, 3), (1, 2)), ((4,), ())}


def test_an_engine_whose_gpus_are_not_known_stands_alone() -> None:
    assert members(engine(1), engine(2, 9), gpus=1) == {((1,), ()), ((), (1,)), ((), (2,))}


def test_a_host_stands_alone() -> None:
    parts = components([gpu(1)], [engine(1, 1)], [KnownHost(1, "h"), KnownHost(2, "i")])
    assert [([host.id for host in part.hosts], part.size) for part in parts] == [([], 2), ([1], 1), ([2], 1)]
    assert [part.number for part in parts] == [0, 1, 2]
