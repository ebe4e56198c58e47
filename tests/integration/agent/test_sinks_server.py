"""The server sink against a real HTTP server: what each answer means, and what is sent."""

import logging
import ssl
import zlib
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from answering_server import Server, answer, answer_and_close, answering, cut, silent_close

from agent.sinks.base import MOST_WAIT_S, RefusedError, SinkError, TooEarlyError
from agent.sinks.choose import make_sink, token_reader
from agent.sinks.database import DatabaseSink
from agent.sinks.proxy import proxy_for
from agent.sinks.server import ServerSink
from core.settings import Secret, Settings

NOW = 1_791_187_200_000
TOKEN = "gw_hunter2"
BODY = zlib.compress(b'{"version":1}', 1, 31)


@pytest.fixture(autouse=True)
def no_proxy_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def sink_to(server: Server, path: str = "", **options: object) -> ServerSink:
    return ServerSink(server.url + path, lambda: TOKEN, clock=lambda: NOW, timeout_s=2.0, **options)  # type: ignore[arg-type]


def send(sink: ServerSink, sequence: int = 1) -> None:
    sink.deliver_body(BODY, agent_id="a", sequence=sequence)


def test_a_delivery_is_posted_as_it_is_in_the_spool_on_one_kept_connection() -> None:
    with answering(answer(202, {"new_rows": 1}), answer(202)) as server:
        sink = sink_to(server, "/gpuwise/")
        for sequence in (1, 2, 3):
            send(sink, sequence)
        sink.close()
    first, *others = server.asked
    assert {asked.port for asked in others} == {first.port}
    assert (first.path, first.body) == ("/gpuwise/api/v1/ingest", BODY)
    assert first.headers["Content-Type"] == "application/json"
    assert first.headers["Content-Encoding"] == "gzip"
    assert first.headers["Authorization"] == f"Bearer {TOKEN}"
    assert first.headers["Date"] == "Mon, 05 Oct 2026 08:00:00 GMT"
    assert first.headers["Host"] == server.url.removeprefix("http://")


@pytest.mark.parametrize("status", [400, 413, 415, 422])
def test_a_problem_with_the_delivery_is_for_good_and_tells_the_reason(status: int) -> None:
    problem = {"title": "Unprocessable", "detail": "gpu_samples.0.ts_ms is\nnegative"}
    with answering(answer(status, problem)) as server:
        sink = sink_to(server)
        with pytest.raises(RefusedError, match=r"gpu_samples.0.ts_ms is negative") as error:
            send(sink, 17)
        assert f"delivery 17 ({status}" in str(error.value)
        send(sink)
        sink.close()


@pytest.mark.parametrize("status", [400, 413, 500])
def test_a_failure_that_is_not_of_gpuwise_steps_aside_and_is_not_for_good(status: int) -> None:
    with answering(answer(status, b"<html>nginx</html>")) as server:
        with pytest.raises(SinkError, match="nginx") as error:
            send(sink_to(server))
        assert error.value.suspect


def test_early_samples_wait_as_long_as_the_server_says() -> None:
    problem = {"detail": "the sample is in the future"}
    acts = [
        answer(425, {**problem, "until_ms": NOW + 5}),
        answer(425, problem, Retry_After="90"),
        answer(425, problem),
    ]
    with answering(*acts) as server:
        sink = sink_to(server)
        waits = []
        for _act in acts:
            with pytest.raises(TooEarlyError, match="in the future") as error:
                send(sink)
            waits.append(error.value.until_ms - NOW)
        sink.close()
    assert waits == [5, 90_000, 60_000]


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"Retry_After": "7"}, 7.0),
        ({"Retry_After": formatdate(NOW / 1000 + 30, usegmt=True)}, 30.0),
        # the server's clock is an hour ahead: its date counts from there
        (
            {
                "Retry_After": formatdate(NOW / 1000 + 3_612, usegmt=True),
                "Date": formatdate(NOW / 1000 + 3_600, usegmt=True),
            },
            12.0,
        ),
        ({"Retry_After": formatdate(NOW / 1000 - 30, usegmt=True)}, 0.0),
        ({"Retry_After": "999999999999999999999"}, MOST_WAIT_S),
        ({"Retry_After": "soon"}, None),
        ({}, None),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_asks_for_time_gets_it(
    status: int, headers: dict[str, str], wait_s: float | None
) -> None:
    with answering(answer(status, {"detail": "busy"}, **headers)) as server:
        with pytest.raises(SinkError, match="busy") as error:
            send(sink_to(server))
        assert error.value.wait_s == wait_s
        assert not error.value.suspect


@pytest.mark.parametrize("status", [401, 403])
def test_a_token_that_is_not_accepted_is_read_again(
    status: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "token"
    file.write_text("gw_old\n")
    reader = token_reader(Settings(server_token_file=str(file)), {})
    with answering(answer(status, {"detail": "revoked"})) as server, caplog.at_level(logging.DEBUG):
        sink = ServerSink(server.url, reader)
        with pytest.raises(
            SinkError, match=r"does not accept the token .*revoked.*server_token_file"
        ) as error:
            send(sink)
        file.write_text("gw_new\n")
        send(sink)
        sink.close()
    assert [asked.headers["Authorization"] for asked in server.asked] == ["Bearer gw_old", "Bearer gw_new"]
    assert "gw_old" not in str(error.value) + repr(error.value) + caplog.text


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (answer(404, b"no such page"), "no gpuwise server answers at http://.*/api/v1/ingest"),
        (
            answer(301, Location="https://elsewhere.example/x?k=1"),
            "redirects to https://elsewhere.example/x and the token",
        ),
        (answer(307, Location="/login"), "redirects to /login"),
        (answer(408), "cannot take samples now .408"),
        (answer(502, b"Bad Gateway"), "502: Bad Gateway"),
        (cut, "cannot be reached .*IncompleteRead"),
        (silent_close, "cannot be reached"),
    ],
)
def test_everything_else_is_tried_again_and_says_what_to_do(act: object, says: str) -> None:
    with answering(act) as server:  # type: ignore[arg-type]
        sink = sink_to(server)
        with pytest.raises(SinkError, match=says):
            send(sink)
        send(sink)
        sink.close()
    assert len(server.asked) == 2


def test_a_kept_connection_that_the_server_closed_is_opened_again_at_once() -> None:
    with answering(answer_and_close) as server:
        sink = sink_to(server)
        send(sink)
        send(sink, 2)
        sink.close()
    assert server.asked[0].port != server.asked[-1].port


def test_a_server_that_hangs_is_given_up() -> None:
    with answering() as server:

        def hang(_handler: BaseHTTPRequestHandler) -> None:
            server.gate.wait(20)

        server.acts.append(hang)
        sink = ServerSink(server.url, lambda: TOKEN, timeout_s=0.1)
        with pytest.raises(SinkError, match=r"cannot be reached \(timed out\)"):
            send(sink)
        send(sink)
        sink.close()


def test_a_server_that_is_not_there_is_a_sentence() -> None:
    with answering() as server:
        pass
    with pytest.raises(SinkError, match=r"cannot be reached .*check server_url and the network"):
        send(sink_to(server))


# TLS, proxies, tokens


def test_certificates_that_cannot_be_read_name_the_setting(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    for file in ("absent.pem", "ca.pem"):
        sink = ServerSink("https://127.0.0.1:9", lambda: TOKEN, ca_file=str(tmp_path / file))
        with pytest.raises(SinkError, match="setting server_ca_file names"):
            send(sink)


def test_a_certificate_that_is_not_trusted_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = ServerSink("https://127.0.0.1:9", lambda: TOKEN)
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = "self-signed certificate"
    assert "self-signed certificate): set server_ca_file" in str(sink._unreachable(error))


def test_plain_http_to_another_machine_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    ServerSink("http://127.0.0.1:8787", lambda: TOKEN)
    assert not caplog.records
    ServerSink("http://gpuwise.example.org", lambda: TOKEN)
    assert [record.message for record in caplog.records] == [
        "the token travels unencrypted: set server_url to https"
    ]


def test_plain_http_goes_through_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.replace("http://", "http://me:pass%40word@"))
        sink = ServerSink("http://gpuwise.example.org", lambda: TOKEN)
        send(sink)
        sink.close()
    (asked,) = proxy.asked
    assert asked.path == "http://gpuwise.example.org/api/v1/ingest"
    assert asked.headers["Host"] == "gpuwise.example.org"
    assert asked.headers["Proxy-Authorization"] == "Basic bWU6cGFzc0B3b3Jk"


def test_https_asks_the_proxy_for_a_tunnel_and_keeps_the_token_for_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with answering() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        with pytest.raises(SinkError, match="Tunnel connection failed: 407"):
            send(ServerSink("https://gpuwise.example.org", lambda: TOKEN))
    (asked,) = proxy.asked
    assert asked.path == "gpuwise.example.org:443"
    assert "Authorization" not in asked.headers


@pytest.mark.parametrize(
    ("exempt", "host", "port", "direct"),
    [
        ("", "h.example.org", 443, False),
        ("*", "h.example.org", 443, True),
        ("example.org", "h.example.org", 443, True),
        (".example.org", "h.example.org", 443, True),
        ("*.example.org", "h.example.org", 443, True),
        ("ample.org", "h.example.org", 443, False),
        ("localhost, h.example.org", "H.example.org", 443, True),
        ("h.example.org:8443", "h.example.org", 443, False),
        ("h.example.org:443", "h.example.org", 443, True),
        ("10.0.0.0/8", "10.1.2.3", 443, True),
        ("10.0.0.0/8", "11.1.2.3", 443, False),
        ("::1", "::1", 443, True),
    ],
)
def test_no_proxy_is_read_as_curl_does(exempt: str, host: str, port: int, direct: bool) -> None:
    env = {"https_proxy": "proxy:3128", "no_proxy": exempt}
    assert (proxy_for("https", host, port, env) is None) is direct


def test_a_proxy_that_cannot_be_used_is_a_sentence() -> None:
    for address in ("socks5://h:1", "http://h:many", "https://h"):
        with pytest.raises(SinkError, match="environment https_proxy is not an http:// address"):
            proxy_for("https", "h", 443, {"https_proxy": address})


def test_the_token_is_found_where_systemd_puts_it(tmp_path: Path) -> None:
    env = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    (tmp_path / "server_token").write_text("gw_1\n")
    (tmp_path / "other").write_text("gw_2\n")
    assert token_reader(Settings(), env)() == "gw_1"
    assert token_reader(Settings(server_token_file="%d/other"), env)() == "gw_2"
    assert token_reader(Settings(server_token_file="other"), env)() == "gw_2"
    assert token_reader(Settings(server_token_file=str(tmp_path / "other")), {})() == "gw_2"
    assert token_reader(Settings(server_token=Secret("gw_3")), env)() == "gw_3"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot be read"),
        (b"", "no token for the server"),
        (b"gw_a\r\nX-Evil: 1\n", "is not a token"),
        ("gw_é".encode(), "is not a token"),
    ],
)
def test_what_is_no_token_is_refused_without_printing_it(
    tmp_path: Path, content: bytes | None, says: str
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SinkError, match=says) as error:
        token_reader(Settings(server_token_file=str(file)), {})()
    assert "gw_" not in str(error.value)


def test_the_settings_choose_the_sink() -> None:
    assert isinstance(make_sink(Settings()), DatabaseSink)
    server = Settings(sink="server", server_url="https://gpuwise.example.org", server_token=Secret(TOKEN))
    assert isinstance(make_sink(server), ServerSink)
