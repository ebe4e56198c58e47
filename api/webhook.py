"""The one place that posts to webhooks: one POST, no redirects, and never to where a cloud keeps its credentials.

Whoever sets a URL could make this server speak to hosts that only it can reach. So the address that a name stands for is
looked up once, judged, and connected to: a name that points elsewhere a moment later changes nothing.
"""

import ssl
from collections.abc import Sequence
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from socket import SOCK_STREAM, create_connection, gaierror, getaddrinfo
from typing import Final
from urllib.parse import urlsplit

from core.errors import GpuwiseError
from core.user_recipient import check_webhook, shown_webhook

TIMEOUT_S: Final = 10.0
"""For each step; Slack answers within one second."""
READ_AT_MOST: Final = 2_000
TRIED_AT_MOST: Final = 3
"""Of the addresses of a name: a run of messages is not to wait for all of a dead one."""
LOCAL_LINKS: Final = tuple(
    ip_network(net)
    for net in (
        "169.254.0.0/16",
        "fe80::/10",
        "fd00:ec2::254/128",  # AWS, over IPv6
        "100.100.100.200/32",  # Alibaba Cloud
        "0.0.0.0/8",
        "::/128",
    )
)
"""Link-local addresses, metadata services elsewhere, and "this host" in disguise."""
LATER: Final = frozenset({408, 425, 429})
"""Refusals that are meant for now only; all of 5xx is, too."""
_REDIRECTS: Final = range(300, 400)
_GOOD: Final = range(200, 300)
_SERVER_ERRORS: Final = range(500, 600)

Address = IPv4Address | IPv6Address


class WebhookError(GpuwiseError):
    """The webhook did not take it; never holds the URL. ``permanent``: it never will."""

    def __init__(self, sentence: str, *, permanent: bool) -> None:
        super().__init__(sentence)
        self.permanent = permanent


def post(url: str, body: bytes, *, link_local: bool = False) -> None:
    """Post JSON.

    Raises:
        WebhookError: not reachable, refused, redirected, or an address nobody may be sent to (unless ``link_local``).
    """
    try:
        check_webhook(url)
    except ValueError as error:
        raise WebhookError(str(error), permanent=True) from error
    parts = urlsplit(url)
    shown, host = shown_webhook(url), parts.hostname or ""
    is_tls = parts.scheme == "https"
    port = parts.port or (443 if is_tls else 80)
    addresses = _resolved(host, port, shown, link_local=link_local)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection = _Pinned(host, port, addresses, is_tls=is_tls)
    try:
        with closing(connection):
            headers = {"Content-Type": "application/json", "User-Agent": "gpuwise", "Host": parts.netloc}
            connection.request("POST", path, body, headers)
            answer = connection.getresponse()
            status, said = answer.status, answer.read(READ_AT_MOST)
    except TimeoutError as error:
        raise WebhookError(
            f"webhook {shown} did not answer within {TIMEOUT_S:g} s", permanent=False
        ) from error
    except ssl.SSLCertVerificationError as error:
        raise WebhookError(
            f"webhook {shown} has no certificate this machine trusts ({error.verify_message})",
            permanent=False,
        ) from error
    except (OSError, HTTPException) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        raise WebhookError(f"webhook {shown} cannot be reached ({why})", permanent=False) from error
    if status in _GOOD:
        return
    if status in _REDIRECTS:
        raise WebhookError(
            f"webhook {shown} answers {status}, a redirect, which is not followed: give the address it points to",
            permanent=True,
        )
    later = status in LATER or status in _SERVER_ERRORS
    raise WebhookError(f"webhook {shown} answers {status}{_quoted(said)}", permanent=not later)


def is_forbidden(address: Address) -> bool:
    """Whether nobody may be sent there: link-local, or a metadata service."""
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is not None:
            return is_forbidden(inner)
    return address.is_multicast or any(address in net for net in LOCAL_LINKS)


def _resolved(host: str, port: int, shown: str, *, link_local: bool) -> list[str]:
    """Addresses of the host that may be connected to, the best first; one forbidden among them refuses the name."""
    try:
        found = [str(entry[4][0]) for entry in getaddrinfo(host, port, type=SOCK_STREAM)]
    except (gaierror, UnicodeError) as error:
        raise WebhookError(
            f"webhook {shown}: there is no host of that name ({getattr(error, 'strerror', None) or error})",
            permanent=False,
        ) from error
    for text in found:
        if not link_local and is_forbidden(ip_address(text.partition("%")[0])):
            raise WebhookError(
                f"webhook {shown} leads to {text}, a link-local or metadata address: give another, or set webhook_link_local",
                permanent=True,
            )
    return list(dict.fromkeys(found))[:TRIED_AT_MOST]


class _Pinned(HTTPConnection):
    """A connection to one of some addresses, under the name that certificates and headers know."""

    def __init__(self, host: str, port: int, addresses: Sequence[str], *, is_tls: bool) -> None:
        super().__init__(host, port, timeout=TIMEOUT_S)
        self._addresses = addresses
        self._tls = ssl.create_default_context() if is_tls else None

    def connect(self) -> None:
        """Connect to the first of the addresses that were judged that answers: localhost is ::1 before 127.0.0.1."""
        *others, last = self._addresses
        for address in others:
            with suppress(OSError):
                self.sock = create_connection((address, self.port), TIMEOUT_S)
                break
        else:
            self.sock = create_connection((last, self.port), TIMEOUT_S)
        if self._tls is not None:
            self.sock = self._tls.wrap_socket(self.sock, server_hostname=self.host)


def _quoted(said: bytes) -> str:
    """The first words of an answer: Slack says ``no_service`` or ``invalid_payload``."""
    text = " ".join(said.decode("utf-8", "replace").split())
    kept = "".join(letter for letter in text if letter.isprintable())[:80]
    return f" ({kept})" if kept and "<" not in kept else ""
