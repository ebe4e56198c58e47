"""Engines over real HTTP: they hang, die, move, send something else; the others are read all the same."""

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import engine_pages as pages
import pytest
from page_server import PageServer, serving

from agent.attribution.flags import ServingFlags
from agent.collectors.engines import FIRST_WAIT_S, LONGEST_WAIT_S, EngineCollector
from agent.fold import EngineFold
from agent.scrape import MOST_BYTES, ScrapeError, Server
from core.readings import EngineIdentity, EngineReading

HERE = os.getpid()
HANG_S = 0.3


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


@pytest.fixture
def server() -> Iterator[PageServer]:
    with serving() as running:
        yield running


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


def drip(handler: BaseHTTPRequestHandler) -> None:
    """An answer that never ends, a byte now and then."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    for _ in range(100):
        handler.wfile.write(b"#")
        time.sleep(0.02)


def answer(status: int, body: bytes = b"", **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def send(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return send


@pytest.mark.parametrize("chunked", [False, True])
def test_a_connection_is_kept(server: PageServer, *, chunked: bool) -> None:
    server.chunked = chunked
    server.pages["/metrics"] = body = pages.vllm(*range(20))
    target = Server(server.url)
    for _ in range(3):
        assert target.get("/metrics") == body.encode()
    assert server.connections == 1
    target.close()


def test_a_connection_that_the_server_closed_is_made_anew(server: PageServer) -> None:
    def once(handler: BaseHTTPRequestHandler) -> None:
        server.send(handler, b"x")
        handler.close_connection = True  # without saying so

    server.pages["/metrics"] = once
    target = Server(server.url)
    assert [target.get("/metrics") for _ in range(3)] == [b"x"] * 3
    assert server.connections == 3


def test_a_body_may_end_with_the_connection(server: PageServer) -> None:
    def old(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.0 200 OK\r\n\r\nold words")
        handler.close_connection = True

    server.pages["/metrics"] = old
    target = Server(server.url)
    assert [target.get("/metrics") for _ in range(2)] == [b"old words"] * 2


def test_interim_answers_are_passed_over(server: PageServer) -> None:
    def early(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n")
        server.send(handler, b"x")

    server.pages["/metrics"] = early
    assert Server(server.url).get("/metrics") == b"x"


def test_a_redirect_on_the_same_server_is_followed_and_remembered(server: PageServer) -> None:
    server.pages["/metrics"] = answer(307, Location="/metrics/")
    server.pages["/metrics/"] = "x"
    target = Server(server.url)
    assert [target.get("/metrics") for _ in range(2)] == [b"x"] * 2
    assert server.asked == ["/metrics", "/metrics/", "/metrics/"]


def test_a_redirect_to_another_server_is_refused(server: PageServer) -> None:
    with serving({"/secret": "x"}) as other:
        server.pages["/metrics"] = answer(302, Location=f"{other.url}/secret")
        with pytest.raises(ScrapeError, match="another server"):
            Server(server.url).get("/metrics")
        assert not other.asked


def test_a_circle_of_redirects_ends(server: PageServer) -> None:
    server.pages["/a"] = answer(301, Location="/b")
    server.pages["/b"] = answer(301, Location="/a")
    with pytest.raises(ScrapeError, match="in a circle"):
        Server(server.url).get("/a")


@pytest.mark.parametrize("page", [lambda _handler: time.sleep(1), drip])
def test_a_server_that_hangs_is_left(
    server: PageServer, page: Callable[[BaseHTTPRequestHandler], None]
) -> None:
    server.pages["/metrics"] = page
    with pytest.raises(ScrapeError, match=r"does not answer within 0\.3 s"):
        Server(server.url, timeout_s=HANG_S).get("/metrics")


def _huge(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    for _ in range(30):
        handler.wfile.write(b"#" * (1 << 20))
    handler.close_connection = True


def _huge_chunks(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    for _ in range(30):
        handler.wfile.write(b"100000\r\n" + b"#" * (1 << 20) + b"\r\n")


@pytest.mark.parametrize(
    ("page", "why"),
    [
        (answer(200, Content_Length=str(30 << 20)), "larger than 16 MiB"),
        (_huge, "larger than 16 MiB"),
        (_huge_chunks, "larger than 16 MiB"),
        (answer(200, b"\x1f\x8b", Content_Encoding="gzip", Content_Length="2"), "compressed"),
        (answer(200, b"zz\r\n", Transfer_Encoding="chunked"), "without its length"),
        (answer(401), "need a login"),
        (answer(404), "off or elsewhere"),
        (answer(500), "answers 500"),
        (lambda handler: handler.wfile.write(b"220 smtp ready\r\n\r\n"), "does not speak HTTP"),
    ],
)
def test_what_is_no_page_is_refused_with_a_sentence(
    server: PageServer, page: Callable[[BaseHTTPRequestHandler], None], why: str
) -> None:
    assert MOST_BYTES == 16 << 20
    server.pages["/metrics"] = page
    with pytest.raises(ScrapeError, match=why):
        Server(server.url).get("/metrics")


def test_an_answer_that_is_cut_off_is_none(server: PageServer) -> None:
    def cut(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "100")
        handler.end_headers()
        handler.wfile.write(b"half")
        handler.close_connection = True

    server.pages["/metrics"] = cut
    with pytest.raises(ScrapeError, match="in the middle"):
        Server(server.url).get("/metrics")


@pytest.mark.parametrize(
    "url", ["", "localhost:8000", "ftp://x/", "http://", "http://h:99999999/", "http://[::1"]
)
def test_a_wrong_address_is_refused_when_it_is_given(url: str) -> None:
    with pytest.raises(ScrapeError, match="http://host:port/path"):
        Server(url)


def test_a_password_in_an_address_is_never_shown() -> None:
    with pytest.raises(ScrapeError) as refused:
        Server("ftp://me:secret@host/metrics")
    assert "secret" not in str(refused.value)


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
