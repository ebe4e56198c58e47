"""The one place that speaks SMTP: one conversation, one transaction per recipient. Every failure is one sentence."""

import smtplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.utils import parseaddr
from typing import Final, Self

from core.errors import GpuwiseError
from core.settings import Settings

TIMEOUT_S: Final = 20.0
"""For each step of the conversation; a mail server that is slower is not there."""
CLOSING: Final = 421
"""The server ends the conversation: nothing is wrong with the message or its recipient (RFC 5321 3.8)."""
PERMANENT: Final = 500
_GOOD: Final = frozenset({250, 251})


class MailError(GpuwiseError):
    """The mail server cannot be used now; says which server said what and which setting to correct."""


class RecipientError(GpuwiseError):
    """The server took neither this recipient nor this message; others may fare better. ``permanent``: it never will."""

    def __init__(self, sentence: str, *, permanent: bool) -> None:
        super().__init__(sentence)
        self.permanent = permanent


class UncertainError(GpuwiseError):
    """The conversation broke after the message was on its way: it may have arrived."""


class MailServer:
    """An open conversation. Use it as a context; it is connected, encrypted and logged in inside."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._where = f"{settings.smtp_host}:{settings.smtp_port}"
        self._server: smtplib.SMTP | None = None

    def __enter__(self) -> Self:
        """Connect.

        Raises:
            MailError: no server set, not reachable, no STARTTLS, certificate or login refused.
        """
        settings = self._settings
        if not settings.smtp_host:
            raise MailError("no mail server is set: set smtp_host (GPUWISE_SMTP_HOST or gpuwise.toml)")
        with self._sentences():
            server = _connect(settings)
            self._server = server
            try:
                server.ehlo()
                if settings.smtp_starttls and not _is_implicit(settings):
                    _start_tls(server, self._where)
                if settings.smtp_user:
                    server.login(settings.smtp_user, settings.smtp_password)
            except BaseException:
                server.close()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        """Say good-bye; a server that is gone does not matter any more."""
        if self._server is not None:
            with suppress(smtplib.SMTPException, OSError):
                self._server.quit()
            self._server.close()

    def send(self, to: str, content: bytes) -> None:
        """Hand over one message (RFC 5322, seven bits) for one recipient.

        Raises:
            RecipientError: refused; the conversation goes on. UncertainError: nobody knows whether it was taken.
            MailError: the conversation is over, or the sender is refused.
        """
        server = self._server
        assert server is not None
        sender = parseaddr(self._settings.smtp_from)[1]
        with self._sentences():
            code, said = server.mail(sender)
            if code not in _GOOD:
                self._reset(code, said)
                raise MailError(
                    f"mail server {self._where} refused the sender {sender} ({_said(said)}): correct smtp_from"
                )
            code, said = server.rcpt(to)
            if code not in _GOOD:
                self._reset(code, said)
                raise RecipientError(f"refused {to}: {_said(said)}", permanent=code >= PERMANENT)
            try:
                code, said = server.data(content)
            except smtplib.SMTPDataError as error:
                code, said = error.smtp_code, error.smtp_error if isinstance(error.smtp_error, bytes) else b""
            except (smtplib.SMTPServerDisconnected, OSError) as error:
                raise UncertainError(
                    f"mail server {self._where} fell silent while it took the message for {to}: it may have arrived"
                ) from error
            if code not in _GOOD:
                self._reset(code, said)
                raise RecipientError(
                    f"refused the message for {to}: {_said(said)}", permanent=code >= PERMANENT
                )

    def _reset(self, code: int, said: bytes) -> None:
        """Forget the transaction, so that the next recipient begins anew."""
        if code == CLOSING:
            raise MailError(f"mail server {self._where} ended the conversation ({_said(said)}): see its log")
        assert self._server is not None
        self._server.rset()

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        """Whatever goes wrong as a sentence."""
        where, settings = self._where, self._settings
        try:
            yield
        except smtplib.SMTPAuthenticationError as error:
            raise MailError(
                f"mail server {where} refused the login of {settings.smtp_user} ({_said(error.smtp_error)}):"
                " correct smtp_user and smtp_password"
            ) from error
        except smtplib.SMTPNotSupportedError as error:
            raise MailError(
                f"mail server {where} cannot do what is asked ({error}): correct smtp_starttls or smtp_user"
            ) from error
        except ssl.SSLCertVerificationError as error:
            raise MailError(
                f"mail server {where} has no certificate this machine trusts ({error.verify_message}): correct smtp_host or its certificate"
            ) from error
        except ssl.SSLError as error:
            raise MailError(
                f"mail server {where} does not speak TLS as asked ({error.reason}): correct smtp_port, smtp_tls and smtp_starttls"
            ) from error
        except TimeoutError as error:
            raise MailError(_silent(where)) from error
        except smtplib.SMTPException as error:
            # smtplib reports a timeout after the connection as a lost one.
            if isinstance(error.__context__, TimeoutError):
                raise MailError(_silent(where)) from error
            raise MailError(f"mail server {where} did not take the mail ({error}): see its log") from error
        except OSError as error:
            raise MailError(
                f"mail server {where} cannot be reached ({error.strerror or error}): correct smtp_host and smtp_port"
            ) from error


def _silent(where: str) -> str:
    return f"mail server {where} did not answer within {TIMEOUT_S:g} s: correct smtp_host and smtp_port"


def _is_implicit(settings: Settings) -> bool:
    return settings.smtp_tls or settings.smtp_port == smtplib.SMTP_SSL_PORT


def _connect(settings: Settings) -> smtplib.SMTP:
    host, port = settings.smtp_host or "", settings.smtp_port
    if _is_implicit(settings):
        return smtplib.SMTP_SSL(host, port, timeout=TIMEOUT_S, context=ssl.create_default_context())
    return smtplib.SMTP(host, port, timeout=TIMEOUT_S)


def _start_tls(server: smtplib.SMTP, where: str) -> None:
    if not server.has_extn("starttls"):
        raise MailError(
            f"mail server {where} does not offer STARTTLS: use another port, or set smtp_starttls to false on a trusted network"
        )
    server.starttls(context=ssl.create_default_context())
    server.ehlo()


def _said(text: object) -> str:
    """What the server said, on one line."""
    said = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
    return " ".join(said.split())
