"""A metrics page on a port: one thread, one request at a time, on plain sockets.

``http.server`` would load a mail parser and MIME tables for the sake of one page; the agent counts its memory.
"""

import logging
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from core.exposition import CONTENT_TYPE

log = logging.getLogger(__name__)

PATIENCE_S: Final = 2.0
"""How long one client may take, in all: the next one waits for it."""
LONGEST_HEAD: Final = 16_384
BACKLOG: Final = 16
_STATUS: Final = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed"}


class MetricsPort:
    """Serves ``/metrics`` until closed.

    Args:
        host, port: address to listen on; port 0 lets the system choose.
        page: the text to answer with, asked for at each request.

    Raises:
        OSError: the address cannot be listened on (in use, not of this machine, not allowed).
    """

    def __init__(self, host: str, port: int, page: Callable[[], str]) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._page = page
        self._closed = threading.Event()
        self._listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, name="metrics-port", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening; a client that is being served has its patience left."""
        self._closed.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept()
        self._listener.close()
        self._thread.join(PATIENCE_S)

    def _serve(self) -> None:
        while not self._closed.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError as error:
                if not self._closed.is_set():
                    log.warning("metrics port cannot take a client", extra={"error": str(error)})
                    self._closed.wait(PATIENCE_S)  # out of descriptors: not a busy loop
                continue
            with client, suppress(OSError):
                self._answer(client)

    def _answer(self, client: socket.socket) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        head = _head(client, deadline_s)
        if head is None:
            return
        status, body, more = self._response(head)
        payload = body.encode()
        lines = [
            f"HTTP/1.1 {status} {_STATUS[status]}",
            f"Content-Type: {CONTENT_TYPE if status == 200 else 'text/plain; charset=utf-8'}",
            f"Content-Length: {len(payload)}",
            "Connection: close",
            *more,
        ]
        answer = ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")
        client.settimeout(max(0.05, deadline_s - time.monotonic()))
        client.sendall(answer if head.startswith(b"HEAD ") else answer + payload)
        client.shutdown(socket.SHUT_WR)

    def _response(self, head: bytes) -> tuple[int, str, list[str]]:
        words = head.partition(b"\r\n")[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return 400, "This is no HTTP request.\n", []
        if words[0] not in {b"GET", b"HEAD"}:
            return 405, "Use GET.\n", ["Allow: GET, HEAD"]
        if words[1].partition(b"?")[0] != b"/metrics":
            return 404, "The metrics of this agent are at /metrics.\n", []
        return 200, self._page(), []


def open_port(host: str, port: int, page: Callable[[], str]) -> MetricsPort | None:
    """A port that serves ``page``; None, said in the log, where it cannot be had: sampling matters more."""
    try:
        return MetricsPort(host, port, page)
    except OSError as error:
        log.error(  # noqa: TRY400 - the sentence is enough
            "no metrics page: correct agent_metrics_host and agent_metrics_port, and start again",
            extra={"host": host, "port": port, "error": str(error)},
        )
        return None


def _head(client: socket.socket, deadline_s: float) -> bytes | None:
    """The request up to its empty line; None when it does not come, in time or at all."""
    head = b""
    while b"\r\n\r\n" not in head:
        left_s = deadline_s - time.monotonic()
        if left_s <= 0 or len(head) > LONGEST_HEAD:
            return None
        client.settimeout(left_s)
        block = client.recv(4096)
        if not block:
            return None
        head += block
    return head
