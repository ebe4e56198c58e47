"""One page over real HTTP: connections that are kept, close, hang; answers that are odd, huge, cut off or none."""

import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler

import engine_pages as pages
import pytest
from page_server import PageServer, serving

from agent.scrape import MOST_BYTES, ScrapeError, Server
from tests.integration.agent.pages_for_tests import HANG_S, answer, drip


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
