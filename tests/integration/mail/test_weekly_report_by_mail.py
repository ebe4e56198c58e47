"""The weekly report against a real SMTP server on loopback: parts, once per period, and errors as sentences."""

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
from click.testing import CliRunner
from sqlalchemy import select
from sqlalchemy.orm import Session

from api.mail import MailError, deliver, report_message, send_weekly
from api.report import report_of
from core.settings import Secret, Settings
from gpuwise.commands.report import report as report_command
from store.models.mail_log import MailLogRow
from tests.contract import page_fixtures as good
from tests.integration.api.fleet_for_tests import NOW, fill, settings_for


class Inbox:
    """Takes mail, refuses whoever it is told to."""

    def __init__(self, refuse: str | None = None) -> None:
        self.refuse = refuse
        self.mails: list[EmailMessage] = []
        self.recipients: list[list[str]] = []

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: SmtpSession, envelope: Envelope, address: str, _o: list[str]
    ) -> str:
        if address == self.refuse:
            return "550 no such person"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: SmtpSession, envelope: Envelope) -> str:  # noqa: N802 - aiosmtpd's name
        assert envelope.content is not None
        content = envelope.content if isinstance(envelope.content, bytes) else envelope.content.encode()
        mail = message_from_bytes(content, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        self.mails.append(mail)
        self.recipients.append(list(envelope.rcpt_tos))
        return "250 OK"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def check_login(_s: SMTP, _se: SmtpSession, _e: Envelope, _m: str, given: LoginPassword) -> AuthResult:
    right = (given.login, given.password) == (b"gpuwise", b"right")
    # handled=False: without it aiosmtpd sends no answer and the client waits for minutes.
    return AuthResult(success=right, handled=False)


@contextmanager
def smtp_server(inbox: Inbox, **more: object) -> Iterator[int]:
    controller = Controller(inbox, hostname="127.0.0.1", port=free_port(), **more)  # type: ignore[arg-type]
    controller.start()
    try:
        yield controller.port
    finally:
        controller.stop()


def settings_at(port: int, **more: object) -> Settings:
    base = Settings(
        smtp_host="127.0.0.1",
        smtp_port=port,
        smtp_starttls=False,
        smtp_from="gpuwise@example.org",
        report_recipients=("head@example.org", "finance@example.org"),
        base_url="https://gpuwise.example.org",
    )
    return replace(base, **more)  # type: ignore[arg-type]


def mail_of_fixture(settings: Settings) -> EmailMessage:
    return report_message(report_of(good.overview(), settings), settings, good.NOW_MS)


def send(port: int, **more: object) -> dict[str, str]:
    settings = settings_at(port, **more)
    return deliver(mail_of_fixture(settings), settings)


def part(mail: EmailMessage, kind: str) -> str:
    body = mail.get_body((kind,))
    assert body is not None
    return str(body.get_content())


def test_the_mail_arrives_with_text_html_and_pictures() -> None:
    inbox = Inbox()
    with smtp_server(inbox) as port:
        settings = settings_at(port)
        assert deliver(mail_of_fixture(settings), settings) == {}
    (mail,) = inbox.mails
    assert inbox.recipients == [["head@example.org", "finance@example.org"]]
    assert mail["Subject"] == "gpuwise: $84,310 spent, $31,870 of it idle, 21 Oct – 19 Nov"
    assert mail["From"] == "gpuwise <gpuwise@example.org>"
    assert "$31,870 of it bought hours in which nothing ran." in part(mail, "plain")
    html = part(mail, "html")
    assert len(html.encode()) < 100_000
    pictures = [p for p in mail.walk() if p.get_content_type() == "image/png"]
    assert len(pictures) == 2
    for picture in pictures:
        assert picture.get_content().startswith(b"\x89PNG")
        assert f'src="cid:{str(picture["Content-ID"])[1:-1]}"' in html
        assert picture.get_content_disposition() == "inline"


def test_the_mail_says_everything_with_pictures_off_and_style_sheets_ignored() -> None:
    html = part(mail_of_fixture(settings_at(25)), "html")
    assert "<style" not in html
    assert 'style="' in html
    assert "parked $" in html.split('alt="')[1].split('"')[0]
    assert "https://gpuwise.example.org/recommendations/1" in html
    assert "<script" not in html


def test_starttls_and_login_are_used(tmp_path: Path) -> None:
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    openssl(key, cert)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    inbox = Inbox()
    with (
        pytest.MonkeyPatch.context() as patch,
        smtp_server(
            inbox, tls_context=context, require_starttls=True, authenticator=check_login, auth_required=True
        ) as port,
    ):
        patch.setenv("SSL_CERT_FILE", str(cert))
        settings = settings_at(
            port,
            smtp_host="localhost",
            smtp_starttls=True,
            smtp_user="gpuwise",
            smtp_password=Secret("right"),
        )
        deliver(mail_of_fixture(settings), settings)
        with pytest.raises(MailError, match=r"refused the login of gpuwise.*smtp_password"):
            deliver(mail_of_fixture(settings), replace(settings, smtp_password=Secret("wrong")))
    assert len(inbox.mails) == 1


def openssl(key: Path, cert: Path) -> None:
    words = f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout {key} -out {cert}"
    try:
        subprocess.run(words.split(), check=True, capture_output=True, timeout=60)
    except FileNotFoundError:
        pytest.skip("no openssl to make a certificate with")


def test_a_certificate_nobody_trusts_is_a_sentence(tmp_path: Path) -> None:
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    openssl(key, cert)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with smtp_server(Inbox(), tls_context=context) as port, pytest.raises(MailError, match="certificate"):
        send(port, smtp_host="localhost", smtp_starttls=True)


def test_a_server_without_starttls_is_refused_rather_than_spoken_to_in_clear() -> None:
    inbox = Inbox()
    with smtp_server(inbox) as port, pytest.raises(MailError, match="does not offer STARTTLS"):
        send(port, smtp_starttls=True, smtp_user="gpuwise", smtp_password=Secret("right"))
    assert inbox.mails == []


def test_a_login_that_the_server_does_not_know_is_a_sentence() -> None:
    with smtp_server(Inbox()) as port, pytest.raises(MailError, match="smtp_user"):
        send(port, smtp_user="gpuwise", smtp_password=Secret("right"))


def test_nobody_listening_is_a_sentence() -> None:
    settings = settings_at(free_port())
    with pytest.raises(MailError, match=r"cannot be reached .*smtp_host and smtp_port"):
        deliver(mail_of_fixture(settings), settings)


def test_a_silent_server_does_not_hang_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.mail.TIMEOUT_S", 0.3)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        settings = settings_at(silent.getsockname()[1])
        with pytest.raises(MailError, match="did not answer"):
            deliver(mail_of_fixture(settings), settings)


def test_one_bad_recipient_does_not_keep_the_others_from_it() -> None:
    inbox = Inbox(refuse="finance@example.org")
    with smtp_server(inbox) as port:
        settings = settings_at(port)
        refused = deliver(mail_of_fixture(settings), settings)
    assert refused == {"finance@example.org": "no such person"}
    assert inbox.recipients == [["head@example.org"]]


def test_only_bad_recipients_are_an_error() -> None:
    with (
        smtp_server(Inbox(refuse="x@example.org")) as port,
        pytest.raises(MailError, match="report_recipients"),
    ):
        send(port, report_recipients=("x@example.org",))


def attempts(session: Session) -> list[tuple[bool, str | None]]:
    return [(row.ok, row.message) for row in session.scalars(select(MailLogRow).order_by(MailLogRow.id))]


def test_a_period_is_mailed_once(ready_database: str, session: Session) -> None:
    fill(ready_database)
    inbox = Inbox()
    with smtp_server(inbox) as port:
        settings = replace(settings_at(port), database_url=ready_database)
        assert send_weekly(session, settings, NOW).startswith("mailed ")
        assert "mailed before" in send_weekly(session, settings, NOW + 3_600_000)
    assert len(inbox.mails) == 1
    assert attempts(session) == [(True, None)]


def test_a_failed_attempt_is_recorded_and_tried_again(ready_database: str, session: Session) -> None:
    fill(ready_database)
    with pytest.raises(MailError):
        send_weekly(session, settings_at(free_port()), NOW)
    session.rollback()
    (ok, message) = attempts(session)[0]
    assert not ok
    assert "cannot be reached" in (message or "")
    inbox = Inbox()
    with smtp_server(inbox) as port:
        send_weekly(session, settings_at(port), NOW)
    assert len(inbox.mails) == 1


def test_without_recipients_nothing_is_sent_and_it_says_so(ready_database: str, session: Session) -> None:
    fill(ready_database)
    said = send_weekly(session, replace(settings_for(ready_database), smtp_host="127.0.0.1"), NOW)
    assert said.startswith("dry run")
    assert "report_recipients" in said
    assert attempts(session) == []


def test_an_empty_database_sends_no_mail(session: Session) -> None:
    assert "nothing to report" in send_weekly(session, settings_at(free_port()), NOW)


def test_the_command_writes_one_file_that_needs_nothing_else(ready_database: str, tmp_path: Path) -> None:
    fill(ready_database)
    out = tmp_path / "week.html"
    answer = CliRunner().invoke(
        report_command, ["weekly", "--database-url", ready_database, "--out", str(out)]
    )
    assert answer.exit_code == 0, answer.output
    html = out.read_text(encoding="utf-8")
    assert html.count("data:image/png;base64,") == 2
    assert "<link" not in html
    assert "<script" not in html


def test_the_command_is_a_dry_run_by_default(ready_database: str) -> None:
    fill(ready_database)
    answer = CliRunner().invoke(report_command, ["weekly", "--database-url", ready_database, "--send"])
    assert answer.exit_code == 0, answer.output
    assert "dry run" in answer.output


def test_the_command_prints_text_and_json(ready_database: str) -> None:
    import json

    fill(ready_database)
    text = CliRunner().invoke(report_command, ["weekly", "--database-url", ready_database])
    assert "gpuwise weekly report" in text.output
    body = json.loads(
        CliRunner().invoke(report_command, ["weekly", "--database-url", ready_database, "--json"]).stdout
    )
    assert set(body) == {"period", "subject", "overview"}
    assert body["overview"]["gpu_count"] == 3
