"""A real HTTP server that answers as a script says, and remembers what it was asked."""

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Act = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Asked:
    path: str
    headers: dict[str, str]
    body: bytes
    port: int


@dataclass
class Server:
    """``acts`` are used up one a request; then 202 for each."""

    url: str
    asked: list[Asked] = field(default_factory=list)
    acts: list[Act] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)


def answer(status: int, body: object = None, **headers: str) -> Act:
    text = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()

    def act(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response_only(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)

    return act


def cut(handler: BaseHTTPRequestHandler) -> None:
    """Half an answer, then nothing."""
    handler.send_response_only(202)
    handler.send_header("Content-Length", "100")
    handler.end_headers()
    handler.wfile.write(b"{")
    handler.wfile.flush()
    handler.close_connection = True


def silent_close(handler: BaseHTTPRequestHandler) -> None:
    """The connection ends where an answer should come."""
    handler.close_connection = True


def answer_and_close(handler: BaseHTTPRequestHandler) -> None:
    """A good answer, after which the server closes a connection that it had promised to keep."""
    answer(202)(handler)
    handler.wfile.flush()
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


@contextmanager
def answering(*acts: Act) -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            server.asked.append(Asked(self.path, dict(self.headers), body, self.client_address[1]))
            act = server.acts.pop(0) if server.acts else answer(202)
            with contextlib.suppress(OSError):
                act(self)

        def do_CONNECT(self) -> None:
            server.asked.append(Asked(self.path, dict(self.headers), b"", self.client_address[1]))
            answer(407)(self)

        def log_message(self, *_args: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    http.block_on_close = False
    server = Server(f"http://127.0.0.1:{http.server_address[1]}", acts=list(acts))
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.gate.set()
        http.shutdown()
        thread.join()
        http.server_close()
