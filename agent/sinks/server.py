"""Deliveries to a gpuwise server: ``POST /api/v1/ingest``, one kept connection, the spool's gzip as it is.

What an answer means: 2xx acknowledged; a problem document with 400, 413, 415 or 422 never to be taken; 425 the
samples are ahead of the server's clock; all else is tried again. Redirects are not followed: the token goes to the
address that was set, and nowhere else. The token is in no message.
"""

import http.client
import json
import logging
import ssl
from collections.abc import Callable
from email.utils import formatdate, parsedate_to_datetime
from time import monotonic
from typing import Any, Final
from urllib.parse import urlsplit

from agent.sinks.base import RefusedError, SinkError, TooEarlyError
from agent.sinks.proxy import proxy_for
from core.clock import now_ms

log = logging.getLogger(__name__)

TIMEOUT_S: Final = 10.0
_MOST_ANSWER_BYTES: Final = 64 << 10
_EARLY_WAIT_MS: Final = 60_000
"""Until the next try where a server calls samples early without saying until when."""
_NEVER: Final = frozenset({400, 413, 415, 422})


class ServerSink:
    """Posts deliveries; the connection is opened at the first one and again when it was lost.

    Args:
        server_url: ``http://`` or ``https://`` address of the server, a path before ``/api`` allowed.
        token: gives the bearer token; asked for each connection and after a refusal, so that a token file may change.
        ca_file: PEM certificates to trust instead of the system's.
        timeout_s: for connecting, and for each wait for the server.
        clock: UTC epoch milliseconds, sent as ``Date`` so that the server can tell how far this clock is off.
    """

    def __init__(
        self,
        server_url: str,
        token: Callable[[], str],
        *,
        ca_file: str | None = None,
        timeout_s: float = TIMEOUT_S,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        parts = urlsplit(server_url)
        self._tls = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._tls else 80)
        self._path = f"{parts.path.rstrip('/')}/api/v1/ingest"
        self._shown = f"{parts.scheme}://{parts.netloc}"
        self._token_of, self._token = token, ""
        self._ca_file, self._timeout_s, self._clock = ca_file, timeout_s, clock
        self._connection: http.client.HTTPConnection | None = None
        self._extra: dict[str, str] = {}
        self._target = self._path
        if not self._tls and self._host not in {"localhost", "127.0.0.1", "::1"}:
            log.warning(
                "the token travels unencrypted: set server_url to https", extra={"server": self._shown}
            )

    def deliver_body(self, body: bytes, *, agent_id: str, sequence: int) -> None:  # noqa: ARG002 - both are in the body
        """Post one delivery; on return the server has stored it.

        Raises:
            SinkError: no answer, or one that says later.
            RefusedError: the server will never take it; its own reason is in the sentence.
            TooEarlyError: the samples are ahead of the server's clock.
        """
        kept = self._connection is not None
        try:
            answer = self._post(body)
        except (http.client.RemoteDisconnected, ConnectionError) as error:
            self.close()
            if not kept:
                raise self._unreachable(error) from error
            answer = self._again(body)  # the server had closed the kept connection meanwhile
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            self.close()
            raise self._unreachable(error) from error
        self._judge(*answer, sequence)

    def close(self) -> None:
        """Close the connection; a later delivery opens another one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _again(self, body: bytes) -> tuple[int, http.client.HTTPMessage, bytes]:
        try:
            return self._post(body)
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            self.close()
            raise self._unreachable(error) from error

    def _post(self, body: bytes) -> tuple[int, http.client.HTTPMessage, bytes]:
        connection = self._connection or self._connect()
        deadline_s = monotonic() + 3 * self._timeout_s
        headers = {
            "Host": self._host_header(),
            "Authorization": f"Bearer {self._token}",
            "Content-Type": "application/json",
            "Content-Encoding": "gzip",
            "Date": formatdate(self._clock() / 1000, usegmt=True),
            "User-Agent": "gpuwise-agent",
            **self._extra,
        }
        connection.request("POST", self._target, body, headers)
        response = connection.getresponse()
        said = b""
        while len(said) < _MOST_ANSWER_BYTES:
            part = response.read1(_MOST_ANSWER_BYTES - len(said))
            if not part:
                break
            said += part
            if monotonic() > deadline_s:
                raise TimeoutError("timed out in the middle of the answer")
        missing = response.length or 0  # None: the answer ended where the connection or its last chunk did
        whole = response.isclosed() or response.length == 0
        if whole and not response.will_close:
            response.close()
        else:
            self.close()
        if missing and len(said) < _MOST_ANSWER_BYTES:
            raise http.client.IncompleteRead(said, missing)
        return response.status, response.headers, said

    def _host_header(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return host if self._port == (443 if self._tls else 80) else f"{host}:{self._port}"

    def _connect(self) -> http.client.HTTPConnection:
        self._token = self._token_of()
        proxy = proxy_for("https" if self._tls else "http", self._host, self._port)
        host, port = (self._host, self._port) if proxy is None else (proxy.host, proxy.port)
        self._extra = {}
        self._target = self._path
        connection: http.client.HTTPConnection
        if self._tls:
            connection = http.client.HTTPSConnection(
                host, port, timeout=self._timeout_s, context=self._trust()
            )
            if proxy is not None:
                connection.set_tunnel(self._host, self._port, proxy.headers)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=self._timeout_s)
            if proxy is not None:
                self._extra = proxy.headers
                self._target = f"http://{self._host_header()}{self._path}"
        self._connection = connection
        return connection

    def _trust(self) -> ssl.SSLContext:
        try:
            return ssl.create_default_context(cafile=self._ca_file)
        except (OSError, ssl.SSLError) as error:
            raise SinkError(
                f"setting server_ca_file names {self._ca_file}, which cannot be read as certificates ({error}): correct it"
            ) from error

    def _unreachable(self, error: Exception) -> SinkError:
        if isinstance(error, ssl.SSLCertVerificationError):
            return SinkError(
                f"server {self._shown} shows a certificate that is not trusted ({error.verify_message}): set server_ca_file to its authority's"
            )
        why = str(error) or type(error).__name__
        return SinkError(f"server {self._shown} cannot be reached ({why}): check server_url and the network")

    def _judge(self, status: int, headers: http.client.HTTPMessage, said: bytes, sequence: int) -> None:
        if 200 <= status < 300:
            return
        wait_s = self._wait_s(headers)
        if status == 425:
            raise self._early(said, wait_s)
        if status in _NEVER and _problem(
            said
        ):  # of gpuwise itself: a proxy's own 400 must not cost the backlog
            raise RefusedError(
                f"server {self._shown} refuses delivery {sequence} ({status}: {_detail(said)}): it is set aside"
            )
        if status in {401, 403}:
            self.close()  # the next try asks for the token again
            raise SinkError(
                f"server {self._shown} does not accept the token ({status}: {_detail(said)}): set server_token or server_token_file to one from gpuwise token create",
                wait_s=wait_s,
            )
        if 300 <= status < 400:
            raise SinkError(
                f"server {self._shown} redirects to {_place(headers)} and the token is not sent there: set server_url to the final address"
            )
        if status == 404:
            raise SinkError(
                f"no gpuwise server answers at {self._shown}{self._path} (404): correct server_url"
            )
        raise SinkError(
            f"server {self._shown} cannot take samples now ({status}: {_detail(said)}): they wait in the spool",
            wait_s=wait_s,
            suspect=status == 500 or status in _NEVER,
        )

    def _early(self, said: bytes, wait_s: float | None) -> TooEarlyError:
        until = _problem(said).get("until_ms")
        if not isinstance(until, int) or isinstance(until, bool):
            until = self._clock() + (_EARLY_WAIT_MS if wait_s is None else round(wait_s * 1000))
        return TooEarlyError(
            f"server {self._shown} says that samples are in its future ({_detail(said)})", until
        )

    def _wait_s(self, headers: http.client.HTTPMessage) -> float | None:
        """``Retry-After``: seconds, or a date by the server's own clock where it says what that is."""
        text = str(headers.get("Retry-After", "")).strip()
        if text.isdecimal():
            return float(text[:9])
        until_ms = _date_ms(text)
        if until_ms is None:
            return None
        server_ms = _date_ms(str(headers.get("Date", "")))
        return max((until_ms - (self._clock() if server_ms is None else server_ms)) / 1000, 0.0)


def _date_ms(text: str) -> int | None:
    try:
        return round(parsedate_to_datetime(text).timestamp() * 1000)
    except (ValueError, TypeError, OverflowError):
        return None


def _problem(said: bytes) -> dict[str, Any]:
    try:
        problem = json.loads(said)
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}


def _detail(said: bytes) -> str:
    """The reason in a problem document, or the beginning of another answer; on one line."""
    problem = _problem(said)
    text = problem.get("detail") or problem.get("title") or said[:200].decode(errors="replace")
    return " ".join(str(text)[:500].split()) or "no reason given"


def _place(headers: http.client.HTTPMessage) -> str:
    parts = urlsplit(str(headers.get("Location", "")))
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}" if parts.scheme else parts.path or "nowhere"
