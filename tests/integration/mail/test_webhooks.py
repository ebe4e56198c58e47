"""Webhooks against a real HTTP server on loopback: posted once, refusals as sentences, never to metadata addresses."""

import json
from http.server import BaseHTTPRequestHandler
from ipaddress import ip_address
from typing import Any

import pytest

from api.webhook import WebhookError, is_forbidden, post
from tests.integration.mail.smtp_for_tests import free_port
from tests.page_server import serving

SECRET = "/services/T000/B000/abcdefghijklmnop"


def answering(status: int, body: bytes = b"", **headers: str) -> Any:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def test_json_is_posted_to_path_and_query() -> None:
    with serving({f"{SECRET}?thread=1": "ok"}) as server:
        post(f"{server.url}{SECRET}?thread=1", json.dumps({"text": "a"}).encode())
        ((path, headers, body),) = server.posted
    assert path == f"{SECRET}?thread=1"
    assert headers["Content-Type"] == "application/json"
    assert headers["Host"] == f"127.0.0.1:{server.port}"
    assert json.loads(body) == {"text": "a"}


@pytest.mark.parametrize(
    ("status", "body", "permanent", "said"),
    [
        (404, b"no_service", True, r"answers 404 \(no_service\)"),
        (410, b"", True, "answers 410$"),
        (429, b"rate_limited", False, r"answers 429 \(rate_limited\)"),
        (500, b"<html>oops", False, "answers 500$"),
        (503, b"a\x1b[31m\nb", False, r"answers 503 \(a\[31m b\)"),
    ],
)
def test_a_refusal_says_whether_to_try_again(status: int, body: bytes, permanent: bool, said: str) -> None:
    with (
        serving({SECRET: answering(status, body)}) as server,
        pytest.raises(WebhookError, match=said) as caught,
    ):
        post(f"{server.url}{SECRET}", b"{}")
    assert caught.value.permanent is permanent
    assert SECRET not in str(caught.value)


def test_the_next_address_is_tried_where_nobody_answers_at_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    both = [(0, 0, 0, "", (at, 0)) for at in ("127.0.0.2", "127.0.0.1")]
    monkeypatch.setattr("api.webhook.getaddrinfo", lambda *_, **__: both)
    with serving({SECRET: "ok"}) as server:
        post(f"http://mattermost:{server.port}{SECRET}", b"{}")
        ((_, headers, _),) = server.posted
    assert headers["Host"] == f"mattermost:{server.port}"


def test_redirects_are_not_followed() -> None:
    with serving() as elsewhere, serving() as server:
        server.pages[SECRET] = answering(302, Location=f"{elsewhere.url}/metadata")
        with pytest.raises(WebhookError, match="a redirect, which is not followed") as caught:
            post(f"{server.url}{SECRET}", b"{}")
        assert elsewhere.connections == 0
    assert caught.value.permanent


def test_nobody_listening_and_a_name_nobody_has_are_tried_again() -> None:
    with pytest.raises(WebhookError, match="cannot be reached") as caught:
        post(f"http://127.0.0.1:{free_port()}{SECRET}", b"{}")
    assert not caught.value.permanent
    with pytest.raises(WebhookError, match="there is no host of that name") as caught:
        post(f"http://nobody.invalid{SECRET}", b"{}")
    assert not caught.value.permanent


def test_a_server_that_does_not_answer_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr("api.webhook.TIMEOUT_S", 0.3)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(WebhookError, match="did not answer") as caught:
            post(f"http://127.0.0.1:{silent.getsockname()[1]}{SECRET}", b"{}")
    assert not caught.value.permanent


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data",
        "http://[fe80::1]/x",
        "http://[::ffff:169.254.169.254]/x",
        "http://0.0.0.0/x",
        "http://2852039166/latest",  # 169.254.169.254 as one number
        "http://100.100.100.200/latest",
    ],
)
def test_link_local_and_metadata_addresses_are_refused(url: str) -> None:
    with pytest.raises(WebhookError, match="link-local or metadata address") as caught:
        post(url, b"{}")
    assert caught.value.permanent


def test_a_name_that_leads_to_a_forbidden_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(2, 1, 6, "", ("127.0.0.1", 80)), (2, 1, 6, "", ("169.254.169.254", 80))]
    monkeypatch.setattr("api.webhook.getaddrinfo", lambda *_args, **_more: found)
    with pytest.raises(WebhookError, match=r"leads to 169\.254\.169\.254"):
        post(f"http://hooks.example.org{SECRET}", b"{}")


def test_the_address_that_was_judged_is_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving({SECRET: "ok"}) as server:
        real = [(2, 1, 6, "", ("127.0.0.1", server.port))]
        monkeypatch.setattr("api.webhook.getaddrinfo", lambda *_args, **_more: real)
        post(f"http://hooks.example.org:{server.port}{SECRET}", b"{}")
        ((_, headers, _),) = server.posted
    assert headers["Host"] == f"hooks.example.org:{server.port}"


def test_link_local_addresses_can_be_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def connect(address: object, _timeout: float) -> None:
        asked.append(address)
        raise OSError(111, "Connection refused")

    monkeypatch.setattr("api.webhook.create_connection", connect)
    with pytest.raises(WebhookError, match="Connection refused"):
        post("http://169.254.1.1/x", b"{}", link_local=True)
    assert asked == [("169.254.1.1", 80)]


@pytest.mark.parametrize("text", ["10.0.0.1", "127.0.0.1", "192.168.1.1", "2001:db8::1"])
def test_addresses_of_a_site_are_allowed(text: str) -> None:
    assert not is_forbidden(ip_address(text))


@pytest.mark.parametrize("text", ["224.0.0.1", "ff02::1", "::", "2002:a9fe:a9fe::1", "fd00:ec2::254"])
def test_addresses_that_are_others_in_disguise_are_not(text: str) -> None:
    assert is_forbidden(ip_address(text))


def test_what_is_no_url_is_never_connected_to() -> None:
    with pytest.raises(WebhookError, match="begins with file://"):
        post("file:///etc/passwd", b"{}")
