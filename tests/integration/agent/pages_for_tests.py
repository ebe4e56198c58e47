"""Answers of a server that is slow, odd, or of any status."""

import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler

HANG_S = 0.3


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
