"""A real SMTP server on loopback, and settings that lead to it."""

import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword
from aiosmtpd.smtp import Session as SmtpSession

from core.settings import Settings


class Inbox:
    """Takes mail; answers ``rcpt`` (by address) and ``data`` as it is told to."""

    def __init__(self, rcpt: dict[str, str] | None = None, data: str = "250 OK") -> None:
        self.rcpt = rcpt or {}
        self.data = data
        self.mails: list[EmailMessage] = []
        self.recipients: list[list[str]] = []
        self.connections = 0

    async def handle_EHLO(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: SmtpSession, envelope: Envelope, hostname: str, responses: list[str]
    ) -> list[str]:
        self.connections += 1
        session.host_name = hostname
        return responses

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: SmtpSession, envelope: Envelope, address: str, _o: list[str]
    ) -> str:
        if address in self.rcpt:
            return self.rcpt[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: SmtpSession, envelope: Envelope) -> str:  # noqa: N802 - aiosmtpd's name
        if not self.data.startswith("250"):
            return self.data
        assert envelope.content is not None
        content = envelope.content if isinstance(envelope.content, bytes) else envelope.content.encode()
        mail = message_from_bytes(content, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        self.mails.append(mail)
        self.recipients.append(list(envelope.rcpt_tos))
        return "250 OK"

    @property
    def got(self) -> list[str]:
        """Who got mail, in order; each message went to one."""
        assert all(len(each) == 1 for each in self.recipients)
        return [each[0] for each in self.recipients]


def free_port() -> int:
    """A port that nobody listens on; ``Controller(port=0)`` does not work."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def check_login(_s: SMTP, _se: SmtpSession, _e: Envelope, _m: str, given: LoginPassword) -> AuthResult:
    """The login that is right."""
    right = (given.login, given.password) == (b"gpuwise", b"right")
    # handled=False: without it aiosmtpd sends no answer and the client waits for minutes.
    return AuthResult(success=right, handled=False)


@contextmanager
def smtp_server(inbox: Inbox, **more: object) -> Iterator[int]:
    """A running server; its port."""
    controller = Controller(inbox, hostname="127.0.0.1", port=free_port(), **more)  # type: ignore[arg-type]
    controller.start()
    try:
        yield controller.port
    finally:
        controller.stop()


def settings_at(port: int, **more: object) -> Settings:
    """A site whose mail server listens there."""
    base = Settings(
        smtp_host="127.0.0.1",
        smtp_port=port,
        smtp_starttls=False,
        smtp_from="gpuwise@example.org",
        report_recipients=("head@example.org", "finance@example.org"),
        base_url="https://gpuwise.example.org",
    )
    return replace(base, **more)  # type: ignore[arg-type]


def certificate(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """A server's side of TLS for ``localhost``, and the certificate to trust."""
    key, cert = folder / "key.pem", folder / "cert.pem"
    words = f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout {key} -out {cert}"
    try:
        subprocess.run(words.split(), check=True, capture_output=True, timeout=60)
    except FileNotFoundError:
        pytest.skip("no openssl to make a certificate with")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context, cert
