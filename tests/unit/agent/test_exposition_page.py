"""The agent's own metrics page: what it says, what it leaves out, and the port it is on."""

import re
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from agent.exposition import CURRENT_S, Exposition
from agent.metrics_port import MetricsPort, open_port
from agent.sources.exposition import labels_of, name_of
from core.exposition import COUNTED, host_metric_name
from core.metrics import ENGINE_METRICS, GPU_METRICS, HOST_METRICS
from core.readings import EngineIdentity, EngineReading, GpuIdentity, GpuReading
from core.samples import GpuEvent, HostSample

CARD = GpuIdentity("GPU-a", "h1", 0, "NVIDIA H100 80GB HBM3")
READING = GpuReading("GPU-a", 1_000, {"power_w": 312.5, "energy_j": 9_000_000.5, "busy_ratio": 1.0})
ENGINE = EngineIdentity("h1:8000/0", "h1", "vllm", "acme/llama-8b")


class Clock:
    """Seconds that pass when told to."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def page(clock: Clock) -> Exposition:
    made = Exposition("h1", "1.2", monotonic=clock)
    made.take([CARD, READING, ENGINE, EngineReading("h1:8000/0", 1_000, {"generated_tokens": 4_000.0})])
    return made


def series(text: str) -> dict[str, float]:
    """Values by name, without labels; one series each."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            assert name_of(name) not in found
            found[name_of(name)] = float(value)
    return found


def test_readings_are_there_by_the_names_of_the_server_and_counters_as_totals(page: Exposition) -> None:
    text = page.text()
    assert series(text) == {
        "gpuwise_gpu_busy_ratio": 1.0,
        "gpuwise_gpu_power_watts": 312.5,
        "gpuwise_gpu_energy_joules_total": 9_000_000.5,
        "gpuwise_gpu_last_reading_timestamp_seconds": 1.0,
        "gpuwise_gpu_answers": 1.0,
        "gpuwise_engine_generated_tokens_total": 4_000.0,
        "gpuwise_agent_build_info": 1.0,
    }
    assert "# TYPE gpuwise_gpu_energy_joules_total counter" in text
    (line,) = (line for line in text.splitlines() if line.startswith("gpuwise_gpu_power_watts"))
    assert labels_of(line.rpartition(" ")[0]) == {
        "gpu_uuid": "GPU-a",
        "host": "h1",
        "gpu": "0",
        "model": "NVIDIA H100 80GB HBM3",
    }


def test_a_gpu_that_is_lost_or_stuck_has_no_values_until_it_is_read_again(page: Exposition) -> None:
    for kind in ("lost", "stuck"):
        page.take([GpuEvent("GPU-a", 2_000, kind, "It is away.")])
        found = series(page.text())
        assert found["gpuwise_gpu_answers"] == 0.0
        assert "gpuwise_gpu_power_watts" not in found
        page.take([GpuEvent("GPU-a", 3_000, "found", "It is back."), READING])
        assert series(page.text())["gpuwise_gpu_answers"] == 1.0
        assert series(page.text())["gpuwise_gpu_power_watts"] == 312.5


def test_what_is_not_current_has_no_series(page: Exposition, clock: Clock) -> None:
    page.take([HostSample("h1", 0, 10_000, {"cpu_busy_ratio": 0.5})])
    clock.now_s += CURRENT_S + 1
    assert set(series(page.text())) == {
        "gpuwise_gpu_answers",
        "gpuwise_agent_build_info",
        "gpuwise_host_cpu_busy_ratio",
    }, "a sample of the host stands until the next one is due"
    clock.now_s += 10
    assert "gpuwise_host_cpu_busy_ratio" not in series(page.text())


def test_host_and_agent_say_whose_figures_they_are(page: Exposition) -> None:
    values = {metric.name: 3.0 for metric in HOST_METRICS}
    page.take([HostSample("h1", 0, 10_000, values)])
    found = series(page.text())
    assert found["gpuwise_host_memory_used_bytes"] == 3.0
    assert found["gpuwise_host_iowait_ratio"] == 3.0
    assert found["gpuwise_agent_cpu_ratio"] == 3.0
    assert found["gpuwise_agent_waiting_deliveries"] == 3.0


def test_all_names_differ_and_are_fit_for_prometheus() -> None:
    made = Exposition("h1", "1")
    gpu, engine = ({metric.name: 1.0 for metric in metrics} for metrics in (GPU_METRICS, ENGINE_METRICS))
    made.take([GpuReading("GPU-a", 0, gpu), EngineReading("e", 0, engine)])
    made.take([HostSample("h1", 0, 1, {metric.name: 1.0 for metric in HOST_METRICS})])
    names = series(made.text())
    assert all(re.fullmatch(r"gpuwise_(gpu|engine|host|agent)_[a-z0-9_]+", name) for name in names)
    assert "gpuwise_gpu_power_max_watts" not in names, "Prometheus folds for itself"
    assert {host_metric_name(metric) for metric in HOST_METRICS} <= set(names)


def test_nouns_for_counts_belong_to_metrics() -> None:
    assert {f"{stem}_count" for stem in COUNTED} <= {metric.name for metric in HOST_METRICS}


@pytest.fixture
def port() -> Iterator[MetricsPort]:
    made = MetricsPort("127.0.0.1", 0, lambda: "up 1\n")
    yield made
    made.close()


def ask(port: MetricsPort, request: bytes) -> tuple[bytes, bytes]:
    with socket.create_connection(("127.0.0.1", port.port), timeout=10) as wire:
        wire.sendall(request)
        answer = b""
        while block := wire.recv(4096):
            answer += block
    head, _, body = answer.partition(b"\r\n\r\n")
    return head, body


@pytest.mark.parametrize(
    ("request_line", "status", "body"),
    [
        (b"GET /metrics HTTP/1.1", b"200 OK", b"up 1\n"),
        (b"GET /metrics?x=1 HTTP/1.0", b"200 OK", b"up 1\n"),
        (b"HEAD /metrics HTTP/1.1", b"200 OK", b""),
        (b"GET / HTTP/1.1", b"404 Not Found", b"The metrics of this agent are at /metrics.\n"),
        (b"POST /metrics HTTP/1.1", b"405 Method Not Allowed", b"Use GET.\n"),
        (b"\x16\x03\x01", b"400 Bad Request", b"This is no HTTP request.\n"),
    ],
)
def test_the_port_answers(port: MetricsPort, request_line: bytes, status: bytes, body: bytes) -> None:
    head, got = ask(port, request_line + b"\r\nHost: x\r\n\r\n")
    assert head.split(b"\r\n")[0] == b"HTTP/1.1 " + status
    assert got == body
    assert f"Content-Length: {len(b'up 1' + b'x') if status == b'200 OK' else len(body)}".encode() in head


def test_clients_that_hang_up_or_send_rubbish_do_not_end_it(port: MetricsPort) -> None:
    for rubbish in (b"", b"GET /met", b"x" * 20_000):
        with socket.create_connection(("127.0.0.1", port.port)) as wire:
            wire.sendall(rubbish)
    assert ask(port, b"GET /metrics HTTP/1.1\r\n\r\n")[1] == b"up 1\n"


def test_a_port_in_use_is_said_and_leaves_the_agent_running(
    port: MetricsPort, caplog: pytest.LogCaptureFixture
) -> None:
    assert open_port("127.0.0.1", port.port, str) is None
    assert "agent_metrics_port" in caplog.text


def test_a_closed_port_refuses() -> None:
    made = MetricsPort("127.0.0.1", 0, str)
    made.close()
    with pytest.raises(OSError, match="refused"):
        ask(made, b"")


def test_an_agent_without_the_page_loads_none_of_it() -> None:
    code = "import sys, agent.service; print([m for m in sys.modules if m in ('agent.exposition', 'agent.metrics_port')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
