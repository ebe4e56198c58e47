"""From a GPU worker up to the server that started it."""

from pathlib import Path

import pytest
from fake_proc import FakeProc

from agent.attribution import Attribution

VLLM = ["/usr/bin/python3", "/usr/local/bin/vllm", "serve", "org/m", "--port", "8123", "-tp", "2"]


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path)


@pytest.fixture
def attribution(proc: FakeProc) -> Attribution:
    return Attribution("node", proc=proc.root, pods=proc.root / "pods")


def test_a_worker_that_renamed_itself_belongs_to_the_server_above_it(
    proc: FakeProc, attribution: Attribution
) -> None:
    proc.add(1, comm="systemd", ppid=0, words=["/sbin/init"])
    proc.add(100, comm="bash", words=["bash", "-c", "vllm serve org/m"])
    proc.add(101, ppid=100, words=VLLM)
    proc.add(102, ppid=101, comm="VLLM::EngineCor", words=["VLLM::EngineCore"])
    proc.add(103, ppid=102, comm="VLLM::Worker_TP", words=["VLLM::Worker_TP0"])
    served = attribution.serving(103)
    assert served is not None
    assert (served[0], served[1].kind, served[1].port) == (101, "vllm", 8123)
    assert attribution.serving(101) == served
    assert attribution.serving(100) is None


def test_forked_workers_with_the_servers_own_words_name_one_server(
    proc: FakeProc, attribution: Attribution
) -> None:
    proc.add(101, words=VLLM)
    proc.add(102, ppid=101, words=VLLM)
    proc.add(103, ppid=102, words=VLLM)
    assert {served[0] for pid in (101, 102, 103) if (served := attribution.serving(pid))} == {101}


def test_the_launcher_of_tgi_has_the_port_and_its_server_fills_the_gaps(
    proc: FakeProc, attribution: Attribution
) -> None:
    proc.add(1, ppid=0, words=["text-generation-launcher", "--port", "8080"], environ={"NUM_SHARD": "2"})
    proc.add(
        5, ppid=1, words=["python3", "/b/text-generation-server", "serve", "org/m", "--dtype", "float16"]
    )
    served = attribution.serving(5)
    assert served is not None
    assert (served[0], served[1].model, served[1].port) == (1, "org/m", 8080)
    assert served[1].settings == {"dtype": "float16", "tensor_parallel_size": "2"}


def test_the_ports_of_tgis_images_are_in_their_environment(proc: FakeProc, attribution: Attribution) -> None:
    words = ["text-generation-launcher", "--model-id", "m"]
    proc.add(4, words=words, environ={"PORT": "80", "HF_TOKEN": "hf_x"})
    proc.add(5, words=words, environ=None)
    ports = [served[1].port for pid in (4, 5) if (served := attribution.serving(pid))]
    assert ports == [80, 3000]


def test_a_server_is_looked_for_eight_parents_up_and_no_further(
    proc: FakeProc, attribution: Attribution
) -> None:
    proc.add(100, words=VLLM)
    for pid in range(101, 110):
        proc.add(pid, ppid=pid - 1, words=["worker"])
    assert attribution.serving(108) is not None
    assert attribution.serving(109) is None


def test_another_engine_above_is_another_server(proc: FakeProc, attribution: Attribution) -> None:
    proc.add(100, words=["tritonserver"])
    proc.add(101, ppid=100, words=VLLM)
    served = attribution.serving(101)
    assert served is not None
    assert served[0] == 101


def test_training_serves_nothing_and_is_asked_once(proc: FakeProc, attribution: Attribution) -> None:
    proc.add(100, words=["python", "train.py", "--model", "m"])
    assert attribution.serving(100) is None
    (proc.root / "100" / "cmdline").write_bytes(b"vllm\0serve\0m\0")
    assert attribution.serving(100) is None


def test_a_loop_of_parents_ends(proc: FakeProc, attribution: Attribution) -> None:
    proc.add(100, ppid=101)
    proc.add(101, ppid=100)
    assert attribution.serving(100) is None
