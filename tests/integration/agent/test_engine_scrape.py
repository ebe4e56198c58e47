"""Engines over real HTTP: they hang, die, move, send something else; the others are read all the same."""

import json
import os
import socket
import threading
from collections.abc import Mapping
from pathlib import Path

import engine_pages as pages
import pytest
from page_server import PageServer, serving

from agent.attribution.flags import ServingFlags
from agent.collectors.engines import FIRST_WAIT_S, LONGEST_WAIT_S, EngineCollector
from agent.fold import EngineFold
from core.readings import EngineIdentity, EngineReading
from tests.integration.agent.pages_for_tests import HANG_S

HERE = os.getpid()


class Clock:
    """Seconds that only a test moves, and epoch milliseconds that grow with each look."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.now_ms = 1_763_700_000_000

    def monotonic(self) -> float:
        return self.now_s

    def wall(self) -> int:
        self.now_ms += 5_000
        return self.now_ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


def flags(
    port: int,
    kind: str = "vllm",
    *,
    path: str | None = "/metrics",
    model: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> ServingFlags:
    return ServingFlags(kind, model, None, port, path, settings or {})


def collector(clock: Clock, *urls: str) -> EngineCollector:
    return EngineCollector("n1", urls, monotonic=clock.monotonic)


def identities(things: list[EngineIdentity | EngineReading]) -> dict[str, EngineIdentity]:
    return {thing.engine: thing for thing in things if isinstance(thing, EngineIdentity)}


def readings(things: list[EngineIdentity | EngineReading]) -> dict[str, EngineReading]:
    return {thing.engine: thing for thing in things if isinstance(thing, EngineReading)}


def test_a_server_found_by_its_process_has_its_gpus(server: PageServer, clock: Clock) -> None:
    server.pages["/metrics"] = pages.vllm(0, 1)
    engines = collector(clock)
    found = flags(server.port, model="/models/llama", settings={"max_num_seqs": "64", "block_size": "8"})
    engines.watch([(HERE, found, ("GPU-1",)), (HERE, found, ("GPU-2",))])
    things = engines.round(clock.wall)
    first = identities(things)[f"n1:{server.port}/0"]
    assert (first.host, first.model, first.gpu_uuids) == ("n1", pages.MODEL, ("GPU-1", "GPU-2"))
    assert first.settings["max_num_seqs"] == "64"
    assert first.settings["block_size"] == "16"
    assert set(readings(things)) == {f"n1:{server.port}/0", f"n1:{server.port}/1"}
    again = engines.round(clock.wall)
    assert not identities(again)
    assert readings(again)[f"n1:{server.port}/0"].ts_ms == clock.now_ms
    engines.close()


def test_an_identity_is_told_again_when_it_changes(server: PageServer, clock: Clock) -> None:
    server.pages["/metrics"] = pages.vllm()
    engines = collector(clock)
    engines.watch([(HERE, flags(server.port), ("GPU-1",))])
    engines.round(clock.wall)
    server.pages["/metrics"] = pages.vllm(blocks=30000)
    assert [one.settings["num_gpu_blocks"] for one in identities(engines.round(clock.wall)).values()] == [
        "30000"
    ]
    engines.watch([(HERE, flags(server.port), ("GPU-1", "GPU-2"))])
    assert [one.gpu_uuids for one in identities(engines.round(clock.wall)).values()] == [("GPU-1", "GPU-2")]
    assert not identities(engines.round(clock.wall))


def test_json_at_metrics_makes_it_look_further(server: PageServer, clock: Clock) -> None:
    server.pages["/metrics"] = pages.TRTLLM_JSON
    server.pages["/prometheus/metrics"] = pages.TRTLLM
    engines = collector(clock, f"{server.url}/")
    for _ in range(2):
        assert readings(engines.round(clock.wall))[f"n1:{server.port}/0"].values["running_requests"] == 8.0
    assert server.asked == ["/metrics", "/prometheus/metrics", "/prometheus/metrics"]


def test_json_alone_is_told(server: PageServer, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    server.pages["/metrics"] = pages.TRTLLM_JSON
    engines = collector(clock, server.url)
    assert engines.round(clock.wall) == []
    problem = engines.problems()[f"n1:{server.port}"]
    assert problem is not None
    assert "JSON" in problem
    assert len(caplog.records) == 1


def test_llamacpp_tells_its_limits_elsewhere_once(server: PageServer, clock: Clock) -> None:
    server.pages["/v1x/metrics"] = pages.LLAMACPP
    server.pages["/v1x/props"] = pages.LLAMACPP_PROPS
    engines = collector(clock)
    for _ in range(2):
        engines.watch([(HERE, flags(server.port, "llamacpp", path="/v1x/metrics"), ("GPU-1",))])
        engines.round(clock.wall)
    assert server.asked == ["/v1x/metrics", "/v1x/props", "/v1x/metrics"]


@pytest.mark.parametrize(
    ("props", "settings", "model"),
    [
        (
            pages.LLAMACPP_PROPS,
            {"max_num_seqs": "4", "max_model_len": "4096"},
            "/models/qwen2.5-7b-q4_k_m.gguf",
        ),
        (json.dumps({"total_slots": "4", "default_generation_settings": None}), {}, None),
        ("[]", {}, None),
        ("<html>", {}, None),
        (None, {}, None),
    ],
)
def test_limits_of_llamacpp(
    server: PageServer, clock: Clock, props: str | None, settings: dict[str, str], model: str | None
) -> None:
    server.pages["/metrics"] = pages.LLAMACPP
    if props is not None:
        server.pages["/props"] = props
    (identity,) = identities(collector(clock, server.url).round(clock.wall)).values()
    assert (dict(identity.settings), identity.model) == (settings, model)


def test_a_server_that_fails_is_asked_less_and_less_and_named_once(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    with serving({"/metrics": pages.vllm()}) as server:
        engines = collector(clock, server.url)
        assert engines.round(clock.wall)
        port = server.port
    caplog.clear()
    tried = []
    for _ in range(300):
        before = len(caplog.records)
        assert engines.round(clock.wall) == []
        if engines._configured[None, str(port)].retry_s > (tried[-1][1] if tried else 0.0):
            tried.append((clock.now_s, engines._configured[None, str(port)].retry_s))
        assert len(caplog.records) <= max(before, 1)
        clock.now_s += 1
    waits = [until - since for since, until in tried]
    assert waits[:5] == [FIRST_WAIT_S, 10.0, 20.0, 40.0, LONGEST_WAIT_S]
    assert max(waits) == LONGEST_WAIT_S
    assert [record.message for record in caplog.records] == ["engine is not read"]
    caplog.set_level("INFO")
    with serving({"/metrics": pages.vllm()}, port):
        clock.now_s += LONGEST_WAIT_S
        assert readings(engines.round(clock.wall))
    assert [record.message for record in caplog.records] == ["engine is not read", "engine is read"]
    assert engines.problems() == {f"n1:{port}": None}


def test_an_engine_that_hangs_makes_no_other_late(server: PageServer, clock: Clock) -> None:
    released = threading.Event()
    with serving({"/metrics": lambda _handler: released.wait(10)}) as stuck:
        server.pages["/metrics"] = pages.vllm()
        urls = (stuck.url, server.url)
        engines = EngineCollector("n1", urls, timeout_s=HANG_S, monotonic=clock.monotonic)
        assert set(readings(engines.round(clock.wall))) == {f"n1:{server.port}/0"}
        for _ in range(4):  # the stuck one is not asked again yet
            clock.now_s += 1
            assert set(readings(engines.round(clock.wall))) == {f"n1:{server.port}/0"}
        assert stuck.connections == 1
        problem = engines.problems()[f"n1:{stuck.port}"]
        assert problem is not None
        assert "does not answer" in problem
        released.set()


def test_an_engine_that_comes_back_on_another_port_is_followed(clock: Clock) -> None:
    engines = collector(clock)
    with serving({"/metrics": pages.vllm()}) as server:
        engines.watch([(HERE, flags(server.port), ("GPU-1",))])
        assert readings(engines.round(clock.wall))
    assert engines.round(clock.wall) == []
    with serving({"/metrics": pages.vllm()}) as server:
        engines.watch([(HERE, flags(server.port), ("GPU-1",))])
        things = engines.round(clock.wall)
        assert set(readings(things)) == set(identities(things)) == {f"n1:{server.port}/0"}
        assert set(engines.problems()) == {f"n1:{server.port}"}
    engines.watch([])
    assert engines.problems() == {}


def test_an_engine_that_loads_is_waited_for_without_connecting(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound, not listening: the port stays ours
        port = held.getsockname()[1]
        engines = collector(clock)
        engines.watch([(HERE, flags(port), ("GPU-1",))])
        assert engines.round(clock.wall) == []
        assert f"nothing listens on port {port}" in str(engines.problems())
        assert len(caplog.records) == 1


def test_a_configured_address_and_a_found_server_are_one(server: PageServer, clock: Clock) -> None:
    server.pages["/inner/metrics"] = pages.vllm()
    engines = collector(clock, f"http://localhost:{server.port}/inner/metrics")
    engines.watch([(HERE, flags(server.port, settings={"dtype": "bfloat16"}), ("GPU-1",))])
    things = engines.round(clock.wall)
    (identity,) = identities(things).values()
    assert identity.engine == f"n1:{server.port}/0"
    assert identity.gpu_uuids == ("GPU-1",)
    assert identity.settings["dtype"] == "bfloat16"
    assert len(readings(things)) == 1
    engines.watch([])
    (identity,) = identities(engines.round(clock.wall)).values()
    assert identity.gpu_uuids == ()


def test_a_restart_gives_no_negative_rate(server: PageServer, clock: Clock) -> None:
    engines = collector(clock, server.url)
    fold = EngineFold()
    samples = []
    for generated in (1000.0, 1500.0, 2000.0, 10.0, 110.0, 210.0, 310.0, 410.0):
        server.pages["/metrics"] = pages.vllm(generated=generated)
        for reading in readings(engines.round(clock.wall)).values():
            assert reading.values["generated_tokens"] == generated
            samples += fold.add(reading)
    samples += fold.flush()
    grown = [sample.values["generated_tokens"] for sample in samples if "generated_tokens" in sample.values]
    assert all(tokens >= 0 for tokens in grown)
    assert sum(grown) == pytest.approx(1000 + 400)


@pytest.mark.shared_data
def test_real_pages_over_http(shared_data: Path, server: PageServer, clock: Clock) -> None:
    files = sorted((shared_data / "bsc_h100_vllm").rglob("cache_config_server_*.txt"))
    assert files
    engines = collector(clock, server.url)
    for file in files:
        server.pages["/metrics"] = file.read_bytes()
        engines.round(clock.wall)
        assert engines.problems() == {f"n1:{server.port}": None}
