"""Where samples go and what is scraped: spool folder, sink, the server's clock, engines' addresses, dcgm-exporter."""

import importlib.util
import os
import shutil
import sqlite3
import ssl
from collections.abc import Callable
from contextlib import closing
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from agent.doctor.checks import BAD, NOTE, OK, Check, looks
from core.clock import now_ms, to_ms
from core.errors import GpuwiseError
from core.settings import Settings
from core.units import MIB

PART: Final = "delivery"
TIMEOUT_S: Final = 4.0
MOST_BYTES: Final = 4 * MIB
DCGM_URL: Final = "http://127.0.0.1:9400/metrics"
CLOCK_NOTE_S: Final = 5.0
CLOCK_BAD_S: Final = 240.0
"""The server refuses samples of more than 5 minutes ahead of it."""
_HEALTH: Final = "/api/v1/health"


class Answer(NamedTuple):
    """An HTTP answer: status, at most ``MOST_BYTES`` of body, and how far the server's clock is behind ours, s."""

    status: int
    body: bytes
    ahead_s: float | None


def checks(settings: Settings) -> list[Check]:
    """All looks at where samples go."""
    of: dict[str, Callable[[], tuple[str, str]]] = {"spool": lambda: spool(settings)}
    if settings.sink == "server":
        of["server"] = lambda: server(settings)
        of["token"] = lambda: token(settings)
    else:
        of["sink"] = lambda: database(settings.database_url)
    for url in settings.engine_urls:
        of[f"engine {url}"] = lambda url=url: engine(url)  # type: ignore[misc]
    of["dcgm-exporter"] = lambda: dcgm(settings.dcgm_url)
    return looks(PART, of)


def spool(settings: Settings) -> tuple[str, str]:
    """Whether samples can wait on this disk while the sink is away."""
    folder = Path(settings.spool_path).parent
    there = next(one for one in (folder, *folder.parents) if one.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        return BAD, (
            f"{folder} cannot be written by this user (as the service's user it may be): "
            "set spool_path to a folder that can, or run gpuwise doctor as the agent's user"
        )
    _total, _used, free = shutil.disk_usage(there)
    wanted = settings.spool_max_mb * MIB
    if free < wanted:
        return NOTE, (
            f"{folder} has {free / MIB:,.0f} MiB free and the spool may grow to {settings.spool_max_mb:,} MiB: "
            "make room, or lower spool_max_mb"
        )
    return OK, f"{folder} can be written, {free / MIB:,.0f} MiB are free"


def database(url: str) -> tuple[str, str]:
    """Whether the database of the sink opens; SQLite is not created by the look."""
    if url.startswith("sqlite"):
        return _sqlite(Path(url.removeprefix("sqlite:///").split("?", 1)[0]))
    parts = urlsplit(url)
    shown = f"{parts.hostname or 'the local socket'}{parts.path}"
    if importlib.util.find_spec("psycopg") is None:
        return (
            BAD,
            f"the sink is PostgreSQL at {shown}, and psycopg is missing: pip install 'gpuwise[server]'",
        )
    import psycopg

    try:
        address = url.replace("postgresql+psycopg://", "postgresql://", 1)
        with closing(psycopg.connect(address, connect_timeout=int(TIMEOUT_S))) as connection:
            connection.execute("SELECT 1")
    except psycopg.Error as error:
        why = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        return BAD, f"PostgreSQL at {shown} cannot be opened ({why}): correct database_url or start it"
    return OK, f"PostgreSQL at {shown} opens"


def _sqlite(path: Path) -> tuple[str, str]:
    if not path.exists():
        return OK, f"{path} will be made by the first start"
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        return BAD, f"{path} cannot be opened ({error}): correct its permissions or database_url"
    if not os.access(path, os.W_OK):
        return BAD, f"{path} cannot be written by this user: correct its permissions or database_url"
    return OK, f"{path} opens"


def server(settings: Settings) -> tuple[str, str]:
    """Whether a gpuwise server answers, and how far its clock is from ours."""
    base = settings.server_url
    if not base:
        return BAD, "sink is server and server_url is not set: give the address of gpuwise serve"
    answer = get(base.rstrip("/") + _HEALTH, str(settings.server_ca_file or "") or None)
    if answer.status == 404:
        return BAD, f"{base} answers, but not as gpuwise: correct server_url"
    if answer.status >= 500:
        return (
            BAD,
            f"{base} answers with status {answer.status}: samples wait in the spool; see the server's log",
        )
    if answer.status >= 300:
        return (
            BAD,
            f"{base} answers with status {answer.status}: give the address that serves {_HEALTH} itself",
        )
    if answer.ahead_s is None:
        return OK, f"{base} answers; it tells no time, so the clocks were not compared"
    words = f"this clock is {abs(answer.ahead_s):,.0f} s {'ahead of' if answer.ahead_s > 0 else 'behind'} the server's"
    if abs(answer.ahead_s) >= CLOCK_BAD_S:
        return (
            BAD,
            f"{base} answers, but {words}: set this host's clock, its samples would be refused or misplaced",
        )
    if abs(answer.ahead_s) >= CLOCK_NOTE_S:
        return NOTE, f"{base} answers; {words}: start chrony or systemd-timesyncd"
    return OK, f"{base} answers, and the clocks agree"


def token(settings: Settings) -> tuple[str, str]:
    """Whether there is a token to send; that the server takes it shows with the first delivery."""
    path = str(settings.server_token_file or "")
    if not path:
        if settings.server_token:
            return NOTE, "given in the settings; server_token_file keeps it out of the environment"
        return (
            BAD,
            "no token: run 'gpuwise token create --host NAME' on the server, then set server_token_file",
        )
    file = Path(path.removeprefix("%d/"))
    credentials = os.environ.get("CREDENTIALS_DIRECTORY")
    if not file.is_absolute():
        if credentials is None:
            return (
                OK,
                f"{path} is given by systemd's LoadCredential to the service; it cannot be seen from a shell",
            )
        file = Path(credentials) / file
    try:
        text = file.read_text(encoding="utf-8").strip()
        open_to_all = file.stat().st_mode & 0o004
    except OSError as error:
        return BAD, f"{file} cannot be read ({error.strerror}): correct server_token_file or its permissions"
    if not text:
        return BAD, f"{file} is empty: put the line in it that 'gpuwise token create' printed"
    if open_to_all:
        return NOTE, f"{file} can be read by every user of this host: chmod 600 it"
    return OK, f"{file} holds one"


def engine(url: str) -> tuple[str, str]:
    """Whether a configured engine address gives Prometheus text."""
    answer = get(url if urlsplit(url).path.strip("/") else url.rstrip("/") + "/metrics")
    if answer.status != 200:
        return BAD, f"answers with status {answer.status}: correct engine_urls"
    if not any(line[:1].isalpha() for line in answer.body.splitlines()[:2000] if not line.startswith(b"#")):
        return BAD, "answers without Prometheus text: correct engine_urls (vLLM and SGLang: …/metrics)"
    return OK, f"answers with {len(answer.body) / 1000:,.0f} kB of metrics"


def dcgm(url: str) -> tuple[str, str]:
    """Whether a dcgm-exporter gives profiling counters: all there is for cards before Hopper."""
    if not url:
        return OK, "not wanted (dcgm_url is empty)"
    address = DCGM_URL if url == "auto" else url
    try:
        answer = get(address)
    except GpuwiseError as error:
        if url == "auto":
            return OK, f"none at {address}; only cards before Hopper need one for their SM counters"
        return BAD, str(error)
    if b"DCGM_FI_PROF_" in answer.body:
        return OK, f"{address} gives profiling counters"
    return NOTE, (
        f"{address} answers without DCGM_FI_PROF_ counters: add them to its CSV of metrics if these cards are older than Hopper"
    )


def get(url: str, ca_file: str | None = None) -> Answer:
    """One GET without redirects.

    Raises:
        GpuwiseError: nothing answers there in time, or the certificate is not trusted.
    """
    parts = urlsplit(url)
    shown = f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}"
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise GpuwiseError(f"{shown} is no address: write http:// or https:// and a host")
    try:
        if parts.scheme == "https":
            context = ssl.create_default_context(cafile=ca_file)
            connection: HTTPConnection = HTTPSConnection(
                parts.hostname, parts.port, timeout=TIMEOUT_S, context=context
            )
        else:
            connection = HTTPConnection(parts.hostname, parts.port, timeout=TIMEOUT_S)
        with closing(connection):
            connection.request("GET", (parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
            response = connection.getresponse()
            said = response.getheader("Date")
            at_ms = now_ms()
            return Answer(response.status, response.read(MOST_BYTES), _ahead_s(said, at_ms))
    except ssl.SSLCertVerificationError as error:
        raise GpuwiseError(
            f"{shown}: its certificate is not trusted ({error.verify_message}): set server_ca_file"
        ) from error
    except (OSError, HTTPException) as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise GpuwiseError(f"nothing answers at {shown} ({why}): start it, or correct the address") from error


def _ahead_s(date: str | None, at_ms: int) -> float | None:
    """Our clock less the server's. ``Date`` has whole seconds, cut: half of one is added."""
    try:
        return None if date is None else (at_ms - to_ms(parsedate_to_datetime(date)) - 500) / 1000
    except (TypeError, ValueError):
        return None
