"""Mail: the weekly report as a message, and the one place that speaks SMTP. Every failure is one sentence."""

import logging
import smtplib
import ssl
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import make_msgid
from typing import Final

from sqlalchemy.orm import Session

from api.report import WeeklyReport, pictures, render_html, render_text, weekly
from core.clock import from_ms
from core.errors import GpuwiseError
from core.settings import Settings
from store.queries import mail as mail_log

log = logging.getLogger(__name__)

TIMEOUT_S: Final = 20.0
"""For each step of the conversation; a mail server that is slower is not there."""
KIND: Final = "weekly-report"


class MailError(GpuwiseError):
    """The mail did not go out; says which server said what and which setting to correct."""


def report_message(report: WeeklyReport, settings: Settings, now_ms: int) -> EmailMessage:
    """The report as text and HTML with its charts inside (``cid:``)."""
    message = EmailMessage()
    message["Subject"] = report.subject
    message["From"] = _address(settings.smtp_from, "gpuwise")
    message["To"] = ", ".join(settings.report_recipients)
    message["Date"] = from_ms(now_ms)
    message["Auto-Submitted"] = "auto-generated"
    images = pictures(report)
    domain = settings.smtp_from.rpartition("@")[2].strip(">") or "localhost"
    message["Message-ID"] = make_msgid(domain=domain)
    ids = {key: make_msgid(idstring=key, domain=domain) for key in images}
    message.set_content(render_text(report))
    html = render_html(report, {key: f"cid:{id_[1:-1]}" for key, id_ in ids.items()})
    message.add_alternative(html, subtype="html")
    part = message.get_body(("html",))
    assert part is not None
    for key, png in images.items():
        part.add_related(
            png, "image", "png", cid=ids[key], disposition="inline", filename=f"gpuwise-{key}.png"
        )
    return message


def _address(text: str, name: str) -> str:
    return text if "<" in text else str(Address(display_name=name, addr_spec=text))


def deliver(message: EmailMessage, settings: Settings) -> dict[str, str]:
    """Hand a message to the site's mail server.

    Returns:
        Recipients that the server refused, with its reason; the others have it.

    Raises:
        MailError: no server set, not reachable, no STARTTLS, login refused, or everybody refused.
    """
    host, port = settings.smtp_host, settings.smtp_port
    if not host:
        raise MailError("no mail server is set: set smtp_host (GPUWISE_SMTP_HOST or gpuwise.toml)")
    where = f"{host}:{port}"
    try:
        with _connect(host, port) as server:
            server.ehlo()
            if settings.smtp_starttls and port != smtplib.SMTP_SSL_PORT:
                _start_tls(server, where)
            if settings.smtp_user:
                server.login(settings.smtp_user, settings.smtp_password)
            refused = server.send_message(message)
    except smtplib.SMTPAuthenticationError as error:
        raise MailError(
            f"mail server {where} refused the login of {settings.smtp_user} ({_said(error.smtp_error)}):"
            " correct smtp_user and smtp_password"
        ) from error
    except smtplib.SMTPNotSupportedError as error:
        raise MailError(
            f"mail server {where} cannot do what is asked ({error}): correct smtp_starttls or smtp_user"
        ) from error
    except smtplib.SMTPRecipientsRefused as error:
        reasons = "; ".join(f"{who}: {_said(why[1])}" for who, why in error.recipients.items())
        raise MailError(
            f"mail server {where} refused every recipient ({reasons}): correct report_recipients"
        ) from error
    except smtplib.SMTPSenderRefused as error:
        raise MailError(
            f"mail server {where} refused the sender {error.sender} ({_said(error.smtp_error)}): correct smtp_from"
        ) from error
    except ssl.SSLError as error:
        raise MailError(
            f"mail server {where} has no certificate this machine trusts ({error.reason}): correct smtp_host or its certificate"
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
    return {who: _said(why[1]) for who, why in refused.items()}


def _silent(where: str) -> str:
    return f"mail server {where} did not answer within {TIMEOUT_S:g} s: correct smtp_host and smtp_port"


def _connect(host: str, port: int) -> smtplib.SMTP:
    if port == smtplib.SMTP_SSL_PORT:
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
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)


def send_weekly(session: Session, settings: Settings, now_ms: int) -> str:
    """Mail the report of the last seven days once per period; without recipients a dry run.

    Returns:
        One sentence of what was done.

    Raises:
        MailError: the mail server refused; recorded in ``mail_log`` all the same.
    """
    return send_report(session, settings, now_ms, weekly(session, settings, now_ms))


def send_report(session: Session, settings: Settings, now_ms: int, report: WeeklyReport) -> str:
    """Mail a report once per period; a dry run without recipients. The attempt is recorded either way.

    Raises:
        MailError: the server refused; recorded first.
    """
    if not settings.report_recipients:
        return f"dry run: {report.subject!r} was not sent, because no recipients are set (report_recipients)"
    if mail_log.was_sent(session, KIND, report.period):
        return f"the report of {report.period} was mailed before: nothing sent"
    if not report.has_data:
        return "nothing to report: there are no samples, so no mail was sent"
    message = report_message(report, settings, now_ms)
    recipients = ", ".join(settings.report_recipients)
    try:
        refused = deliver(message, settings)
    except MailError as error:
        mail_log.record(
            session,
            sent_at_ms=now_ms,
            kind=KIND,
            period=report.period,
            recipients=recipients,
            subject=report.subject,
            ok=False,
            message=str(error),
        )
        # The caller's transaction rolls back when this is raised: keep the record of the attempt.
        session.commit()
        raise
    note = "; ".join(f"refused {who}: {why}" for who, why in refused.items()) or None
    mail_log.record(
        session,
        sent_at_ms=now_ms,
        kind=KIND,
        period=report.period,
        recipients=recipients,
        subject=report.subject,
        ok=True,
        message=note,
    )
    taken = len(settings.report_recipients) - len(refused)
    return f"mailed {report.subject!r} to {taken} of {len(settings.report_recipients)} recipients" + (
        f"; {note}" if note else ""
    )
