"""What guards a server without logins: who may be addressed, who may change state, what a page may load.

There is no login yet, the server listens on loopback by default, and a browser on that machine can be made to send
requests by any page it opens. So: the Host must be a name that no stranger's DNS can point here, and a request
that changes state must come from our own pages or from a program. Deliveries of agents are apart: each carries a
token, which no page can guess and no browser adds by itself.
"""

from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.problems import problem
from core.settings import Settings

CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""No inline script or style, nothing from elsewhere; ``data:`` images are the charts people save."""
HEADERS: Final = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
CLIENT_HEADER: Final = "x-gpuwise-client"
"""A program that sends a POST without JSON sets it; a foreign page cannot without a preflight, which nobody answers."""
INGEST_PATH: Final = "/api/v1/ingest"


class Security:
    """ASGI middleware: refuses foreign hosts and foreign writers, adds the headers to every answer."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        own = {settings.host, settings.hostname, urlsplit(settings.base_url).hostname}
        self.own_names = frozenset(name.lower() for name in own if name)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                ours = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    ours.setdefault(name, value)
            await send(message)

        refusal = self.refusal(scope["method"], scope["path"], headers) or odd_letter(scope)
        if refusal is not None:
            await problem(*refusal)(scope, receive, with_headers)
            return
        await self.app(scope, receive, with_headers)

    def refusal(self, method: str, path: str, headers: Headers) -> tuple[int, str] | None:
        """Status and sentence when the request is refused."""
        if method == "POST" and path == INGEST_PATH:
            return None  # a token speaks for it, whatever name led here: no page of a stranger has one
        host = headers.get("host", "")
        if not self.is_ours(host):
            return (
                421,
                f"this server does not answer to the name {host!r}: set base_url to the address people use",
            )
        if method in SAFE_METHODS:
            return None
        if is_own_page(headers, host):
            return None
        is_rest = path.startswith(
            "/api/"
        )  # the forms of pages are for browsers alone: they all say an origin
        if is_rest and is_program(headers) and (method != "POST" or is_plain_api_call(headers)):
            return None
        return 403, (
            "a change must come from gpuwise's own pages, or from a program that sends JSON "
            f"or the header {CLIENT_HEADER}"
        )

    def is_ours(self, host: str) -> bool:
        """Whether no stranger's DNS can make a browser send this Host: our names, an address, a name without a dot."""
        name = urlsplit(f"//{host}").hostname or ""
        if name in self.own_names or "." not in name:
            return bool(name)
        try:
            ip_address(name)
        except ValueError:
            return False
        return True


def odd_letter(scope: Scope) -> tuple[int, str] | None:
    """Status and sentence for an address with a NUL in it: PostgreSQL fails on one, wherever it is asked for it."""
    if "\0" in scope["path"]:
        return 404, "there is nothing at this address: it holds a NUL (%00), which no name has"
    if b"%00" in scope["query_string"] or b"\0" in scope["query_string"]:
        return 400, "the address holds a NUL (%00), which no name has: copy it anew"
    return None


def is_own_page(headers: Headers, host: str) -> bool:
    """A browser that says the request comes from this very origin (or from its user)."""
    site = headers.get("sec-fetch-site")
    origin = headers.get("origin")
    if site is not None:
        return site in {"same-origin", "none"}
    return origin is not None and urlsplit(origin).netloc.lower() == host.lower()


def is_program(headers: Headers) -> bool:
    """No browser: every browser says where a change comes from, and carries a person's access with it."""
    return headers.get("sec-fetch-site") is None and headers.get("origin") is None


def bearer(headers: Headers) -> str | None:
    """The token of ``Authorization: Bearer …``; None without one."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def is_plain_api_call(headers: Headers) -> bool:
    """A POST no HTML form can send, whatever the browser leaves out."""
    sent = headers.get("content-type", "").partition(";")[0].strip().lower()
    return sent == "application/json" or CLIENT_HEADER in headers
