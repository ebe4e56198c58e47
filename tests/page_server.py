"""A real HTTP server on loopback whose pages a test sets while it runs."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Page = str | bytes | Callable[[BaseHTTPRequestHandler], None]


class PageServer:
    """Serves ``pages`` by path; another path is a 404.

    Attributes:
        asked: paths in the order of the requests. posted: path, headers and body of what was posted.
        connections: how often somebody connected.
        chunked: bodies come in chunks.
    """

    def __init__(self, port: int = 0) -> None:
        self.pages: dict[str, Page] = {}
        self.asked: list[str] = []
        self.posted: list[tuple[str, dict[str, str], bytes]] = []
        self.connections = 0
        self.chunked = False
        self._open: list[socket.socket] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self) -> None:
                outer.connections += 1
                outer._open.append(self.request)
                super().setup()

            def do_GET(self) -> None:
                outer.asked.append(self.path)
                page = outer.pages.get(self.path)
                if page is None:
                    self.send_error(404)
                elif callable(page):
                    page(self)
                else:
                    outer.send(self, page.encode() if isinstance(page, str) else page)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.posted.append((self.path, dict(self.headers), body))
                self.do_GET()

            def log_message(self, *args: Any) -> None:
                """Nothing on stderr."""

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A client that hangs up is part of the tests."""

        self._server = Quiet(("127.0.0.1", port), Handler)
        self.port: int = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()

    def send(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        """An answer with that body."""
        handler.send_response(200)
        handler.send_header("Content-Type", "text/plain; version=0.0.4")
        if not self.chunked:
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)
            return
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for at in range(0, len(body), 1000):
            part = body[at : at + 1000]
            handler.wfile.write(b"%x;a=b\r\n%s\r\n" % (len(part), part))
        handler.wfile.write(b"0\r\nX-Trailer: 1\r\n\r\n")

    def stop(self) -> None:
        """Die: nobody may connect any more, and who is connected is cut off."""
        self._server.shutdown()
        for wire in self._open:
            with suppress(OSError):
                wire.shutdown(socket.SHUT_RDWR)
        self._server.server_close()
        self._thread.join()


@contextmanager
def serving(pages: dict[str, Page] | None = None, port: int = 0) -> Iterator[PageServer]:
    """A running server."""
    server = PageServer(port)
    server.pages.update(pages or {})
    try:
        yield server
    finally:
        server.stop()
