"""Which servers are scraped, and under which names."""

from pathlib import Path

import pytest

from agent.attribution.flags import ServingFlags
from agent.collectors.engines import EngineCollector

GPUS = ("GPU-70ab037b-7cf4-90e7-925f-927c2f53fda0", "GPU-11111111-7cf4-90e7-925f-927c2f53fda0")
VLLM = ServingFlags("vllm", "llama", None, 8000, "/metrics", {})


def network(proc: Path, pid: str, name: str) -> None:
    (proc / pid / "ns").mkdir(parents=True)
    (proc / pid / "ns" / "net").symlink_to(name)


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    network(tmp_path, "self", "net:[1]")
    for pid, name in (("100", "net:[1]"), ("200", "net:[2]"), ("201", "net:[2]"), ("300", "net:[3]")):
        network(tmp_path, pid, name)
    return tmp_path


def test_containers_with_the_same_port_are_told_apart_by_their_gpus(proc: Path) -> None:
    engines = EngineCollector("n1", proc=proc)
    engines.watch([(100, VLLM, ()), (200, VLLM, GPUS[:1]), (300, VLLM, GPUS[1:])])
    assert set(engines.problems()) == {"n1:8000", "n1:8000@70ab037b", "n1:8000@11111111"}


def test_a_name_stays_while_its_server_does(proc: Path) -> None:
    engines = EngineCollector("n1", proc=proc)
    engines.watch([(200, VLLM, GPUS[:1])])
    assert set(engines.problems()) == {"n1:8000"}
    engines.watch([(300, VLLM, GPUS[1:]), (200, VLLM, GPUS[:1])])
    assert set(engines.problems()) == {"n1:8000", "n1:8000@11111111"}
    engines.watch([(300, VLLM, GPUS[1:])])
    assert set(engines.problems()) == {"n1:8000@11111111"}


def test_processes_behind_one_port_are_one_server(proc: Path) -> None:
    engines = EngineCollector("n1", proc=proc)
    engines.watch([(200, VLLM, GPUS[:1]), (201, VLLM, GPUS)])
    assert set(engines.problems()) == {"n1:8000"}


def test_servers_without_metrics_are_left_alone(proc: Path) -> None:
    engines = EngineCollector("n1", proc=proc)
    off = ServingFlags("sglang", "qwen", None, 30000, None, {})
    worker = ServingFlags("vllm", "llama", None, None, "/metrics", {"headless": "true"})
    engines.watch([(100, off, GPUS[:1]), (200, worker, GPUS[1:])])
    assert engines.problems() == {}
    assert engines.round(lambda: 1) == []


@pytest.mark.parametrize(
    ("url", "instance"),
    [
        ("http://127.0.0.1:8000/metrics", "n1:8000"),
        ("http://localhost:8000", "n1:8000"),
        ("http://N1:8000/metrics", "n1:8000"),
        ("https://llm.example.org/metrics", "llm.example.org:443"),
        ("http://10.0.0.9:8001/metrics", "10.0.0.9:8001"),
    ],
)
def test_a_configured_address_has_its_own_host_unless_it_is_this_one(url: str, instance: str) -> None:
    assert set(EngineCollector("n1", [url, url]).problems()) == {instance}


def test_a_wrong_address_is_told_and_the_others_are_read(caplog: pytest.LogCaptureFixture) -> None:
    engines = EngineCollector("n1", ["nonsense", "http://10.0.0.9:8001/metrics"])
    assert set(engines.problems()) == {"10.0.0.9:8001"}
    assert len(caplog.records) == 1
