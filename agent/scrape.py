"""A small HTTP GET for metrics pages: kept connections, bounded in time and size.

Written over plain sockets: ``http.client`` and what it imports take 7 MiB and its header parser 0.1 ms a page, which the
agent's budget does not have (45 MiB for all, a page every few seconds from every engine). TLS is loaded when a target needs it.
Proxies of the environment are not used: targets are near.
"""

import re
import socket
import time
from typing import Final
from urllib.parse import urljoin, urlsplit

from core.errors import GpuwiseError

TIMEOUT_S: Final = 2.0
"""For the connection, for the answer, and for each wait within it: one that trickles ends after twice this time."""
MOST_BYTES: Final = 16 << 20
_MOST_HEAD_BYTES: Final = 64 << 10
_BLOCK_BYTES: Final = 64 << 10
"""Larger ones are mapped anew by the C library each time."""
_MOST_REDIRECTS: Final = 3
_PORTS: Final = {"http": 80, "https": 443}
_STATUS: Final = re.compile(rb"HTTP/1\.[01] (\d{3})\b")
_LENGTH: Final = re.compile(rb"\ncontent-length:[ \t]*(\d{1,15})[ \t]*\r?\n", re.IGNORECASE)
_CHUNKED: Final = re.compile(rb"\ntransfer-encoding:[ \t]*chunked[ \t]*\r?\n", re.IGNORECASE)
_CODED: Final = re.compile(rb"\ncontent-encoding:[ \t]*(?!identity)(\S+)", re.IGNORECASE)
_CLOSE: Final = re.compile(rb"\nconnection:[^\n]*\bclose\b", re.IGNORECASE)
_LOCATION: Final = re.compile(rb"\nlocation:[ \t]*([^\r\n]+)", re.IGNORECASE)


class ScrapeError(GpuwiseError):
    """A page could not be had; the sentence says which and why. ``status`` is the answer's, where there was one."""

    def __init__(self, sentence: str, status: int | None = None) -> None:
        super().__init__(sentence)
        self.status = status


class Server:
    """One HTTP server that pages are taken from again and again; not for several threads at once.

    Args:
        url: ``http`` or ``https`` address; its path says nothing here, and a user name in it is not sent.
        verified: whether a certificate must be good; a server on this very host has none for its address.
        timeout_s: for the connection, for the answer, and for each wait within it.

    Raises:
        ScrapeError: not such an address.
    """

    def __init__(self, url: str, *, verified: bool = True, timeout_s: float = TIMEOUT_S) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ScrapeError(f"{_shown(url)} is no address to scrape: write http://host:port/path")
        self.host = parts.hostname
        self.port = port or _PORTS[parts.scheme]
        self._scheme, self._verified, self._timeout_s = parts.scheme, verified, timeout_s
        name = f"[{self.host}]" if ":" in self.host else self.host
        self.origin = f"{parts.scheme}://{name}:{self.port}"
        self._socket: socket.socket | None = None
        self._requests: dict[str, bytes] = {}
        self._moved: dict[str, str] = {}

    def get(self, path: str) -> bytes:
        """The body of a page.

        Args:
            path: from the slash on, with its query.

        Raises:
            ScrapeError: no connection, no answer in time, another status than 200, too large, not HTTP.
        """
        for _ in range(_MOST_REDIRECTS + 1):
            page = self._moved.get(path, path)
            status, body = self._ask(page)
            if status == 200:
                return body
            if status not in {301, 302, 307, 308}:
                raise ScrapeError(f"{self.origin}{page} answers {status}{_hint(status)}", status)
            there = urljoin(self.origin + page, body.decode("latin-1"))
            if not there.startswith(f"{self.origin}/"):
                raise ScrapeError(
                    f"{self.origin}{page} sends to {_shown(there)}, another server: give that address",
                    status,
                )
            self._moved[path] = there.removeprefix(self.origin)
        self._moved.pop(path, None)
        raise ScrapeError(f"{self.origin}{path} is redirected in a circle")

    def close(self) -> None:
        """Let go of the connection; the next page makes a new one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _ask(self, path: str) -> tuple[int, bytes]:
        """Status and body of one answer; of a redirect, where to."""
        kept = self._socket is not None
        try:
            try:
                return self._exchange(path)
            except _NoAnswerError:
                if not kept:
                    raise
                # A server may close a connection that was idle: that is no failure yet.
                self.close()
                return self._exchange(path)
        except TimeoutError:
            self.close()
            raise ScrapeError(f"{self.origin}{path} does not answer within {self._timeout_s:g} s") from None
        except _NoAnswerError:
            self.close()
            raise ScrapeError(f"{self.origin}{path} closes the connection without an answer") from None
        except OSError as error:
            self.close()
            raise ScrapeError(f"{self.origin}{path} cannot be reached: {error.strerror or error}") from None
        except ScrapeError:
            self.close()
            raise

    def _exchange(self, path: str) -> tuple[int, bytes]:
        request = self._requests.get(path)
        if request is None:
            name = self.origin.partition("://")[2]
            request = self._requests[path] = (
                f"GET {path} HTTP/1.1\r\nHost: {name}\r\nUser-Agent: gpuwise\r\n"
                "Accept: text/plain;version=0.0.4, */*;q=0.1\r\nAccept-Encoding: identity\r\n\r\n"
            ).encode("ascii", "replace")
        wire = self._socket or self._connect()
        answer = _Answer(wire, f"{self.origin}{path}", time.monotonic() + self._timeout_s)
        try:
            wire.sendall(request)
            head = answer.head()
        except (ConnectionError, _NoAnswerError):
            raise _NoAnswerError from None
        found = _STATUS.match(head)
        if found is None:
            raise ScrapeError(f"{self.origin}{path} does not speak HTTP")
        status = int(found[1])
        if status != 200:
            # What it has to say is not read, so the connection cannot be used again.
            self.close()
            there = _LOCATION.search(head)
            return status, b"" if there is None else there[1].strip()
        coded = _CODED.search(head)
        if coded is not None:
            raise ScrapeError(f"{self.origin}{path} is compressed ({coded[1].decode('latin-1')}) unasked")
        length = _LENGTH.search(head)
        if _CHUNKED.search(head) is not None:
            body = answer.chunks()
        elif length is not None:
            body = answer.exactly(int(length[1]))
        else:
            body = answer.to_the_end()
            self.close()
        if answer.has_more or _CLOSE.search(head) is not None or head.startswith(b"HTTP/1.0"):
            self.close()
        return status, body

    def _connect(self) -> socket.socket:
        wire = socket.create_connection((self.host, self.port), self._timeout_s)
        if self._scheme == "https":
            import ssl

            context = ssl.create_default_context()
            if not self._verified:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            try:
                wire = context.wrap_socket(wire, server_hostname=self.host)
            except BaseException:
                wire.close()
                raise
        self._socket = wire
        return wire


class _NoAnswerError(Exception):
    """The connection ended before the first byte of an answer."""


class _Answer:
    """One answer as it comes from the wire; every read respects the deadline and the size."""

    def __init__(self, wire: socket.socket, page: str, deadline_s: float) -> None:
        self._wire, self._page, self._deadline_s = wire, page, deadline_s
        self._held = bytearray()

    @property
    def has_more(self) -> bool:
        """Whether bytes came that belong to no answer."""
        return bool(self._held)

    def head(self) -> bytes:
        """Status line and headers, each ended by a newline; interim answers (1xx) are passed over."""
        held = self._held
        while True:
            end = held.find(b"\r\n\r\n")
            if end >= 0:
                head = bytes(held[: end + 2])
                del held[: end + 4]
                if not head.startswith(b"HTTP/1.1 1"):
                    return head
            elif len(held) > _MOST_HEAD_BYTES:
                raise ScrapeError(f"{self._page} does not speak HTTP")
            elif not self._more():
                if held:
                    raise ScrapeError(f"{self._page} does not speak HTTP")
                raise _NoAnswerError

    def exactly(self, size: int) -> bytes:
        """A body of known length."""
        self._check(size)
        held = self._held
        have = len(held)
        if have >= size:
            body = bytes(held[:size])
            del held[:size]
            return body
        held.extend(bytes(size - have))
        with memoryview(held) as view:
            while have < size:
                count = self._wait().recv_into(view[have:])
                if not count:
                    raise self._cut()
                have += count
        body = bytes(held)
        held.clear()
        return body

    def chunks(self) -> bytes:
        """A body that comes in chunks, each with its length in front."""
        held, parts, total, at = self._held, [], 0, 0
        while True:
            end = self._line(at)
            try:
                size = int(bytes(held[at:end]).partition(b";")[0], 16)
            except ValueError:
                raise ScrapeError(f"{self._page} sends a chunk without its length") from None
            at = end + 2
            if size <= 0:
                break
            total += size
            self._check(total)
            while len(held) < at + size + 2:
                if not self._more():
                    raise self._cut()
            parts.append(held[at : at + size])
            at += size + 2
        while (end := self._line(at)) > at:  # trailers
            at = end + 2
        del held[: at + 2]
        return b"".join(parts)

    def to_the_end(self) -> bytes:
        """A body that ends with the connection."""
        while self._more():
            self._check(len(self._held))
        body = bytes(self._held)
        self._held.clear()
        return body

    def _line(self, at: int) -> int:
        """Where the line that starts there ends."""
        while (end := self._held.find(b"\r\n", at)) < 0:
            if len(self._held) - at > _MOST_HEAD_BYTES:
                raise ScrapeError(f"{self._page} sends a chunk without its length")
            if not self._more():
                raise self._cut()
        return end

    def _more(self) -> bool:
        """Take what there is; False at the end of the connection."""
        block = self._wait().recv(_BLOCK_BYTES)
        self._held += block
        return bool(block)

    def _wait(self) -> socket.socket:
        """The wire, while there is time; one read waits no longer than the connection's own limit."""
        if time.monotonic() > self._deadline_s:
            raise TimeoutError
        return self._wire

    def _check(self, size: int) -> None:
        if size > MOST_BYTES:
            raise ScrapeError(f"{self._page} is larger than {MOST_BYTES >> 20} MiB: that is no metrics page")

    def _cut(self) -> ScrapeError:
        return ScrapeError(f"{self._page} ends in the middle of its answer")


def _hint(status: int) -> str:
    """What to do about a status, where that is clear."""
    if status in {401, 403}:
        return ": its metrics need a login, which is not supported"
    if status == 404:
        return ": its metrics are off or elsewhere"
    return ""


def _shown(url: str) -> str:
    """An address without what may be secret in it."""
    return "the address" if "@" in url else url.partition("?")[0]
