"""Which GPUs an engine runs on."""

from core.readings import EngineIdentity
from store.joins import EngineJoin, PlacedGpu, join_engines


def engine(
    name: str = "h1:8000/0", host: str | None = "h1", tp: str | None = None, gpus: tuple[str, ...] = ()
) -> EngineIdentity:
    return EngineIdentity(name, host, "vllm", "m", {} if tp is None else {"tensor_parallel_size": tp}, gpus)


def gpu(name: str, host: str | None = "h1", held: bool = True) -> PlacedGpu:
    return PlacedGpu(name, host, held)


def joined(*engines: EngineIdentity, gpus: list[PlacedGpu]) -> EngineJoin:
    return join_engines(engines, gpus)[engines[0].engine]


def test_processes_tell_before_the_host_does() -> None:
    assert joined(engine(gpus=("b", "a")), gpus=[gpu("c")]) == EngineJoin(("a", "b"), "process")


def test_the_one_gpu_of_the_host_is_the_engines() -> None:
    assert joined(engine(), gpus=[gpu("a", held=False), gpu("x", "h2")]) == EngineJoin(("a",), "host")


def test_host_names_match_whatever_their_case() -> None:
    assert joined(engine(host="H1"), gpus=[gpu("a")]) == EngineJoin(("a",), "host")


def test_two_engines_share_the_one_gpu_of_their_host() -> None:
    both = join_engines([engine("e1"), engine("e2")], [gpu("a")])
    assert both == {"e1": EngineJoin(("a",), "host"), "e2": EngineJoin(("a",), "host")}


def test_several_gpus_are_the_engines_when_it_is_as_parallel_as_many_are_held() -> None:
    gpus = [gpu("a"), gpu("b"), gpu("c", held=False)]
    assert joined(engine(tp="2"), gpus=gpus) == EngineJoin(("a", "b"), "host")


def test_several_gpus_are_ambiguous_without_the_parallel_size() -> None:
    assert joined(engine(), gpus=[gpu("a"), gpu("b")]) == EngineJoin((), "unknown")


def test_several_gpus_are_ambiguous_when_the_parallel_size_is_another() -> None:
    assert joined(engine(tp="4"), gpus=[gpu("a"), gpu("b")]) == EngineJoin((), "unknown")


def test_two_engines_among_several_gpus_are_ambiguous() -> None:
    assert joined(engine("e1", tp="2"), engine("e2", tp="2"), gpus=[gpu("a"), gpu("b")]).join == "unknown"


def test_an_engine_of_unknown_host_is_not_joined_to_a_gpu_of_unknown_host() -> None:
    assert joined(engine(host=None), gpus=[gpu("a", None)]) == EngineJoin((), "unknown")


def test_a_host_without_gpus_tells_nothing() -> None:
    assert joined(engine(), gpus=[]) == EngineJoin((), "unknown")
