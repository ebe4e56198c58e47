"""Prometheus's HTTP API: a few GETs, and errors that say what, where and what to do.

One connection is kept: a history is thousands of questions. Proxies of the environment are not used.
"""

import base64
import gzip
import http.client
import json
import ssl
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote, urlencode, urlsplit

from core.errors import GpuwiseError, UsageError

TIMEOUT_S: Final = 150.0
"""Longer than the two minutes after which Prometheus itself gives a query up (``--query.timeout``)."""
MOST_BYTES: Final = 256 << 20
LONGEST_URL: Final = 6_000
"""Longer questions go as a form (POST): servers and proxies between refuse addresses of more than 8 KiB."""
TRIES: Final = 4
PAUSE_S: Final = 1.0
_AGAIN: Final = frozenset({429, 500, 502, 503, 504})
_TOO_MUCH: Final = (
    "exceeded maximum resolution",
    "too many samples",
    "too many points",
    "exceeds the limit",
    "exceeded the limit",
    "maximum number of",
    "query timed out",
    "timeout expired",
    "the query hit the max",
    "expanding series",
    "cannot select more than",
    "response too large",
)
"""Parts of the sentences in which Prometheus, Thanos, Mimir and VictoriaMetrics say that a question was too large."""


class PrometheusError(GpuwiseError):
    """The server cannot be read; the sentence says why and what to do."""


class TooMuchError(PrometheusError):
    """The server answers smaller questions only."""


class NotUnderstoodError(PrometheusError):
    """The server does not know a function or a parameter (HTTP 400, 404, 405, 422)."""


class Series(NamedTuple):
    """One series of an answer: its labels with ``__name__``, and pairs of seconds and a figure as text."""

    labels: Mapping[str, str]
    values: Sequence[tuple[float, str]]


@dataclass(frozen=True, slots=True)
class Access:
    """How the server is reached.

    Attributes:
        url: its address with the path before ``/api/v1``; a user and password in it are used as ``user`` and ``password``.
        token: bearer token. user, password: basic authentication. headers: sent with every question (a tenant).
        ca_file: certificates (PEM) to trust instead of the system's. verified: whether a certificate must be good.
    """

    url: str
    token: str | None = field(default=None, repr=False)
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    ca_file: str | None = None
    verified: bool = True


class Api:
    """One server; not for several threads at once.

    Args:
        access: address and who asks.
        sleep: waits some seconds before a question is asked again.

    Raises:
        UsageError: not such an address, or certificates that cannot be read.
    """

    def __init__(self, access: Access, *, sleep: Callable[[float], None] = time.sleep) -> None:
        try:
            parts = urlsplit(access.url)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise UsageError(
                f"--url {access.url.rpartition('@')[2]}: give an address such as http://prometheus.example:9090"
            )
        name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        path = parts.path.rstrip("/").removesuffix("/api/v1")
        self.url = f"{parts.scheme}://{name}{f':{port}' if port else ''}{path}"
        """The address as it may be printed."""
        self.questions = 0
        self._path = path
        self._sleep = sleep
        self._headers = _headers(access, parts.username, parts.password)
        self._connection = _connection(parts.scheme, parts.hostname, port, access)

    def range(self, query: str, from_ms: int, to_ms: int, step_ms: int) -> list[Series]:
        """``query_range``: the query evaluated at every step from the first instant to the last, both included.

        Raises:
            TooMuchError: ask for less. NotUnderstoodError, PrometheusError: as the sentence says.
        """
        answer = self._ask(
            "query_range",
            [
                ("query", query),
                ("start", _seconds(from_ms)),
                ("end", _seconds(to_ms)),
                ("step", _seconds(step_ms)),
                *_WHOLE,
            ],
        )
        return list(self._series(answer, "values"))

    def at(self, query: str, at_ms: int) -> list[Series]:
        """``query`` at one instant; each series has one value. Raises as ``range``."""
        answer = self._ask("query", [("query", query), ("time", _seconds(at_ms))])
        return list(self._series(answer, "value"))

    def label_values(self, label: str, match: str, from_ms: int, to_ms: int) -> list[str]:
        """Values of a label over series that ``match``; a server that passes the match over gives more. Raises as ``range``."""
        parameters = [("match[]", match), ("start", _seconds(from_ms)), ("end", _seconds(to_ms))]
        try:
            answer = self._ask(f"label/{quote(label, safe='')}/values", parameters, get_only=True)
        except NotUnderstoodError:  # what stands before a Prometheus may let through a few paths only
            series = self._ask("series", parameters)
            answer = sorted({one.get(label, "") for one in series}) if isinstance(series, list) else None
        if not isinstance(answer, list):
            raise self._stranger()
        return [str(value) for value in answer]

    def close(self) -> None:
        """Let go of the connection; a later question makes a new one."""
        self._connection.close()

    def _series(self, answer: Any, key: str) -> Iterator[Series]:
        try:
            if answer["resultType"] not in {"matrix", "vector"}:
                raise self._stranger()
            for one in answer["result"]:
                found = one[key]
                yield Series(one["metric"], found if key == "values" else [found])
        except (KeyError, TypeError) as error:
            raise self._stranger() from error

    def _ask(self, what: str, parameters: Sequence[tuple[str, str]], *, get_only: bool = False) -> Any:
        for attempt in range(1, TRIES + 1):
            last = attempt == TRIES
            try:
                status, head, body = self._exchange(what, parameters, get_only=get_only)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                if last or isinstance(error, ssl.SSLError) or (attempt > 1 and not self.questions):
                    raise self._unreachable(error) from error
            else:
                if status == 200:
                    self.questions += 1
                    return self._data(body)
                if status not in _AGAIN or last or _is_too_much(body):
                    raise self._refusal(status, what, body, head.get("Location"))
                told = head.get("Retry-After", "")
                if told.isdecimal():
                    self._sleep(min(float(told), 60.0))
                    continue
            self._sleep(PAUSE_S * 2 ** (attempt - 1))
        raise AssertionError

    def _exchange(
        self, what: str, parameters: Sequence[tuple[str, str]], *, get_only: bool
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        form = urlencode(parameters)
        path = f"{self._path}/api/v1/{what}"
        if get_only or len(path) + len(form) <= LONGEST_URL:
            self._connection.request("GET", f"{path}?{form}", headers=self._headers)
        else:
            headers = {**self._headers, "Content-Type": "application/x-www-form-urlencoded"}
            self._connection.request("POST", path, form.encode(), headers)
        response = self._connection.getresponse()
        body = response.read(MOST_BYTES + 1)
        if len(body) > MOST_BYTES:
            self.close()
            raise TooMuchError(f"{self.url} answers with more than {MOST_BYTES >> 20} MiB: {_LESS}")
        if response.headers.get("Content-Encoding", "").lower() == "gzip":
            try:
                body = gzip.decompress(body)
            except (OSError, EOFError, zlib.error) as error:
                raise http.client.IncompleteRead(b"") from error
        return response.status, response.headers, body

    def _data(self, body: bytes) -> Any:
        try:
            answer = json.loads(body)
            if answer["status"] == "success":
                return answer["data"]
        except (ValueError, KeyError, TypeError) as error:
            raise self._stranger() from error
        raise PrometheusError(f"{self.url} answers: {str(answer.get('error'))[:300]}")

    def _refusal(self, status: int, what: str, body: bytes, there: str | None) -> PrometheusError:
        said = _said(body)
        if status in {401, 403}:
            return PrometheusError(
                f"{self.url} answers {status}, it wants to know who asks: set GPUWISE_PROMETHEUS_TOKEN, or "
                "GPUWISE_PROMETHEUS_USER and GPUWISE_PROMETHEUS_PASSWORD" + (f" ({said})" if said else "")
            )
        if _is_too_much(body) or status == 413:
            return TooMuchError(f"{self.url} refuses so many points ({said or status}): {_LESS}")
        if said is None:
            if 300 <= status < 400:
                return PrometheusError(
                    f"{self.url} sends on to {there or 'another place'}: give that address, or what logs you in"
                )
            if status == 404:
                return NotUnderstoodError(
                    f"{self.url}/api/v1/{what} is not there (404): give the address of Prometheus itself; Mimir's ends in "
                    "/prometheus, that of a VictoriaMetrics cluster in /select/0/prometheus"
                )
            return PrometheusError(f"{self.url} answers {status}: check the server and what is before it")
        if status in {400, 404, 405, 422}:
            return NotUnderstoodError(f"{self.url} does not answer /api/v1/{what}: {said}")
        return PrometheusError(f"{self.url} answers {status}: {said}")

    def _unreachable(self, error: Exception) -> PrometheusError:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        if isinstance(error, ssl.SSLCertVerificationError):
            return PrometheusError(
                f"the certificate of {self.url} is not trusted ({error.verify_message}): give its authority with --ca-file"
            )
        return PrometheusError(f"{self.url} cannot be reached ({reason}): check the address and the server")

    def _stranger(self) -> PrometheusError:
        return PrometheusError(f"{self.url} does not answer as Prometheus does: check the address")


_WHOLE: Final = (("partial_response", "false"), ("deny_partial_response", "1"))
"""Thanos and VictoriaMetrics shall fail where a store of theirs is down: half an answer would look like a gap. Others pass it over."""
_LESS: Final = "ask for less with --match, --days or a larger --step"


def _headers(access: Access, user: str | None, password: str | None) -> dict[str, str]:
    headers = {"Accept": "application/json", "Accept-Encoding": "gzip", "User-Agent": "gpuwise"}
    user = access.user or (unquote(user) if user else None)
    if access.token:
        headers["Authorization"] = f"Bearer {access.token}"
    elif user:
        word = access.password if access.password is not None else unquote(password or "")
        headers["Authorization"] = "Basic " + base64.b64encode(f"{user}:{word}".encode()).decode()
    return {**headers, **access.headers}


def _connection(scheme: str, host: str, port: int | None, access: Access) -> http.client.HTTPConnection:
    if scheme == "http":
        return http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
    try:
        context = ssl.create_default_context(cafile=access.ca_file)
    except OSError as error:
        raise UsageError(f"--ca-file {access.ca_file} cannot be read ({error}): give a PEM file") from error
    if not access.verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=context)


def _said(body: bytes) -> str | None:
    """The server's own sentence; None: what answers is no Prometheus."""
    with suppress(ValueError, KeyError, TypeError):
        answer = json.loads(body)
        if answer["status"] == "error":
            return str(answer["error"]).strip()[:300]
    return None


def _is_too_much(body: bytes) -> bool:
    text = body[:2_000].decode(errors="replace").lower()
    return any(part in text for part in _TOO_MUCH)


def _seconds(ms: int) -> str:
    return f"{ms / 1000:.3f}".removesuffix(".000")
