"""What must be rolled up together."""

from core.readings import EngineIdentity, GpuIdentity
from store.components import components
from store.joins import EngineJoin
from store.known import KnownEngine, KnownGpu


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
